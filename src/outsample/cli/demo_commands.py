"""`outsample demo` and `outsample reproduce`: see it work."""

from __future__ import annotations

import click

from outsample.cli.exit_codes import plain_errors
from outsample.cli.options import again, data_option, example, out_folder, quick
from outsample.cli.showing import show, show_files


@click.command(
    short_help="See it work: two experiments and a page.", epilog=example("outsample demo --quick")
)
@out_folder("outsample-demo", "the page")
@quick("Smaller data: see in seconds that everything works.")
@click.option(
    "--data-only", is_flag=True,
    help="Run nothing: write points.csv, map.csv and new.csv of digits to try the commands with.",
)  # fmt: skip
def demo(out: str, quick: bool, data_only: bool) -> None:
    """Place points whose true place is known, and write a page that shows how well.

    Runs the sphere of the paper's Table 7.1 and a t-SNE map of handwritten digits, beside
    inverse-distance nearest neighbours.
    """
    from outsample.lab.demo.demo import FULL, QUICK, demo_tables, run_demo
    from outsample.report.terminal import shown_progress

    with plain_errors():
        if data_only:
            from outsample.lab.demo.demo_files import write_demo_files

            for path in write_demo_files(out, QUICK.n_digits if quick else None):
                click.echo(f"Wrote {path}")
            return
        with shown_progress() as progress:
            result = run_demo(out, QUICK if quick else FULL, progress)
        for titled in demo_tables(result):
            show(*titled)
        click.echo(f"Report: {result.page}")


@click.command(
    short_help="Run the paper's experiments again.", epilog=example("outsample reproduce --quick")
)
@data_option("darpa98/", ", else simulated traffic")
@out_folder("outsample-reproduction", "results.json and report.html")
@quick("Fewer grids, sizes and repetitions: under a minute.")
@again("Run nothing: draw the page again from the results.json")
def reproduce(data: str | None, out: str, quick: bool, results_file: str | None) -> None:
    """Run Section 7 of the paper whole, and write every number beside the paper's.

    Table 7.1 and Fig. 7.1 and 7.2 (the sphere), Fig. 7.3 (extensions of a diffusion map), Fig. 7.4
    to 7.6 (a day of network traffic and its odd minutes), and the costs of Section 6. Without the
    data files traffic is simulated, and labelled so.
    """
    from outsample.lab.environment import data_folder
    from outsample.lab.paper.reproduction import FULL, QUICK, draw_again, run_reproduction
    from outsample.lab.paper.reproduction_summary import summary_tables
    from outsample.report.terminal import shown_progress

    with plain_errors():
        with shown_progress() as progress:
            found = draw_again(results_file, out) if results_file else run_reproduction(
                out, folder=data_folder(data), size=QUICK if quick else FULL, progress=progress
            )  # fmt: skip
        for titled in summary_tables(found.results):
            show(*titled)
        if found.results.data.notice:
            click.echo(found.results.data.notice)
        show_files(found.seconds, found.files)
