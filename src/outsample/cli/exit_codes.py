"""The group of commands, exit codes, and errors as one sentence."""

from __future__ import annotations

import gc
import os
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
  0    success
  1    failure, such as a full disk
  2    bad use: options, arguments, or a missing file
  3    bad data: a file that is not a table, or does not fit the model
  4    bad model file: damaged, or of a newer version
  130  stopped by Ctrl-C
"""


# ValueErrors that are not bad data, by name, so that no module is imported for them.
EXIT_CODE_BY_ERROR = {
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
    """Commands in the order in which they are used; Ctrl-C ends them without a traceback."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Run as a program.

        Imports create a million objects, none of them garbage. Not collecting them saves a quarter
        of the time of a short command.
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
        """Return a command of this package or of the lab."""
        if cmd_name in LAB_COMMANDS:
            return lab_command(cmd_name)
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; warnings are one line, and Ctrl-C is one word with its exit code."""
        previous_format = warnings.formatwarning
        warnings.formatwarning = lambda message, *_, **__: f"Note: {message}\n"
        try:
            with protected_inputs():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        finally:
            warnings.formatwarning = previous_format


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn errors of the input and of the file to write into one sentence and an exit code."""
    try:
        yield
    except ValueError as error:
        code = EXIT_CODE_BY_ERROR.get(type(error).__name__, BAD_DATA)
        raise Failure(str(error), code) from error
    except BrokenPipeError:  # the reader of the pipe has ended: click exits silently
        raise
    except MemoryError as error:
        raise Failure("there is not enough memory") from error
    except OSError as error:
        # Functions that write files name them in their errors; printing does not.
        target = error.filename or "the standard output"
        reason = error.strerror or str(error)
        raise Failure(f"cannot write to {target}: {reason}") from error


@contextmanager
def reading() -> Iterator[None]:
    """Report a file that cannot be opened as bad use, not as one that cannot be written."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            raise
        raise Failure(f"{error.filename}: {error.strerror}", BAD_USE) from error


def existing_file(path: str) -> str:
    """Return the path of a file that exists; a missing file is bad use."""
    if not os.path.isfile(path):
        raise Failure(f"{path}: no such file", BAD_USE)
    return path
