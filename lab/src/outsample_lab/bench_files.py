"""The files of a benchmark: its results as JSON and back, its picture and its page."""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from outsample.report.page import Picture, Section, Table, write_file

PathLike = str | os.PathLike[str]
Run = TypeVar("Run")
EXACT = 17  # Significant digits of the results: as many as tell any two numbers apart


class Benchmark(NamedTuple):
    """What a benchmark leaves: tables for the terminal, each with its title, and files."""

    tables: Sequence[tuple[str, Table]]
    seconds: float
    files: list[Path]


class Bench(NamedTuple, Generic[Run]):
    """A benchmark: how it is run, how its results become JSON and again results, what they show."""

    name: str  # Of its files
    run: Callable[..., Benchmark]
    told: Callable[[Run], dict[str, Any]]
    restored: Callable[[dict[str, Any]], Run]
    tables: Callable[[Run], Sequence[tuple[str, Table]]]
    picture: Callable[[Run], Picture | None]
    page: Callable[[Run, Picture | None], str]

    def write(self, out_dir: PathLike, run: Any) -> Benchmark:
        """Write results, picture, if there is one, and page."""
        text = json.dumps(self.told(run), indent=2, allow_nan=False) + "\n"
        return self._draw(out_dir, run, [write_file(Path(out_dir) / f"{self.name}.json", text)])

    def draw_again(self, out_dir: PathLike, path: PathLike) -> Benchmark:
        """Write picture and page from a file of results; ValueError if it holds something else."""
        try:
            run = self.restored(json.loads(Path(path).read_bytes()))
        except (AttributeError, KeyError, TypeError, ValueError) as fault:
            words = f"{path} does not hold results of this benchmark: {fault!r}"
            raise ValueError(words) from fault
        return self._draw(out_dir, run, [])

    def _draw(self, out_dir: PathLike, run: Any, files: list[Path]) -> Benchmark:
        picture = self.picture(run)
        page = self.page(run, picture)
        if picture is not None:
            files.append(write_file(Path(out_dir) / f"{self.name}.png", picture.data))
        files.append(write_file(Path(out_dir) / f"{self.name}.html", page))
        return Benchmark(self.tables(run), run.seconds, files)


class UnknownNameError(ValueError):
    """A name that is none of those there are."""


def chosen_by_name(
    what: str, listed: Sequence[Any], names: Sequence[str], called: Callable[[Any], set[str]],
    fold: Callable[[str], str] = str,
) -> list[Any]:  # fmt: skip
    """Return those with these names, or else beginnings of names; all if no name is given."""
    known, kept = {each.name: called(each) for each in listed}, set()
    for name in names:
        asked = fold(name)
        found = {at for at, words in known.items() if asked in words} or {
            at for at, words in known.items() if any(word.startswith(asked) for word in words)
        }
        if not found:
            words = f"there is no {what} {name!r}; the {what}s are: {', '.join(known)}"
            raise UnknownNameError(words)
        kept |= found
    return [each for each in listed if not names or each.name in kept]


def fields_of(kind: Any, told: dict[str, Any]) -> dict[str, Any]:
    """Return what is told of a record's own fields, without the figures that follow from them."""
    return {name: told[name] for name in kind._fields if name in told}


def settings_section(notes: Iterable[tuple[str, str]]) -> Section:
    """Say once how each method was set up; who has nothing to say is left out."""
    said = {name: note for name, note in notes if note}
    return Section("Settings", [f"{name}: {note}." for name, note in said.items()])
