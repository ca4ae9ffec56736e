"""docs/cli.md is true: every command, option and exit code is in it, and its examples run."""

import ast
import re

import click
import pytest

from cli_docs import PAGE, commands, masked, with_output, with_tables
from outsample.cli import exit_codes as errors

TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_every_command_has_a_section_with_all_its_options(name):
    assert re.search(rf"^#+ `outsample {name}`$", TEXT, re.M)
    for option in dict(commands())[name].params:
        if isinstance(option, click.Option):
            assert all(f"{flag}" in TEXT for flag in option.opts)
    assert f"<!-- options: {name} -->" in TEXT or isinstance(dict(commands())[name], click.Group)


def test_tables_of_options_are_those_of_the_commands():
    assert with_tables(TEXT) == TEXT, "run `python tests/cli_docs.py`"


def test_every_exit_code_is_told_in_the_page_and_in_the_help():
    codes = [errors.FAILED, errors.BAD_USE, errors.BAD_DATA, errors.BAD_MODEL, errors.INTERRUPTED]
    for code in (0, *codes):
        assert re.search(rf"^\| {code} \|", TEXT, re.M)
        assert re.search(rf"^  {code} +\w", errors.EXIT_CODES, re.M)


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_help_ends_with_an_example_of_the_command(name):
    command = dict(commands())[name]
    assert command.epilog.startswith("\b\nExample:\n  ")
    assert f"outsample {name.split()[0]}" in command.epilog


def test_messages_name_options_that_exist():
    """Of the right command: `run` of cli_data.py looks at every message that a test provokes."""
    flags = {flag for _, command in commands() for option in command.params
             for flag in (*option.opts, *option.secondary_opts, "--help")}  # fmt: skip
    folder = PAGE.parent.parent / "src" / "outsample"
    for path in [*folder.glob("cli/*.py"), *folder.glob("files/*.py")]:
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        docstrings = [node.value for node in nodes if isinstance(node, ast.Expr)]
        for node in nodes:
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if is_text and node not in docstrings:
                named = re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", node.value)
                assert flags.issuperset(named), (path.name, named)


def test_the_examples_print_what_the_page_shows():
    assert masked(with_output(TEXT)) == masked(TEXT), "run `python tests/cli_docs.py`"
