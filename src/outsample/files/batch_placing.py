"""Rows of any number placed by a model, chunk after chunk, in their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from outsample.files.source import CellError, Rows
from outsample.files.table_writer import Records

# Names of the numbers beside the coordinates, in the order of their columns.
NUMBERS = ("error_bar", "abnormality", "p_value", "bound", "n_neighbors")
EXPLAINED = ("main_reason", "neighbors")


class Placed(NamedTuple):
    """Rows that were read, and the columns of their places."""

    rows: Rows
    columns: dict[str, Any]


class BatchPlacing:
    """Places of new points as columns: coordinates, and numbers that tell how good they are.

    Parameters
    ----------
    model : estimator
        Fitted: a `NoveltyDetector`, anything with ``place``, or with ``transform``.
    map_names : sequence of str
        Names of the coordinates.
    explain : bool, default=False
        Add ``main_reason`` and ``neighbors``; needs a `NoveltyDetector`.
    training_names : sequence of str, default=None
        What to call the training points that are named as neighbours, beside their rows.
    """

    def __init__(
        self,
        model: Any,
        map_names: Sequence[str],
        *,
        explain: bool = False,
        training_names: Sequence[str] | None = None,
    ) -> None:
        if explain and not hasattr(model, "explain"):
            raise ValueError(
                f"{type(model).__name__} has no reasons to give: fit a model with a detector"
            )
        self.model, self.map_names, self.explain = model, list(map_names), explain
        self.training_names = training_names

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.empty())

    def empty(self) -> dict[str, Any]:
        """Return the columns of no point at all."""
        numbers = [name for name in NUMBERS if name in self._fields()]
        kinds = dict.fromkeys([*self.map_names, *numbers], np.float64) | (
            {"n_neighbors": np.int64} if "n_neighbors" in numbers else {}
        )
        columns: dict[str, Any] = {name: np.empty(0, kind) for name, kind in kinds.items()}
        return columns | (self._explained([]) if self.explain else {})

    def columns(self, X: np.ndarray) -> dict[str, Any]:
        """Place points (q, D); where one has a number that is not finite, all is masked."""
        fine = np.isfinite(X).all(axis=1)
        if fine.all():
            return self._placed(X)
        found = self._placed(X[fine]) if fine.any() else self.empty()
        return {name: _spread(values, fine) for name, values in found.items()}

    def place(
        self,
        chunks: Iterable[Rows],
        *,
        jobs: int = 1,
        path: str = "",
        features: Sequence[str] = (),
        lenient: bool = False,
    ) -> Iterator[Placed]:
        """Place chunks by that many threads, while the next one is read; in their order.

        Rows with a number that is not finite are refused, by the names of the file and of its
        features, or left empty if lenient.
        """
        waiting: deque[tuple[Rows, Future[dict[str, Any]]]] = deque()
        pool = ThreadPoolExecutor(jobs)
        try:
            for rows in chunks:
                if not lenient:
                    check_finite(rows, path, features)
                waiting.append((rows, pool.submit(self.columns, rows.numbers)))
                if len(waiting) > jobs:
                    yield _first(waiting)
            while waiting:
                yield _first(waiting)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _fields(self) -> Sequence[str]:
        if hasattr(self.model, "explain"):  # a detector, with or without a map
            judged = ("abnormality", "p_value")
            return judged if self.model.extension_ is None else NUMBERS
        if hasattr(self.model, "place"):
            return [name for name in NUMBERS if name not in ("abnormality", "p_value")]
        return ()

    def _placed(self, X: np.ndarray) -> dict[str, Any]:
        fields = self._fields()
        if "error_bar" in fields:
            placed = self.model.place(X)
            coordinates = placed.coordinates
            numbers = {name: getattr(placed, name) for name in NUMBERS if name in fields}
        elif fields:
            coordinates = np.empty((len(X), 0))
            numbers = {"abnormality": self.model.abnormality(X), "p_value": self.model.p_values(X)}
        else:
            coordinates, numbers = self.model.transform(X), {}
        columns = dict(zip(self.map_names, coordinates.T, strict=True)) | numbers
        return columns | (self._explained(self.model.explain(X)) if self.explain else {})

    def _explained(self, told: Sequence[Any]) -> dict[str, Any]:
        reasons = np.array([one.main_reason for one in told], dtype=object)
        fields: dict[str, type] = {"ids": int, "distances": float}
        near = [{"ids": t.neighbors.tolist(), "distances": t.distances.tolist()} for t in told]
        if self.training_names is not None:
            fields["names"] = str
            for one in near:
                one["names"] = [str(self.training_names[row]) for row in one["ids"]]
        return dict(zip(EXPLAINED, (reasons, Records(near, fields)), strict=True))


def check_finite(rows: Rows, path: str, features: Sequence[str]) -> None:
    """Refuse rows with a number that is missing or infinite, and say where."""
    fine = np.isfinite(rows.numbers)
    if not fine.all():
        row, column = np.argwhere(~fine)[0].tolist()
        value = rows.numbers[row, column]
        what = "has no number" if np.isnan(value) else "is infinite"
        name = features[column] if features else str(column + 1)
        raise CellError(f"{path}: row {rows.begin.row + row + 1}, column {name!r} {what}")


def _first(waiting: deque[tuple[Rows, Future[dict[str, Any]]]]) -> Placed:
    rows, found = waiting.popleft()
    return Placed(rows, found.result())


def _spread(values: Any, fine: np.ndarray) -> Any:
    """Columns of the rows that could be placed, among those that could not."""
    if isinstance(values, Records):
        cells = iter(values)
        return Records((next(cells) if one else None for one in fine), values.fields)
    if values.dtype.kind == "O":
        spread = np.full(len(fine), "", dtype=object)
        spread[fine] = values
        return spread
    spread = np.ma.masked_all(len(fine), values.dtype)
    spread[fine] = values
    return spread
