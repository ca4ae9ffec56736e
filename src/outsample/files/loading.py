"""An estimator from the texts and arrays of a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

from sklearn.base import clone

from outsample.files.estimator_schema import (
    AROUND_FITTED,
    CLASSES,
    LATER,
    are_all_learnt,
    bare,
    parameters_fit,
    with_record,
)
from outsample.files.kinds import Misfit, Scope
from outsample.files.layout import Mapped, ModelFileError, damaged, parsed
from outsample.files.learned_schema import ESTIMATORS
from outsample.files.schema import fits
from outsample.files.tree import Decoder


def loaded(mapped: Mapped, at_once: bool) -> Any:
    """Build the estimator of a file, at once or when it is first used."""
    with _told(mapped):
        name = mapped.header.texts["class"]
        cls = CLASSES.get(name)
        if cls not in ESTIMATORS:
            raise ValueError(f"it holds a {name[:60]!r}, which is no estimator of this version")
        if cls in AROUND_FITTED:  # the arrays of its parameters are as much to be verified
            mapped.verify()
            at_once = True
        given = LATER.get(cls, {}) | _decoded(mapped, "parameters")
        parameters_fit(cls, given)
        told = _described(mapped, "learnt")[1]
        if not at_once and "training_" in told:
            are_all_learnt(cls, set(told))
            if type(told["n_features_in_"]) is not int:
                raise ValueError("it does not tell how many columns it takes")
            return unread(cls, given, told, mapped)
    return bare(cls, given | learnt(cls, given, mapped))


def learnt(cls: type, given: dict[str, Any], mapped: Mapped) -> dict[str, Any]:
    """Read what an estimator learnt; every array is verified and every part looked at."""
    with _told(mapped):
        mapped.verify()
        state = _decoded(mapped, "learnt")
        if set(state) & set(given) or "n_features_in_" not in state:
            raise ValueError("it holds no fitted estimator")
        parts = with_record(cls, given | state)
        fits(bare(cls, parts), Scope())
    return {name: part for name, part in parts.items() if name not in given}


def _decoded(mapped: Mapped, text: str) -> dict[str, Any]:
    objects, parts = _described(mapped, text)
    decoder = Decoder(mapped.array, CLASSES)
    decoder.build(objects)
    return {name: decoder.value(value) for name, value in parts.items()}


def _described(mapped: Mapped, text: str) -> tuple[Any, dict[str, Any]]:
    """Objects as they are listed, and the parts of the estimator."""
    told = parsed(mapped.header.texts[text])
    if not isinstance(told, list) or len(told) != 2 or not isinstance(told[1], dict):
        raise ValueError("its model is not described")
    return told[0], told[1]


@contextmanager
def _told(mapped: Mapped) -> Iterator[None]:
    """Whatever goes wrong with what a file says, as an error that names the file."""
    path = mapped.header.path
    try:
        yield
    except ModelFileError:
        raise
    except KeyError as error:
        raise damaged(path, f"it has no {error}") from None
    except Misfit as misfit:
        raise damaged(path, f"{mapped.header.texts['class']}{misfit}") from None
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise damaged(path, str(error)) from None


def unread(cls: type, given: dict[str, Any], told: dict[str, Any], mapped: Mapped) -> Any:
    """Estimator whose learnt state is still in the file: read, verified, when first asked for.

    It is of a class of its own until then, so that estimators know nothing of files.
    """
    waiting = {name for name in told if name != "n_features_in_"}
    lock = RLock()

    def read(model: Any) -> None:
        with lock:
            if type(model) is not cls:
                vars(model).update(learnt(cls, given, mapped))
                object.__setattr__(model, "__class__", cls)

    class Unread(cls):
        def __getattr__(self, name: str) -> Any:
            if name not in waiting:
                raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}")
            read(self)
            return getattr(self, name)

        def __setattr__(self, name: str, value: Any) -> None:
            if name not in given:
                read(self)
            object.__setattr__(self, name, value)

        def __reduce_ex__(self, protocol: Any) -> Any:
            read(self)
            return self.__reduce_ex__(protocol)

        def __sklearn_clone__(self) -> Any:
            read(self)
            return clone(self)

    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(Unread, name, getattr(cls, name))
    return bare(Unread, given | {"n_features_in_": told["n_features_in_"]})
