"""`outsample inspect`: what a model file holds."""

from __future__ import annotations

from typing import Any

import click

from outsample.cli import options
from outsample.cli.exit_codes import plain_errors, reading
from outsample.cli.showing import in_bytes, show_json, show_pairs


@click.command(
    short_help="Show what a model file holds.",
    epilog=options.example("outsample inspect model.outsample --json"),
)
@click.argument("model", type=options.InputFile())
@options.as_json()
def inspect(model: str, as_json: bool) -> None:
    """Show what is in the file MODEL: points, features, map, columns, parameters.

    With --json also every array in it, with type, shape and size.
    """
    with plain_errors():
        from outsample.cli.models import check_there
        from outsample.files.model_file import describe

        check_there(model)
        with reading():
            info = describe(model)
        if as_json:
            show_json(_plain(info._asdict()))
        else:
            _show(model, info)


def _show(model: str, info: Any) -> None:
    """Print two tables, the model and its parameters; only JSON has all the arrays."""
    told = {name: _words(name, value) for name, value in info._asdict().items()}
    sizes = [size for *_, size in info.arrays]
    told["arrays"] = f"{len(sizes)}, {in_bytes(sum(sizes))}"
    told.pop("parameters")
    show_pairs(model, {name: words for name, words in told.items() if words})
    show_pairs("parameters", {name: str(value) for name, value in info.parameters.items()})


def _plain(value: Any) -> Any:
    """Tuples with names as objects, for JSON."""
    if hasattr(value, "_asdict"):
        return {name: _plain(one) for name, one in value._asdict().items()}
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value


def _words(name: str, value: Any) -> str:
    from outsample.files.matching import listed

    if value is None:
        return ""
    if name == "file_bytes":
        return in_bytes(value)
    if name == "notes":
        return "\n".join(value)
    if isinstance(value, list | tuple):
        return listed([str(one) for one in value])
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else str(value)
