"""Methods that accept Dask arrays and data frames, and evaluate them lazily.

The model is one node of the task graph, so that it is not sent with every block. Dask is imported
only if a method is called with a Dask collection.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np

from outsample.placed_frame import placed_columns

Result = TypeVar("Result")


def lazy_on_dask(method: Callable[[Any, Any], Result]) -> Callable[[Any, Any], Result]:
    """Decorate a method of points (q, D) to accept Dask collections.

    For a Dask array it returns a Dask array or a record of Dask arrays; for a Dask frame, a Dask
    array or a frame with the same index.
    """

    @wraps(method)
    def dispatch(self: Any, X: Any) -> Any:
        if type(X).__module__.partition(".")[0] in ("dask", "dask_expr"):
            return map_partitions(self, method.__name__, X)
        return method(self, X)

    return dispatch


def map_partitions(model: Any, name: str, X: Any) -> Any:
    """Return the lazy result of a fitted model's method ``name`` for a Dask array or frame."""
    from dask.delayed import delayed

    node = delayed(model, traverse=False, name=f"{type(model).__name__}-{uuid4().hex}")
    if hasattr(type(X), "map_partitions") and hasattr(type(X), "columns"):
        return _over_frame(model, node, name, X)
    if hasattr(type(X), "map_blocks"):
        return _over_array(model, node, name, X)
    kind = f"{type(X).__module__}.{type(X).__qualname__}"
    raise TypeError(f"X is a {kind}, but must be a Dask array or a Dask data frame.")


def _over_array(model: Any, node: Any, name: str, X: Any) -> Any:
    if X.ndim != 2:
        raise ValueError(f"X is a Dask array of {X.ndim} dimensions, but must have 2: (q, D).")
    width = 1 if np.isnan(X.shape[1]) else int(X.shape[1])
    # The result of one row gives types and shapes, and raises errors before the graph is computed.
    example = getattr(model, name)(np.zeros((1, width), X.dtype))
    X, rows = X.rechunk({1: -1}), X.chunks[0]
    if isinstance(example, np.ndarray):
        axes = {} if example.ndim == 2 else {"drop_axis": 1}
        chunks = _chunks(rows, example)
        return X.map_blocks(_block, node, name, meta=example[:0], chunks=chunks, **axes)
    # An array whose blocks are records; only their fields are used.
    records = X.map_blocks(
        _block, node, name, drop_axis=1, meta=np.empty(0, object), chunks=(rows,)
    )
    fields = []
    for field, part in example._asdict().items():
        axes = {} if part.ndim == 1 else {"new_axis": 1}
        chunks = _chunks(rows, part)
        fields.append(records.map_blocks(getattr, field, meta=part[:0], chunks=chunks, **axes))
    return type(example)(*fields)


def _over_frame(model: Any, node: Any, name: str, X: Any) -> Any:
    example = getattr(model, name)(X._meta_nonempty)
    if isinstance(example, np.ndarray):
        return X.map_partitions(_partition, node, name, meta=example[:0])
    meta = example.to_frame(index=X._meta_nonempty.index).iloc[:0]
    return X.map_partitions(_framed, node, name, meta, meta=meta)


def _chunks(rows: Any, part: np.ndarray) -> tuple[Any, ...]:
    return (rows, *((size,) for size in part.shape[1:]))


def _block(rows: Any, model: Any, name: str, block_info: Any = None) -> Any:
    number = block_info[0]["chunk-location"][0] if block_info else 0
    return _answer(rows, model, name, number)


def _partition(rows: Any, model: Any, name: str, partition_info: Any = None) -> Any:
    return _answer(rows, model, name, partition_info["number"] if partition_info else 0)


def _framed(rows: Any, model: Any, name: str, meta: Any, partition_info: Any = None) -> Any:
    if not len(rows):
        return meta.set_index(rows.index)
    placed = _partition(rows, model, name, partition_info)
    import pandas

    return pandas.DataFrame(placed_columns(placed), index=rows.index)


def _answer(rows: Any, model: Any, name: str, number: int) -> Any:
    """Return the result of one block; error messages contain its number."""
    try:
        if len(rows):
            return getattr(model, name)(rows)
        row = np.zeros((1, rows.shape[1]), getattr(rows, "dtype", float))
        if hasattr(rows, "columns"):
            row = type(rows)(row, columns=rows.columns).astype(rows.dtypes)
        result = getattr(model, name)(row)
        if isinstance(result, np.ndarray):
            return result[:0]
        return type(result)(*(field[:0] for field in result))
    except (ValueError, TypeError) as error:
        error_class = TypeError if isinstance(error, TypeError) else ValueError
        raise error_class(f"Partition {number} of X: {error}") from error
