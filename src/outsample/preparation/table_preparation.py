"""`TablePreparation`: a table with columns of any kind to points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from outsample._validation import check_choice, is_map
from outsample.preparation.columns import SPARSE_COLUMNS, Columns, describe_columns
from outsample.preparation.recipes import (
    PreparationTrials,
    Recipe,
    build_pipeline,
    choose_recipe,
    output_sources,
)
from outsample.preparation.table_cells import Table, check_table, read_table


class TablePreparation(TransformerMixin, BaseEstimator):
    """Turn a table with numbers, categories, dates and missing cells into points.

    Numbers are standardised, categories become indicator columns that are sqrt(2) apart, dates
    become days, missing cells are filled from the five nearest rows; ids and constant columns are
    not used. With a map, the scaling, the filling and weights of the columns are chosen by
    leave-one-out on the map.

    Parameters
    ----------
    kinds : dict of str to str, default=None
        Kinds of columns by name, where the automatic kind is wrong: ``"number"``, ``"category"``,
        ``"date"``, ``"vector"`` (left as it is), ``"id"`` or ``"drop"`` (not used).
    fill : {"auto", "neighbors", "median", "refuse"}, default="auto"
        How missing cells are filled: from the five nearest rows, or by the median, with an
        indicator column. ``"auto"`` is ``"neighbors"``, unless the map is better reproduced by
        the other one. ``"refuse"`` raises an error.

    Attributes
    ----------
    columns_ : Columns
        One row per column of the table; prints as a table.
    pipeline_ : Pipeline
        The fitted scikit-learn transformers, which follow the encoding of the columns.
    selection_ : PreparationTrials
        The preparations that were compared on the map; empty without a map.
    sources_ : ndarray of int
        For each output column, the number of the column of the table that it comes from.
    n_features_in_ : int
        Number of columns of the table.

    Examples
    --------
    >>> from outsample.preparation.table_preparation import TablePreparation
    >>> table = {"mass": [3.0, 4.0, 5.0], "sex": ["f", "m", "f"], "study": ["A", "A", "A"]}
    >>> preparation = TablePreparation().fit(table)
    >>> print(preparation.columns_)
    column  kind      treatment                           range
    mass    number    standardised                        3 to 5
    sex     category  one-hot, 1 categories and 1 rare    f, m
    study   constant  not used: constant                  A
    >>> preparation.transform({"mass": [4.0], "sex": ["x"]})
    array([[0., 0., 0., 1.]])
    """

    columns_: Columns
    pipeline_: Pipeline
    selection_: PreparationTrials
    sources_: np.ndarray
    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(self, kinds: Mapping[str, str] | None = None, fill: str = "auto") -> None:
        self.kinds = kinds
        self.fill = fill

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: any cells are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        return tags

    def fit(self, table: Any, y: Any = None) -> Self:
        """Decide what is done with each column.

        Parameters
        ----------
        table : pandas or polars frame, Arrow table, dict of columns, array or sparse matrix
            Training rows, at least two.
        y : array-like of shape (n, d), default=None
            A map of the rows, by which the preparation is chosen; class labels are ignored.

        Returns
        -------
        self
        """
        check_choice("fill", self.fill, ("auto", "neighbors", "median", "refuse"))
        self.selection_ = PreparationTrials()
        table = check_table(table, least_rows=2)
        if sparse.issparse(table):
            self.n_features_in_ = table.shape[1]
            self.columns_ = SPARSE_COLUMNS
            self.pipeline_ = Pipeline([("as_it_is", "passthrough")]).fit(table)
            self.sources_ = np.zeros(table.shape[1], dtype=np.intp)
            return self
        cells = read_table(table, 2)
        self.n_features_in_ = len(cells.columns)
        if cells.names is not None:
            self.feature_names_in_ = np.array(cells.names, dtype=object)
        self.columns_ = describe_columns(cells, self.kinds)
        if not any(column.outputs for column in self.columns_):
            raise ValueError(f"No column of the table can be used:\n{self.columns_}")
        encoded = self._encode(cells)
        recipe = Recipe(fill="median" if self.fill == "median" else "neighbors")
        if is_map(y):
            fill = "neighbors" if self.fill == "refuse" else self.fill
            recipe, self.selection_ = choose_recipe(
                self.columns_, encoded, np.asarray(y, dtype=np.float64), fill
            )
        self.pipeline_ = build_pipeline(recipe, self.columns_, encoded)
        self.sources_ = output_sources(recipe, self.columns_, encoded)
        return self

    def transform(self, table: Any) -> Any:
        """Return the rows as points.

        Parameters
        ----------
        table : pandas or polars frame, Arrow table, dict of columns, array or sparse matrix
            Rows. Columns of a frame are matched by name: their order does not matter, and
            columns that were not there in ``fit`` are ignored.

        Returns
        -------
        ndarray of shape (q, D)
            float32 for a float32 array, else float64; a sparse matrix if ``fit`` was given one.
        """
        check_is_fitted(self)
        table = check_table(table)
        if sparse.issparse(table):
            self._check_width(table.shape[1])
            if self.columns_ == SPARSE_COLUMNS:
                return table
            table = table.toarray()
        encoded = self._encode(self._match(table))
        kind = np.float32 if getattr(table, "dtype", None) == np.float32 else np.float64
        return self.pipeline_.transform(encoded).astype(kind, copy=False)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the output columns, which begin with those of the table."""
        check_is_fitted(self)
        names = [name for column in self.columns_ for name in column.outputs]
        if len(names) != len(self.sources_):
            names = [f"{self.columns_[at].name}_{i}" for i, at in enumerate(self.sources_)]
        return np.array(names, dtype=object)

    def _match(self, table: Any) -> Table:
        """Return the columns of the table in the order of ``fit``."""
        cells = read_table(table)
        if cells.names is None or not hasattr(self, "feature_names_in_"):
            self._check_width(len(cells.columns))
            return cells
        by_name = dict(zip(cells.names, cells.columns, strict=True))
        missing = [c.name for c in self.columns_ if c.outputs and c.name not in by_name]
        if missing:
            raise ValueError(f"The table lacks the column(s) {', '.join(map(repr, missing))}.")
        unused = np.empty(0)
        return Table(cells.names, [by_name.get(c.name, unused) for c in self.columns_])

    def _check_width(self, n_columns: int) -> None:
        if n_columns != self.n_features_in_:
            raise ValueError(
                f"X has {n_columns} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )

    def _encode(self, cells: Table) -> np.ndarray:
        used = [(c, v) for c, v in zip(self.columns_, cells.columns, strict=True) if c.outputs]
        encoded = np.hstack([column.encode(values) for column, values in used])
        owners = [column.name for column, _ in used for _ in column.outputs]
        faults = [(np.isinf(encoded), "infinity")]
        if self.fill == "refuse":
            faults.append((np.isnan(encoded), "a missing cell"))
        for is_wrong, fault in faults:
            if is_wrong.any():
                row, at = np.argwhere(is_wrong)[0]
                raise ValueError(f"Column {owners[at]!r} contains {fault} in row {row}.")
        return encoded
