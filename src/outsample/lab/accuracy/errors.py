"""How near each extension comes to the truth, on maps of every kind.

For each map: the images of a fifth of the points are hidden and placed again, in three random
splits; the figure is the mean error over the size of the map (the sphere: the mean error itself).
"""

import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outsample.comparison.holdout import Case, ComparisonRow, measure
from outsample.lab.accuracy.maps import MAPS, MapSpec, Unavailable, cases
from outsample.lab.accuracy.peers import OURS, PEER, Extender, extenders
from outsample.points import map_size

__all__ = ["MapResult", "Row", "figures", "run", "run_map", "select"]

Progress = Callable[[float, str], None]


class Row(NamedTuple):
    """One extension on one map."""

    result: ComparisonRow
    family: str
    """`peers.OURS`, `PAPER`, `KERNEL` or `PEER`."""
    note: str


class MapResult(NamedTuple):
    """One map, its rows from the smallest error to the largest, or why there are none."""

    spec: MapSpec
    rows: list[Row]
    shape: tuple[int, int, int] = (0, 0, 0)
    """Points, their columns, and those of the map."""
    map_seconds: float = 0.0
    coverage: float | None = None
    """Share of hidden points within the error bar of PCAExtension(), which promises 90 %."""
    chosen: tuple[str, ...] = ()
    """What PCAExtension() chose, split by split."""
    skipped: str = ""

    @property
    def ours(self) -> ComparisonRow | None:
        """The row of PCAExtension() with all defaults."""
        return next((row.result for row in self.rows if row.family == OURS), None)

    @property
    def best_peer(self) -> ComparisonRow | None:
        """The best row of another library."""
        peers = (row.result for row in self.rows if row.family == PEER)
        return next((row for row in peers if not row.failure), None)

    @property
    def target(self) -> float | None:
        """The error to reach: the stated one, or else that of the best peer."""
        if self.spec.target is not None:
            return self.spec.target
        return None if self.best_peer is None else self.best_peer.error

    @property
    def met(self) -> bool:
        """Whether our row reaches the target."""
        if self.ours is None or self.target is None:
            return False
        return bool(self.ours.error <= self.target)  # False for NaN: a failure meets nothing


def select(names: Sequence[str]) -> list[MapSpec]:
    """Return the maps with these names; the beginning of a name stands for all that share it.

    Parameters
    ----------
    names : sequence of str
        None at all selects every map.

    Returns
    -------
    list of MapSpec

    Examples
    --------
    >>> from outsample.lab.accuracy.errors import select
    >>> [spec.name for spec in select(["sphere", "digits-umap"])]
    ['sphere-900', 'sphere-2500', 'digits-umap']
    """
    for name in names:
        if not any(spec.name.startswith(name) for spec in MAPS):
            known = ", ".join(spec.name for spec in MAPS)
            raise ValueError(f"there is no map {name!r}; the maps are: {known}")
    exact = {spec.name for spec in MAPS} & set(names)
    starts = tuple(name for name in names if name not in exact)
    return [
        spec for spec in MAPS if not names or spec.name in exact or spec.name.startswith(starts)
    ]


def run(
    maps: Sequence[MapSpec] = MAPS,
    seeds: Sequence[int] = (0, 1, 2),
    folder: Path | None = None,
    progress: Progress | None = None,
    on_map: Callable[[MapResult], None] | None = None,
) -> list[MapResult]:
    """Measure every extension on every map.

    Parameters
    ----------
    maps : sequence of MapSpec
        The maps.
    seeds : sequence of int
        One random split each.
    folder : Path, optional
        Where the data files are; maps that need one are skipped without it.
    progress : callable, optional
        Called with the share of the work done, from 0 to 1, and what is done next.
    on_map : callable, optional
        Called with each result as soon as it is known.

    Returns
    -------
    list of MapResult
    """
    total, done, found = sum(spec.minutes for spec in maps), 0.0, []
    for spec in maps:

        def tell(part: float, what: str, spec: MapSpec = spec, done: float = done) -> None:
            if progress is not None:
                progress((done + part * spec.minutes) / total, f"{spec.title}: {what}")

        found.append(run_map(spec, seeds, folder, tell))
        done += spec.minutes
        if on_map is not None:
            on_map(found[-1])
    if progress is not None:
        progress(1.0, "done")
    return found


def run_map(spec: MapSpec, seeds: Sequence[int], folder: Path | None, tell: Progress) -> MapResult:
    """Make one map and measure every extension on it.

    Parameters
    ----------
    spec : MapSpec
        The map.
    seeds, folder
        As in `run`.
    tell : callable
        Called with the share of this map's work done, and what is done next.

    Returns
    -------
    MapResult
    """
    tell(0.0, "making the map")
    begin = perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on graphs in pieces, sparse formats, seeds
            X, Y = spec.make(folder)
    except Unavailable as reason:
        return MapResult(spec, [], skipped=str(reason))
    seconds = perf_counter() - begin
    splits = cases(spec, X, Y, seeds)
    size = map_size(Y) if spec.relative else 1.0
    step = np.pi / (np.sqrt(len(X)) - 1) if spec.kind == "sphere" else None
    listed = extenders(spec.kind, step)
    judge = _Judge(size)
    rows = []
    for at, extender in enumerate(listed):
        tell(0.2 + 0.8 * at / len(listed), extender.name)
        rows.append(_row(extender, splits, size, judge))
    rows.sort(key=lambda row: (bool(row.result.failure), row.result.error))
    shape = len(X), X.shape[1], Y.shape[1]
    return MapResult(spec, rows, shape, seconds, judge.coverage, tuple(judge.chosen))


def _row(extender: Extender, splits: Sequence[Case], size: float, judge: "_Judge") -> Row:
    on_case = judge if extender.family == OURS else None
    result = measure(extender.name, extender.build, splits, size, on_case)
    return Row(result, extender.family, extender.note)


def figures(result: MapResult) -> dict[str, Any]:
    """Return every number of one map, ready for JSON.

    Parameters
    ----------
    result : MapResult
        The map.

    Returns
    -------
    dict
    """
    spec = result.spec
    start = {"name": spec.name, "title": spec.title, "kind": spec.kind}
    if result.skipped:
        return start | {"skipped": result.skipped}
    rows = [
        {key: _finite(value) for key, value in row.result._asdict().items()}
        | {"family": row.family, "parameters": row.note}
        for row in result.rows
    ]
    n, columns, d = result.shape
    peer = result.best_peer
    return start | {
        "n_points": n,
        "n_columns": columns,
        "n_components": d,
        "error": "over the size of the map" if spec.relative else "absolute",
        "map_seconds": result.map_seconds,
        "chosen": list(result.chosen),
        "coverage": result.coverage,
        "ours": None if result.ours is None else _finite(result.ours.error),
        "best_peer": None if peer is None else peer.name,
        "target": result.target,
        "met": result.met,
        "rows": rows,
    }


class _Judge:
    """Looks at our own fitted extension: what it chose, and whether its error bars hold."""

    def __init__(self, size: float) -> None:
        self.size = size
        self.chosen: list[str] = []
        self.shares: list[float] = []

    def __call__(self, fitted: Any, case: Case, errors: NDArray[np.float64]) -> None:
        self.chosen.append(
            f"{fitted.weighting_}, {fitted.n_neighbors_} neighbours, order {fitted.order_},"
            f" {fitted.loss_} loss"
        )
        bars = fitted.place(case.X_new).error_bar
        self.shares.append(float((errors * self.size <= bars).mean()))

    @property
    def coverage(self) -> float | None:
        """Mean share of points within their bar; None before any was seen."""
        return float(np.mean(self.shares)) if self.shares else None


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
