"""The columns of a table: their kinds, and how each kind becomes numbers."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar, overload

import numpy as np

from outsample._validation import check_choice
from outsample.preparation.table_cells import (
    Table,
    best_date_format,
    days,
    kind_of_cells,
    numbers,
    texts,
)

KINDS = ("number", "category", "date", "vector", "id", "drop")
MAX_CATEGORIES, MIN_CATEGORY_ROWS = 20, 5
# Text with more distinct values than this number and than this share of the rows is an id.
ID_DISTINCT, ID_SHARE = 20, 0.5
# Row numbers of a sample of the rows of a table reach at most so many times the number of rows.
MAX_ROW_NUMBERS = 2
# Share of the cells that must parse for a column of text to be a date.
DATE_SHARE = 0.95
# At least this many numeric columns form one block if their deviations (the tenth and the
# ninetieth percentile) are within this factor: pixels, counts, coordinates of an embedding.
VECTOR_COLUMNS, VECTOR_SPREAD = 20, 20.0
SHOWN_CATEGORIES = 3

Row = TypeVar("Row")


class Column(NamedTuple):
    """What is done with one column of a table.

    Attributes
    ----------
    name : str
        Name in the table; ``x0``, ``x1``, ... in an array.
    kind : {"number", "category", "date", "vector", "id", "constant", "drop"}
        What the column contains.
    treatment : str
        What is done with it.
    range : str
        Smallest and largest value, or the most frequent categories.
    categories : tuple of str
        Categories with an indicator column of their own, most frequent first.
    rare : tuple of str
        Categories that share the indicator column ``other``.
    date_format : str
        Format in which text is parsed.
    has_phase : bool
        Whether the time of the day is used.
    """

    name: str
    kind: str
    treatment: str
    range: str
    categories: tuple[str, ...] = ()
    rare: tuple[str, ...] = ()
    date_format: str = "iso"
    has_phase: bool = False

    @property
    def outputs(self) -> list[str]:
        """Names of the numeric columns that the column becomes; none if it is not used."""
        if self.kind in ("number", "vector"):
            return [self.name]
        if self.kind == "date":
            return [self.name, *[f"{self.name}_{part}" for part in ("cos", "sin")][: self.n_phases]]
        if self.kind == "category":
            labels = [*self.categories, *(["other"] if self.rare else []), "unseen"]
            return [f"{self.name}_{label}" for label in labels]
        return []

    @property
    def n_phases(self) -> int:
        """Number of columns for the time of the day."""
        return 2 if self.has_phase else 0

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Return cells (q,) as numbers, one column per output; missing cells are NaN.

        Two categories are sqrt(2) apart, and so are a category and one that was never seen.
        """
        if self.kind in ("number", "vector"):
            return numbers(self.name, values)[:, None]
        if self.kind == "date":
            moments = days(values, self.date_format)
            angle = 2 * np.pi * (moments % 1.0)
            phase = [np.cos(angle), np.sin(angle)][: self.n_phases]
            return np.column_stack([moments, *phase])
        width = len(self.outputs)
        codes = dict.fromkeys(self.rare, width - 2)
        codes |= {category: at for at, category in enumerate(self.categories)}
        cells = [-1 if cell is None else codes.get(cell, width - 1) for cell in texts(values)]
        code = np.array(cells, dtype=np.intp)[:, None]
        return np.where(code < 0, np.nan, code == np.arange(width))


@dataclass(frozen=True, repr=False)
class PrintedRows(Sequence[Row]):
    """Records in their order, which print as a table."""

    rows: tuple[Row, ...] = ()

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | Sequence[Row]:
        return self.rows[at]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        cells = [self.header(), *map(self.cells, self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in cells)

    @abstractmethod
    def header(self) -> Sequence[str]:
        """Return the headings."""

    @abstractmethod
    def cells(self, row: Row) -> Sequence[str]:
        """Return a record as strings."""


class Columns(PrintedRows[Column]):
    """Columns of a table in their order; prints as a table.

    Parameters
    ----------
    rows : tuple of Column
        One per column of the table.

    Examples
    --------
    >>> from outsample.preparation.columns import Column, Columns
    >>> Columns((Column("mass", "number", "standardised", "2700 to 6300"),))
    column  kind    treatment     range
    mass    number  standardised  2700 to 6300
    """

    def header(self) -> Sequence[str]:
        """Return the headings."""
        return "column", "kind", "treatment", "range"

    def cells(self, row: Column) -> Sequence[str]:
        """Return what is done with a column as strings."""
        return row[:4]


SPARSE_COLUMNS = Columns((Column("(all)", "vector", "as it is", "sparse"),))


def describe_columns(table: Table, kinds: Mapping[str, str] | None = None) -> Columns:
    """Return what is done with each column; ``kinds`` overrides the kind of columns by name.

    The columns of an array are numbers or categories: an array is not expected to contain ids.
    """
    names, kinds = table.column_names(), dict(kinds or {})
    for name, kind in kinds.items():
        if name not in names:
            raise ValueError(f"kinds names the column {name!r}, which the table does not have.")
        check_choice(f"kinds[{name!r}]", kind, KINDS)
    columns = [
        _describe(name, values, kinds.get(name), table.names is not None)
        for name, values in zip(names, table.columns, strict=True)
    ]
    numeric = [at for at, c in enumerate(columns) if c.kind == "number" and c.name not in kinds]
    if len(numeric) >= VECTOR_COLUMNS:
        cells = [numbers(names[at], table.columns[at]) for at in numeric]
        low, high = np.quantile([np.nanstd(values) for values in cells], [0.1, 0.9])
        if high <= VECTOR_SPREAD * low:
            for at in numeric:
                columns[at] = columns[at]._replace(kind="vector", treatment="as it is")
    return Columns(tuple(columns))


def _describe(name: str, values: np.ndarray, kind: str | None, is_named: bool) -> Column:
    cells = kind_of_cells(name, values)
    if kind is None:
        kind = _kind(name, values, cells, is_named)
    if kind in ("number", "vector"):
        present = numbers(name, values)
        present = present[~np.isnan(present)]
        if len(present) == 0 or present.min() == present.max():
            return _constant(name, present)
        treatment = "standardised" if kind == "number" else "as it is"
        return Column(name, kind, treatment, f"{present.min():.6g} to {present.max():.6g}")
    if kind == "date":
        return _date(name, values, cells)
    counts = Counter(cell for cell in texts(values) if cell is not None)
    if kind == "category" and len(counts) > 1:
        return _category(name, counts)
    if len(counts) <= 1:
        return _constant(name, list(counts))
    treatment = "not used: identifies rows" if kind == "id" else "not used"
    return Column(name, kind, treatment, f"{len(counts)} distinct")


def _kind(name: str, values: np.ndarray, cells: str, is_named: bool) -> str:
    if cells == "number":
        return "id" if is_named and _counts_rows(numbers(name, values)) else "number"
    if cells == "boolean":
        return "category"
    if cells == "date" or (cells == "text" and best_date_format(values)[1] >= DATE_SHARE):
        return "date"
    distinct = len({cell for cell in texts(values) if cell is not None})
    return "id" if distinct > max(ID_DISTINCT, ID_SHARE * len(values)) else "category"


def _counts_rows(values: np.ndarray) -> bool:
    """Return True for distinct whole numbers that are dense: row numbers, or a part of them."""
    n = len(values)
    if n <= ID_DISTINCT or np.isnan(values).any() or (values != values.round()).any():
        return False
    return len(np.unique(values)) == n and float(np.ptp(values)) < MAX_ROW_NUMBERS * n


def _constant(name: str, values: Sequence[object] | np.ndarray) -> Column:
    shown = str(values[0]).removesuffix(".0") if len(values) else "empty"
    return Column(name, "constant", "not used: constant", shown)


def _category(name: str, counts: Counter[str]) -> Column:
    """Return the treatment of categories: the frequent ones, the rare ones, those never seen."""
    by_count = sorted(counts, key=lambda category: (-counts[category], category))
    least = min(MIN_CATEGORY_ROWS, counts[by_count[0]])
    frequent = [c for c in by_count[:MAX_CATEGORIES] if counts[c] >= least]
    rare = by_count[len(frequent) :]
    treatment = f"one-hot, {len(frequent)} categories" + (f" and {len(rare)} rare" if rare else "")
    shown = ", ".join(by_count[:SHOWN_CATEGORIES])
    shown += ", ..." if len(by_count) > SHOWN_CATEGORIES else ""
    return Column(name, "category", treatment, shown, tuple(frequent), tuple(rare))


def _date(name: str, values: np.ndarray, cells: str) -> Column:
    date_format = best_date_format(values)[0] if cells == "text" else "iso"
    present = days(values, date_format)
    present = present[~np.isnan(present)]
    if len(present) == 0 or present.min() == present.max():
        return _constant(name, present)
    has_phase = len(np.unique(present % 1.0)) > 1
    treatment = "days, standardised" + (", and the time of the day" if has_phase else "")
    first, last = (
        str(np.datetime64(int(day), "D"))
        for day in (np.floor(present.min()), np.floor(present.max()))
    )
    shown = f"{first} to {last}"
    return Column(name, "date", treatment, shown, date_format=date_format, has_phase=has_phase)
