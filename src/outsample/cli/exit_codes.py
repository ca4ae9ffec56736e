"""What goes wrong, told in one sentence, and the exit codes that say what kind of thing it was."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from outsample.cli.lab_commands import LAB_COMMANDS, lab_command
from outsample.files.atomic import protected_inputs

FAILED, BAD_USE, BAD_DATA, BAD_MODEL, INTERRUPTED = 1, 2, 3, 4, 130
EXIT_CODES = """\b
Exit codes:
  0    all went well
  1    it failed: a full disk, say
  2    bad use: options, arguments, or a file that is not there
  3    bad data: a file that is no table, or not the right one
  4    bad model file: damaged, or of a newer version
  130  stopped by Ctrl-C
"""


# Kinds of ValueError that are no bad data, by name: nothing is imported to tell them.
OTHER_CODES = {
    "ModelFileError": BAD_MODEL,
    "OutputError": BAD_USE,
    "UnknownNameError": BAD_USE,
}


class Failure(click.ClickException):
    """One sentence and an exit code."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(" ".join(message.split()))
        vars(self)["exit_code"] = exit_code  # a class variable to click's types


class Commands(click.Group):
    """Commands in the order they are used in, that can be stopped without a traceback."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Run as a program of its own.

        Importing makes a million objects, none of them rubbish: looking through them again and
        again, and once more at the end, would take a quarter of the time of a short command.
        """
        gc.set_threshold(200_000)
        try:
            return super().__call__(*arguments, **options)
        finally:
            gc.freeze()

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which they were added, then those of the lab."""
        return [*self.commands, *LAB_COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command of this package, or one that the lab contributes."""
        if cmd_name in LAB_COMMANDS:
            return lab_command(cmd_name)
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; Ctrl-C ends it by one word and its own exit code."""
        formed = warnings.formatwarning
        warnings.formatwarning = _one_line
        try:
            with protected_inputs():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        finally:
            warnings.formatwarning = formed


def _one_line(message: Warning | str, *place: Any, **more: Any) -> str:
    """Warnings of the library as notes to a user, who has not written the line they are about."""
    return f"Note: {message}\n"


@contextmanager
def plain_errors() -> Iterator[None]:
    """Say in one line what is wrong with the input, or with the file to write to."""
    try:
        yield
    except ValueError as error:
        raise Failure(str(error), OTHER_CODES.get(type(error).__name__, BAD_DATA)) from error
    except BrokenPipeError:  # whoever read has seen enough: click ends without a word
        raise
    except MemoryError as error:
        raise Failure("there is not enough memory for that") from error
    except OSError as error:
        # Files are written by functions that name them; printing does not.
        target = error.filename or "the standard output"
        reason = error.strerror or str(error)
        raise Failure(f"cannot write to {target}: {reason}") from error


@contextmanager
def reading() -> Iterator[None]:
    """Tell a file that cannot be opened from one that cannot be written."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            raise
        raise Failure(f"{error.filename}: {error.strerror}", BAD_USE) from error
