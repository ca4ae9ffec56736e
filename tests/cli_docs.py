"""What docs/cli.md says, made from the commands themselves; run this file to write it again.

A fence of ``console`` holds commands after ``$`` and what they print; they are run one after the
other in one folder. A table of options stands between ``<!-- options: NAME -->`` and
``<!-- end -->``.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from pathlib import Path

import click
from click.testing import CliRunner

from outsample.cli import main

PAGE = Path(__file__).parent.parent / "docs" / "cli.md"
OPTIONS = re.compile(r"(<!-- options: (.+?) -->\n).*?(<!-- end -->)", re.S)
FENCE = re.compile(r"(```console\n)(.*?)(```)", re.S)


def commands(group=main, path=()):
    """Every command by its words."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        yield " ".join([*path, name]), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


def options_table(name):
    """Options of a command as a table."""
    command = dict(commands())[name]
    context = click.Context(command)
    rows = ["| Option | |", "|---|---|"]
    for option in command.params:
        if isinstance(option, click.Option):
            flags = ", ".join([*option.opts, *option.secondary_opts])
            value = "" if option.is_flag else f" {option.make_metavar(context)}"
            default = option.default
            told = f" Default: {default}." if option.show_default and not option.is_flag else ""
            flags = f"{flags}{value}".replace("|", "\\|")
            rows.append(f"| `{flags}` | {option.help}{told} |")
    return "\n".join(rows) + "\n"


def with_tables(text):
    """The page with its tables of options made again."""
    return OPTIONS.sub(lambda found: found[1] + options_table(found[2]) + found[3], text)


def with_output(text):
    """The page with its commands run again, in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        before = os.getcwd()
        os.chdir(folder)
        try:
            return FENCE.sub(lambda found: found[1] + _session(found[2], folder) + found[3], text)
        finally:
            os.chdir(before)


def _session(text, folder):
    lines = [line for line in text.splitlines() if line.startswith("$ ")]
    return "".join(f"{line}\n{_output(line[2:]).replace(folder + '/', '')}" for line in lines)


def _output(line):
    """What a line prints: a command of ours, the head of a file, or one piped into the other."""
    first, _, piped = line.partition(" | ")
    words = shlex.split(first)
    given = None
    if words[0] == "head":
        n, path = int(words[1][1:]), Path(words[2])
        given = "".join(f"{row}\n" for row in path.read_text().splitlines()[:n])
        if not piped:
            return "".join(f"{row[:98]}\n" for row in given.splitlines())
    words = shlex.split(piped or first)
    assert words[0] == "outsample", line
    runner = CliRunner(env={"COLUMNS": "80"})
    result = runner.invoke(main, words[1:], input=given)
    lines = [row[:98].rstrip() for row in result.stdout.rstrip().splitlines()]
    if result.exit_code:
        lines += [*result.stderr.splitlines(), f"(exit code {result.exit_code})"]
    return "".join(f"{row}\n" for row in lines)


def masked(text):
    """The page without the figures, which differ from machine to machine, and what is cut off."""
    text = "\n".join(row if len(row) < 97 else row.split(",")[0] for row in text.splitlines())
    return re.sub(r"\s+", " ", re.sub(r"-?\d[\d.,e+-]*", "#", text))


if __name__ == "__main__":
    PAGE.write_text(with_output(with_tables(PAGE.read_text())))
