"""The page of `outsample bench service`, and its tables."""

from collections.abc import Sequence

from outsample.report.page import Picture, Section, Table, build_page
from outsample_lab.serving.service_result import LoadRow, ServiceRun
from outsample_lab.speed.speed_page import load_words, notes_of, target_picture_of, target_table
from outsample_lab.wording import number

HEADS = (
    "Load", "a second", "s", "answered", "refused", "errors", "p50, ms", "p99, ms",
    "sent late, ms", "MB",
)  # fmt: skip


def load_table(loads: Sequence[LoadRow]) -> Table:
    """Return one line per load."""
    rows = [
        [each.name, f"{each.per_second:,.0f}", f"{each.seconds:.0f}", f"{each.answered:,}",
         f"{each.refused:,}", f"{each.errors:,}", number(each.p50), number(each.p99),
         number(each.late), f"{each.megabytes:.0f}"]
        for each in loads
    ]  # fmt: skip
    return Table(HEADS, rows)


def target_picture(run: ServiceRun) -> Picture | None:
    """Return a picture of all targets."""
    return target_picture_of(run.targets)


def service_page(run: ServiceRun, picture: Picture | None) -> str:
    """Return the page: the targets, the picture and the loads."""
    made = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    short = ["A short run with small sizes: its figures are not those of the table."]
    words = [load_words(run), *(short if run.quick else []), *notes_of(run.targets)]
    met = sum(each.met for each in run.targets)
    return build_page(
        "A service under load",
        [
            Section("Figures to reach", words, [target_table(run.targets)]),
            Section("Loads", run.protocol, [load_table(run.loads)]),
        ],
        lead="One row and many, less and far more than it can do, and clients who do not behave.",
        facts=[
            (f"{met} of {len(run.targets)}", "figures reached"),
            (f"{run.capacity:,.0f}", "requests of one row a second"),
        ],
        hero=picture,
        footer=f"Made by outsample bench service on this computer, {run.seconds / 60:.0f} minutes."
        f" {made}.",
    )
