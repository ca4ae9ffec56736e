"""`outsample bench` and `outsample reproduce`, registered as entry points of outsample."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from outsample.cli.exit_codes import plain_errors
from outsample.cli.options import again, data_option, example, out_folder, quick
from outsample.cli.showing import show, show_files

if TYPE_CHECKING:
    from outsample_lab.bench_files import Bench


@click.group(
    invoke_without_command=True,
    short_help="Measure against other libraries.",
    epilog=example("outsample bench novelty --quick"),
)
@click.pass_context
def bench(context: click.Context) -> None:
    """Measure this library and others on the same data; the default command is accuracy."""
    if context.invoked_subcommand is None:
        context.invoke(bench_accuracy)


def _bench_options(less: str, data: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the options of a benchmark: --quick, --out, --data, --from."""
    options = [
        quick(f"{less}: under a minute."),
        out_folder("outsample-bench", "the figures, the picture and the page"),
        data_option(data),
        again("Measure nothing: draw picture and page again from the JSON"),
    ]

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            command = option(command)
        return command

    return with_options


@bench.command(
    "accuracy",
    short_help="Hold-out errors on many maps.",
    epilog=example("outsample bench accuracy --quick"),
)
@_bench_options("Three small maps and one split", "embedding/mnist.npz")
@click.option("--maps", multiple=True, metavar="NAME", help="Only these maps; may be repeated.")
def bench_accuracy(maps: tuple[str, ...], **options: Any) -> None:
    """Measure the hold-out errors of this and other methods on many maps.

    Needs the extra outsample-lab[bench] for UMAP and openTSNE; missing packages are skipped and
    reported.
    """
    from outsample_lab.accuracy.accuracy_bench import ACCURACY

    _bench(ACCURACY, **options, names=maps)


@bench.command(
    "novelty",
    short_help="Detection of anomalous rows on many data sets.",
    epilog=example("outsample bench novelty --quick"),
)
@_bench_options("A few small sets and one seed", "outliers/, embedding/mnist.npz and darpa98/")
@click.option("--sets", multiple=True, metavar="NAME", help="Only these sets; may be repeated.")
@click.option(
    "--detectors", multiple=True, metavar="NAME", help="Only these detectors; may be repeated."
)
def bench_novelty(sets: tuple[str, ...], detectors: tuple[str, ...], **options: Any) -> None:
    """Fit detectors to normal rows, and compare how they rank normal and anomalous new rows.

    Needs the extra outsample-lab[bench] for PyOD, and torch for one of its detectors. Missing
    packages are reported. Without data files it uses the digits and simulated traffic.
    """
    from outsample_lab.novelty.novelty_bench import NOVELTY

    _bench(NOVELTY, **options, names=sets, listed=detectors)


@bench.command(
    "speed",
    short_help="Times relative to bare searches and other libraries; memory; error against n.",
    epilog=example("outsample bench speed --parts exact --parts row"),
)
@_bench_options("Small sizes, and without the slow parts", "embedding/mnist.npz")
@click.option("--parts", multiple=True, metavar="NAME", help="Only these parts; may be repeated.")
def bench_speed(parts: tuple[str, ...], **options: Any) -> None:
    """Time placing and fitting against bare neighbour searches and other libraries.

    A full run takes 30 to 40 minutes on two idle cores. Needs the extra outsample-lab[bench] for
    UMAP and openTSNE; missing packages are skipped and reported.
    """
    from outsample_lab.speed.speed_bench import SPEED

    _bench(SPEED, **options, names=parts)


@bench.command(
    "stream",
    short_help="Streaming detection on days of network traffic.",
    epilog=example("outsample bench stream --quick"),
)
@_bench_options("The first few days", "darpa98/")
def bench_stream(**options: Any) -> None:
    """Replay days of traffic to learners, and count false alarms and detected attacks.

    Needs the extra outsample-lab[bench] for river's trees. Without data files it replays three
    simulated days.
    """
    from outsample_lab.stream.stream_bench import STREAM

    _bench(STREAM, **options)


@bench.command(
    "service",
    short_help="A service under load: single rows, batches, overload, unruly clients.",
    epilog=example("outsample bench service --quick"),
)
@_bench_options("A few seconds of each load", "nothing: the points are made up")
def bench_service(**options: Any) -> None:
    """Serve a model on this machine, and measure it below and far above its capacity.

    A full run takes seven minutes; the machine should be idle. Needs the extra outsample[serve].
    """
    from outsample_lab.serving.service_bench import SERVICE

    _bench(SERVICE, **options)


@bench.command(
    "tables",
    short_help="Tables with categories, dates and missing cells.",
    epilog=example("outsample bench tables --quick"),
)
@quick("Two small tables.")
@out_folder("outsample-bench", "tables.json")
@click.option("--tables", multiple=True, metavar="NAME", help="Only these tables; may be repeated.")
def bench_tables(quick: bool, out: str, tables: tuple[str, ...]) -> None:
    """Place rows of real tables on maps that were made in several ways, and check the p-values.

    A full run takes half an hour. Needs the extra outsample-lab[bench] for the tables.
    """
    from pathlib import Path

    from outsample_lab.tables.tables_bench import run_tables

    with plain_errors():
        run_tables(Path(out), quick=quick, names=tables, show=click.echo)


def _bench(
    bench: Bench[Any], *, out: str, data: str | None, results_file: str | None, **choice: Any
) -> None:
    """Run a benchmark or read its results file, and show the results."""
    from outsample.report.terminal import shown_progress
    from outsample_lab.environment import data_folder

    with plain_errors():
        if results_file is not None:
            result = bench.draw_again(out, results_file)
        else:
            with shown_progress() as progress:
                options = {"folder": data_folder(data), "progress": progress, "show": show}
                result = bench.run(out, **options, **choice)
        for titled in result.tables:
            show(*titled)
        show_files(result.seconds, result.files)


@click.command(
    short_help="Run the paper's experiments.", epilog=example("outsample reproduce --quick")
)
@data_option("darpa98/", ", else simulated traffic")
@out_folder("outsample-reproduction", "results.json and report.html")
@quick("Fewer grids, sizes and repetitions: under a minute.")
@again("Run nothing: draw the page again from the results.json")
def reproduce(data: str | None, out: str, quick: bool, results_file: str | None) -> None:
    """Run the experiments of Section 7 of the paper, and compare every number with the paper.

    Table 7.1 and Fig. 7.1 and 7.2 (the sphere), Fig. 7.3 (extensions of a diffusion map), Fig. 7.4
    to 7.6 (a day of network traffic and its anomalous minutes), and the costs of Section 6. Without
    the data files, traffic is simulated and labelled as such.
    """
    from outsample.report.terminal import shown_progress
    from outsample_lab.environment import data_folder
    from outsample_lab.paper.reproduction import FULL, QUICK, draw_again, run_reproduction
    from outsample_lab.paper.reproduction_summary import summary_tables

    with plain_errors():
        with shown_progress() as progress:
            result = draw_again(results_file, out) if results_file else run_reproduction(
                out, folder=data_folder(data), size=QUICK if quick else FULL, progress=progress
            )  # fmt: skip
        for titled in summary_tables(result.results):
            show(*titled)
        if result.results.data.notice:
            click.echo(result.results.data.notice)
        show_files(result.seconds, result.files)
