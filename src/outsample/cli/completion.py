"""`outsample completion`: a script for completion in a shell."""

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

    completion_class = get_completion_class(shell)
    assert completion_class is not None
    root = context.find_root().command
    click.echo(completion_class(root, {}, "outsample", "_OUTSAMPLE_COMPLETE").source())
