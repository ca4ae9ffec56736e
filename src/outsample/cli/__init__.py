"""The command line. Heavy imports are inside the commands, so that help is instant."""

from __future__ import annotations

import click

from outsample import __version__
from outsample.cli.compare_command import compare
from outsample.cli.completion import completion
from outsample.cli.demo_command import demo
from outsample.cli.exit_codes import EXIT_CODES, Commands
from outsample.cli.fit_command import fit
from outsample.cli.inspect_command import inspect
from outsample.cli.place_command import place
from outsample.cli.replay_command import replay
from outsample.cli.report_command import report
from outsample.cli.serve_command import serve
from outsample.cli.warm_up_command import warm_up

__all__ = ["main"]


@click.group(
    cls=Commands, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="outsample", message="%(prog)s %(version)s")
def main() -> None:
    """Place new points on an existing map, and report how far to trust the result.

    \b
    outsample fit points.csv map.csv -o model.outsample
    outsample place model.outsample new.csv -o placed.csv
    outsample report model.outsample placed.csv -o page.html
    """  # noqa: D301


COMMANDS = fit, place, inspect, report, serve, replay, compare, demo, warm_up, completion
for command in COMMANDS:
    main.add_command(command)
