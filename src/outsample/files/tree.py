"""Objects as JSON, their arrays apart: written from a model, and built again.

Objects are a list in which each comes after those it holds, so that there are no cycles, and what
is held twice is built once. Nothing here is trusted: `schema` looks at what was built.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from outsample.files.estimator_schema import bare, estimator_parts, with_record
from outsample.files.layout import NAMES, digest, parsed
from outsample.neighbors.index import KINDS, NeighborIndex

# What a float may be that JSON has no number for.
BEYOND = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
SCALARS = ("float64", "float32", "float16", "int64", "int32", "int16", "int8",
           "uint64", "uint32", "uint16", "uint8", "bool")  # fmt: skip
# Lists in lists, at most.
DEEPEST = 6
CSR = "csr_matrix"


class Arrays:
    """Arrays that go into a file: those with the same bytes once."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.checksums: dict[str, str] = {}
        self._names: dict[Any, str] = {}
        self._known: dict[int, dict[str, Any]] = {}
        self._kept: list[np.ndarray] = []  # so that no two have one id

    def add(self, name: str, array: np.ndarray) -> dict[str, Any]:
        """Take an array in; its place in the tree is returned."""
        if id(array) not in self._known:
            self._kept.append(array)
            self._known[id(array)] = self._added(name, array)
        return self._known[id(array)]

    def _added(self, name: str, array: np.ndarray) -> dict[str, Any]:
        if array.dtype.kind in "OU":
            words = array.tolist()
            if array.ndim != 1 or not all(isinstance(word, str) for word in words):
                raise TypeError(f"{name} is an array of objects, not of numbers or words")
            text = np.frombuffer(json.dumps(words).encode(), dtype=np.uint8)
            return {"words": self._stored(name, text)}
        native = array.dtype.newbyteorder("<")
        if np.dtype(native) not in NAMES:
            raise TypeError(f"{name} is an array of {array.dtype}, which a file cannot hold")
        array = array.astype(native, copy=False)
        if array.flags.f_contiguous and not array.flags.c_contiguous:
            return {"columns": self._stored(name, array.T)}
        return {"array": self._stored(name, np.ascontiguousarray(array).reshape(array.shape))}

    def _stored(self, name: str, array: np.ndarray) -> str:
        checksum = digest(array)
        key = checksum, array.dtype, array.shape
        if key not in self._names:
            self._names[key] = name
            self.arrays[name], self.checksums[name] = array, checksum
        return self._names[key]


class Encoder:
    """Makes a tree of JSON values and a list of objects from what a model holds."""

    def __init__(self, arrays: Arrays, names: dict[type, str]) -> None:
        self.arrays, self.names = arrays, names
        self.objects: list[Any] = []
        self._known: dict[int, int] = {}

    def value(self, value: Any, path: str) -> Any:
        """JSON of a value; ``path`` is where it stands in the model."""
        if value is None or isinstance(value, bool | str) or type(value) is int:
            return value
        if isinstance(value, np.generic) and value.dtype.name in SCALARS:
            return {"scalar": value.dtype.name, "value": self.value(value.item(), path)}
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.ndarray):
            return self.arrays.add(path, value)
        if type(value) in (list, tuple):
            found = [self.value(item, f"{path}.{at}") for at, item in enumerate(value)]
            return found if type(value) is list else {"tuple": found}
        if type(value) is dict:
            return {"dict": {str(key): self.value(item, path) for key, item in value.items()}}
        return {"object": self._object(value, path)}

    def _object(self, value: Any, path: str) -> int:
        if id(value) not in self._known:
            name = CSR if sparse.issparse(value) else self.names.get(type(value))
            if name is None:
                raise TypeError(_refusal(value, path))
            held = {
                key: self.value(item, f"{path}.{key}" if path else key)
                for key, item in parts_of(value).items()
            }
            self.objects.append([name, held])
            self._known[id(value)] = len(self.objects) - 1
        return self._known[id(value)]


def parts_of(value: Any) -> dict[str, Any]:
    """Parts that an object is made of, by name."""
    if sparse.issparse(value):
        shape = {"rows": value.shape[0], "width": value.shape[1]}
        return {"data": value.data, "indices": value.indices, "indptr": value.indptr, **shape}
    if isinstance(value, NeighborIndex):
        exact = {"X": value.X, "kind": value.kind, "n_jobs": value.n_jobs}
        return exact | ({"width": value.width, "recall": value.recall} if value.width else {})
    if isinstance(value, BaseEstimator):
        return estimator_parts(value)
    if isinstance(value, tuple):
        return value._asdict()  # type: ignore[attr-defined]
    assert is_dataclass(value)
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _refusal(value: Any, path: str) -> str:
    if callable(value):
        name = getattr(value, "__name__", type(value).__name__)
        return (
            f"{path} is the function {name}, and a model file holds no code; use a weighting with "
            "a name or an object such as InverseDistance or GaussianDistance"
        )
    return (
        f"{path} is a {type(value).__module__}.{type(value).__qualname__}, which is none of the "
        "classes that a model file can hold"
    )


class Decoder:
    """Builds objects from their JSON; only classes of a fixed table, and arrays of the file."""

    def __init__(self, array: Callable[[str], np.ndarray], classes: dict[str, type]) -> None:
        self.array, self.classes = array, classes
        self.objects: list[Any] = []
        self._arrays: dict[Any, Any] = {}

    def build(self, listed: Any) -> None:
        """Build all objects, one after another."""
        if not isinstance(listed, list):
            raise ValueError("its objects are no list")
        for told in listed:
            if not isinstance(told, list) or len(told) != 2 or not isinstance(told[0], str):
                raise ValueError("an object is not described")
            name, held = told
            if not isinstance(held, dict):
                raise ValueError(f"an object {name!r} has no parts")
            self.objects.append(self._built(name, {k: self.value(v) for k, v in held.items()}))

    def _built(self, name: str, held: dict[str, Any]) -> Any:
        if name == CSR:
            return csr(**held)
        if name not in self.classes:
            raise ValueError(f"it holds a {name!r}, which is no class of this version")
        cls = self.classes[name]
        try:
            if cls is NeighborIndex:
                return index_of(**held)
            if issubclass(cls, BaseEstimator):
                return bare(cls, with_record(cls, held))
            return cls(**held)
        except (TypeError, ValueError) as error:
            raise ValueError(f"a {name} is not what it should be ({error})") from None

    def value(self, told: Any, depth: int = 0) -> Any:
        """Value of a JSON value."""
        if depth > DEEPEST:
            raise ValueError("its lists are too deep")
        if isinstance(told, list):
            return [self.value(item, depth + 1) for item in told]
        if not isinstance(told, dict):
            return told
        kind = next(iter(told), None)
        if set(told) == {"scalar", "value"}:
            return _scalar(told["scalar"], self.value(told["value"], DEEPEST))
        if len(told) != 1 or kind not in ("float", "tuple", "dict", "object", *READ):
            raise ValueError("a value is of no kind that is known")
        held = told[kind]
        if kind == "object" and type(held) is int and 0 <= held < len(self.objects):
            return self.objects[held]
        if kind == "float" and isinstance(held, str) and held in BEYOND:
            return BEYOND[held]
        if kind == "tuple" and isinstance(held, list):
            return tuple(self.value(item, depth + 1) for item in held)
        if kind == "dict" and isinstance(held, dict):
            return {key: self.value(item, depth + 1) for key, item in held.items()}
        if kind in READ and isinstance(held, str):
            if (kind, held) not in self._arrays:
                self._arrays[kind, held] = READ[kind](self.array(held))
            return self._arrays[kind, held]
        raise ValueError(f"a value is no {kind}, or one that is not there")


def words_of(text: np.ndarray) -> np.ndarray:
    """Words (n,) from their JSON as bytes."""
    if text.dtype != np.uint8 or text.ndim != 1:
        raise ValueError("words are not bytes")
    words = parsed(text.tobytes().decode())
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError("words are no list of texts")
    found = np.empty(len(words), dtype=object)
    found[:] = words
    return found


READ: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "array": lambda array: array,
    "columns": lambda array: array.T,
    "words": words_of,
}


def index_of(X: Any, kind: Any, n_jobs: Any, width: Any = 0, recall: Any = 1.0) -> NeighborIndex:
    """Build a search over points that are arrays at least; what is in them is looked at later."""
    is_dense = type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and X.size
    is_known = isinstance(kind, str) and kind in KINDS
    if not (is_dense or sparse.issparse(X)) or not is_known:
        raise ValueError("no points or no known way to search them")
    return NeighborIndex(X, kind, n_jobs, width, recall)


def csr(data: Any, indices: Any, indptr: Any, rows: Any, width: Any) -> Any:
    """Build a sparse matrix whose parts fit one another, with sorted columns."""
    ints = all(isinstance(part, np.ndarray) and part.ndim == 1 for part in (data, indices, indptr))
    if not ints or data.dtype != np.float64 or not {indices.dtype, indptr.dtype} <= INDEX_TYPES:
        raise ValueError("a sparse matrix is not made of numbers and places")
    if type(rows) is not int or type(width) is not int or len(indptr) != rows + 1 or width < 1:
        raise ValueError("a sparse matrix has no shape")
    steps = np.diff(indptr)
    fits = indptr[0] == 0 and (steps >= 0).all() and indptr[-1] == len(indices) == len(data)
    if not fits or (len(indices) and (indices.min() < 0 or indices.max() >= width)):
        raise ValueError("places of a sparse matrix are outside it")
    rising = np.diff(indices) > 0
    starts = indptr[1:-1]
    rising[starts[(starts > 0) & (starts < len(indices))] - 1] = True
    if not rising.all():
        raise ValueError("columns of a sparse matrix are not sorted")
    matrix = sparse.csr_matrix((data, indices, indptr), shape=(rows, width), copy=False)
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix


INDEX_TYPES = {np.dtype(np.int32), np.dtype(np.int64)}


def _scalar(name: Any, value: Any) -> Any:
    if name not in SCALARS or not isinstance(value, int | float | bool):
        raise ValueError("a number is of no type that is known")
    try:
        with np.errstate(over="ignore"):
            return np.dtype(name).type(value)
    except (OverflowError, ValueError):
        raise ValueError(f"{value!r} is no {name}") from None

