"""What the parts of a model may be: every kind is a function that refuses what it is not.

Sizes have letters, as everywhere: ``n`` rows, ``m`` distinct points, ``D`` columns, ``d`` those of
the map. The first array that has a letter sets it, and all others have to agree: kernels do not
look whether an index is within its array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy import sparse

from outsample._validation import LARGEST_VALUE

LARGEST = float(np.finfo(np.float64).max)
# What a few can be summed of.
LARGEST_TERM = 1e306
# Logarithms of lengths, in units of how far they scatter, stay far below this.
LARGEST_SCORE = 1e9
MOST_THREADS = 1024
# Rows looked at together.
CHUNK_ROWS = 2**16


class Misfit(ValueError):
    """What a part is, and what it should be."""


class Scope:
    """Sizes by letter, whether points are sparse, and which objects have been looked at."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.is_sparse: bool | None = None
        self.seen: set[int] = set()

    def size(self, side: str | int) -> int:
        """Return a number, or what a letter stands for."""
        if isinstance(side, int):
            return side
        if side not in self.sizes:
            raise Misfit(f"comes before anything tells {side}")
        return self.sizes[side]

    def agree(self, letter: str, size: int) -> None:
        """Set a letter, or compare with it."""
        known = self.sizes.setdefault(letter, size)
        if known != size or size < 1:
            raise Misfit(f"has {letter} = {size}, but must have {max(known, 1)}")

    def agree_sparse(self, is_sparse: bool) -> None:
        """Refuse points of which some are sparse and some are not."""
        if self.is_sparse is None:
            self.is_sparse = is_sparse
        if self.is_sparse != is_sparse:
            raise Misfit("is sparse where others are not, or the other way round")


Kind = Callable[[Any, Scope], None]


def shown(value: Any) -> str:
    """Short words for a value."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} and shape {value.shape}"
    words = repr(value) if isinstance(value, str | int | float | bool | None) else ""
    return words if words and len(words) < 60 else f"a {type(value).__name__}"


def whole(least: int | str = 0, most: int | str = 2**62) -> Kind:
    """Integers from ``least`` to ``most``, which may be letters."""

    def check(value: Any, scope: Scope) -> None:
        if isinstance(value, np.integer):
            value = int(value)
        if type(value) is not int or not scope.size(least) <= value <= scope.size(most):
            raise Misfit(f"is {shown(value)}, but must be a whole number in its range")

    return check


def size(letter: str) -> Kind:
    """Whole numbers that set a letter, or agree with it."""

    def check(value: Any, scope: Scope) -> None:
        whole(1)(value, scope)
        scope.agree(letter, int(value))

    return check


def real(least: float = -LARGEST, most: float = LARGEST, *, above: bool = False) -> Kind:
    """Floats from ``least`` (or only above it) to ``most``: kernels are compiled for those."""

    def check(value: Any, scope: Scope) -> None:
        is_float = type(value) in (float, np.float64)
        if not is_float or not least <= value <= most or (above and value == least):
            raise Misfit(f"is {shown(value)}, but must be a float in its range")

    return check


def setting(least: float, most: float, *, above: bool = False) -> Kind:
    """Numbers as users give them, whole ones and NumPy's among them."""

    def check(value: Any, scope: Scope) -> None:
        is_number = isinstance(value, float | int | np.floating | np.integer)
        value = value.item() if isinstance(value, np.generic) else value
        if not is_number or isinstance(value, bool) or not least <= value <= most:
            raise Misfit(f"is {shown(value)}, but must be a number in its range")
        if above and value == least:
            raise Misfit(f"is {shown(value)}, but must be above that")

    return check


def any_float(value: Any, scope: Scope) -> None:
    """Refuse what is no float; NaN is one."""
    if not isinstance(value, float | np.floating):
        raise Misfit(f"is {shown(value)}, but must be a float")


def flag(value: Any, scope: Scope) -> None:
    """Refuse what is neither true nor false."""
    if type(value) is not bool:
        raise Misfit(f"is {shown(value)}, but must be true or false")


def text(value: Any, scope: Scope) -> None:
    """Refuse what is no text."""
    if type(value) is not str:
        raise Misfit(f"is {shown(value)}, but must be a text")


def one_of(*choices: Any) -> Kind:
    """One of a few texts or numbers."""

    def check(value: Any, scope: Scope) -> None:
        if not any(type(value) is type(choice) and value == choice for choice in choices):
            raise Misfit(f"is {shown(value)}, but must be one of {choices}")

    return check


def optional(kind: Kind) -> Kind:
    """None, or of a kind."""

    def check(value: Any, scope: Scope) -> None:
        if value is not None:
            kind(value, scope)

    return check


def jobs(value: Any, scope: Scope) -> None:
    """Refuse what ``n_jobs`` may not be."""
    optional(whole(-MOST_THREADS, MOST_THREADS))(value, scope)
    if value == 0 and value is not None:
        raise Misfit("is 0, but must be another number of threads")


def listed(kind: Kind, most: int, container: Any = list, least: int = 0) -> Kind:
    """All items of one kind, in a list."""

    def check(value: Any, scope: Scope) -> None:
        if type(value) is not container or not least <= len(value) <= most:
            raise Misfit(f"is {shown(value)}, but must be a {container.__name__} of its length")
        for item in value:
            kind(item, scope)

    return check


def pair(first: Kind, second: Kind) -> Kind:
    """Two kinds in a tuple."""

    def check(value: Any, scope: Scope) -> None:
        if type(value) is not tuple or len(value) != 2:
            raise Misfit(f"is {shown(value)}, but must be a pair")
        first(value[0], scope)
        second(value[1], scope)

    return check


def array(
    *sides: str | int | None,
    dtype: Any = np.float64,
    least: float | str = -LARGEST,
    most: float | str = LARGEST,
    above: bool = False,
    rising: bool = False,
) -> Kind:
    """Arrays of a type, with sides that are letters or numbers (None: any), and entries in a range.

    ``above`` leaves out the least value itself, ``rising`` asks for entries that do not fall.
    """

    def check(value: Any, scope: Scope) -> None:
        if type(value) is not np.ndarray or value.dtype != dtype or value.ndim != len(sides):
            raise Misfit(
                f"is {shown(value)}, but must be one of {np.dtype(dtype)} with {len(sides)} sides"
            )
        for side, length in zip(sides, value.shape, strict=True):
            if isinstance(side, str):
                scope.agree(side, length)
            elif side is not None and side != length:
                raise Misfit(f"has a side of {length}, but must have {side}")
        low = scope.size(least) if isinstance(least, str) else least
        high = scope.size(most) - 1 if isinstance(most, str) else most
        for part in chunks(value):
            fits = (part > low if above else part >= low) & (part <= high)
            if not fits.all():
                raise Misfit("has entries outside their range")
        if rising and (value[1:] < value[:-1]).any():
            raise Misfit("falls where it must not")

    return check


def chunks(value: np.ndarray) -> Iterable[np.ndarray]:
    """Pieces of an array, so that looking at it takes little memory."""
    flat = value.reshape(-1) if value.flags.c_contiguous else value.T.reshape(-1)
    return (flat[at : at + CHUNK_ROWS] for at in range(0, len(flat), CHUNK_ROWS))


def images(*sides: str | int | None) -> Kind:
    """Images, as large as `fit` takes them."""
    return array(*sides, least=-LARGEST_VALUE, most=LARGEST_VALUE)


def terms(*sides: str | int | None) -> Kind:
    """Coefficients and the like, from which images are summed: such sums do not overflow."""
    return array(*sides, least=-LARGEST_TERM, most=LARGEST_TERM)


def densities(letter: str | None) -> Kind:
    """Weights by the density of points: powers of sums of kernels."""
    return array(letter, least=1e-200, most=1e200)


def rows_of(*sides: str | int | None, below: str) -> Kind:
    """Arrays of row numbers, from 0 to below a letter."""
    return array(*sides, dtype=np.int64, least=0, most=below)


def points(rows: str) -> Kind:
    """Points (rows, D) as kernels take them, dense or sparse."""
    dense, entries = images(rows, "D"), images(None)

    def check(value: Any, scope: Scope) -> None:
        scope.agree_sparse(sparse.issparse(value))
        if not sparse.issparse(value):
            dense(value, scope)
            if not value.flags.c_contiguous:
                raise Misfit("is not in the order of its rows")
            return
        scope.agree(rows, value.shape[0])
        scope.agree("D", value.shape[1])
        entries(value.data, scope)

    return check


def words(value: Any, scope: Scope) -> None:
    """Refuse what are no names of D columns."""
    fits = type(value) is np.ndarray and value.dtype == object and value.ndim == 1
    if not fits or not all(type(word) is str for word in value):
        raise Misfit(f"is {shown(value)}, but must be names")
    scope.agree("D", len(value))
