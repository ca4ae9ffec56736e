"""Registry of the classes that a model file can contain, with the kind of each of their fields.

A file names classes of the registry, and no other class is ever built. To make a class storable,
call `register` once when its module of schemas is imported (`estimator_schema` imports them all).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields as dataclass_fields
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from outsample.files.scope import Kind, SchemaError, Scope, describe_value

Attributes = dict[str, Any]
SCALAR_TYPES = (bool, int, float, str, np.generic)


class Schema(NamedTuple):
    """How objects of a class are checked, taken apart for a file, and built again."""

    fields: dict[str, Kind]
    check: Kind | None
    optional: frozenset[str]
    stored_name: str
    stored_fields: dict[str, str]
    is_separate: bool
    take_apart: Callable[[Any], Attributes]
    build: Callable[..., Any]


SCHEMAS: dict[type, Schema] = {}
CLASSES: dict[str, type] = {}  # by the name in files
FUNCTIONS: dict[str, Callable[..., Any]] = {}  # by the name in files


def register(
    cls: type,
    fields: Mapping[str, Kind],
    check: Kind | None = None,
    *,
    optional: Iterable[str] = (),
    stored_name: str | None = None,
    stored_fields: Mapping[str, str] | None = None,
    separate: bool = False,
    take_apart: Callable[[Any], Attributes] | None = None,
    build: Callable[..., Any] | None = None,
) -> None:
    """Let model files contain objects of a class.

    Parameters
    ----------
    cls : type
        A dataclass, a NamedTuple, or a scikit-learn estimator; subclasses are not included.
    fields : dict of str to Kind
        The kind of each field, in the order in which they are checked. Of an estimator: all fitted
        attributes, and those parameters that `parameter` does not accept.
    check : callable (object, Scope), default=None
        Raises `SchemaError` unless the fields, which are valid one by one, fit together.
    optional : iterable of str
        Fitted attributes that an estimator may lack.
    stored_name : str, default=None
        Name of the class in files, if the class has been renamed since.
    stored_fields : dict of str to str, default=None
        Names in files of fields that have been renamed since; attributes of estimators of this
        library are renamed by `estimator_schema.upgrade`.
    separate : bool, default=False
        Whether letters mean sizes of this object alone, as in the transformers of a pipeline.
    take_apart, build : callable, default=None
        Return the attributes of an object by name, and an object from these as keywords, where
        the defaults for dataclasses, NamedTuples and estimators do not fit.
    """
    name = stored_name or cls.__name__
    if CLASSES.setdefault(name, cls) is not cls:
        raise ValueError(f"two classes are stored as {name}")
    if build is None:
        is_estimator = issubclass(cls, BaseEstimator)
        build = (lambda **attributes: bare(cls, attributes)) if is_estimator else cls
    SCHEMAS[cls] = Schema(
        dict(fields), check, frozenset(optional), name, dict(stored_fields or {}), separate,
        take_apart or default_attributes, build,
    )  # fmt: skip


def register_function(name: str, function: Callable[..., Any]) -> None:
    """Let model files contain a reference to a function, such as ``numpy.log1p``, by a name."""
    if FUNCTIONS.setdefault(name, function) is not function:
        raise ValueError(f"two functions are stored as {name}")


def bare(cls: type, attributes: Attributes) -> Any:
    """Return an estimator with these parameters and fitted attributes, without calling it."""
    model: Any = object.__new__(cls)
    vars(model).update(attributes)
    return model


def parameter_names(cls: type) -> list[str]:
    """Return the names of the parameters of an estimator."""
    return cls._get_param_names()  # type: ignore[attr-defined]


def default_attributes(value: Any) -> Attributes:
    """Return what a file stores of a dataclass, a NamedTuple or an estimator, by name."""
    if isinstance(value, tuple):
        return value._asdict()  # type: ignore[attr-defined]
    if not isinstance(value, BaseEstimator):
        return {field.name: getattr(value, field.name) for field in dataclass_fields(value)}
    cls, attributes = type(value), vars(value)
    names = dict.fromkeys([*parameter_names(cls), *SCHEMAS[cls].fields])
    extra = attributes.keys() - names.keys()
    # Another version of scikit-learn may need an attribute that is not registered. Users can add
    # attributes to estimators of this library; these are not stored.
    if extra and not cls.__module__.startswith("outsample."):
        raise TypeError(
            f"{cls.__name__} has the attribute {min(extra)}, which this version of outsample "
            "cannot store"
        )
    return {name: attributes[name] for name in names if name in attributes}


def parameter(value: Any, scope: Scope) -> None:
    """Accept None, a boolean, a number, a string, or a list or tuple of these."""
    if value is None or isinstance(value, SCALAR_TYPES):
        return
    if type(value) not in (list, tuple):
        raise SchemaError(f"is {describe_value(value)}, which no parameter can be")
    for item in value:
        if item is not None and not isinstance(item, SCALAR_TYPES):
            raise SchemaError(f"contains {describe_value(item)}, which no parameter can")


def is_a(*classes: type) -> Kind:
    """Accept valid objects of exactly one of these classes."""

    def check(value: Any, scope: Scope) -> None:
        if type(value) not in classes:
            names = ", ".join(cls.__name__ for cls in classes)
            raise SchemaError(f"is {describe_value(value)}, but must be a {names}")
        _check_once(value, scope)

    return check


def check_object(value: Any, scope: Scope) -> None:
    """Raise `SchemaError` if an object is not valid; the message begins with its class."""
    with errors_in(type(value)):
        _check_once(value, scope)


@contextmanager
def errors_in(cls: type) -> Iterator[None]:
    """Begin the message of a `SchemaError` with the name of a class."""
    try:
        yield
    except SchemaError as error:
        raise SchemaError(f"{cls.__name__}{error}") from None


def _check_once(value: Any, scope: Scope) -> None:
    cls = type(value)
    schema = SCHEMAS[cls]
    checked = scope.independent if schema.is_separate else scope.checked
    if id(value) in checked:
        return
    inner_scope = scope.separate() if schema.is_separate else scope
    if issubclass(cls, BaseEstimator):
        _check_estimator(value, schema, inner_scope)
    else:
        for name, kind in schema.fields.items():
            check_field(name, kind, getattr(value, name), inner_scope)
        if schema.check:
            schema.check(value, inner_scope)
    checked.add(id(value))  # only valid objects: `either` continues after an error


def check_field(name: str, kind: Kind, value: Any, scope: Scope) -> None:
    """Check a value; the name of its field comes first in the error."""
    try:
        kind(value, scope)
    except SchemaError as error:
        separator = "" if str(error)[:1] == "." else " "
        raise SchemaError(f".{name}{separator}{error}") from None


def _check_estimator(model: BaseEstimator, schema: Schema, scope: Scope) -> None:
    cls, fitted = type(model), vars(model).copy()
    parameters = {name: fitted.pop(name) for name in parameter_names(cls) if name in fitted}
    check_parameters(cls, parameters, scope)
    if not fitted and _fitted_names(cls):
        return  # not fitted yet: a parameter of another estimator
    check_fitted_names(cls, set(fitted))
    for name, kind in schema.fields.items():
        if name in fitted:
            check_field(name, kind, fitted[name], scope)
    if schema.check:
        schema.check(model, scope)


def _fitted_names(cls: type) -> set[str]:
    return SCHEMAS[cls].fields.keys() - set(parameter_names(cls))


def check_parameters(cls: type, parameters: Attributes, scope: Scope) -> None:
    """Raise unless these are all parameters of an estimator, each of its kind."""
    wrong = parameters.keys() ^ set(parameter_names(cls))
    if wrong:
        raise SchemaError(f".{min(wrong)} is unknown or missing")
    for name, value in parameters.items():
        check_field(name, SCHEMAS[cls].fields.get(name, parameter), value, scope.separate())


def check_fitted_names(cls: type, names: set[str]) -> None:
    """Raise unless these are the fitted attributes of an estimator."""
    expected = _fitted_names(cls)
    wrong = (names - expected) | (expected - names - SCHEMAS[cls].optional)
    if wrong:
        raise SchemaError(f".{min(wrong)} is unknown or missing")
