"""`outsample warm-up`: compile everything beforehand, as when a container image is built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import click

from outsample.cli.exit_codes import plain_errors
from outsample.cli.options import example

# Names of steps and what each runs; every kernel that answers usual input is met in one of them.
Steps = list[tuple[str, Callable[[], object]]]
LOSSES = ("squared", "absolute")


@click.command(
    "warm-up",
    short_help="Compile what the first uses would have to wait for.",
    epilog=example("outsample warm-up"),
)
def warm_up() -> None:
    """Compile every kernel, and keep the code on disk: later processes start at once.

    For container images, and for machines that have to answer soon after their first start. The
    code is kept beside the package, or in the folder that NUMBA_CACHE_DIR names, which has to be
    the same one later; after an update, and on another kind of processor, it is compiled again.
    """
    from outsample._compiled import compiling
    from outsample.report.terminal import shown_progress

    begin, before = perf_counter(), compiling.COMPILED.count
    compiling.FIRST_USE.is_shown = True  # the bar says more
    with plain_errors(), shown_progress() as progress, TemporaryDirectory() as folder:
        steps = warm_up_steps(Path(folder))
        for at, (name, run) in enumerate(steps):
            progress(at / len(steps), name)
            run()
        progress(1.0, "done")
    count, seconds = compiling.COMPILED.count - before, perf_counter() - begin
    kept = compiling.cache_folder()
    where = f"kept in {kept}" if kept else "not kept: set NUMBA_CACHE_DIR to a folder to write to"
    if count:
        click.echo(f"Compiled {count} kernels in {seconds:.0f} s; {where}.")
    else:
        click.echo(f"Nothing to compile; {where}.")


def warm_up_steps(folder: Path) -> Steps:
    """Small runs of everything public that has kernels; files go to the folder."""
    import numpy as np
    from scipy import sparse

    import outsample as o
    from outsample.placers.repulsion_field import repulsion_field
    from outsample.placers.two_levels import TwoLevels

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    smooth, torn = X[:, :2] + 0.1 * X[:, 2:4] ** 2, X[:, :2] + 9 * (X[:, 2:4] > 0)
    wide, few, Q = rng.normal(size=(60, 300)), sparse.csr_matrix(np.maximum(X, 0)), X[:9] + 0.1

    def used(model: o.PCAExtension, points: Any = X, images: Any = smooth) -> None:
        model.fit(points, images)
        new = points[:9] * 0.99
        model.transform(new)
        model.place(new)
        model.place(new[:1])

    def fixed(**given: Any) -> Callable[[], None]:
        given = {"n_neighbors": 20, "order": 0, "loss": "squared", **given}
        return lambda: used(o.PCAExtension(**given))

    def detected(images: Any, points: Any = X) -> None:
        detector = o.NoveltyDetector().fit(points, images)
        detector.p_values(points[:9] * 0.99)
        detector.explain(points[:2] * 0.99)
        if images is not None:
            detector.place(points[:9] * 0.99)
            detector.neighbor_weights(points[:9])

    def saved(images: Any) -> None:
        o.save(o.NoveltyDetector().fit(X, images), folder / "model.outsample")
        loaded = o.load(folder / "model.outsample")
        loaded.place(Q)
        loaded.place(Q[:1])
        loaded.extension_.transform(Q)

    def extended() -> None:
        for make in (
            o.NystroemExtension, o.GeometricHarmonics, o.LaplacianPyramids, o.MultiscaleExtension,
        ):  # fmt: skip
            make().fit(X, smooth).transform(Q)

    weightings = ("distance", "tangent", "local_tangent", "split_tangent", "correlated")
    every = [(w, order, loss) for w in weightings for order in (0, 1, 2) for loss in LOSSES]
    return [
        ("smooth maps", lambda: used(o.PCAExtension())),
        ("torn maps", lambda: used(o.PCAExtension(), images=torn)),
        ("balls", fixed(radius=1.5, n_neighbors="auto", weighting="tangent")),
        *((f"{w}, order {order}", fixed(weighting=w, order=order, loss=loss))
          for w, order, loss in every),
        ("diffusions", fixed(weighting="diffusion", n_neighbors="auto")),
        ("neighbour losses", lambda: used(o.PCAExtension(weighting=o.NeighborLoss()))),
        ("the repulsion of many images", lambda: repulsion_field(smooth)),
        ("two levels", lambda: used(o.PCAExtension(weighting=TwoLevels(n_landmarks=50)))),
        ("many columns", lambda: used(o.PCAExtension(), wide, wide[:, :2])),
        ("sparse points", lambda: used(o.PCAExtension(order=0), few)),
        ("detectors", lambda: detected(None)),
        ("detectors with a map", lambda: detected(torn)),
        ("sparse detectors", lambda: detected(None, few)),
        ("model files", lambda: saved(smooth)),
        ("model files", lambda: saved(torn)),
        ("kernel methods", extended),
        ("diffusion maps", lambda: o.DiffusionMaps(n_components=2).fit(X).transform(Q)),
    ]  # fmt: skip
