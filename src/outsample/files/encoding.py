"""Objects to JSON and arrays, and back.

Objects are a list in which each comes after those that it contains: there are no cycles, and what
is contained twice is built once. Nothing here is trusted: `schema` checks what was built.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from outsample.files.csr_matrix import build_csr
from outsample.files.layout import DTYPES, NAMES, digest, parse_bytes, parse_strings
from outsample.files.schema import CLASSES, FUNCTIONS, SCHEMAS

NON_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
SCALARS = ("float64", "float32", "float16", "int64", "int32", "int16", "int8",
           "uint64", "uint32", "uint16", "uint8", "bool")  # fmt: skip
TYPES: dict[str, type] = {name: np.dtype(name).type for name in SCALARS} | {
    f"python {cls.__name__}": cls for cls in (float, int, bool, str, object)
}
KEY_TYPES = (str, int, float, bool, type(None))
# Depth of lists in lists.
MAX_DEPTH = 6
MAX_CODE_POINT = 0x10FFFF
CSR = "csr_matrix"


class Arrays:
    """Arrays for a file; arrays with the same bytes are stored once."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.checksums: dict[str, str] = {}
        self._names: dict[Any, str] = {}

    def add_json(self, name: str, items: list[Any]) -> str:
        """Add a list as bytes of JSON; return the name of their array."""
        return self.add(name, np.frombuffer(json.dumps(items).encode(), dtype=np.uint8))

    def add(self, name: str, array: np.ndarray) -> str:
        """Add a contiguous array; return its name in the file."""
        checksum = digest(array)
        key = checksum, array.dtype, array.shape
        if key not in self._names:
            while name in self.arrays:  # arrays in a dict whose keys are not strings
                name += "+"
            self._names[key] = name
            self.arrays[name], self.checksums[name] = array, checksum
        return self._names[key]


class Encoder:
    """Converts values to JSON, and lists the objects that they contain."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.objects: list[Any] = []
        # By id; the values themselves are kept, so that no other object gets their id.
        self._encoded: dict[int, tuple[Any, Any]] = {}

    def encode(self, value: Any, path: str) -> Any:
        """Return JSON of a value; ``path`` is its place in the model."""
        if value is None or isinstance(value, bool | str) or type(value) is int:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.generic) and value.dtype.name in SCALARS:
            return {"scalar": value.dtype.name, "value": self.encode(value.item(), path)}
        if type(value) in (list, tuple):
            items = [self.encode(item, f"{path}.{at}") for at, item in enumerate(value)]
            return items if type(value) is list else {"tuple": items}
        if type(value) is dict:
            return self._encode_dict(value, path)
        if isinstance(value, slice):
            bounds = (value.start, value.stop, value.step)
            return {"slice": [self.encode(bound, path) for bound in bounds]}
        if isinstance(value, np.dtype) and (value in NAMES or value.kind in "UO"):
            return {"dtype": value.str}
        for tag, table in (("type", TYPES), ("function", FUNCTIONS)) if callable(value) else ():
            for name, entry in table.items():
                if entry is value:
                    return {tag: name}
        if id(value) not in self._encoded:
            is_array = isinstance(value, np.ndarray)
            node = self._encode_array(value, path) if is_array else self._encode_object(value, path)
            self._encoded[id(value)] = value, node
        return self._encoded[id(value)][1]

    def _encode_dict(self, value: dict[Any, Any], path: str) -> Any:
        if all(type(key) is str for key in value):
            items = {key: self.encode(item, f"{path}.{key}") for key, item in value.items()}
            return {"dict": items}
        if not all(type(key) in KEY_TYPES for key in value):
            raise TypeError(f"{path} is a dict whose keys are neither strings nor numbers")
        return {"pairs": [[self.encode(part, path) for part in pair] for pair in value.items()]}

    def _encode_array(self, array: np.ndarray, path: str) -> dict[str, str]:
        if array.dtype.kind == "O":
            items = array.ravel().tolist()
            if array.ndim == 1 and all(isinstance(item, str) for item in items):
                return {"words": self.arrays.add_json(path, items)}
            if not all(isinstance(item, (*KEY_TYPES, np.generic)) for item in items):
                raise TypeError(f"{path} is an array of objects other than numbers and strings")
            content = [list(array.shape), [self.encode(item, path) for item in items]]
            return {"mixed": self.arrays.add_json(path, content)}
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        if array.dtype.kind == "U":  # one number per character
            characters = np.ascontiguousarray(array).reshape(*array.shape, 1).view(np.uint32)
            return {"strings": self.arrays.add(path, characters)}
        if array.dtype not in NAMES:
            raise TypeError(f"{path} is an array of {array.dtype}, which a file cannot contain")
        if array.flags.f_contiguous and not array.flags.c_contiguous:
            return {"columns": self.arrays.add(path, array.T)}
        return {"array": self.arrays.add(path, np.ascontiguousarray(array).reshape(array.shape))}

    def _encode_object(self, value: Any, path: str) -> dict[str, int]:
        if sparse.issparse(value):
            name, stored_fields = CSR, {}
            attributes = {
                "data": value.data, "indices": value.indices, "indptr": value.indptr,
                "rows": value.shape[0], "width": value.shape[1],
            }  # fmt: skip
        elif type(value) in SCHEMAS:
            schema = SCHEMAS[type(value)]
            name, stored_fields = schema.stored_name, schema.stored_fields
            attributes = schema.take_apart(value)
        else:
            raise TypeError(_unsupported(value, path))
        nodes = {}
        for field, item in attributes.items():
            field = stored_fields.get(field, field)
            nodes[field] = self.encode(item, f"{path}.{field}")
        self.objects.append([name, nodes])
        return {"object": len(self.objects) - 1}


def _unsupported(value: Any, path: str) -> str:
    if hasattr(value, "transform"):
        names = [cls.__name__ for cls in SCHEMAS if cls.__module__.startswith("sklearn")]
        return (
            f"{path} is the transformer {type(value).__name__}, which a model file cannot contain; "
            f"use {', '.join(sorted(names))}, or apply it before and give prepare=None"
        )
    if callable(value):
        name = getattr(value, "__name__", type(value).__name__)
        return (
            f"{path} is the function {name}, and a model file contains no code; use a weighting "
            "with a name or an object such as InverseDistance or GaussianDistance"
        )
    return (
        f"{path} is a {type(value).__module__}.{type(value).__qualname__}, which is not one of the "
        "classes that a model file can contain"
    )


class Decoder:
    """Builds values from JSON, with registered classes and the arrays of a file only."""

    def __init__(self, read_array: Callable[[str], np.ndarray]) -> None:
        self.read_array = read_array
        self.objects: list[Any] = []
        self._arrays: dict[tuple[str, str], np.ndarray] = {}

    def build(self, objects: Any) -> None:
        """Build all objects, one after another."""
        if not isinstance(objects, list):
            raise ValueError("its objects are not a list")
        for entry in objects:
            match entry:
                case [str(name), dict(nodes)]:
                    fields = {field: self.decode(node) for field, node in nodes.items()}
                    self.objects.append(_build_object(name, fields))
                case _:
                    raise ValueError("an object has no class or no fields")

    def decode(self, node: Any, depth: int = 0) -> Any:
        """Return the value of a JSON value."""
        if depth > MAX_DEPTH:
            raise ValueError("its lists are nested too deeply")
        if isinstance(node, list):
            return self._decode_all(node, depth)
        if not isinstance(node, dict):
            return node
        match node if len(node) == 1 or "scalar" in node else None:
            case {"scalar": str(name), "value": number, **others} if not others:
                return _scalar(name, self.decode(number, MAX_DEPTH))
            case {"float": str(name)} if name in NON_FINITE:
                return NON_FINITE[name]
            case {"tuple": list(items)}:
                return tuple(self._decode_all(items, depth))
            case {"dict": dict(items)}:
                return dict(zip(items, self._decode_all(items.values(), depth), strict=True))
            case {"pairs": list(pairs)}:
                return self._decode_pairs(pairs, depth)
            case {"slice": [start, stop, step]}:
                return slice(*self._decode_all([start, stop, step], depth))
            case {"dtype": str(name)}:
                return _dtype(name)
            case {"type": str(name)} if name in TYPES:
                return TYPES[name]
            case {"function": str(name)} if name in FUNCTIONS:
                return FUNCTIONS[name]
            case {"object": number} if type(number) is int and 0 <= number < len(self.objects):
                return self.objects[number]
            case (
                {"array": str(name)}
                | {"columns": str(name)}
                | {"words": str(name)}
                | {"mixed": str(name)}
                | {"strings": str(name)}
            ):
                return self._decode_array(next(iter(node)), name)
        raise ValueError("a value has an unknown type, or refers to something that is missing")

    def _decode_all(self, nodes: Any, depth: int) -> list[Any]:
        return [self.decode(node, depth + 1) for node in nodes]

    def _decode_pairs(self, pairs: list[Any], depth: int) -> dict[Any, Any]:
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise ValueError("a dict has entries that are not pairs")
        items = [tuple(self._decode_all(pair, depth)) for pair in pairs]
        if not all(type(key) in KEY_TYPES for key, _ in items) or len(dict(items)) != len(items):
            raise ValueError("a dict has keys that are not unique strings or numbers")
        return dict(items)

    def _decode_array(self, tag: str, name: str) -> np.ndarray:
        """Return an array; what refers to the same array shares it."""
        if (tag, name) not in self._arrays:
            array = self.read_array(name)
            match tag:
                case "columns":
                    array = array.T
                case "words":
                    strings = parse_strings(array)
                    array = np.empty(len(strings), dtype=object)
                    array[:] = strings
                case "mixed":
                    array = self._mixed(parse_bytes(array))
                case "strings":
                    array = _fixed_width_strings(array)
            self._arrays[tag, name] = array
        return self._arrays[tag, name]

    def _mixed(self, content: Any) -> np.ndarray:
        match content:
            case [list(shape), list(items)] if len(shape) <= 2:
                is_shape = all(type(side) is int and side >= 0 for side in shape)
                if is_shape and math.prod(shape) == len(items):
                    array = np.empty(len(items), dtype=object)
                    for at, item in enumerate(items):
                        array[at] = self.decode(item, MAX_DEPTH)
                    return array.reshape(shape)
        raise ValueError("an array of objects has no valid shape")


def _build_object(name: str, fields: dict[str, Any]) -> Any:
    if name != CSR and name not in CLASSES:
        raise ValueError(f"it contains a {name!r}, which is not a class of this version")
    try:
        if name == CSR:
            return build_csr(**fields)
        schema = SCHEMAS[CLASSES[name]]
        for field, stored in schema.stored_fields.items():
            if stored in fields:
                fields[field] = fields.pop(stored)
        return schema.build(**fields)
    except (TypeError, ValueError) as error:
        raise ValueError(f"a {name} is not valid ({error})") from None


def _fixed_width_strings(characters: np.ndarray) -> np.ndarray:
    is_valid = characters.dtype == np.uint32 and characters.ndim > 0 and characters.shape[-1] > 0
    if not is_valid or (characters > MAX_CODE_POINT).any():
        raise ValueError("an array of strings has invalid characters")
    return characters.view(f"<U{characters.shape[-1]}")[..., 0]


def _dtype(name: str) -> np.dtype:
    is_string = name[:2] == "<U" and name[2:].isdecimal() and name.isascii() and len(name) < 10
    if not is_string and name not in (*DTYPES.values(), "|O"):
        raise ValueError(f"{name[:20]!r} is not a NumPy type that a file can contain")
    return np.dtype(name)


def _scalar(name: str, value: Any) -> Any:
    if name not in SCALARS or not isinstance(value, int | float | bool):
        raise ValueError("a NumPy number has an unknown type")
    try:
        with np.errstate(over="ignore"):
            return np.dtype(name).type(value)
    except (OverflowError, ValueError):
        raise ValueError(f"{value!r} is not a {name}") from None
