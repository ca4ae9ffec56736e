"""Which extension is best on the user's own map: images are hidden, then placed again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, overload

import numpy as np
from sklearn.base import clone
from sklearn.neighbors import KNeighborsRegressor
from sklearn.utils import check_random_state

from outsample._validation import check_number, check_training, random_seed
from outsample.comparison.holdout import Case, ComparisonRow, measure
from outsample.estimators.pca_extension import PCAExtension
from outsample.points import map_size

LEAST_POINTS = 5
# Words of the columns, and how their figures are written.
COLUMNS = (
    ("error", "error", "{:#.3g}"),
    ("spread", "+-", "{:.1g}"),
    ("median", "median", "{:#.3g}"),
    ("quantile_90", "90 %", "{:#.3g}"),
    ("fit_seconds", "fit s", "{:.2f}"),
    ("place_ms", "ms/pt", "{:.3f}"),
)


class Comparison(Sequence[ComparisonRow]):
    """Rows from the smallest error to the largest; those that failed come last.

    Prints as a table. ``pandas.DataFrame(comparison)`` works, and so does a loop.

    Parameters
    ----------
    rows : iterable of ComparisonRow
        In any order.

    Examples
    --------
    >>> from outsample.comparison.compare import Comparison, ComparisonRow
    >>> print(Comparison([ComparisonRow("a", 0.2, 0.01, 0.1, 0.3, 1.5, 0.02)]))
    extension  error    +-  median   90 %  fit s  ms/pt
    a          0.200  0.01   0.100  0.300   1.50  0.020
    """

    def __init__(self, rows: Iterable[ComparisonRow]) -> None:
        self._rows = sorted(rows, key=lambda row: (bool(row.failure), row.error))

    @overload
    def __getitem__(self, at: int) -> ComparisonRow: ...
    @overload
    def __getitem__(self, at: slice) -> Comparison: ...
    def __getitem__(self, at: int | slice) -> ComparisonRow | Comparison:
        return Comparison(self._rows[at]) if isinstance(at, slice) else self._rows[at]

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Comparison) and self._rows == other._rows

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        cells = [self.header(), *map(self.cells, self._rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(c.rjust(w) if at else c.ljust(w) for at, (c, w) in enumerate(aligned))
            for aligned in (list(zip(line, widths, strict=True)) for line in cells)
        ]
        failed = [f"{row.name}: {row.failure}" for row in self._rows if row.failure]
        return "\n".join(line.rstrip() for line in [*lines, *failed])

    @staticmethod
    def header() -> list[str]:
        """Return the words over the columns."""
        return ["extension", *(word for _, word, _ in COLUMNS)]

    @staticmethod
    def cells(row: ComparisonRow) -> list[str]:
        """Return a row's figures as people read them, dashes where it failed."""
        figures = [form.format(getattr(row, field)) for field, _, form in COLUMNS]
        return [row.name, *(["-"] * len(COLUMNS) if row.failure else figures)]

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns by name, for ``pandas.DataFrame`` or JSON.

        Returns
        -------
        dict of lists
        """
        return {field: [getattr(row, field) for row in self] for field in ComparisonRow._fields}

    def to_records(self) -> list[dict[str, Any]]:
        """Return the rows as dicts.

        Returns
        -------
        list of dicts
        """
        return [row._asdict() for row in self]


def compare(
    X: Any,
    Y: Any,
    extensions: Any = None,
    *,
    n_splits: int = 3,
    test_size: float = 0.2,
    random_state: Any = 0,
    on_row: Callable[[ComparisonRow], None] | None = None,
) -> Comparison:
    """Measure extensions on a map: hide the images of some points and place those again.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, D)
        Points.
    Y : array-like of shape (n, d)
        Their images under the map.
    extensions : list, list of (name, extension), or dict, default=None
        Anything with ``fit(X, Y)`` and ``transform(X)`` or ``predict(X)``: the extensions of this
        library, any regressor, pipelines. They are cloned, never changed. None takes
        ``PCAExtension()``, the paper's tangent weights, and nearest neighbours.
    n_splits : int, default=3
        Random splits.
    test_size : float, default=0.2
        Share of the points that is hidden in each.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the splits; all extensions see the same ones.
    on_row : callable, optional
        Called with each row as soon as it is known.

    Returns
    -------
    Comparison
        One row each, the best first. An extension that fails gets a row that says why.

    See Also
    --------
    PCAExtension : Its ``selection_`` is a comparison of its own variants, by leave-one-out.

    Examples
    --------
    >>> import numpy as np
    >>> from outsample import PCAExtension, compare
    >>> X = np.random.default_rng(0).random((200, 2))
    >>> plane = PCAExtension(order=1, loss="squared", weighting="distance", n_neighbors=12)
    >>> mean = PCAExtension(order=0, loss="squared", weighting="distance", n_neighbors=12)
    >>> rows = compare(X, X @ [[1, 2], [3, 4]], {"mean": mean, "plane": plane})
    >>> [row.name for row in rows], rows[0].error < 1e-9
    (['plane', 'mean'], True)
    """
    check_number("n_splits", n_splits, 1, np.inf, whole=True)
    check_number("test_size", test_size, 0, 0.9, open_below=True)
    X, Y = check_training(PCAExtension(), X, Y)
    n = len(Y)
    if n < LEAST_POINTS:
        raise ValueError(f"compare got {n} points, but needs {LEAST_POINTS} or more.")
    n_hidden = min(n - 2, max(1, round(test_size * n)))
    named = _defaults(n - n_hidden) if extensions is None else _named(extensions)
    if isinstance(random_state, np.random.Generator):
        random_state = random_seed(random_state)
    random = check_random_state(random_state)
    cases = []
    for _ in range(n_splits):
        hidden, known = np.split(random.permutation(n), [n_hidden])
        cases.append(Case(X[known], Y[known], X[hidden], Y[hidden]))
    rows = []
    for name, extension in named.items():
        row = measure(name, partial(clone, extension, safe=False), cases, map_size(Y))
        rows.append(row)
        if on_row is not None:
            on_row(row)
    return Comparison(rows)


def _defaults(n: int) -> dict[str, Any]:
    """Return what everybody would try, for n training points."""
    k = min(15, n)
    tangent = PCAExtension(weighting="tangent", order=0, loss="squared", n_neighbors=k)
    near = {
        f"{k}-NN, inverse distance": KNeighborsRegressor(k, weights="distance")
        for k in sorted({min(5, n), k})
    }
    return {"PCAExtension()": PCAExtension(), "tangent weights (Eq. 4.5)": tangent, **near}


def _named(extensions: Any) -> dict[str, Any]:
    """Give every extension a name of its own, and refuse what is none."""
    if isinstance(extensions, Mapping):
        items = list(extensions.items())
    elif _is_extension(extensions):
        raise TypeError("extensions is a single one; write it in a list: [...].")
    elif isinstance(extensions, Iterable) and not isinstance(extensions, str | bytes):
        items = [item if _is_pair(item) else (_words(item), item) for item in extensions]
    else:
        raise TypeError(f"extensions is {extensions!r}, but must be a list or a dict.")
    if not items:
        raise ValueError("extensions is empty; give at least one, or None for the usual ones.")
    named: dict[str, Any] = {}
    for name, extension in items:
        if isinstance(extension, type):
            raise TypeError(f"{extension.__name__} is a class; write {extension.__name__}().")
        if not _is_extension(extension):
            raise TypeError(
                f"{extension!r} cannot extend a map: it needs fit(X, Y), and transform(X) or "
                "predict(X)."
            )
        names = (str(name), *(f"{name} ({at})" for at in range(2, len(items) + 1)))
        named[next(free for free in names if free not in named)] = extension
    return named


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)


def _is_extension(item: Any) -> bool:
    return hasattr(item, "fit") and (hasattr(item, "transform") or hasattr(item, "predict"))


def _words(extension: Any) -> str:
    """Write an extension on one line."""
    return " ".join(repr(extension).split())
