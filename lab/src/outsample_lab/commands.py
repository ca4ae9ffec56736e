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
    """Measure this library and others on the same data; without a command: accuracy."""
    if context.invoked_subcommand is None:
        context.invoke(bench_accuracy)


def _bench_options(less: str, data: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator with the options of every benchmark; the words tell what differs."""
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
    short_help="How near to the truth, on maps of every kind.",
    epilog=example("outsample bench accuracy --quick"),
)
@_bench_options("Three small maps and one split", "embedding/mnist.npz")
@click.option("--maps", multiple=True, metavar="NAME", help="Only these maps; may be repeated.")
def bench_accuracy(maps: tuple[str, ...], **options: Any) -> None:
    """Hide points of many maps, place them again, and compare with other methods.

    Needs the extra outsample-lab[bench] for UMAP and openTSNE; what is missing is skipped and said.
    """
    from outsample_lab.accuracy.accuracy_bench import ACCURACY

    _bench(ACCURACY, **options, names=maps)


@bench.command(
    "novelty",
    short_help="Strange rows among normal ones, on sets of every kind.",
    epilog=example("outsample bench novelty --quick"),
)
@_bench_options("A few small sets and one seed", "outliers/, embedding/mnist.npz and darpa98/")
@click.option("--sets", multiple=True, metavar="NAME", help="Only these sets; may be repeated.")
@click.option(
    "--detectors", multiple=True, metavar="NAME", help="Only these detectors; may be repeated."
)
def bench_novelty(sets: tuple[str, ...], detectors: tuple[str, ...], **options: Any) -> None:
    """Let detectors learn normal rows, show them new ones, and compare how they rank them.

    Needs the extra outsample-lab[bench] for PyOD, and torch for one of its detectors. Missing
    packages are reported. Without data files it uses the digits and simulated traffic.
    """
    from outsample_lab.novelty.novelty_bench import NOVELTY

    _bench(NOVELTY, **options, names=sets, listed=detectors)


@bench.command(
    "speed",
    short_help="Times over bare searches and other libraries; memory; error against n.",
    epilog=example("outsample bench speed --parts exact --parts row"),
)
@_bench_options("Small sizes, and without the slow parts", "embedding/mnist.npz")
@click.option("--parts", multiple=True, metavar="NAME", help="Only these parts; may be repeated.")
def bench_speed(parts: tuple[str, ...], **options: Any) -> None:
    """Time placing and fitting beside bare neighbour searches and beside other libraries.

    A full run takes 30 to 40 minutes on two idle cores. Needs the extra outsample-lab[bench] for
    UMAP and openTSNE; missing packages are skipped and reported.
    """
    from outsample_lab.speed.speed_bench import SPEED

    _bench(SPEED, **options, names=parts)


@bench.command(
    "stream",
    short_help="Days of traffic in their order, learned from as they arrive.",
    epilog=example("outsample bench stream --quick"),
)
@_bench_options("The first few days", "darpa98/")
def bench_stream(**options: Any) -> None:
    """Let learners watch days of traffic go by, and count false alarms and attacks found.

    Needs the extra outsample-lab[bench] for river's trees. Without data files it replays three
    simulated days.
    """
    from outsample_lab.stream.stream_bench import STREAM

    _bench(STREAM, **options)


@bench.command(
    "service",
    short_help="A service under load: one row, many, too many, unruly clients.",
    epilog=example("outsample bench service --quick"),
)
@_bench_options("A few seconds of each load", "nothing: the points are made up")
def bench_service(**options: Any) -> None:
    """Serve a model on this machine, and ask it for less and for far more than it can do.

    A full run takes seven minutes; the machine should be idle. Needs the extra outsample[serve].
    """
    from outsample_lab.serving.service_bench import SERVICE

    _bench(SERVICE, **options)


def _bench(
    bench: Bench[Any], *, out: str, data: str | None, results_file: str | None, **choice: Any
) -> None:
    """Measure, or draw again what was measured; then show it."""
    from outsample.report.terminal import shown_progress
    from outsample_lab.environment import data_folder

    with plain_errors():
        if results_file is not None:
            found = bench.draw_again(out, results_file)
        else:
            with shown_progress() as progress:
                given = {"folder": data_folder(data), "progress": progress, "show": show}
                found = bench.run(out, **given, **choice)
        for titled in found.tables:
            show(*titled)
        show_files(found.seconds, found.files)


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
    from outsample.report.terminal import shown_progress
    from outsample_lab.environment import data_folder
    from outsample_lab.paper.reproduction import FULL, QUICK, draw_again, run_reproduction
    from outsample_lab.paper.reproduction_summary import summary_tables

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
