"""Commands and data that the separate package outsample-lab contributes through entry points."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

import click

# Names of the lab's commands, and their short help if the lab is not installed.
LAB_COMMANDS = {
    "reproduce": "Run the paper's experiments (package outsample-lab).",
    "bench": "Measure against other libraries (package outsample-lab).",
}
HOW_TO_GET_IT = "is in the package outsample-lab; install it from a checkout: pip install ./lab"


def lab_object(group: str, name: str) -> Any | None:
    """Return the object that the lab registers under a name, or None if it is not installed."""
    for entry in entry_points(group=f"outsample.{group}", name=name):
        return entry.load()
    return None


def lab_command(name: str) -> click.Command:
    """Return a command of the lab; without the lab, one that prints how to get it."""
    command = lab_object("commands", name)
    return command if command is not None else _missing_command(name)


def _missing_command(name: str) -> click.Command:
    @click.command(
        name,
        short_help=LAB_COMMANDS[name],
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )
    def missing() -> None:
        raise click.ClickException(f"outsample {name} {HOW_TO_GET_IT}")

    return missing
