"""`outsample warm-up`: compile all kernels beforehand, such as in a container image."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import click

from outsample.cli.exit_codes import plain_errors
from outsample.cli.options import example

# Names of steps and the function of each; together they run every kernel for usual input.
Steps = list[tuple[str, Callable[[], object]]]
LOSSES = ("squared", "absolute")


@click.command(
    "warm-up",
    short_help="Compile all kernels now, not at their first use.",
    epilog=example("outsample warm-up"),
)
def warm_up() -> None:
    """Compile every kernel and keep the code on disk, so that later processes start at once.

    For container images, and for machines that must answer soon after their start. The code is
    kept next to the package, or in the folder NUMBA_CACHE_DIR, which must be the same later. After
    an update, and on another type of processor, it is compiled again.
    """
    from outsample._compiled import compiling
    from outsample.report.terminal import shown_progress

    start_time, count_before = perf_counter(), compiling.COMPILED.count
    compiling.FIRST_USE.is_shown = True  # the progress bar shows more
    with plain_errors(), shown_progress() as progress, TemporaryDirectory() as folder:
        steps = warm_up_steps(Path(folder))
        for at, (name, run) in enumerate(steps):
            progress(at / len(steps), name)
            run()
        progress(1.0, "done")
    count, seconds = compiling.COMPILED.count - count_before, perf_counter() - start_time
    folder_kept = compiling.cache_folder()
    where = "not kept: set NUMBA_CACHE_DIR to a writable folder"
    where = f"kept in {folder_kept}" if folder_kept else where
    if count:
        click.echo(f"Compiled {count} kernels in {seconds:.0f} s; {where}.")
    else:
        click.echo(f"Nothing to compile; {where}.")


def warm_up_steps(folder: Path) -> Steps:
    """Return small runs of all public functions that have kernels; files go to the folder."""
    import numpy as np
    from scipy import sparse

    import outsample as o
    from outsample.placers.repulsion_field import repulsion_field
    from outsample.placers.two_levels import TwoLevels

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    smooth, torn = X[:, :2] + 0.1 * X[:, 2:4] ** 2, X[:, :2] + 9 * (X[:, 2:4] > 0)
    wide, sparse_X, Q = rng.normal(size=(60, 300)), sparse.csr_matrix(np.maximum(X, 0)), X[:9] + 0.1

    def used(model: o.PCAExtension, points: Any = X, images: Any = smooth) -> None:
        model.fit(points, images)
        new = points[:9] * 0.99
        model.transform(new)
        model.place(new)
        model.place(new[:1])

    def fixed(**parameters: Any) -> Callable[[], None]:
        parameters = {"n_neighbors": 20, "order": 0, "loss": "squared", **parameters}
        return lambda: used(o.PCAExtension(**parameters))

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
        ("sparse points", lambda: used(o.PCAExtension(order=0), sparse_X)),
        ("detectors", lambda: detected(None)),
        ("detectors with a map", lambda: detected(torn)),
        ("sparse detectors", lambda: detected(None, sparse_X)),
        ("model files", lambda: saved(smooth)),
        ("model files", lambda: saved(torn)),
        ("kernel methods", extended),
        ("diffusion maps", lambda: o.DiffusionMaps(n_components=2).fit(X).transform(Q)),
    ]  # fmt: skip
