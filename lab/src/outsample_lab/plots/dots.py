"""Dot charts, one line per method, map or set: errors on a log scale, and AUC."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from outsample.plots.canvas import legend, new_figure, png, settings, svg
from outsample.plots.colours import BLUE, FAINT, INK, ORANGE, PALE
from outsample.plots.error_lines import label_decades, label_rows, log_lines, write_beside

# Values beyond these limits are shown at the edge.
FAR_RATIO, LOW_AREA = 20.0, 0.4
LINE, HEADING = 0.235, 0.5  # Inches of a line of areas, and of the heading of a group


def error_chart(
    labels: Sequence[str],
    ours: Sequence[float],
    theirs: Sequence[float | None],
    *,
    title: str = "",
    limits: tuple[float, float] | None = None,
) -> bytes:
    """Return an SVG of mean errors on a log scale, measured and published."""
    # `limits` are the ends of the scale, to make two charts comparable.
    with settings():
        height = 1.35 + 0.36 * len(labels)
        figure = new_figure(5.6, height, title)
        axes = figure.add_axes((0.34, 0.78 / height, 0.51, 0.36 * len(labels) / height))
        axes.set_xscale("log")
        axes.set_xlim(limits)
        for line, (mine, paper) in enumerate(zip(ours, theirs, strict=True)):
            if paper is not None:
                axes.plot([mine, paper], [line, line], color=FAINT, linewidth=1.2, zorder=1)
                axes.plot(paper, line, "D", color=ORANGE, markersize=7, zorder=2)
            axes.plot(mine, line, "o", color=BLUE, markersize=7, zorder=3)
            write_beside(axes, line, f"{mine:.2e}", BLUE)
        label_rows(axes, labels)
        axes.set_xlabel("mean error, log scale; left is better")
        axes.xaxis.set_minor_formatter("")
        legend(figure, ("measured here", BLUE), ("printed in the paper", ORANGE, "D"))
        return svg(figure)


def ratio_chart(
    labels: Sequence[str],
    ours: Sequence[float],
    others: Sequence[Sequence[float]],
    *,
    title: str = "",
) -> bytes:
    """Return a PNG of errors on many maps, relative to the best other method."""
    with settings():
        figure, axes = log_lines(labels, title, left=0.27)
        axes.axvline(1.0, color=ORANGE, linewidth=1.4, zorder=1)
        for line, (mine, theirs) in enumerate(zip(ours, others, strict=True)):
            ratios = np.array([*theirs, mine]) / max(min(theirs), 1e-300)
            near = ratios[:-1][ratios[:-1] < FAR_RATIO].tolist()
            beyond = (FAR_RATIO, ">") if len(near) < len(theirs) else None
            position = min(ratios[-1], FAR_RATIO) if np.isfinite(mine) else None
            _dots(axes, line, near, beyond, 1.0, position, (6, 7, 9, 7))
            write_beside(axes, line, f"{mine:#.3g}" if np.isfinite(mine) else "failed", BLUE)
        axes.set_xlim(min(0.5, 0.8 * axes.dataLim.x0), 1.15 * FAR_RATIO)
        label_decades(axes)
        axes.set_xlabel("error over that of the best other method, log scale; left is better")
        legend(
            figure, ("PCAExtension(), all defaults", BLUE), ("best other method", ORANGE, "D"),
            ("other methods", PALE), (f"some beyond {FAR_RATIO:g}", PALE, ">"),
        )  # fmt: skip
        return png(figure)


class AreaGroup(NamedTuple):
    """A group of sets."""

    title: str
    labels: Sequence[str]
    ours: Sequence[float | None]  # Our area on each set, None if it failed
    others: Sequence[Sequence[float]]  # Areas of the other detectors


def area_chart(groups: Sequence[AreaGroup], name: str, *, title: str = "") -> bytes:
    """Return a PNG of the AUC of many detectors, with groups in two columns."""
    # The groups run down the first column, then down the second; `name` is our detector's.
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
                _draw_areas(figure.add_axes((*place, *size)), group, last=group is column[-1])
                top -= _height(group)
        legend(
            figure, (name, BLUE), ("best other detector", ORANGE, "D"),
            ("other detectors", PALE), (f"some below {LOW_AREA:g}", PALE, "<"),
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


def _draw_areas(axes: Any, group: AreaGroup, last: bool) -> None:
    axes.set_xlim(LOW_AREA - 0.015, 1.015)
    axes.axvline(0.5, color=PALE, linewidth=1, linestyle=(0, (3, 3)), zorder=0)
    for line, (mine, theirs) in enumerate(zip(group.ours, group.others, strict=True)):
        near = [area for area in theirs if area >= LOW_AREA]
        beyond = (LOW_AREA, "<") if len(near) < len(theirs) else None
        best = max(*theirs, LOW_AREA) if theirs else None
        position = None if mine is None else max(mine, LOW_AREA)
        _dots(axes, line, near, beyond, best, position, (5, 6, 7.5, 5.5))
        words, colour = ("failed", FAINT) if mine is None else (f"{mine:.3f}", BLUE)
        write_beside(axes, line, words, colour)
    label_rows(axes, group.labels)
    axes.set_title(group.title, loc="left", fontsize=10, color=INK, fontweight="bold", pad=4)
    axes.set_xticks([0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    if last:
        axes.set_xlabel("area under the ROC curve; right is better, 0.5 is chance")
    else:
        axes.set_xticklabels([])


def _dots(
    axes: Any, line: int, others: list[float], beyond: tuple[float, str] | None,
    best: float | None, ours: float | None, sizes: Sequence[float],
) -> None:  # fmt: skip
    """Draw the others pale, with an arrow if out of range, then the best of them, then ours."""
    axes.plot(others, [line] * len(others), "o", color=PALE, markersize=sizes[0], zorder=2)
    if beyond is not None:
        axes.plot(beyond[0], line, beyond[1], color=PALE, markersize=sizes[1], zorder=2)
    if best is not None:
        axes.plot(best, line, "D", color=ORANGE, markersize=sizes[2], zorder=3)
    if ours is not None:
        axes.plot(ours, line, "o", color=BLUE, markersize=sizes[3], zorder=4)
