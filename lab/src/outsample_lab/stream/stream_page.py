"""The page of `outsample bench stream`, its tables and its picture."""

import numpy as np

from outsample.plots.canvas import can_draw
from outsample.report.page import Picture, Section, Table, build_page
from outsample_lab.bench_files import settings_section
from outsample_lab.stream.learners import METHOD
from outsample_lab.stream.stream_result import LEVEL, LearnerRow, StreamRun
from outsample_lab.wording import number, percent, plural

SUMMARY = (
    "Learner", "false alarms, median day", "worst day", "episodes at once", "ever",
    "average precision", "of loud minutes", "by score", "of loud minutes", "mean day", "s",
)  # fmt: skip
DAYS = ("Day", "normal minutes", "false alarms", "episodes", "at once", "ever", "drift")
# Days without false alarms are drawn at this rate.
MIN_RATE = 1e-4


def summary_table(run: StreamRun) -> Table:
    """Return one line per learner; the worst day is after the first week."""
    ours = frozenset(at for at, row in enumerate(run.rows) if row.name == METHOD)
    chance = ["chance", *[""] * 4, *(number(part) for part in (*run.chance[:2], *run.chance)), ""]
    lines = [*(_summary(row) for row in run.rows), chance]
    return Table(SUMMARY, lines, "\n".join(run.missing), ours)


def _summary(row: LearnerRow) -> list[str]:
    worst, delays = row.worst, row.delays
    return [
        row.name,
        percent(row.median_rate),
        "–" if worst is None else f"{percent(worst.rate)} ({worst.day})",
        f"{int((delays == 0).sum())} of {len(delays)}",
        str(int(np.isfinite(delays).sum())),
        number(row.precision),
        number(row.loud_precision),
        number(row.score_precision),
        number(row.loud_score_precision),
        number(row.daily_precision),
        f"{row.seconds:.0f}",
    ]


def day_table(row: LearnerRow) -> Table:
    """Return one line per day of a learner."""
    lines = []
    for day in row.days:
        delays = np.array(day.delays)
        cells = [str(int((delays == 0).sum())), str(int(np.isfinite(delays).sum()))]
        lines.append(
            [
                day.day, str(day.n_normal), percent(day.rate), str(len(delays)),
                *(cells if len(delays) else ["", ""]), "yes" if day.drifted else "",
            ]
        )  # fmt: skip
    return Table(DAYS, lines)


def rate_picture(run: StreamRun) -> Picture | None:
    """Return a picture of the rate of false alarms per day, one strip per learner."""
    if not run.rows or not can_draw():
        return None
    from outsample.plots.colours import BLUE, ORANGE
    from outsample_lab.plots.traces import Kind, Trace, trace_chart

    traces = [
        Trace(row.name, [max(np.nan_to_num(day.rate), MIN_RATE) for day in row.days], True, LEVEL)
        for row in run.rows
    ]
    days = run.ours.days if run.ours is not None else ()
    kinds = [
        Kind("day", range(len(run.rows[0].days)), BLUE),
        Kind(f"drift ({METHOD})", [at for at, day in enumerate(days) if day.drifted], ORANGE),
    ]
    drawn = trace_chart(traces, kinds, title="Share of normal minutes with an alarm", x_label="day")
    words = "One strip per learner, one point per day; the dashed line is the nominal rate, 1 %."
    return Picture(drawn, "Rates of false alarms of all learners on all days", words)


def stream_page(run: StreamRun, picture: Picture | None) -> str:
    """Return the page: the summary, the picture and one table per learner."""
    ours = run.ours
    made = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    traffic = "simulated traffic" if run.simulated else "recorded traffic"
    facts = []
    if ours is not None:
        n_episodes = len(ours.delays)
        facts = [
            (percent(ours.median_rate), "false alarms on the median day, 1 % is nominal"),
            (
                f"{int((ours.delays == 0).sum())} of {n_episodes}",
                "floods and fast scans flagged in their first minute",
            ),
        ]
    return build_page(
        "Streaming detection on network traffic",
        [
            Section("All days", [*run.protocol.values(), *run.missing], [summary_table(run)]),
            Section(
                "Day by day", [],
                [day_table(row)._replace(caption=f"{row.name}.") for row in run.rows],
            ),
            settings_section((row.name, row.note) for row in run.rows),
        ],
        lead=f"{plural(run.n_minutes, 'minute')} of {traffic}, scored as they arrive.",
        facts=facts,
        hero=picture,
        footer=f"Made by outsample bench stream on this computer, {run.seconds / 60:.0f} minutes."
        f" {made}.",
    )  # fmt: skip
