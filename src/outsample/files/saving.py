"""A fitted estimator as texts and arrays for a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from outsample.estimators.extended import NotKept
from outsample.files.estimator_schema import (
    AROUND_FITTED,
    CLASSES,
    bare,
    estimator_parts,
    parameters_of,
)
from outsample.files.kinds import Misfit, Scope
from outsample.files.learned_schema import ESTIMATORS
from outsample.files.schema import fits
from outsample.files.tree import Arrays, Encoder


def texts_and_arrays(
    model: Any, columns: Mapping[str, Any], map_names: Sequence[str] | None
) -> tuple[dict[str, str], Arrays]:
    """Texts that a file has of a model, and its arrays, each once."""
    getattr(model, "training_", None)  # reads what may still be in a file
    cls = type(model)
    if cls not in ESTIMATORS:
        known = ", ".join(one.__name__ for one in ESTIMATORS)
        raise TypeError(f"model is a {cls.__name__}, but must be one of {known}.")
    if cls in AROUND_FITTED:
        model.start()
    else:
        check_is_fitted(model)
    model = kept(model)
    names = {one: name for name, one in CLASSES.items()}
    arrays, parts = Arrays(), vars(model)
    learnt, given = Encoder(arrays, names), Encoder(arrays, names)
    own = set(parameters_of(cls))
    try:
        held = {
            encoder: {
                name: encoder.value(value, name)
                for name, value in parts.items()
                if (name in own) == (encoder is given)
            }
            for encoder in (given, learnt)
        }
        scope = Scope()
        fits(model, scope)
    except Misfit as misfit:
        raise ValueError(f"The model cannot be saved: {cls.__name__}{misfit}.") from None
    except TypeError as error:
        raise TypeError(f"The model cannot be saved: {error}.") from None
    n, d = scope.sizes["n"], scope.sizes.get("d", scope.sizes.get("c"))
    texts = {
        "class": cls.__name__,
        "parameters": json.dumps([given.objects, held[given]]),
        "learnt": json.dumps([learnt.objects, held[learnt]]),
        "columns": json.dumps(_columns(columns, _fitted(model).training_.n_rows, arrays)),
    }
    names_in = parts.get("feature_names_in_")
    summary = {
        "parameters": {name: repr(parts[name]) for name in sorted(own)},
        "n_points": n,
        "n_features": scope.sizes["D"],
        "n_coordinates": d,
        "feature_names": None if names_in is None else arrays.add("", names_in)["words"],
        "map_names": None if map_names is None else _map_names(map_names, d, arrays),
        "notes": _notes(model),
    }
    return texts | {"summary": json.dumps(summary)}, arrays


def kept(model: Any) -> Any:
    """Copy of an estimator without what no file keeps."""
    parts = estimator_parts(model)
    for name in ("extension", "extension_"):
        if type(parts.get(name)) in ESTIMATORS:
            parts[name] = kept(parts[name])
    return bare(type(model), parts)


def _notes(model: Any) -> list[str]:
    """Say what is not kept."""
    held = [model, *(vars(model).get(name) for name in ("extension", "extension_"))]
    found = {
        f"{name} of {type(one).__name__} is not kept: {value.words}"
        for one in held
        if type(one) in ESTIMATORS
        for name, value in vars(one).items()
        if isinstance(value, NotKept) and not name.endswith("_")
    }
    return sorted(found)


def _fitted(model: Any) -> Any:
    """Return the estimator that was fitted: a stream is around it."""
    return model.extension if type(model) in AROUND_FITTED else model


def _map_names(map_names: Sequence[str], d: int | None, arrays: Arrays) -> str:
    names = list(map_names)
    if not all(isinstance(name, str) for name in names) or (d is not None and len(names) != d):
        raise ValueError(f"map_names is {names}, but must be a name for each of the {d} columns.")
    return arrays.add("map_names", np.array(names, dtype=object))["words"]


def _columns(columns: Mapping[str, Any], n: int, arrays: Arrays) -> list[list[str]]:
    """Columns by name: whether they are words, and their array."""
    found: list[list[str]] = []
    for at, (name, given) in enumerate(columns.items()):
        values = np.asarray(given)
        if values.dtype.kind == "T" or type(values.dtype).__name__ == "StringDType":
            values = values.astype(object)
        if not isinstance(name, str) or values.ndim != 1 or values.dtype.kind not in "biufOU":
            raise ValueError(
                f"columns[{name!r}] is no column of numbers or texts: {values.dtype} of shape "
                f"{values.shape}."
            )
        if values.dtype.kind == "O" and not all(isinstance(word, str) for word in values):
            raise ValueError(f"columns[{name!r}] holds objects that are neither numbers nor texts.")
        if len(values) != n:
            raise ValueError(f"columns[{name!r}] has {len(values)} rows, but {n} were fitted.")
        ((kind, array),) = arrays.add(f"columns.{at}", np.ascontiguousarray(values)).items()
        found.append([name, kind, array])
    return found
