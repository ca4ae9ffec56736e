"""Rows over Dask: methods that answer Dask collections lazily, block by block.

The model is one node of the graph, to which the tasks of all blocks refer; it is not sent with each
of them. Dask is imported only when a collection of its own comes in.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np

from outsample.placed_frame import placed_columns

Answer = TypeVar("Answer")


def lazy_on_dask(method: Callable[[Any, Any], Answer]) -> Callable[[Any, Any], Answer]:
    """Let a method of points (q, D) take a Dask array or frame, and answer by Dask arrays.

    A record of arrays becomes a record of Dask arrays, and of a frame a frame with the index of it.
    """

    @wraps(method)
    def answered(self: Any, X: Any) -> Any:
        if type(X).__module__.partition(".")[0] in ("dask", "dask_expr"):
            return over_blocks(self, method.__name__, X)
        return method(self, X)

    return answered


def over_blocks(model: Any, name: str, X: Any) -> Any:
    """Return the lazy answer of a fitted model's method to a Dask array or frame."""
    from dask.delayed import delayed

    node = delayed(model, traverse=False, name=f"{type(model).__name__}-{uuid4().hex}")
    if hasattr(type(X), "map_partitions") and hasattr(type(X), "columns"):
        return _of_frame(model, node, name, X)
    if hasattr(type(X), "map_blocks"):
        return _of_array(model, node, name, X)
    what = f"{type(X).__module__}.{type(X).__qualname__}"
    raise TypeError(f"X is a {what}, but of Dask's collections only arrays and frames hold points.")


def _of_array(model: Any, node: Any, name: str, X: Any) -> Any:
    if X.ndim != 2:
        raise ValueError(f"X is a Dask array of {X.ndim} dimensions, but must have 2: (q, D).")
    width = 1 if np.isnan(X.shape[1]) else int(X.shape[1])
    told = getattr(model, name)(np.zeros((1, width), X.dtype))  # refuses what it would refuse later
    X, rows = X.rechunk({1: -1}), X.chunks[0]
    if isinstance(told, np.ndarray):
        axes = {} if told.ndim == 2 else {"drop_axis": 1}
        return X.map_blocks(_block, node, name, meta=told[:0], chunks=_chunks(rows, told), **axes)
    # Blocks that are records: nothing looks into them but the fields.
    records = {"meta": np.empty(0, object), "chunks": (rows,)}
    placed = X.map_blocks(_block, node, name, drop_axis=1, **records)
    fields = []
    for field, part in told._asdict().items():
        axes = {} if part.ndim == 1 else {"new_axis": 1}
        chunks = _chunks(rows, part)
        fields.append(placed.map_blocks(getattr, field, meta=part[:0], chunks=chunks, **axes))
    return type(told)(*fields)


def _of_frame(model: Any, node: Any, name: str, X: Any) -> Any:
    told = getattr(model, name)(X._meta_nonempty)
    if isinstance(told, np.ndarray):
        return X.map_partitions(_partition, node, name, meta=told[:0])
    meta = told.to_frame(index=X._meta_nonempty.index).iloc[:0]
    return X.map_partitions(_framed, node, name, meta, meta=meta)


def _chunks(rows: Any, part: np.ndarray) -> tuple[Any, ...]:
    return (rows, *((size,) for size in part.shape[1:]))


def _block(rows: Any, model: Any, name: str, block_info: Any = None) -> Any:
    at = block_info[0]["chunk-location"][0] if block_info else 0
    return _answer(rows, model, name, at)


def _partition(rows: Any, model: Any, name: str, partition_info: Any = None) -> Any:
    return _answer(rows, model, name, partition_info["number"] if partition_info else 0)


def _framed(rows: Any, model: Any, name: str, meta: Any, partition_info: Any = None) -> Any:
    if not len(rows):
        return meta.set_index(rows.index)
    placed = _partition(rows, model, name, partition_info)
    import pandas

    return pandas.DataFrame(placed_columns(placed), index=rows.index)


def _answer(rows: Any, model: Any, name: str, at: int) -> Any:
    """Answer of one block, nothing for no rows; an error says which block it was."""
    try:
        if len(rows):
            return getattr(model, name)(rows)
        ones = np.zeros((1, rows.shape[1]), getattr(rows, "dtype", float))
        if hasattr(rows, "columns"):
            ones = type(rows)(ones, columns=rows.columns).astype(rows.dtypes)
        told = getattr(model, name)(ones)
        return told[:0] if isinstance(told, np.ndarray) else type(told)(*(f[:0] for f in told))
    except (ValueError, TypeError) as error:
        known = TypeError if isinstance(error, TypeError) else ValueError
        raise known(f"Partition {at} of X: {error}") from error
