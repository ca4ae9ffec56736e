"""Files of a benchmark: results as JSON, picture and page."""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from outsample.report.page import Picture, Section, Table, write_file

PathLike = str | os.PathLike[str]
Run = TypeVar("Run")
EXACT = 17  # Significant digits of the results: enough to restore every float64


class Benchmark(NamedTuple):
    """Output of a benchmark: titled tables for the terminal, and files."""

    tables: Sequence[tuple[str, Table]]
    seconds: float
    files: list[Path]


class Bench(NamedTuple, Generic[Run]):
    """A benchmark: how to run it, to save and load its results, and to show them."""

    name: str  # Of its files
    run: Callable[..., Benchmark]
    to_record: Callable[[Run], dict[str, Any]]
    restored: Callable[[dict[str, Any]], Run]
    tables: Callable[[Run], Sequence[tuple[str, Table]]]
    picture: Callable[[Run], Picture | None]
    page: Callable[[Run, Picture | None], str]

    def write(self, out_dir: PathLike, run: Any) -> Benchmark:
        """Write the results, the picture if there is one, and the page."""
        text = json.dumps(self.to_record(run), indent=2, allow_nan=False) + "\n"
        return self._draw(out_dir, run, [write_file(Path(out_dir) / f"{self.name}.json", text)])

    def draw_again(self, out_dir: PathLike, path: PathLike) -> Benchmark:
        """Write picture and page from a results file; raise ValueError for another file."""
        try:
            run = self.restored(json.loads(Path(path).read_bytes()))
        except (AttributeError, KeyError, TypeError, ValueError) as fault:
            message = f"{path} does not hold results of this benchmark: {fault!r}"
            raise ValueError(message) from fault
        return self._draw(out_dir, run, [])

    def _draw(self, out_dir: PathLike, run: Any, files: list[Path]) -> Benchmark:
        picture = self.picture(run)
        page = self.page(run, picture)
        if picture is not None:
            files.append(write_file(Path(out_dir) / f"{self.name}.png", picture.data))
        files.append(write_file(Path(out_dir) / f"{self.name}.html", page))
        return Benchmark(self.tables(run), run.seconds, files)


class UnknownNameError(ValueError):
    """Raised for a name that does not exist."""


def select_by_name(
    kind: str, items: Sequence[Any], names: Sequence[str], names_of: Callable[[Any], set[str]],
    fold: Callable[[str], str] = str,
) -> list[Any]:  # fmt: skip
    """Return the items whose names are, or start with, those listed; all without a list."""
    titles, kept = {item.name: names_of(item) for item in items}, set()
    for name in names:
        prefix = fold(name)
        matches = {at for at, words in titles.items() if prefix in words} or {
            at for at, words in titles.items() if any(word.startswith(prefix) for word in words)
        }
        if not matches:
            message = f"there is no {kind} {name!r}; the {kind}s are: {', '.join(titles)}"
            raise UnknownNameError(message)
        kept |= matches
    return [item for item in items if not names or item.name in kept]


def fields_of(kind: Any, saved: dict[str, Any]) -> dict[str, Any]:
    """Return the saved values of a record's fields, without the derived values."""
    return {name: saved[name] for name in kind._fields if name in saved}


def settings_section(notes: Iterable[tuple[str, str]]) -> Section:
    """Return a section with the settings of each method that has any."""
    notes_by_name = {name: note for name, note in notes if note}
    return Section("Settings", [f"{name}: {note}." for name, note in notes_by_name.items()])
