"""How many detectors rank the same sets: a dot each, a line for each set."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from outsample.plots.canvas import (
    BLUE,
    FAINT,
    INK,
    ORANGE,
    PALE,
    beside,
    legend,
    line_rows,
    new_figure,
    png,
    settings,
)

LINE, HEADING = 0.235, 0.5  # Inches of a line, and of the heading of a group
LOW = 0.4  # Areas below this are shown at the edge: how bad the bad ones are does not matter


class AreaGroup(NamedTuple):
    """Sets that belong together."""

    title: str
    labels: Sequence[str]
    ours: Sequence[float | None]  # Our area on each set, None if it failed
    others: Sequence[Sequence[float]]  # Areas of the other detectors


def area_chart(groups: Sequence[AreaGroup], name: str, *, title: str = "") -> bytes:
    """Draw areas under the ROC curve of many detectors, two columns of groups, as PNG.

    The groups run down the first column, then down the second; `name` is our detector's.
    """
    columns = _columns(groups)
    inner = max(sum(map(_height, column)) for column in columns)
    bottom = 0.85
    height = inner + bottom + (0.5 if title else 0.1)
    with settings():
        figure = new_figure(5.6 * len(columns), height, title)
        for at, column in enumerate(columns):
            top = bottom + inner
            for group in column:
                lines = LINE * len(group.labels)
                place = (at + 0.26) / len(columns), (top - HEADING - lines + 0.12) / height
                size = 0.62 / len(columns), lines / height
                last = group is column[-1]
                _draw(figure.add_axes((*place, *size)), group, last)
                top -= _height(group)
        legend(
            figure, 0.0, (name, BLUE, "o"), ("best other detector", ORANGE, "D"),
            ("other detectors", PALE, "o"), (f"some below {LOW:g}", PALE, "<"),
        )  # fmt: skip
        return png(figure, dpi=150)


def _height(group: AreaGroup) -> float:
    return HEADING + LINE * len(group.labels)


def _columns(groups: Sequence[AreaGroup]) -> list[list[AreaGroup]]:
    """Break the groups where the longer column is shortest."""
    cuts = [
        [list(part) for part in (groups[:at], groups[at:]) if part]
        for at in range(1, len(groups) + 1)
    ]
    return min(cuts, key=lambda columns: max(sum(map(_height, column)) for column in columns))


def _draw(axes: Any, group: AreaGroup, last: bool) -> None:
    axes.set_xlim(LOW - 0.015, 1.015)
    axes.axvline(0.5, color=PALE, linewidth=1, linestyle=(0, (3, 3)), zorder=0)
    for line, (mine, theirs) in enumerate(zip(group.ours, group.others, strict=True)):
        near = [area for area in theirs if area >= LOW]
        axes.plot(near, [line] * len(near), "o", color=PALE, markersize=5, zorder=2)
        if len(near) < len(theirs):
            axes.plot(LOW, line, "<", color=PALE, markersize=6, zorder=2)
        if theirs:
            axes.plot(max(max(theirs), LOW), line, "D", color=ORANGE, markersize=7.5, zorder=3)
        if mine is not None:
            axes.plot(max(mine, LOW), line, "o", color=BLUE, markersize=5.5, zorder=4)
        words, colour = ("failed", FAINT) if mine is None else (f"{mine:.3f}", BLUE)
        beside(axes, line, words, colour)
    line_rows(axes, group.labels)
    axes.set_title(group.title, loc="left", fontsize=10, color=INK, fontweight="bold", pad=4)
    axes.set_xticks([0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    if last:
        axes.set_xlabel("area under the ROC curve; right is better, 0.5 is chance")
    else:
        axes.set_xticklabels([])
