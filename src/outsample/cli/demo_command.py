"""`outsample demo`: an experiment on digits, and a page with its results."""

from __future__ import annotations

import click

from outsample.cli.exit_codes import plain_errors
from outsample.cli.options import example, out_folder, quick
from outsample.cli.showing import show


@click.command(
    short_help="Run an example on digits and write a page.",
    epilog=example("outsample demo --quick"),
)
@out_folder("outsample-demo", "the page")
@quick("Fewer digits: a few seconds.")
@click.option(
    "--data-only", is_flag=True,
    help="Only write points.csv, map.csv and new.csv of digits, to try the commands.",
)  # fmt: skip
def demo(out: str, quick: bool, data_only: bool) -> None:
    """Hide digits from a t-SNE map, place them again, and write a page with the errors.

    Compares the defaults and the paper's weightings with inverse-distance nearest neighbours, and
    flags images that are not digits.
    """
    from outsample.demo.demo import FULL, QUICK, demo_tables, run_demo
    from outsample.report.terminal import shown_progress

    with plain_errors():
        if data_only:
            from outsample.demo.demo_files import write_demo_files

            for path in write_demo_files(out, QUICK.n_digits if quick else None):
                click.echo(f"Wrote {path}")
            return
        with shown_progress() as progress:
            result = run_demo(out, QUICK if quick else FULL, progress)
        for titled in demo_tables(result):
            show(*titled)
        click.echo(f"Report: {result.page}")
