"""Sparse matrices from the arrays of a file, which are not trusted."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

INDEX_TYPES = {np.dtype(np.int32), np.dtype(np.int64)}


def build_csr(data: Any, indices: Any, indptr: Any, rows: Any, width: Any) -> Any:
    """Return a sparse matrix; raise unless its parts fit together and its columns are sorted."""
    parts = (data, indices, indptr)
    if not all(isinstance(part, np.ndarray) and part.ndim == 1 for part in parts):
        raise ValueError("a sparse matrix has parts that are not arrays")
    if data.dtype != np.float64 or not {indices.dtype, indptr.dtype} <= INDEX_TYPES:
        raise ValueError("a sparse matrix has parts of the wrong type")
    if type(rows) is not int or type(width) is not int or len(indptr) != rows + 1 or width < 1:
        raise ValueError("a sparse matrix has no valid shape")
    steps = np.diff(indptr)
    fits = indptr[0] == 0 and (steps >= 0).all() and indptr[-1] == len(indices) == len(data)
    if not fits or (len(indices) and (indices.min() < 0 or indices.max() >= width)):
        raise ValueError("a sparse matrix has indices outside its shape")
    ascending = np.diff(indices) > 0
    starts = indptr[1:-1]
    ascending[starts[(starts > 0) & (starts < len(indices))] - 1] = True
    if not ascending.all():
        raise ValueError("a sparse matrix has columns that are not sorted")
    matrix = sparse.csr_matrix((data, indices, indptr), shape=(rows, width), copy=False)
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix
