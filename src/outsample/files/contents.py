"""Fitted estimators to the texts and arrays of a file, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from threading import RLock
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from outsample.estimators.extended import NotKept
from outsample.files.encoding import Arrays, Decoder, Encoder
from outsample.files.estimator_schema import AROUND_FITTED, ESTIMATORS, upgrade
from outsample.files.layout import Mapped, content_errors, parse_json
from outsample.files.schema import (
    CLASSES,
    SCHEMAS,
    Attributes,
    bare,
    check_fitted_names,
    check_object,
    check_parameters,
    errors_in,
    parameter_names,
)
from outsample.files.scope import Scope

# Texts of a file that contain the objects and attributes of an estimator.
PARAMETERS, FITTED = "parameters", "learnt"


def encode_model(
    model: Any, columns: Mapping[str, Any], map_names: Sequence[str] | None
) -> tuple[dict[str, str], Arrays]:
    """Return the texts and the arrays that describe a fitted estimator in a file."""
    getattr(model, "training_", None)  # a loaded model may not have read its file yet
    cls = type(model)
    if cls not in ESTIMATORS:
        names = ", ".join(estimator.__name__ for estimator in ESTIMATORS)
        raise TypeError(f"model is a {cls.__name__}, but must be one of {names}.")
    if cls in AROUND_FITTED:
        model.start()
    else:
        check_is_fitted(model)
    arrays, scope = Arrays(), Scope()
    try:
        texts = _encode_attributes(SCHEMAS[cls].take_apart(model), parameter_names(cls), arrays)
        # What a file will contain is checked as it will be when the file is loaded.
        attributes: Attributes = {}
        for text in (PARAMETERS, FITTED):
            attributes |= _decode(parse_json(texts[text]), arrays.arrays.__getitem__)
        stored = bare(cls, attributes)
        check_object(stored, scope)
    except ValueError as error:
        raise ValueError(f"The model cannot be saved: {error}.") from None
    except TypeError as error:
        raise TypeError(f"The model cannot be saved: {error}.") from None
    n_rows = (model.extension if cls in AROUND_FITTED else model).training_.n_rows
    n_coordinates = scope.sizes.get("d", scope.sizes.get("c"))
    feature_names = attributes.get("feature_names_in_")
    summary = {
        "parameters": {name: repr(attributes[name]) for name in sorted(parameter_names(cls))},
        "n_points": scope.sizes["n"],
        "n_features": scope.sizes["D"],
        "n_coordinates": n_coordinates,
        "feature_names": None if feature_names is None
        else arrays.add_json("feature_names_in_", feature_names.tolist()),
        "map_names": None if map_names is None
        else arrays.add_json("map_names", _check_map_names(map_names, n_coordinates)),
        "notes": sorted(_notes(stored)),
    }  # fmt: skip
    texts |= {
        "class": SCHEMAS[cls].stored_name,
        "columns": json.dumps(_encode_columns(columns, n_rows, arrays)),
        "summary": json.dumps(summary),
    }
    return texts, arrays


def _encode_attributes(
    attributes: Attributes, parameters: Sequence[str], arrays: Arrays
) -> dict[str, str]:
    texts = {}
    for text in (PARAMETERS, FITTED):
        encoder = Encoder(arrays)
        nodes = {
            name: encoder.encode(value, name)
            for name, value in attributes.items()
            if (name in parameters) == (text == PARAMETERS)
        }
        texts[text] = json.dumps([encoder.objects, nodes])
    return texts


def _notes(model: Any) -> set[str]:
    """Return notes about what is not saved."""
    notes = set()
    for name, value in vars(model).items():
        if isinstance(value, NotKept) and not name.endswith("_"):
            notes.add(f"{name} of {type(model).__name__} is not kept: {value.words}")
        elif type(value) in ESTIMATORS:
            notes |= _notes(value)
    return notes


def _check_map_names(map_names: Sequence[str], n_coordinates: int | None) -> list[str]:
    names = list(map_names)
    has_right_length = n_coordinates is None or len(names) == n_coordinates
    if not all(isinstance(name, str) for name in names) or not has_right_length:
        raise ValueError(
            f"map_names is {names}, but must be a name for each of the {n_coordinates} columns."
        )
    return names


def _encode_columns(columns: Mapping[str, Any], n: int, arrays: Arrays) -> list[list[str]]:
    """Return name, tag and array of each column."""
    entries = []
    for at, (name, column) in enumerate(columns.items()):
        values = np.asarray(column)
        if values.dtype.kind in "UT":
            values = values.astype(object)
        if not isinstance(name, str) or values.ndim != 1 or values.dtype.kind not in "biufO":
            raise ValueError(
                f"columns[{name!r}] is not a column of numbers or strings: {values.dtype} of shape "
                f"{values.shape}."
            )
        if values.dtype.kind == "O" and not all(isinstance(value, str) for value in values):
            raise ValueError(
                f"columns[{name!r}] contains objects that are neither numbers nor strings."
            )
        if len(values) != n:
            raise ValueError(f"columns[{name!r}] has {len(values)} rows, but {n} were fitted.")
        node = Encoder(arrays).encode(np.ascontiguousarray(values), f"columns.{at}")
        ((tag, array),) = node.items()
        entries.append([name, tag, array])
    return entries


def decode_model(mapped: Mapped, *, at_once: bool) -> Any:
    """Return the estimator of a file, or one that reads the file at first use."""
    with content_errors(mapped.header.path):
        name = mapped.header.texts["class"]
        cls = CLASSES.get(name)
        if cls not in ESTIMATORS:
            raise ValueError(f"it contains a {name[:60]!r}, not an estimator of this version")
        if cls in AROUND_FITTED:  # its parameters have arrays, which must be verified
            mapped.verify()
            at_once = True
        parameters = upgrade(cls, _decode(_parse(mapped, PARAMETERS), mapped.array))
        nodes = _parse(mapped, FITTED)[1]
        is_lazy = not at_once and "training_" in nodes
        with errors_in(cls):
            check_parameters(cls, parameters, Scope())
            if is_lazy:
                check_fitted_names(cls, set(nodes))
        if is_lazy:
            if type(nodes["n_features_in_"]) is not int:
                raise ValueError("it has no number of columns")
            return _lazy_estimator(cls, parameters, nodes, mapped)
    return bare(cls, parameters | _read_fitted(cls, parameters, mapped))


def _read_fitted(cls: type, parameters: Attributes, mapped: Mapped) -> Attributes:
    """Return the fitted attributes; every array is verified and every value checked."""
    with content_errors(mapped.header.path):
        mapped.verify()
        fitted = _decode(_parse(mapped, FITTED), mapped.array)
        if fitted.keys() & parameters.keys() or "n_features_in_" not in fitted:
            raise ValueError("it contains no fitted estimator")
        attributes = upgrade(cls, parameters | fitted)
        check_object(bare(cls, attributes), Scope())
    return {name: value for name, value in attributes.items() if name not in parameters}


def _parse(mapped: Mapped, text: str) -> Any:
    content = parse_json(mapped.header.texts[text])
    match content:
        case [_, dict()]:
            return content
    raise ValueError(f"its {text} are not described")


def _decode(content: Any, read_array: Any) -> Attributes:
    objects, nodes = content
    decoder = Decoder(read_array)
    decoder.build(objects)
    return {name: decoder.decode(node) for name, node in nodes.items()}


def _lazy_estimator(cls: type, parameters: Attributes, nodes: Attributes, mapped: Mapped) -> Any:
    """Return an estimator that reads and verifies its fitted attributes when one is first used.

    It has a class of its own until then, so that estimators need no code for files.
    """
    lock = RLock()

    def read(model: Any) -> None:
        with lock:
            if type(model) is not cls:
                vars(model).update(_read_fitted(cls, parameters, mapped))
                object.__setattr__(model, "__class__", cls)

    class Lazy(cls):
        def __getattr__(self, name: str) -> Any:
            if name not in nodes or name == "n_features_in_":
                raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}")
            read(self)
            return getattr(self, name)

        def __setattr__(self, name: str, value: Any) -> None:
            if name not in parameters:
                read(self)
            object.__setattr__(self, name, value)

        def __reduce_ex__(self, protocol: Any) -> Any:
            read(self)
            return self.__reduce_ex__(protocol)

        def __sklearn_clone__(self) -> Any:
            read(self)
            return clone(self)

    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(Lazy, name, getattr(cls, name))
    return bare(Lazy, parameters | {"n_features_in_": nodes["n_features_in_"]})
