"""Sizes that the parts of one model share, and the error for a value that is not valid.

Sizes have letters: ``n`` rows, ``m`` distinct points, ``D`` columns, ``d`` columns of the map. The
first array with a letter sets it, and all others must agree, because compiled kernels do not check
bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class SchemaError(ValueError):
    """A value that its field cannot have; the message begins with the path of the field."""


class Scope:
    """Sizes by letter and sparsity that the parts of one model share, and the objects checked."""

    def __init__(self, independent: set[int] | None = None) -> None:
        self.sizes: dict[str, int] = {}
        self.is_sparse: bool | None = None
        self.checked: set[int] = set()
        # Objects that share no sizes with others are checked once in all scopes.
        self.independent: set[int] = set() if independent is None else independent

    def separate(self) -> Scope:
        """Return a scope with its own sizes."""
        return Scope(self.independent)

    def size(self, side: str | int) -> int:
        """Return a number, or the size with a letter."""
        if isinstance(side, int):
            return side
        if side not in self.sizes:
            raise SchemaError(f"comes before the size {side} is defined")
        return self.sizes[side]

    def set_size(self, letter: str, size: int) -> None:
        """Set the size with a letter; raise if it has another value."""
        expected = self.sizes.setdefault(letter, size)
        if expected != size or size < 1:
            raise SchemaError(f"has {letter} = {size}, but must have {max(expected, 1)}")

    def set_sparse(self, is_sparse: bool) -> None:
        """Record whether points are sparse; raise if other points differ."""
        if self.is_sparse is None:
            self.is_sparse = is_sparse
        if self.is_sparse != is_sparse:
            raise SchemaError("must be sparse like the other points, or dense like them")


Kind = Callable[[Any, Scope], None]


def describe_value(value: Any) -> str:
    """Return a short description of a value for an error message."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} and shape {value.shape}"
    text = repr(value) if isinstance(value, str | int | float | bool | None) else ""
    return text if text and len(text) < 60 else f"a {type(value).__name__}"


def invalid(value: Any, expected: str) -> SchemaError:
    """Return the error for a value that is not as expected."""
    return SchemaError(f"is {describe_value(value)}, but must be {expected}")


def require(is_valid: Callable[[Any, Scope], bool], expected: str) -> Kind:
    """Return the kind of the values for which ``is_valid(value, scope)``."""

    def check(value: Any, scope: Scope) -> None:
        if not is_valid(value, scope):
            raise invalid(value, expected)

    return check
