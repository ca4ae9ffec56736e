"""Placement of batches of rows: arrays, data frames, Arrow tables, dicts of arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from outsample.files.array_source import ArraySource
from outsample.files.arrow_source import is_numeric, pandas_index, to_float64
from outsample.files.matching import ColumnError
from outsample.files.source import check_finite
from outsample.opened_model import OpenedModel

HINT = "; list the features in columns=, and columns to copy in keep="


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
    is_path = isinstance(model, str | os.PathLike)
    opened = OpenedModel.open(model) if is_path else OpenedModel(model)
    if isinstance(batches, np.ndarray) or hasattr(batches, "columns"):
        raise TypeError(
            "batches is one batch, but must be an iterable of batches; for one batch call place."
        )
    return (place_batch(opened, batch, f"Batch {at}") for at, batch in enumerate(batches))


def place_batch(
    opened: OpenedModel,
    batch: Any,
    where: str,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] = (),
) -> Any:
    """Return the placement of a batch; see `BatchPlacer`. Messages start with ``where``."""
    try:
        if isinstance(batch, np.ndarray):
            model = opened.array_model
            return model.place(batch) if hasattr(model, "place") else model.transform(batch)
        table = opened_batch(batch, where)
        names = columns or [n for n in table.names if n not in (*keep, *table.index_names)]
        if isinstance(batch, Mapping) and len(names) == 1 and np.ndim(batch.get(names[0], 0)) == 2:
            X = table.numbers(names[0])  # a tensor column, which has all features
            features = ArraySource(where, X).names
            opened.match(ArraySource(where, X), hint=HINT)
        else:
            matched = opened.match(table, columns=columns, carried=keep, hint=HINT)
            features = [table.names[at] for at in matched.features]
            X = np.column_stack([table.numbers(name) for name in features])
        check_finite(X, features, where, first_row=0)
        return table.like({name: table.column(name) for name in keep}, opened.place(X))
    except (ValueError, TypeError) as error:
        if str(error).startswith(where):
            raise
        error_class = TypeError if isinstance(error, TypeError) else ColumnError
        raise error_class(f"{where}: {error}") from error


def opened_batch(batch: Any, where: str) -> Any:
    """Return an adapter that reads the columns of a batch and builds a result of its type."""
    package = type(batch).__module__.partition(".")[0]
    if isinstance(batch, Mapping):
        return _Dict(batch, where)
    if package in _ADAPTERS and hasattr(batch, "columns"):
        return _ADAPTERS[package](batch, where)
    raise TypeError(
        f"a batch is a {type(batch).__name__}, but must be an array, a pandas or polars data "
        "frame, an Arrow record batch or table, or a dict of arrays."
    )


class _Dict:
    """A dict of arrays, as in Ray's batch format "numpy"."""

    index_names: Sequence[str] = ()
    has_names = True

    def __init__(self, batch: Any, path: str) -> None:
        self.batch, self.path = batch, path
        self.names = self.column_names()

    @property
    def feature_columns(self) -> list[int]:
        return [at for at, name in enumerate(self.names) if name not in self.index_names]

    def column_names(self) -> list[Any]:
        return list(self.batch)

    def column(self, name: str) -> Any:
        return self.batch[name]

    def numbers(self, name: str) -> np.ndarray:
        values = np.asarray(self.batch[name])
        _check_kind(name, values.dtype.kind in "biuf", values.dtype)
        return values.astype(np.float64, copy=False)

    def like(self, kept: dict[str, Any], placement: dict[str, Any]) -> Any:
        return kept | placement


class _Pandas(_Dict):
    def column_names(self) -> list[Any]:
        return list(self.batch.columns)

    def numbers(self, name: str) -> np.ndarray:
        from pandas.api.types import is_numeric_dtype

        values = self.batch[name]
        _check_kind(name, is_numeric_dtype(values), values.dtype)
        return np.asarray(values.to_numpy(np.float64, na_value=np.nan))

    def like(self, kept: dict[str, Any], placement: dict[str, Any]) -> Any:
        import pandas

        return pandas.DataFrame(kept | placement, index=self.batch.index)


class _Polars(_Pandas):
    def numbers(self, name: str) -> np.ndarray:
        import polars

        values = self.batch[name]
        is_number = values.dtype.is_numeric() or values.dtype == polars.Boolean
        _check_kind(name, is_number, values.dtype)
        return np.asarray(values.cast(polars.Float64).fill_null(np.nan).to_numpy())

    def like(self, kept: dict[str, Any], placement: dict[str, Any]) -> Any:
        import polars

        arrays = {name: np.ascontiguousarray(values) for name, values in placement.items()}
        return polars.DataFrame(kept | arrays)


class _Arrow(_Dict):
    def column_names(self) -> list[Any]:
        self.index_names = pandas_index(self.batch.schema)
        return list(self.batch.schema.names)

    def column(self, name: str) -> Any:
        return self.batch.column(name)

    def numbers(self, name: str) -> np.ndarray:
        values = self.batch.column(name)
        _check_kind(name, is_numeric(values.type), values.type)
        return to_float64(values)

    def like(self, kept: dict[str, Any], placement: dict[str, Any]) -> Any:
        import pyarrow

        columns = kept | {name: pyarrow.array(values) for name, values in placement.items()}
        return type(self.batch).from_arrays(list(columns.values()), names=list(columns))


_ADAPTERS: dict[str, type] = {"pandas": _Pandas, "polars": _Polars, "pyarrow": _Arrow}


def _check_kind(name: str, is_number: bool, kind: Any) -> None:
    if not is_number:
        raise ColumnError(f"column {name!r} contains {kind}, not numbers")
