"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from outsample.files.atomic import protect_input

STANDARD_INPUT = 0
COLUMNS_HINT = "; choose the features with --columns, and columns to copy with --id"
Decorator = Callable[..., Any]


def out_folder(default: str, what: str) -> Decorator:
    """Return the option for a folder to write to."""
    folder = click.Path(file_okay=False)
    text = f"Folder of {what}; created if missing."
    return click.option("--out", type=folder, default=default, show_default=True, help=text)


def data_option(what: str, instead: str = "") -> Decorator:
    """Return the option for a folder with data of benchmarks."""
    text = f"Folder with {what}; else OUTSAMPLE_DATA, else ../shared/data{instead}."
    return click.option("--data", type=click.Path(exists=True, file_okay=False), help=text)


def again(text: str) -> Decorator:
    """Return the option that draws again from the file of an earlier run."""
    file = InputFile(exists=True, dir_okay=False)
    return click.option("--from", "results_file", type=file, help=f"{text} of an earlier run.")


def quick(text: str) -> Decorator:
    """Return the option for a shorter run."""
    return click.option("--quick", is_flag=True, help=text)


def as_json(text: str = "Print one JSON document, for programs.") -> Decorator:
    """Return the option for output that programs read."""
    return click.option("--json", "as_json", is_flag=True, help=text)


def jobs(text: str) -> Decorator:
    """Return the option for threads."""
    return click.option("--jobs", type=Jobs(), default=1, show_default=True, help=text)


def columns(flag: str, text: str) -> Decorator:
    """Return an option that takes names separated by commas."""
    return click.option(flag, type=Names(), metavar="A,B,...", help=text)


def ids(text: str) -> Decorator:
    """Return the option for columns that are copied and are not features."""
    return click.option("--id", "ids", multiple=True, metavar="COLUMN", help=text)


def table_options(command: Any) -> Any:
    """Add the options for where points and map are in their files."""
    table_decorators = [
        columns("--columns", "Features, by name; without a heading columns are 1, 2, ..."),
        columns("--map-columns", "Coordinates, by name: in MAP, or in POINTS without MAP."),
        ids("Column that is not a feature, but kept: ids, labels. May be repeated."),
        DELIMITER,
        USE_REP,
        click.option("--basis", metavar="KEY", help="Map of an .h5ad file; default X_umap."),
    ]
    for option in reversed(table_decorators):
        command = option(command)
    return command


class InputFile(click.Path):
    """A file that the command reads, and must not write to; - is the standard input."""

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
            self.fail(f"{value!r} has an empty name or a repeated name", param, ctx)
        return names


class Delimiter(click.ParamType):
    """One character, or the name of a character that is hard to type."""

    name = "character"
    character_by_name = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}  # noqa: RUF012

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Look a name up."""
        character = self.character_by_name.get(str(value), str(value))
        if len(character) != 1 or character in '"\r\n':
            self.fail(f"{value!r} is not one character that can separate cells", param, ctx)
        return character


class Jobs(click.ParamType):
    """A number of threads; -1 is one per core."""

    name = "integer"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Reject 0."""
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
        """Convert all values but "auto"."""
        return value if value == "auto" else self.kind.convert(value, param, ctx)


DELIMITER = click.option(
    "--delimiter", type=Delimiter(),
    help="Separator of cells of text: a character, or 'tab', 'space'; detected by default.",
)  # fmt: skip
USE_REP = click.option(
    "--use-rep", metavar="KEY", help="Points of an .h5ad file; default X_pca, else X."
)


def example(*lines: str) -> str:
    """Return the end of a command's help: an example whose lines are not wrapped."""
    return "\b\n" + "\n".join(["Example:", *(f"  {line}" for line in lines)])
