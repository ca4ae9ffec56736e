"""Errors as dots on a log scale, a line for each method or map."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from outsample.plots.canvas import (
    BLUE,
    FAINT,
    ORANGE,
    PALE,
    beside,
    legend,
    line_rows,
    new_figure,
    png,
    settings,
    svg,
)

if TYPE_CHECKING:
    from outsample.comparison.holdout import ComparisonRow

FAR = 20.0  # Ratios beyond this are shown at the edge: how bad the bad ones are does not matter


def error_chart(
    labels: Sequence[str],
    ours: Sequence[float],
    theirs: Sequence[float | None],
    *,
    title: str = "",
    limits: tuple[float, float] | None = None,
) -> bytes:
    """Draw mean errors as dots on a log scale, the published number beside ours, as SVG.

    `limits` are the ends of the scale, to make two charts comparable.
    """
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
            beside(axes, line, f"{mine:.2e}", BLUE)
        line_rows(axes, labels)
        axes.set_xlabel("mean error, log scale; left is better")
        axes.xaxis.set_minor_formatter("")
        legend(figure, 0.0, ("measured here", BLUE, "o"), ("printed in the paper", ORANGE, "D"))
        return svg(figure)


def comparison(rows: "Sequence[ComparisonRow]", *, title: str = "") -> bytes:
    """Draw what `outsample.compare` found, one line for each extension in its order, as SVG."""
    least = min((row.error for row in rows if not row.failure), default=None)
    with settings():
        figure, axes = _lines([row.name for row in rows], title, left=0.36)
        for line, row in enumerate(rows):
            if row.failure:
                beside(axes, line, "failed", FAINT)
                continue
            colour = BLUE if row.error == least else FAINT
            ends = [max(value, 1e-16) for value in (row.median, row.quantile_90)]
            axes.plot(ends, [line, line], color=PALE, linewidth=6, solid_capstyle="round")
            axes.plot(max(row.error, 1e-16), line, "o", color=colour, markersize=8, zorder=3)
            beside(axes, line, f"{row.error:#.3g}", colour)
        _ticks(axes)
        axes.set_xlabel("error over the size of the map, log scale; left is better")
        legend(
            figure, 0.0, ("mean, best", BLUE, "o"), ("mean", FAINT, "o"),
            ("median to 90 % quantile", PALE, "s"),
        )  # fmt: skip
        return svg(figure)


def ratio_chart(
    labels: Sequence[str],
    ours: Sequence[float],
    others: Sequence[Sequence[float]],
    *,
    title: str = "",
) -> bytes:
    """Draw errors on many maps, each over that of the best other method there, as PNG."""
    with settings():
        figure, axes = _lines(labels, title, left=0.27)
        axes.axvline(1.0, color=ORANGE, linewidth=1.4, zorder=1)
        for line, (mine, theirs) in enumerate(zip(ours, others, strict=True)):
            ratios = np.array([*theirs, mine]) / max(min(theirs), 1e-300)
            near = ratios[:-1][ratios[:-1] < FAR]
            axes.plot(near, np.full(len(near), line), "o", color=PALE, markersize=6, zorder=2)
            if len(near) < len(theirs):
                axes.plot(FAR, line, ">", color=PALE, markersize=7, zorder=2)
            axes.plot(1.0, line, "D", color=ORANGE, markersize=9, zorder=3)
            if np.isfinite(mine):
                axes.plot(min(ratios[-1], FAR), line, "o", color=BLUE, markersize=7, zorder=4)
            beside(axes, line, f"{mine:#.3g}" if np.isfinite(mine) else "failed", BLUE)
        axes.set_xlim(min(0.5, 0.8 * axes.dataLim.x0), 1.15 * FAR)
        _ticks(axes)
        axes.set_xlabel("error over that of the best other method, log scale; left is better")
        legend(
            figure, 0.0, ("PCAExtension(), all defaults", BLUE, "o"),
            ("best other method", ORANGE, "D"),
            ("other methods", PALE, "o"), (f"some beyond {FAR:g}", PALE, ">"),
        )  # fmt: skip
        return png(figure)


def _lines(labels: Sequence[str], title: str, left: float) -> tuple[Any, Any]:
    """Return a figure and its log axes, with a faint line and a label for each row."""
    height = (1.35 if title else 1.0) + 0.36 * len(labels)
    figure = new_figure(7.0, height, title)
    axes = figure.add_axes((left, 0.78 / height, 0.87 - left, 0.36 * len(labels) / height))
    axes.set_xscale("log")
    line_rows(axes, [name if len(name) <= 34 else f"{name[:33]}…" for name in labels])
    return figure, axes


def _ticks(axes: Any) -> None:
    """Label decades; on a short scale also what lies between, in plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axes.get_xlim()
    if high < 100 * low:
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
