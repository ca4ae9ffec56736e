"""Errors against the number of training points, on a smooth and a torn map."""

import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outsample import DiffusionMaps
from outsample_lab.accuracy.maps import MNIST_FILE, Unavailable, data_file, mnist_points
from outsample_lab.speed import made_up
from outsample_lab.speed.errands import in_fresh_process
from outsample_lab.speed.made_up import IMAGES
from outsample_lab.speed.sizes import Ground, absent
from outsample_lab.speed.speed_result import Curve, PartResult, Target

Array = NDArray[np.float64]
SMOOTH, TORN = "smooth", "torn"
ALL_POINTS = {"weighting": "correlated", "order": 0, "loss": "squared"}
EXACT_ROWS = 8192  # Maximum number of points of an exact process
STEPS = (2000, 4000, 8000, 16_000, 32_000)  # Each must have a lower error than the previous one
FIT_SECONDS, FIT_MEGABYTES = 60.0, 2000.0


def more_points(ground: Ground) -> PartResult:
    """Measure the errors of fits to nested subsets of two maps, on the same hidden points."""
    X, source = _points(ground)
    words = [
        f"Points: {source}. Both maps are computed from all points; {ground.sizes.held_out:,}"
        " random points are held out, and nested subsets of the others are fitted with all"
        " defaults, each in a new process. Error: mean distance to the true position relative to"
        " the size of the map.",
    ]
    curves, targets = [], []
    with tempfile.TemporaryDirectory() as folder:
        for at, (name, make) in enumerate(((SMOOTH, _smooth), (TORN, _torn))):
            ground.tell(at / 2, f"computing the {name} map")
            Y, made_by = make(ground, X)
            words.append(f"The {name} map is {made_by}.")
            _keep(Path(folder), name, X, Y, ground.sizes.held_out)
            results = _fits(ground, folder, name, at)
            curves += _curves(ground.sizes.errors, name, results)
            targets += _targets(ground, folder, name, results)
            words.append(f"Selected on the {name} map: " + "; ".join(
                f"{n:,}: {result['chosen']}" for n, result in results.items()) + ".")  # fmt: skip
    return PartResult("errors", "Error by number of points", words, targets, [], curves)


def _points(ground: Ground) -> tuple[Array, str]:
    n = max(ground.sizes.errors) + ground.sizes.held_out
    try:
        X = mnist_points(data_file(ground.folder, MNIST_FILE), n)
    except Unavailable as fault:
        return made_up.cloud(IMAGES, n, 1).X, f"synthetic, because there is {fault}"
    return X, f"{len(X):,} images of MNIST, 50 principal components"


def _smooth(ground: Ground, X: Array) -> tuple[Array, str]:
    made = DiffusionMaps(n_components=5).fit_transform(X)
    return np.asarray(made), "a diffusion map of five columns, by a self-tuning kernel"


def _torn(ground: Ground, X: Array) -> tuple[Array, str]:
    if not ground.sizes.umap or absent("umap"):
        return made_up.torn_map(X), "synthetic: a plane cut into cells that are moved"
    import umap

    reducer: Any = umap.UMAP(random_state=0, n_jobs=1)
    return np.asarray(reducer.fit_transform(X), dtype=np.float64), "computed by UMAP, all defaults"


def _keep(folder: Path, name: str, X: Array, Y: Array, held_out: int) -> None:
    order = np.random.default_rng(0).permutation(len(X))
    new, training = order[:held_out], order[held_out:]
    for part, values in zip("XYQT", (X[training], Y[training], X[new], Y[new]), strict=True):
        np.save(folder / f"{name}-{part}.npy", values)


def _fits(ground: Ground, folder: str, name: str, at: int) -> dict[int, dict[str, Any]]:
    sizes, results = ground.sizes.errors, {}
    for step, n in enumerate(sizes):
        ground.tell(at / 2 + 0.1 + 0.4 * step / len(sizes), f"{name} map, {n:,} points")
        results[n] = in_fresh_process("error_at", folder=folder, name=name, n=n, parameters={})
    return results


def _curves(sizes: Sequence[int], name: str, results: dict[int, dict[str, Any]]) -> list[Curve]:
    charts = {"error": ("Error against training points", "relative error"),
              "seconds": ("Time of a fit with all defaults", "seconds"),
              "peak": ("Memory of a fit with all defaults", "MB")}  # fmt: skip
    return [
        Curve(chart, "training points", y, f"{name} map", [float(n) for n in sizes],
              [results[n][key] for n in sizes])
        for key, (chart, y) in charts.items()
    ]  # fmt: skip


def _targets(
    ground: Ground, folder: str, name: str, results: dict[int, dict[str, Any]]
) -> list[Target]:
    errors = {n: result["error"] for n, result in results.items()}
    sizes = list(errors)
    shown = ", ".join(f"{n:,}: {errors[n]:.4g}" for n in sizes)
    words = f"{name} map: largest step of the error, n = {sizes[0]:,} to {sizes[-1]:,}"
    targets = [Target(words, 1.0, _largest_step(errors, sizes), note=shown)]
    if name != SMOOTH:
        return targets
    steps = [n for n in STEPS if n in errors]
    if len(steps) > 1:
        words = f"smooth map: largest step among n = {steps[0]:,} to {steps[-1]:,}"
        targets.append(Target(words, 1.0, _largest_step(errors, steps)))
    beyond = min((n for n in sizes if n > EXACT_ROWS), default=sizes[-1])
    n = min(beyond, EXACT_ROWS)
    ground.tell(0.5, f"exact process over {n:,} points")
    exact = in_fresh_process(
        "error_at", folder=folder, name=name, n=n, parameters=ALL_POINTS | {"n_neighbors": n}
    )
    words = f"smooth map, {beyond:,} points: error over exact process of {n:,}"
    note = f"{errors[beyond]:.4g} and {exact['error']:.4g}"
    targets.append(Target(words, 1.03, errors[beyond] / exact["error"], note=note))
    at = 32_000 if 32_000 in results else sizes[-1]
    start = f"smooth map, {at:,} points: fit with all defaults"
    return [
        *targets,
        Target(f"{start}, time", FIT_SECONDS, results[at]["seconds"], unit="s"),
        Target(f"{start}, memory", FIT_MEGABYTES, results[at]["peak"], unit="MB"),
    ]


def _largest_step(errors: dict[int, float], sizes: Sequence[int]) -> float:
    return max(errors[after] / errors[n] for n, after in pairwise(sizes))
