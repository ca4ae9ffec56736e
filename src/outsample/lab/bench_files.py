"""The files of a benchmark: its results as JSON and back, its picture and its page."""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from outsample.report.page import Picture, Section, Table, write_file, write_page

Run = TypeVar("Run")

EXACT = 17  # Significant digits of the results: as many as tell any two numbers apart


class Benchmark(NamedTuple):
    """What a benchmark leaves: tables for the terminal, each with its title, and files."""

    tables: Sequence[tuple[str, Table]]
    seconds: float
    files: list[Path]


def write_results(path: Path, told: dict[str, Any]) -> Path:
    """Write results that are ready for JSON; return the file's path."""
    return write_file(path, (json.dumps(told, indent=2, allow_nan=False) + "\n").encode())


def read_results(path: str | os.PathLike[str], restore: Callable[[dict[str, Any]], Run]) -> Run:
    """Return the record that `restore` makes of a file; ValueError if it holds something else."""
    try:
        return restore(json.loads(Path(path).read_bytes()))
    except (AttributeError, KeyError, TypeError, ValueError) as fault:
        raise ValueError(f"{path} does not hold results of this benchmark: {fault!r}") from fault


def fields_of(kind: Any, told: dict[str, Any]) -> dict[str, Any]:
    """Return what is told of a record's own fields, without the figures that follow from them."""
    return {name: told[name] for name in kind._fields if name in told}


def write_drawing(
    out_dir: str | os.PathLike[str], name: str, picture: Picture | None, page: str
) -> list[Path]:
    """Write the picture, if there is one, and the page; return the files' paths."""
    files = [write_page(Path(out_dir) / f"{name}.html", page)]
    if picture is not None:
        files.insert(0, write_file(Path(out_dir) / f"{name}.png", picture.data))
    return files


def settings_section(notes: Iterable[tuple[str, str]]) -> Section:
    """Say once how each method was set up; who has nothing to say is left out."""
    said = {name: note for name, note in notes if note}
    return Section("Settings", [f"{name}: {note}." for name, note in said.items()])


def can_draw() -> bool:
    """Tell whether there is matplotlib to draw with."""
    return find_spec("matplotlib") is not None
