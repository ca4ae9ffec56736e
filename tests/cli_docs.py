"""Generate the tables and outputs in docs/cli.md from the commands; run this file to update it.

A ``console`` block contains commands after ``$`` and their output; they run in order in one folder.
A table of options is between ``<!-- options: NAME -->`` and ``<!-- end -->``.
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
    """Yield the full name of every command, and the command."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        yield " ".join([*path, name]), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


def options_table(name):
    """Return a table of the options of a command."""
    command = dict(commands())[name]
    context = click.Context(command)
    rows = ["| Option | |", "|---|---|"]
    for option in command.params:
        if isinstance(option, click.Option):
            flags = ", ".join([*option.opts, *option.secondary_opts])
            value = "" if option.is_flag else f" {option.make_metavar(context)}"
            default = option.default
            has_default = option.show_default and not option.is_flag
            default_text = f" Default: {default}." if has_default else ""
            flags = f"{flags}{value}".replace("|", "\\|")
            rows.append(f"| `{flags}` | {option.help}{default_text} |")
    return "\n".join(rows) + "\n"


def with_tables(text):
    """Return the page with new tables of options."""
    return OPTIONS.sub(lambda match: match[1] + options_table(match[2]) + match[3], text)


def with_output(text):
    """Return the page with the output of its commands, run in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        before = os.getcwd()
        os.chdir(folder)
        try:
            return FENCE.sub(lambda match: match[1] + _session(match[2], folder) + match[3], text)
        finally:
            os.chdir(before)


def _session(text, folder):
    lines = [line for line in text.splitlines() if line.startswith("$ ")]
    return "".join(f"{line}\n{_output(line[2:]).replace(folder + '/', '')}" for line in lines)


def _output(line):
    """Return the output of a line: a command, the head of a file, or a pipe of the two."""
    first, _, piped = line.partition(" | ")
    words = shlex.split(first)
    piped_input = None
    if words[0] == "head":
        n, path = int(words[1][1:]), Path(words[2])
        piped_input = "".join(f"{row}\n" for row in path.read_text().splitlines()[:n])
        if not piped:
            return "".join(f"{row[:98]}\n" for row in piped_input.splitlines())
    words = shlex.split(piped or first)
    assert words[0] == "outsample", line
    runner = CliRunner(env={"COLUMNS": "80"})
    result = runner.invoke(main, words[1:], input=piped_input)
    lines = [row[:98].rstrip() for row in result.stdout.rstrip().splitlines()]
    if result.exit_code:
        lines += [*result.stderr.splitlines(), f"(exit code {result.exit_code})"]
    return "".join(f"{row}\n" for row in lines)


def masked(text):
    """Return the page without numbers, which differ between machines, and truncated rows."""
    text = "\n".join(row if len(row) < 97 else row.split(",")[0] for row in text.splitlines())
    return re.sub(r"\s+", " ", re.sub(r"-?\d[\d.,e+-]*", "#", text))


if __name__ == "__main__":
    PAGE.write_text(with_output(with_tables(PAGE.read_text())))
