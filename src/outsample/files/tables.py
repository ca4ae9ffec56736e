"""Tables of numbers from files: NumPy's own, text, and Parquet."""

import csv
import errno
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

DELIMITERS = (",", ";", "\t")
# What stands in a cell without a value, and makes no heading.
MISSING = ("", "na", "n/a", "<na>", "null", "none", "?", "-")


def read_table(path: str | os.PathLike[str], array: str = "X") -> np.ndarray:
    """Read a table of numbers, shape (n, columns), as float32 if the file holds that, else float64.

    The ending tells the format:

    - ``.npy``: one array;
    - ``.npz``: the array called `array`, or the only one in the file;
    - ``.csv``, ``.tsv``, ``.txt``: numbers separated by commas, semicolons, tabs or blanks.
      The first line may be a heading: it is one if it has words and no number at all, or if it
      counts 0, 1, 2, ... as pandas does. Under a heading whose first cell is empty, the first
      column is the row numbers pandas writes, and is left out;
    - ``.parquet``: numeric columns; needs pandas and pyarrow.

    Raises ValueError, saying where it is no table of numbers, or OSError if it cannot be read.
    """
    path = Path(path)
    readers = {
        ".npy": lambda path, array: _load(path),
        ".npz": _read_npz,
        ".csv": _read_text,
        ".tsv": _read_text,
        ".txt": _read_text,
        ".parquet": _read_parquet,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ValueError(f"{path}: unknown ending; the formats are {', '.join(readers)}")
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
    return _numbers(path, reader(path, array))


def read_pair(points: str, map_: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Read points and images, as many of the one as of the other; an ``.npz`` file may hold both.

    Raises ValueError, saying what is wrong with which file.
    """
    if map_ is None and not points.lower().endswith(".npz"):
        raise ValueError("MAP is missing; only an .npz file can hold both points and map")
    try:
        X, Y = read_table(points, "X"), read_table(map_ or points, "Y")
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror}") from error
    if len(X) != len(Y):
        raise ValueError(f"{points} has {len(X)} rows, but {map_ or points} has {len(Y)}")
    return X, Y


def _numbers(path: Path, values: Any) -> np.ndarray:
    """Check that an array is a table of real numbers."""
    table = np.asarray(values)
    if table.dtype.kind not in "fiub":
        raise ValueError(f"{path}: holds {table.dtype}, not real numbers")
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"{path}: has shape {table.shape}, not rows and columns")
    return table if table.dtype == np.float32 else table.astype(np.float64)


def _load(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except Exception as error:  # damage shows in many ways
        raise ValueError(f"{path}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    if "pickle" in str(error).lower():
        return "not a plain array of numbers (objects, or a damaged file)"
    return f"damaged ({str(error).strip() or type(error).__name__})"


def _read_npz(path: Path, array: str) -> Any:
    file = _load(path)
    if not hasattr(file, "files"):
        return file  # an .npy file under another name
    with file:
        if array not in file.files and len(file.files) != 1:
            held = ", ".join(file.files) or "nothing"
            raise ValueError(f"{path}: no array called {array}; it holds {held}")
        try:
            return file[array if array in file.files else file.files[0]]
        except Exception as error:
            raise ValueError(f"{path}: {_reason(error)}") from None


def _read_parquet(path: Path, array: str) -> Any:
    try:
        import pandas

        frame = pandas.read_parquet(path)
    except ImportError:
        raise ValueError(
            f"{path}: reading Parquet needs pandas and pyarrow: pip install outsample[tables]"
        ) from None
    except (ValueError, OSError) as error:
        raise ValueError(f"{path}: {_reason(error)}") from None
    for column in frame.columns:
        if not pandas.api.types.is_numeric_dtype(frame[column]):
            raise ValueError(f"{path}: column {column!r} holds {frame[column].dtype}, not numbers")
    return frame.to_numpy(dtype=np.float64, na_value=np.nan)


def _read_text(path: Path, array: str) -> Any:
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            numbered = ((at, line) for at, line in enumerate(stream) if line.strip())
            before, first = next(numbered, (0, ""))  # empty lines before the first that is not
    except UnicodeDecodeError:
        raise ValueError(f"{path}: is not text in UTF-8") from None
    delimiter = max(DELIMITERS, key=first.count)
    separator = delimiter if delimiter in first else None  # None: blanks
    cells = _split(first, separator)
    heading = _is_heading(cells)
    unnamed = heading and len(cells) > 1 and not cells[0].strip()
    columns = range(1, len(cells)) if unnamed else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty file is refused by its shape
            return np.loadtxt(
                path, delimiter=separator, skiprows=before + heading, ndmin=2,
                comments=None, quotechar='"', usecols=columns, encoding="utf-8-sig",
            )  # fmt: skip
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(_first_fault(path, separator, heading, unnamed, error)) from None


def _is_heading(cells: list[str]) -> bool:
    """Tell words, or pandas' count of columns, from a row of numbers with a cell missing."""
    names = cells[1:] if len(cells) > 1 and not cells[0].strip() else cells
    if len(cells) > 1 and names == [str(at) for at in range(len(names))]:
        return True
    if any(_number(cell) is not None for cell in cells):
        return False
    return any(cell.strip().lower() not in MISSING for cell in cells)


def _split(line: str, delimiter: str | None) -> list[str]:
    line = line.strip("\r\n")
    return line.split() if delimiter is None else next(csv.reader([line], delimiter=delimiter), [])


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _first_fault(
    path: Path, delimiter: str | None, heading: bool, unnamed: bool, error: Exception
) -> str:
    """Say where a text file is no table; lines and columns count from 1."""
    width, skip = 0, heading
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as stream:
        for at, line in enumerate(stream, start=1):
            cells = _split(line, delimiter)
            if not line.strip():
                continue
            if width and len(cells) != width:
                return f"{path}: line {at} has {len(cells)} columns, but others have {width}"
            width = len(cells)
            if skip:
                skip = False
                continue
            for column, cell in enumerate(cells, start=1):
                if _number(cell) is None and not (unnamed and column == 1):
                    what = f"{cell.strip()!r} is no number" if cell.strip() else "a cell is empty"
                    return f"{path}: line {at}, column {column}: {what}"
    return f"{path}: {error}"
