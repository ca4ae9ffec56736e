"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from outsample.files.atomic import protect_input

STANDARD_INPUT = 0
COLUMNS_HINT = "; choose them with --columns, and carry with --id"
Decorator = Callable[..., Any]


def out_folder(default: str, what: str) -> Decorator:
    """Return the option for a folder that is written into."""
    folder = click.Path(file_okay=False)
    words = f"Folder of {what}; made if missing."
    return click.option("--out", type=folder, default=default, show_default=True, help=words)


def data_option(what: str, instead: str = "") -> Decorator:
    """Return the option for a folder with data of benchmarks."""
    words = f"Folder with {what}; else OUTSAMPLE_DATA, else ../shared/data{instead}."
    return click.option("--data", type=click.Path(exists=True, file_okay=False), help=words)


def again(words: str) -> Decorator:
    """Return the option that draws again from the file of an earlier run."""
    file = InputFile(exists=True, dir_okay=False)
    return click.option("--from", "results_file", type=file, help=f"{words} of an earlier run.")


def quick(words: str) -> Decorator:
    """Return the option for less work."""
    return click.option("--quick", is_flag=True, help=words)


def as_json(words: str = "Print one JSON document, for machines.") -> Decorator:
    """Return the option for machines."""
    return click.option("--json", "as_json", is_flag=True, help=words)


def jobs(words: str) -> Decorator:
    """Return the option for threads."""
    return click.option("--jobs", type=Jobs(), default=1, show_default=True, help=words)


def delimiter() -> Decorator:
    """Return the option for what separates cells of text."""
    words = "What separates cells of text: a character, or 'tab', 'space'; found out by default."
    return click.option("--delimiter", type=Delimiter(), help=words)


def columns(flag: str, words: str) -> Decorator:
    """Return an option that takes names separated by commas."""
    return click.option(flag, type=Names(), metavar="A,B,...", help=words)


def ids(words: str) -> Decorator:
    """Return the option for columns that are carried along."""
    return click.option("--id", "ids", multiple=True, metavar="COLUMN", help=words)


def use_rep() -> Decorator:
    """Return the option for points in a file of AnnData."""
    words = "Points of an .h5ad file; else X_pca, else X."
    return click.option("--use-rep", metavar="KEY", help=words)


def table_options(command: Any) -> Any:
    """Add the options that say where in the files points and map are."""
    added = [
        columns("--columns", "Features, by name; without headings columns are 1, 2, ..."),
        columns("--map-columns", "Coordinates, by name: in MAP, or in POINTS if there is none."),
        ids("Column that is no feature, but carried: ids, labels. May be repeated."),
        delimiter(),
        use_rep(),
        click.option("--basis", metavar="KEY", help="Map of an .h5ad file, in obsm; else X_umap."),
    ]
    for option in reversed(added):
        command = option(command)
    return command


class InputFile(click.Path):
    """A file that the command reads, and so may not write to; - is the standard input."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Protect the file."""
        protect_input(STANDARD_INPUT if value == "-" else value)
        return super().convert(value, param, ctx)


class Names(click.ParamType):
    """Names separated by commas."""

    name = "names"

    def convert(self, value: Any, param: Any, ctx: Any) -> list[str]:
        """Split at commas."""
        if isinstance(value, list):
            return value
        names = [name.strip() for name in str(value).split(",")]
        if not all(names) or len(set(names)) < len(names):
            self.fail(f"{value!r} has an empty name, or one twice", param, ctx)
        return names


class Delimiter(click.ParamType):
    """One character, or the name of one that is hard to type."""

    name = "character"
    spelled = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}  # noqa: RUF012

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Look a name up."""
        found = self.spelled.get(str(value), str(value))
        if len(found) != 1 or found in "\"\r\n":
            self.fail(f"{value!r} is not one character that can separate cells", param, ctx)
        return found


class Jobs(click.ParamType):
    """A number of threads; -1 is one a core."""

    name = "integer"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Refuse 0."""
        number = click.INT.convert(value, param, ctx)
        if number == 0 or number < -1:
            self.fail(f"{value} is neither a number of threads nor -1 for all", param, ctx)
        return int(number)


class OrAuto(click.ParamType):
    """A value of another type, or "auto"."""

    def __init__(self, kind: click.ParamType) -> None:
        self.kind = kind
        self.name = f"{kind.name.split()[0]}|auto"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Let "auto" through."""
        return value if value == "auto" else self.kind.convert(value, param, ctx)


def example(*lines: str) -> str:
    """Return the end of a command's help: an example, its lines kept as they are."""
    return "\b\n" + "\n".join(["Example:", *(f"  {line}" for line in lines)])
