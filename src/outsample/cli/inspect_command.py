"""`outsample inspect`: the description of a model file."""

from __future__ import annotations

from typing import Any

import click

from outsample.cli import options
from outsample.cli.exit_codes import existing_file, plain_errors, reading
from outsample.cli.showing import format_bytes, show_json, show_pairs


@click.command(
    short_help="Show what a model file contains.",
    epilog=options.example("outsample inspect model.outsample --json"),
)
@click.argument("model", type=options.InputFile())
@options.as_json()
def inspect(model: str, as_json: bool) -> None:
    """Show what the file MODEL contains: points, features, map, columns, parameters.

    With --json also every array, with type, shape and size.
    """
    with plain_errors():
        from outsample.files.model_file import describe

        with reading():
            info = describe(existing_file(model))
        if as_json:
            show_json(info._asdict())
            return
        texts = {name: _text(name, value) for name, value in info._asdict().items()}
        sizes = [size for *_, size in info.arrays]
        texts["arrays"] = f"{len(sizes)}, {format_bytes(sum(sizes))}"
        del texts["parameters"]
        show_pairs(model, {name: text for name, text in texts.items() if text})
        show_pairs("parameters", {name: str(value) for name, value in info.parameters.items()})


def _text(name: str, value: Any) -> str:
    """Return a field of the description as text, "" if it has no value."""
    from outsample.files.matching import listed

    if value is None:
        return ""
    if name == "file_bytes":
        return format_bytes(value)
    if name == "notes":
        return "\n".join(value)
    if isinstance(value, list | tuple):
        return listed([str(entry) for entry in value])
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else str(value)
