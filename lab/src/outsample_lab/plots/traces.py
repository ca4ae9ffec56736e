"""Scores over time in strips, with anomalous moments marked."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outsample.plots.canvas import legend, new_figure, png, settings
from outsample.plots.colours import INK, PALE
from outsample_lab.plots.curves import WIDTH

STRIP = 1.55  # Height of a strip, in inches
SHOWN = 1e-6  # A log strip goes down to this share of its largest value


class Trace(NamedTuple):
    """One strip."""

    title: str
    values: ArrayLike
    log: bool = True
    level: float | None = None  # Where a dashed line is drawn
    level_name: str = ""


class Kind(NamedTuple):
    """A kind of moments with a common mark."""

    name: str
    places: Sequence[int]
    colour: str
    marker: str = "o"
    size: float = 4.5


def trace_chart(
    traces: Sequence[Trace],
    kinds: Sequence[Kind],
    *,
    title: str = "",
    x_label: str = "",
    named: Sequence[tuple[int, str]] = (),
) -> bytes:
    """Return a PNG of scores of the same moments in strips from top to bottom.

    Later kinds are drawn in front; `named` moments get a label in each strip, the most important
    first. On a log strip, non-positive values are drawn at the lower edge.
    """
    with settings():
        height = 1.0 + STRIP * len(traces)
        figure = new_figure(WIDTH, height, title)
        for at, trace in enumerate(traces):
            low = 0.85 + STRIP * (len(traces) - 1 - at)
            axes = figure.add_axes((0.72 / WIDTH, low / height, 1 - 0.92 / WIDTH, 1.02 / height))
            values = _strip(axes, trace, kinds)
            last = at == len(traces) - 1
            axes.tick_params(labelbottom=last)
            axes.set_xlabel(x_label if last else "")
            axes.get_ylim()  # settles the limits before words are placed
            _words(axes, values, named)
        legend(figure, *((kind.name, kind.colour, kind.marker) for kind in kinds))
        return png(figure)


def _strip(axes: Any, trace: Trace, kinds: Sequence[Kind]) -> NDArray[np.float64]:
    """Draw one strip and return the heights of its points."""
    values = np.array(trace.values, dtype=np.float64)
    if trace.log:
        values = _raised(values)
        axes.set_yscale("log")
    if trace.level is not None:
        axes.axhline(trace.level, color=INK, linewidth=0.9, linestyle="--", zorder=1)
        axes.text(
            1.0, trace.level, trace.level_name, transform=axes.get_yaxis_transform(), ha="right",
            va="bottom", fontsize=8, color=INK, zorder=7,
            bbox={"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.8},
        )  # fmt: skip
    for order, kind in enumerate(kinds):
        places = np.asarray(kind.places, dtype=np.int64)
        axes.plot(
            places, values[places], kind.marker, color=kind.colour, markersize=kind.size,
            mew=0.4 if kind.size > 4 else 0, mec="white", zorder=2 + order,
        )  # fmt: skip
    axes.set_title(trace.title, loc="left", fontsize=9.5, color=INK, pad=5)
    axes.tick_params(labelsize=8.5, color=PALE, which="both")
    axes.grid(color="#eceef1", axis="y")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlim(-0.02 * len(values), 1.02 * len(values))
    axes.margins(y=0.12)
    if trace.log:
        from matplotlib.ticker import LogLocator, NullFormatter

        axes.yaxis.set_major_locator(LogLocator(numticks=5))  # three to five powers of ten
        axes.yaxis.set_minor_formatter(NullFormatter())
    return values


def _raised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values for a log scale, with small and non-positive values at its lower end."""
    positive = values[np.isfinite(values) & (values > 0)]
    low = max(positive.min(), positive.max() * SHOWN) if len(positive) else 1.0
    return np.where(np.isfinite(values), np.maximum(values, low), np.nan)


def _words(axes: Any, values: NDArray[np.float64], named: Sequence[tuple[int, str]]) -> None:
    """Write labels next to their points; labels that would overlap are omitted."""
    to_inches = axes.transData + axes.figure.dpi_scale_trans.inverted()
    taken: list[tuple[float, float, float]] = []
    for place, word in named:
        if not np.isfinite(values[place]):
            continue
        wide = 0.075 * len(word)
        right = place < 0.8 * len(values)
        x, y = to_inches.transform((place, values[place]))
        left = x + 0.08 if right else x - 0.08 - wide
        if any(abs(y - u) < 0.13 and left < r + w and r < left + wide for r, u, w in taken):
            continue
        taken.append((left, y, wide))
        axes.annotate(
            word, (place, values[place]), xytext=(6 if right else -6, -1),
            textcoords="offset points", fontsize=8, color=INK, ha="left" if right else "right",
            va="center", zorder=8,
            bbox={"boxstyle": "square,pad=0.05", "fc": "white", "ec": "none", "alpha": 0.8},
        )  # fmt: skip
