"""Measure the hold-out errors of extensions on the maps of the benchmark.

For each map, the coordinates of a fifth of the points are held out and predicted, in three random
splits. The figure is the mean error relative to the size of the map; on the sphere, the mean error.
"""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outsample.comparison.coverage import Coverage, coverage, mean_coverage
from outsample.comparison.holdout import Case, measure
from outsample.points import map_size
from outsample_lab.accuracy.map_result import MapResult, MapRow
from outsample_lab.accuracy.maps import MAPS, SPHERE, MapSpec, Unavailable, cases
from outsample_lab.accuracy.peers import OURS, extenders
from outsample_lab.bench_files import select_by_name
from outsample_lab.progress import Progress, RunProgress


def select(names: Sequence[str]) -> list[MapSpec]:
    """Return the maps whose names are, or start with, those listed; all without a list.

    >>> [spec.name for spec in select(["sphere", "digits-umap"])]
    ['sphere-900', 'sphere-2500', 'digits-umap']
    """
    return select_by_name("map", MAPS, names, lambda spec: {spec.name})


def run(
    maps: Sequence[MapSpec] = MAPS,
    seeds: Sequence[int] = (0, 1, 2),
    folder: Path | None = None,
    progress: Progress | None = None,
    on_map: Callable[[MapResult], None] | None = None,
) -> list[MapResult]:
    """Measure every extension on every map, one random split per seed."""
    # Maps that need a data file are skipped without its folder; `on_map` receives each result.
    run_progress, results = RunProgress(progress, {spec.name: spec.minutes for spec in maps}), []
    for spec in maps:
        results.append(run_map(spec, seeds, folder, run_progress.part(spec.name)))
        if on_map is not None:
            on_map(results[-1])
    run_progress.finish()
    return results


def run_map(spec: MapSpec, seeds: Sequence[int], folder: Path | None, tell: Progress) -> MapResult:
    """Compute one map and measure every extension on it."""
    map_result = MapResult(spec.name, spec.title, spec.kind, spec.target)
    tell(0.0, f"{spec.title}: computing the map")
    begin = perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # disconnected graphs, sparse formats, seeds
            X, Y = spec.make(folder)
    except Unavailable as reason:
        return map_result._replace(skipped=str(reason))
    seconds = perf_counter() - begin
    splits = cases(spec, X, Y, seeds)
    size = 1.0 if spec.kind == SPHERE else map_size(Y)
    step = np.pi / (np.sqrt(len(X)) - 1) if spec.kind == SPHERE else None
    listed = extenders(spec.kind, step)
    recorder = _OursRecorder()
    rows = []
    for at, extender in enumerate(listed):
        tell(0.2 + 0.8 * at / len(listed), f"{spec.title}: {extender.name}")
        on_case = recorder if extender.family == OURS else None
        result = measure(extender.name, extender.build, splits, size, on_case)
        rows.append(MapRow(result, extender.family, extender.note))
    rows.sort(key=lambda row: (bool(row.result.failure), row.result.error))
    tenths = mean_coverage(recorder.coverages) if recorder.coverages else None
    return map_result._replace(
        rows=rows,
        n_points=len(X),
        n_columns=X.shape[1],
        n_components=Y.shape[1],
        map_seconds=seconds,
        coverage=None if tenths is None else tenths.share,
        tenths=tenths,
        chosen=tuple(recorder.chosen),
    )


class _OursRecorder:
    """Collects what our fitted extension selected, and the coverage of its error bars."""

    def __init__(self) -> None:
        self.chosen: list[str] = []
        self.coverages: list[Coverage] = []

    def __call__(self, fitted: Any, case: Case, errors: NDArray[np.float64]) -> None:
        self.chosen.append(str(fitted.model_.fitted.placer))
        self.coverages.append(coverage(fitted, case))
