"""Errors as dots on a log scale, one line per method."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from outsample.plots.canvas import legend, new_figure, settings, svg
from outsample.plots.colours import BLUE, FAINT, PALE

if TYPE_CHECKING:
    from outsample.comparison.holdout import ComparisonRow


def comparison(rows: "Sequence[ComparisonRow]", *, title: str = "") -> bytes:
    """Return an SVG of the results of `outsample.compare`, one line per extension."""
    best = min((row.error for row in rows if not row.failure), default=None)
    with settings():
        figure, axes = log_lines([row.name for row in rows], title, left=0.36)
        for line, row in enumerate(rows):
            if row.failure:
                write_beside(axes, line, "failed", FAINT)
                continue
            colour = BLUE if row.error == best else FAINT
            ends = [max(value, 1e-16) for value in (row.median, row.quantile_90)]
            axes.plot(ends, [line, line], color=PALE, linewidth=6, solid_capstyle="round")
            axes.plot(max(row.error, 1e-16), line, "o", color=colour, markersize=8, zorder=3)
            write_beside(axes, line, f"{row.error:#.3g}", colour)
        label_decades(axes)
        axes.set_xlabel("error relative to the size of the map (log scale; lower is better)")
        quantiles = ("median to 90 % quantile", PALE, "s")
        legend(figure, ("mean, best", BLUE), ("mean", FAINT), quantiles)
        return svg(figure)


def log_lines(labels: Sequence[str], title: str, left: float) -> tuple[Any, Any]:
    """Return a figure with log axes and one labelled line per row."""
    height = (1.35 if title else 1.0) + 0.36 * len(labels)
    figure = new_figure(7.0, height, title)
    axes = figure.add_axes((left, 0.78 / height, 0.87 - left, 0.36 * len(labels) / height))
    axes.set_xscale("log")
    label_rows(axes, [name if len(name) <= 34 else f"{name[:33]}…" for name in labels])
    return figure, axes


def label_rows(axes: Any, labels: Sequence[str]) -> None:
    """Draw one labelled line per row, from top to bottom, and remove the frame."""
    for line in range(len(labels)):
        axes.axhline(line, color="#e3e7ec", linewidth=1, zorder=0)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.tick_params(length=0, which="both", labelsize=9)
    axes.spines[["top", "right", "left"]].set_visible(False)


def write_beside(axes: Any, line: int, text: str, colour: str) -> None:
    """Write a text at the right end of a line."""
    transform = axes.get_yaxis_transform()
    axes.text(1.03, line, text, transform=transform, va="center", color=colour, fontsize=9)


def label_decades(axes: Any) -> None:
    """Label the decades of the x axis; on a range below two decades, also 2 and 5."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axes.get_xlim()
    if high < 100 * low:
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
