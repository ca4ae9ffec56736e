"""`outsample completion`: what a shell needs to complete commands and options."""

from __future__ import annotations

import click

from outsample.cli.options import example


@click.command(
    short_help="Print the script for completion in a shell.",
    epilog=example('eval "$(outsample completion bash)"   # in ~/.bashrc'),
)
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that lets a SHELL (bash, zsh or fish) complete commands, options and files."""
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None
    root = context.find_root().command
    click.echo(made(root, {}, "outsample", "_OUTSAMPLE_COMPLETE").source())
