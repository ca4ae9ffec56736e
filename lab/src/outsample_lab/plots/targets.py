"""Charts of measured values relative to their targets, one line per target."""

from collections.abc import Sequence
from textwrap import shorten

from outsample.plots.canvas import legend, new_figure, png, settings
from outsample.plots.colours import BLUE, FAINT, PALE, VERMILLION

WIDTH, LINE = 10.5, 0.27  # Inches of the picture, and of a line
WORDS = 74  # Letters of a line's words
MAX_RATIO_SHOWN = 30.0  # Larger ratios, and smaller ones than its inverse, are drawn at the edge


def target_chart(
    labels: Sequence[str], shares: Sequence[float], figures: Sequence[str], *, title: str = ""
) -> bytes:
    """Return a PNG of measured over target on a log scale; up to 1 the target is met.

    ``figures`` are written at the end of the lines.
    """
    height = 1.15 + LINE * len(labels) + (0.3 if title else 0)
    with settings():
        figure = new_figure(WIDTH, height, title)
        axes = figure.add_axes((0.5, 0.85 / height, 0.3, LINE * len(labels) / height))
        axes.set_xscale("log")
        axes.axvspan(1.0 / (1.5 * MAX_RATIO_SHOWN), 1.0, color="#eef6fb", zorder=0)
        axes.axvline(1.0, color=FAINT, linewidth=1.2, zorder=1)
        for line, (share, words) in enumerate(zip(shares, figures, strict=True)):
            colour = BLUE if share <= 1 else VERMILLION
            at = min(max(share, 1 / MAX_RATIO_SHOWN), MAX_RATIO_SHOWN)
            axes.plot([1.0, at], [line, line], color=PALE, linewidth=2, zorder=1)
            inside = "o" if share <= 1 else "D"
            marker = inside if at == share else ("<" if share < 1 else ">")
            axes.plot(at, line, marker, color=colour, markersize=6.5, zorder=3)
            axes.text(1.03, line, words, transform=axes.get_yaxis_transform(), va="center",
                      color=colour, fontsize=9)  # fmt: skip
        axes.set_ylim(len(labels) - 0.4, -0.6)
        axes.set_yticks(
            range(len(labels)),
            [shorten(label, WORDS, placeholder=" …") for label in labels],
            fontsize=9,
        )
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(1 / (1.5 * MAX_RATIO_SHOWN), 1.5 * MAX_RATIO_SHOWN)
        ticks = (0.1, 0.2, 0.5, 1, 2, 5, 10)
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=9)
        axes.minorticks_off()
        axes.set_xlabel("measured over target, log scale; targets left of the line are met")
        axes.spines[["top", "right", "left"]].set_visible(False)
        legend(figure, ("met", BLUE), ("not met", VERMILLION, "D"))
        return png(figure, dpi=130)
