"""Tables of any library as arrays of cells, and cells as numbers, texts and days."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_array

DATE_FORMATS = (
    "iso", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%m-%Y", "%d %b %Y", "%b %d %Y",
    "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M", "%d.%m.%Y %H:%M", "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%Y/%m/%d %H:%M:%S",
)  # fmt: skip
MICROSECONDS_PER_DAY = 86_400_000_000
# Booleans have the same spelling in every file format.
SPELLING = {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false", "": None}
NUMBERS = (int, float, np.integer, np.floating, Decimal)


class Table(NamedTuple):
    """Columns (n,) of a table; ``names`` is None for arrays."""

    names: list[str] | None
    columns: Sequence[np.ndarray]

    def column_names(self) -> list[str]:
        """Return the names; ``x0``, ``x1``, ... for arrays, as in scikit-learn."""
        return self.names or [f"x{at}" for at in range(len(self.columns))]


def is_frame(table: Any) -> bool:
    """Return True for pandas and polars frames, Arrow tables and dicts of columns."""
    is_dict = isinstance(table, dict) and not sparse.issparse(table)
    return is_dict or hasattr(table, "columns")


def check_table(table: Any, least_rows: int = 1) -> Any:
    """Return frames as they are, sparse matrices in CSR format, and anything else as an array."""
    if is_frame(table):
        return table
    # Cells are checked where they are encoded, with the name of their column.
    return check_array(
        table,
        accept_sparse="csr",
        dtype=None,
        ensure_all_finite=False,
        ensure_min_samples=least_rows,
    )


def read_table(table: Any, least_rows: int = 1) -> Table:
    """Return the columns of a pandas or polars frame, Arrow table, dict or array."""
    if not is_frame(table):
        return Table(None, check_table(table, least_rows).T)
    names = list(table) if isinstance(table, dict) else _names(table)
    columns = [_column(table[name]) for name in names]
    if len({len(column) for column in columns}) > 1:
        raise ValueError("The columns of the table have different lengths.")
    n = len(columns[0]) if columns else 0
    if n < least_rows or not columns:
        raise ValueError(
            f"Found a table with {n} sample(s) (shape=({n}, {len(columns)})) while a minimum of "
            f"{least_rows} is required."
        )
    is_named = all(isinstance(name, str) for name in names)
    return Table(names if is_named else None, columns)


def take_rows(table: Any, rows: np.ndarray) -> Any:
    """Return rows of a table, in the container that the table is in."""
    if isinstance(table, dict):
        return {name: _column(values)[rows] for name, values in table.items()}
    if hasattr(table, "take") and hasattr(table, "column_names"):  # Arrow
        return table.take(rows)
    return _safe_indexing(table, rows)


def number_of_rows(table: Any) -> int:
    """Return the number of rows of a table."""
    if isinstance(table, dict):
        return len(next(iter(table.values()), ()))
    return int(table.shape[0])


def _names(frame: Any) -> list[Any]:
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


def _column(values: Any) -> np.ndarray:
    if type(values).__module__.startswith("pyarrow"):
        import pyarrow

        if pyarrow.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        return values.to_numpy()
    column = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    if isinstance(values, list | tuple) and column.dtype.kind in "US":
        column = np.array(values, dtype=object)  # mixed values stay what they are
    return column


def kind_of_cells(name: str, values: np.ndarray) -> str:
    """Return "number", "boolean", "date" or "text": what the cells of a column contain."""
    simple = {"b": "boolean", "i": "number", "u": "number", "f": "number", "M": "date"}
    if values.dtype.kind in simple:
        return simple[values.dtype.kind]
    types = {type(cell) for cell in values.tolist() if not is_missing(cell)}
    kinds = {_kind_of_type(kind) for kind in types}
    if "unknown" in kinds:
        other = next(kind.__name__ for kind in types if _kind_of_type(kind) == "unknown")
        raise TypeError(
            f"Column {name!r} has a cell of type {other}; a cell must be a string, a number, "
            "a boolean or a date."
        )
    if kinds == {"text"} and all_numbers(texts(values)):
        return "number"
    return kinds.pop() if len(kinds) == 1 else "text" if kinds else "number"


def _kind_of_type(kind: type) -> str:
    if issubclass(kind, bool | np.bool_):
        return "boolean"
    for name, types in (("number", NUMBERS), ("date", (date, np.datetime64)), ("text", (str,))):
        if issubclass(kind, types):
            return name
    return "unknown"


def is_missing(cell: Any) -> bool:
    """Return True for None, NaN, and the missing values of pandas."""
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or bool(cell != cell)


def numbers(name: str, values: np.ndarray) -> np.ndarray:
    """Return cells (q,) as float64; missing cells are NaN, text that is not a number raises."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    cells = [np.nan if is_missing(cell) or cell == "" else cell for cell in values.tolist()]
    try:
        return np.array(cells, dtype=np.float64)
    except (TypeError, ValueError):
        row = next(at for at, cell in enumerate(cells) if not all_numbers([cell]))
        raise ValueError(
            f"Column {name!r} contains numbers, but its row {row} is {cells[row]!r}."
        ) from None


def all_numbers(cells: Sequence[Any]) -> bool:
    """Return True if every cell that is not missing can be read as a number."""
    try:
        [float(cell) for cell in cells if cell is not None]
    except (TypeError, ValueError, InvalidOperation):
        return False
    return any(cell is not None for cell in cells)


def texts(values: np.ndarray) -> list[str | None]:
    """Return cells (q,) as strings, None where missing; whole numbers have no decimal point."""
    return [None if is_missing(cell) else _text(cell) for cell in values.tolist()]


def _text(cell: Any) -> str | None:
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    text = str(cell)
    return SPELLING.get(text, text)


def days(values: np.ndarray, date_format: str) -> np.ndarray:
    """Return dates (q,) as days since 1970, in UTC; NaN where missing or not a date."""
    if values.dtype.kind != "M":
        parsed = [_moment(cell, date_format) for cell in values.tolist()]
        values = np.array(parsed, dtype="datetime64[us]")
    values = values.astype("datetime64[us]")
    counts = values.astype(np.int64) / MICROSECONDS_PER_DAY
    return np.where(np.isnat(values), np.nan, counts)


def _moment(cell: Any, date_format: str) -> datetime | date | None:
    if is_missing(cell):
        return None
    if isinstance(cell, str):
        try:
            iso = date_format == "iso"
            cell = datetime.fromisoformat(cell) if iso else datetime.strptime(cell, date_format)
        except ValueError:
            return None
    if getattr(cell, "tzinfo", None) is not None:
        cell = cell.astimezone(UTC).replace(tzinfo=None)
    return cell


def best_date_format(values: np.ndarray, n_cells: int = 200) -> tuple[str, float]:
    """Return the format that parses most of the first cells, and the share that it parses."""
    cells = np.array([cell for cell in texts(values) if cell is not None][:n_cells], dtype=object)
    shares = [(~np.isnan(days(cells, form))).mean() for form in DATE_FORMATS]
    best = int(np.argmax(shares))
    return DATE_FORMATS[best], float(shares[best])


def as_frame(table: Any) -> Any:
    """Return Arrow tables and dicts as pandas frames, which scikit-learn's transformers take."""
    if not is_frame(table) or hasattr(table, "iloc") or hasattr(table, "height"):
        return table
    try:
        import pandas
    except ImportError:
        raise ImportError(
            'Arrow tables and dicts need pandas here: pip install "outsample[tables]"'
        ) from None
    return pandas.DataFrame(table) if isinstance(table, dict) else table.to_pandas()


def as_points(X: Any) -> Any:
    """Return prepared rows as an array or a sparse matrix."""
    return X if sparse.issparse(X) else np.asarray(X)
