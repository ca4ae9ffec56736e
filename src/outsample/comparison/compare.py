"""Compare extensions on a map by hold-out errors."""

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

MIN_POINTS = 5
# Field, heading and format of each column of the printed table.
TABLE_COLUMNS = (
    ("error", "error", "{:#.3g}"),
    ("spread", "+-", "{:.1g}"),
    ("median", "median", "{:#.3g}"),
    ("quantile_90", "90 %", "{:#.3g}"),
    ("fit_seconds", "fit s", "{:.2f}"),
    ("place_ms", "ms/pt", "{:.3f}"),
)


class Comparison(Sequence[ComparisonRow]):
    """Results of extensions in order of their errors; failed extensions come last.

    Prints as a table; ``pandas.DataFrame(comparison)`` makes a data frame.

    Parameters
    ----------
    rows : iterable of ComparisonRow
        Results in any order.

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
        """Return the headings of the columns."""
        return ["extension", *(heading for _, heading, _ in TABLE_COLUMNS)]

    @staticmethod
    def cells(row: ComparisonRow) -> list[str]:
        """Return the formatted cells of a row; dashes if the extension failed."""
        numbers = [form.format(getattr(row, field)) for field, _, form in TABLE_COLUMNS]
        return [row.name, *(["-"] * len(TABLE_COLUMNS) if row.failure else numbers)]

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
    """Measure extensions on a map: hide the coordinates of random points and place these points.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, D)
        Points.
    Y : array-like of shape (n, d)
        Their map.
    extensions : list, list of (name, extension), or dict, default=None
        Estimators with ``fit(X, Y)`` and ``transform(X)`` or ``predict(X)``: extensions of this
        library, regressors, pipelines. They are cloned. The default is ``PCAExtension()``, the
        tangent weights of the paper, and nearest neighbours.
    n_splits : int, default=3
        Number of random splits.
    test_size : float, default=0.2
        Share of the points that is hidden in each split.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the splits, which are the same for all extensions.
    on_row : callable, optional
        Called with each row as soon as it is measured.

    Returns
    -------
    Comparison
        One row per extension, the best first. If an extension fails, its row contains the error.

    See Also
    --------
    PCAExtension : Its ``selection_`` compares its candidate models by leave-one-out.

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
    if n < MIN_POINTS:
        raise ValueError(f"compare got {n} points, but needs at least {MIN_POINTS}.")
    n_hidden = min(n - 2, max(1, round(test_size * n)))
    by_name = _defaults(n - n_hidden) if extensions is None else _by_name(extensions)
    if isinstance(random_state, np.random.Generator):
        random_state = random_seed(random_state)
    random = check_random_state(random_state)
    cases = []
    for _ in range(n_splits):
        hidden, training = np.split(random.permutation(n), [n_hidden])
        cases.append(Case(X[training], Y[training], X[hidden], Y[hidden]))
    rows = []
    for name, extension in by_name.items():
        row = measure(name, partial(clone, extension, safe=False), cases, map_size(Y))
        rows.append(row)
        if on_row is not None:
            on_row(row)
    return Comparison(rows)


def _defaults(n: int) -> dict[str, Any]:
    """Return the default extensions for n training points, by name."""
    k = min(15, n)
    tangent = PCAExtension(weighting="tangent", order=0, loss="squared", n_neighbors=k)
    nearest = {
        f"{k}-NN, inverse distance": KNeighborsRegressor(k, weights="distance")
        for k in sorted({min(5, n), k})
    }
    return {"PCAExtension()": PCAExtension(), "tangent weights (Eq. 4.5)": tangent, **nearest}


def _by_name(extensions: Any) -> dict[str, Any]:
    """Return the extensions under distinct names; raise TypeError for other objects."""
    if isinstance(extensions, Mapping):
        items = list(extensions.items())
    elif _is_extension(extensions):
        raise TypeError("extensions is one extension, but must be a list: [extension].")
    elif isinstance(extensions, Iterable) and not isinstance(extensions, str | bytes):
        items = [item if _is_pair(item) else (_one_line(item), item) for item in extensions]
    else:
        raise TypeError(f"extensions is {extensions!r}, but must be a list or a dict.")
    if not items:
        raise ValueError("extensions is empty; pass at least one, or None for the defaults.")
    by_name: dict[str, Any] = {}
    for name, extension in items:
        if isinstance(extension, type):
            raise TypeError(f"{extension.__name__} is a class; write {extension.__name__}().")
        if not _is_extension(extension):
            raise TypeError(
                f"{extension!r} cannot extend a map: it needs fit(X, Y), and transform(X) or "
                "predict(X)."
            )
        names = (str(name), *(f"{name} ({at})" for at in range(2, len(items) + 1)))
        by_name[next(free for free in names if free not in by_name)] = extension
    return by_name


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)


def _is_extension(item: Any) -> bool:
    return hasattr(item, "fit") and (hasattr(item, "transform") or hasattr(item, "predict"))


def _one_line(extension: Any) -> str:
    """Return the repr of an extension on one line."""
    return " ".join(repr(extension).split())
