"""Placement of batches of rows: arrays, data frames, Arrow tables, dicts of arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from outsample.files.arrow_source import pandas_index
from outsample.files.batch_placing import BatchPlacing
from outsample.files.matching import ColumnError, check_apart, listed
from outsample.files.model_file import describe, load
from outsample.placed_frame import map_names_for


class BatchAnswers:
    """Place batches with a fitted model; see `BatchPlacer` for ``columns`` and ``keep``."""

    def __init__(
        self,
        model: Any,
        feature_names: Sequence[str] | None = None,
        map_names: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        keep: Sequence[str] = (),
    ) -> None:
        if not any(hasattr(model, name) for name in ("place", "transform", "abnormality")):
            raise TypeError(f"model is {model!r}, but must be a fitted estimator or a path.")
        check_is_fitted(model)
        self.model, self.n_features = copy(model), int(model.n_features_in_)
        names = getattr(model, "feature_names_in_", feature_names)
        # Columns are matched by name here, so that scikit-learn need not check them again.
        vars(self.model).pop("feature_names_in_", None)
        self.features = list(names) if columns is None and names is not None else columns
        has_map = getattr(model, "extension_", model) is not None
        d = _map_columns(model) if has_map else 0
        self.placing = BatchPlacing(self.model, map_names_for(d, map_names) if has_map else [])
        self.keep = list(keep)
        check_apart(self.keep, self.placing.names)

    def __call__(self, batch: Any, where: str) -> Any:
        """Return the placement of a batch; error messages start with ``where``."""
        try:
            if isinstance(batch, np.ndarray):
                has_place = hasattr(self.model, "place")
                return self.model.place(batch) if has_place else self.model.transform(batch)
            table = opened_batch(batch)
            X = self._points(table)
            placement = self.placing.columns(X) if len(X) else self.placing.empty()
            return table.like({name: table.column(name) for name in self.keep}, placement)
        except (ValueError, TypeError) as error:
            error_class = TypeError if isinstance(error, TypeError) else ColumnError
            raise error_class(f"{where}: {error}") from error

    def _points(self, table: Any) -> np.ndarray:
        names = self.features
        if names is None:
            others = {*self.keep, *table.index_names}
            names = [name for name in table.names if name not in others]
        missing = [name for name in [*names, *self.keep] if name not in table.names]
        if missing:
            raise ColumnError(f"no column {listed(missing)}; there are {listed(table.names)}")
        parts = [table.numbers(name) for name in names]
        if len(parts) == 1 and parts[0].ndim == 2:  # a tensor column
            X = parts[0]
        else:
            X = np.column_stack(parts) if parts else np.empty((0, 0))
        if X.shape[1] != self.n_features:
            raise ColumnError(
                f"{X.shape[1]} columns for the model's {self.n_features} features; list the "
                "features in columns=, and columns to copy in keep="
            )
        is_finite = np.isfinite(X)
        if not is_finite.all():
            row, at = np.argwhere(~is_finite)[0].tolist()
            name = names[at] if len(names) == X.shape[1] else at
            raise ValueError(f"row {row}, column {name!r} is missing or infinite")
        return X


def place_batches(model: Any, batches: Iterable[Any]) -> Iterator[Any]:
    """Place batches one after the other, in bounded memory.

    Parameters
    ----------
    model : estimator or path-like
        Fitted estimator, or the path of a model file.
    batches : iterable
        Arrays of shape (q, D), pandas or polars data frames, Arrow record batches or tables (such
        as a Parquet file's ``iter_batches()``), or dicts of arrays.

    Yields
    ------
    Placement, or a batch of the type of the input
        For an array, what ``place`` returns (without ``place``, ``transform``). Otherwise a table
        with the coordinates, under the names of the map in the file or ``map_1``, ``map_2``, ...,
        then those of ``error_bar``, ``abnormality``, ``p_value``, ``bound`` and ``n_neighbors``
        that the model computes. pandas frames keep their index.

    See Also
    --------
    BatchPlacer : The same for Dask, Spark and Ray.

    Examples
    --------
    >>> import numpy as np
    >>> from outsample import PCAExtension, place_batches
    >>> X = np.random.default_rng(0).random((200, 2))
    >>> extension = PCAExtension(n_neighbors=5, order=0, loss="squared").fit(X, X**2)
    >>> batches = (np.full((3, 2), value) for value in (0.2, 0.5, 0.8))
    >>> [placed.coordinates.shape for placed in place_batches(extension, batches)]
    [(3, 2), (3, 2), (3, 2)]
    """
    answers = answers_of(model) if isinstance(model, str | os.PathLike) else BatchAnswers(model)
    if isinstance(batches, np.ndarray) or hasattr(batches, "columns"):
        raise TypeError(
            "batches is one batch, but must be an iterable of batches; for one batch call place."
        )
    return (answers(batch, f"Batch {at}") for at, batch in enumerate(batches))


def answers_of(path: str | os.PathLike[str], **options: Any) -> BatchAnswers:
    """Return `BatchAnswers` of a model file, with the feature and map names of the file."""
    info = describe(path)
    return BatchAnswers(load(path), info.feature_names, info.map_names, **options)


def opened_batch(batch: Any) -> Any:
    """Return an adapter that reads the columns of a batch and builds a result of its type."""
    package = type(batch).__module__.partition(".")[0]
    if isinstance(batch, Mapping):
        return _Dict(batch)
    if package in _ADAPTERS and hasattr(batch, "columns"):
        return _ADAPTERS[package](batch)
    raise TypeError(
        f"a batch is a {type(batch).__name__}, but must be an array, a pandas or polars data "
        "frame, an Arrow record batch or table, or a dict of arrays."
    )


def _map_columns(model: Any) -> int:
    extension = model if hasattr(model, "get_feature_names_out") else model.extension_
    return len(extension.get_feature_names_out())


class _Dict:
    """A dict of arrays, as in Ray's batch format "numpy"."""

    index_names: Sequence[str] = ()

    def __init__(self, batch: Any) -> None:
        self.batch, self.names = batch, list(batch)

    def column(self, name: str) -> Any:
        return self.batch[name]

    def numbers(self, name: str) -> np.ndarray:
        values = np.asarray(self.batch[name])
        _check_kind(name, values.dtype.kind in "biuf", values.dtype)
        return values.astype(np.float64, copy=False)

    def like(self, kept: dict[str, Any], placement: dict[str, Any]) -> Any:
        return kept | placement


class _Pandas(_Dict):
    def __init__(self, batch: Any) -> None:
        self.batch, self.names = batch, list(batch.columns)

    def numbers(self, name: str) -> np.ndarray:
        from pandas.api.types import is_numeric_dtype

        values = self.batch[name]
        _check_kind(name, values.ndim == 1 and is_numeric_dtype(values), values.dtypes)
        return values.to_numpy(np.float64, na_value=np.nan)

    def like(self, kept: dict[str, Any], placement: dict[str, Any]) -> Any:
        import pandas

        return pandas.DataFrame(kept | placement, index=self.batch.index)


class _Polars(_Pandas):
    def numbers(self, name: str) -> np.ndarray:
        import polars

        values = self.batch[name]
        is_numeric = values.dtype.is_numeric() or values.dtype == polars.Boolean
        _check_kind(name, is_numeric, values.dtype)
        return values.cast(polars.Float64).fill_null(np.nan).to_numpy()

    def like(self, kept: dict[str, Any], placement: dict[str, Any]) -> Any:
        import polars

        arrays = {name: np.ascontiguousarray(values) for name, values in placement.items()}
        return polars.DataFrame(kept | arrays)


class _Arrow(_Dict):
    def __init__(self, batch: Any) -> None:
        self.batch, self.names = batch, list(batch.schema.names)
        self.index_names = pandas_index(batch.schema)

    def column(self, name: str) -> Any:
        return self.batch.column(name)

    def numbers(self, name: str) -> np.ndarray:
        from pyarrow import float64, int8, types

        values = self.batch.column(name)
        kind = values.type
        is_numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        _check_kind(name, is_numeric, kind)
        values = values.cast(int8()) if types.is_boolean(kind) else values
        return np.asarray(values.cast(float64(), safe=False).to_numpy(zero_copy_only=False))

    def like(self, kept: dict[str, Any], placement: dict[str, Any]) -> Any:
        import pyarrow

        columns = kept | {name: pyarrow.array(values) for name, values in placement.items()}
        return type(self.batch).from_arrays(list(columns.values()), names=list(columns))


_ADAPTERS: dict[str, type] = {"pandas": _Pandas, "polars": _Polars, "pyarrow": _Arrow}


def _check_kind(name: str, is_numeric: bool, kind: Any) -> None:
    if not is_numeric:
        raise ColumnError(f"column {name!r} holds {kind}, not numbers")
