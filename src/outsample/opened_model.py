"""A fitted or saved model as the command line, engines, AnnData and pages use it.

Rows of any table become features here and nowhere else: columns are matched and checked, rows are
placed and explained, and the result is columns by name.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from typing import Any

import numpy as np

from outsample._validation import check_fitted
from outsample.files.matching import Matched, match_features
from outsample.files.model_file import ModelInfo, describe, load, read_columns
from outsample.files.source import Columns, Position, Rows, Source, check_finite
from outsample.files.table_writer import Records
from outsample.placed_frame import PLACED_NUMBERS, map_names_for

SCORES = ("abnormality", "p_value")
EXPLANATION_COLUMNS = ("main_reason", "neighbors")


class OpenedModel:
    """A fitted model with the names of its features, of its map and of its training columns.

    Parameters
    ----------
    model : estimator
        Fitted: a `NoveltyDetector`, or anything with ``place`` or ``transform``.
    info : ModelInfo, default=None
        Description in the model's file.
    training_columns : mapping of str to ndarray of shape (n,), default=None
        Columns about the training rows, such as ids and labels.

    Attributes
    ----------
    model : estimator
        The model.
    array_model : estimator
        The model without feature names, for arrays whose columns have been matched.
    n_features : int
        Number of features.
    feature_names : list of str or None
        Names of the features.
    map_names : list of str
        Names of the coordinates; empty without a map.
    """

    def __init__(
        self,
        model: Any,
        info: ModelInfo | None = None,
        training_columns: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        if not any(hasattr(model, name) for name in ("place", "transform", "abnormality")):
            raise TypeError(f"model is {model!r}, but must be a fitted estimator or a path.")
        check_fitted(model)
        self.model, self.array_model = model, _without_feature_names(model)
        self.n_features = int(model.n_features_in_)
        names = getattr(model, "feature_names_in_", None if info is None else info.feature_names)
        self.feature_names = None if names is None else list(names)
        self.training_columns = dict(training_columns or {})
        n_coordinates = _map_width(model) if info is None else info.n_coordinates or 0
        self.map_names = map_names_for(n_coordinates, info and info.map_names, taken=PLACED_NUMBERS)
        self.numbers = self._numbers()

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> OpenedModel:
        """Open a model file."""
        return cls(load(path), describe(path), read_columns(path))

    @property
    def can_explain(self) -> bool:
        """Whether the model gives reasons for its scores."""
        return hasattr(self.model, "explain")

    def match(self, table: Columns, **options: Any) -> Matched:
        """Find the features in a table; `match_features` has the options."""
        return match_features(table, self.feature_names, self.n_features, **options)

    def place(self, X: Any, *, explain: bool = False) -> dict[str, Any]:
        """Return the columns of the placement of points (q, D), whose columns are the features.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (q, D)
            Finite numbers.
        explain : bool, default=False
            Also return ``main_reason`` and ``neighbors``.

        Returns
        -------
        dict of str to ndarray of shape (q,), or `Records`
            Coordinates under the names of the map, then the numbers that the model computes.
        """
        if X.shape[0] == 0:
            return self.empty(explain=explain)
        model = self.array_model
        coordinates, numbers = np.empty((X.shape[0], 0)), {}
        if self.numbers == SCORES:
            numbers = {"abnormality": model.abnormality(X), "p_value": model.p_values(X)}
        elif self.numbers:
            placed = model.place(X)
            coordinates = placed.coordinates
            numbers = {name: getattr(placed, name) for name in self.numbers}
        else:
            coordinates = model.transform(X)
        columns = dict(zip(self.map_names, coordinates.T, strict=True)) | numbers
        return columns | (self._explanation_columns(X) if explain else {})

    def empty(self, *, explain: bool = False) -> dict[str, Any]:
        """Return the columns of the placement of no points."""
        columns: dict[str, Any] = {
            name: np.empty(0, np.int64 if name == "n_neighbors" else np.float64)
            for name in (*self.map_names, *self.numbers)
        }
        return columns | (self._explanation_columns(None) if explain else {})

    def place_rows(self, X: np.ndarray, *, explain: bool = False) -> dict[str, Any]:
        """Place points (q, D) as `place` does; rows that are not finite have masked results."""
        is_finite = np.isfinite(X).all(axis=1)
        if is_finite.all():
            return self.place(X, explain=explain)
        columns = self.place(X[is_finite], explain=explain)
        return {name: _spread(values, is_finite) for name, values in columns.items()}

    def place_table(
        self,
        table: Source,
        matched: Matched,
        start: Position = Position(),  # noqa: B008
        *,
        explain: bool = False,
        n_threads: int = 1,
        allow_bad_rows: bool = False,
    ) -> Iterator[tuple[Rows, dict[str, Any]]]:
        """Read a table from a position on, and place it chunk by chunk in bounded memory.

        Yields the chunks in their order with the columns of their placement. Chunks are placed by
        threads while the next one is read. A row with a value that is missing or infinite raises
        CellError, unless ``allow_bad_rows``; then its results are masked.
        """
        feature_names = [table.names[at] for at in matched.features]
        pending: deque[tuple[Rows, Future[dict[str, Any]]]] = deque()
        pool = ThreadPoolExecutor(n_threads)
        try:
            for rows in table.rows(
                matched.features, matched.carried, start, lenient=allow_bad_rows
            ):
                if not allow_bad_rows:
                    check_finite(rows.numbers, feature_names, table.path, rows.begin.row + 1)
                pending.append((rows, pool.submit(self.place_rows, rows.numbers, explain=explain)))
                if len(pending) > n_threads:
                    placed_rows, columns = pending.popleft()
                    yield placed_rows, columns.result()
            for placed_rows, columns in pending:
                yield placed_rows, columns.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _numbers(self) -> tuple[str, ...]:
        """Return the numbers that the model computes besides the coordinates."""
        core = self.model.extension if hasattr(self.model, "learn") else self.model
        has_scores = hasattr(core, "p_values")
        if has_scores and not self.map_names:
            return SCORES
        if not hasattr(self.model, "place"):
            return ()
        return tuple(name for name in PLACED_NUMBERS if has_scores or name not in SCORES)

    def _explanation_columns(self, X: Any) -> dict[str, Any]:
        """Return the main reasons, and the neighbours with the names of their training rows."""
        if not self.can_explain:
            raise ValueError(
                f"{type(self.model).__name__} cannot explain points: fit a model with a detector"
            )
        explanations = [] if X is None else self.array_model.explain(X)
        reasons = np.array([each.main_reason for each in explanations], dtype=object)
        fields: dict[str, type] = {"ids": int, "distances": float}
        neighbors = [
            {"ids": each.neighbors.tolist(), "distances": each.distances.tolist()}
            for each in explanations
        ]
        for row_names in [*self.training_columns.values()][:1]:
            fields["names"] = str
            for record in neighbors:
                record["names"] = [str(row_names[row]) for row in record["ids"]]
        return dict(zip(EXPLANATION_COLUMNS, (reasons, Records(neighbors, fields)), strict=True))


def _without_feature_names(model: Any) -> Any:
    """Return a copy that takes arrays without a warning; of a stream, with its present state."""
    unnamed = copy(model)
    vars(unnamed).pop("feature_names_in_", None)
    if hasattr(model, "learn"):  # a stream checks rows by the estimator inside it
        vars(unnamed)["extension"] = _without_feature_names(model.extension)
    return unnamed


def _map_width(model: Any) -> int:
    extension = model if hasattr(model, "get_feature_names_out") else model.extension_
    return 0 if extension is None else len(extension.get_feature_names_out())


def _spread(values: Any, is_placed: np.ndarray) -> Any:
    """Return a column of the placed rows as one of all rows, masked or empty for the others."""
    if isinstance(values, Records):
        cells = iter(values)
        return Records((next(cells) if placed else None for placed in is_placed), values.fields)
    if values.dtype.kind == "O":
        column = np.full(len(is_placed), "", dtype=object)
    else:
        column = np.ma.masked_all(len(is_placed), values.dtype)
    column[is_placed] = values
    return column
