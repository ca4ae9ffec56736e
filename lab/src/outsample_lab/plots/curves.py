"""Curves on log scales, each named at its end, with bands for their spread."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outsample.plots.canvas import new_figure, settings, svg
from outsample.plots.colours import BLUE, FAINT, GREEN, ORANGE, PALE, PURPLE, SKY, VERMILLION

# Colour, line and marker of curve after curve; no two differ by colour alone.
STYLES: tuple[tuple[str, str, str], ...] = (
    (BLUE, "-", "o"),
    (VERMILLION, "-", "s"),
    (GREEN, "-", "^"),
    (ORANGE, "-", "D"),
    (PURPLE, "-", "v"),
    ("#3a3f45", "--", "o"),
    ("#882255", "--", "s"),
    (SKY, "--", "^"),
    ("#8a7d00", "--", "D"),
    (FAINT, ":", "v"),
)
WIDTH = 4.9  # Inches; narrow, so that text is legible on a phone
LETTER = 0.074  # Inches that a letter of a curve's name takes


class Curve(NamedTuple):
    """One line of a chart."""

    name: str
    x: ArrayLike
    y: ArrayLike
    style: tuple[str, str, str]  # Colour, line and marker, as in `STYLES`
    spread: ArrayLike | None = None  # Half the height of its band, that ends at half the line below
    strong: bool = False  # Whether to draw it thicker, in front of the others


def curve_chart(
    curves: Sequence[Curve],
    *,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    height: float = 4.2,
    x_log: bool = True,
) -> bytes:
    """Return an SVG of curves of positive values on a log scale; `x_log` for the x axis."""
    with settings():
        figure = new_figure(WIDTH, height, title)
        margin = 0.22 + LETTER * max(len(curve.name) for curve in curves)
        axes = figure.add_axes(
            (0.78 / WIDTH, 0.62 / height, 1 - (0.78 + margin) / WIDTH, 1 - 1.1 / height)
        )
        axes.set_xscale("log" if x_log else "linear")
        axes.set_yscale("log")
        ends = [_line(axes, curve) for curve in curves]
        _scales(axes)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.get_xlim(), axes.get_ylim()  # settles the limits before names are placed
        _names(axes, curves, ends)
        return svg(figure)


def _line(axes: Any, curve: Curve) -> tuple[float, float] | None:
    """Draw one curve and return its right end; None without values."""
    colour, line, marker = curve.style
    x, y = (np.asarray(values, dtype=np.float64) for values in (curve.x, curve.y))
    keep = np.isfinite(x) & np.isfinite(y) & (x > 0) & (y > 0)
    if not keep.any():
        return None
    order = np.flatnonzero(keep)[np.argsort(x[keep])]
    x, y = x[order], y[order]
    axes.plot(
        x, y, line, color=colour, marker=marker or None, markersize=6 if curve.strong else 4.5,
        linewidth=2.4 if curve.strong else 1.4, zorder=4 if curve.strong else 3,
    )  # fmt: skip
    if curve.spread is not None:
        half = np.nan_to_num(np.asarray(curve.spread, dtype=np.float64)[order])
        axes.fill_between(
            x, np.maximum(y - half, 0.5 * y), y + half, color=colour, alpha=0.13, linewidth=0
        )
    return float(x[-1]), float(y[-1])


def _scales(axes: Any) -> None:
    """Label the decades; on a short scale also 2 and 5."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    plain = FuncFormatter(lambda value, place: _plain(value))
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if axis.get_scale() != "log":
            continue
        axis.set_minor_formatter(NullFormatter())
        if high < 300 * low:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(plain)
    axes.tick_params(labelsize=9, color=PALE)
    axes.grid(color="#eceef1", which="major")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _plain(value: float) -> str:
    """Return the label of a tick, with a power of ten if far from one."""
    if 1e-3 <= value < 1e5:
        return f"{value:g}"
    exponent = int(np.floor(np.log10(value) + 1e-9))
    factor = value / 10.0**exponent
    power = f"10^{{{exponent}}}"
    return f"${power}$" if abs(factor - 1) < 0.01 else rf"${factor:.0f}\cdot{power}$"


def _names(axes: Any, curves: Sequence[Curve], ends: Sequence[tuple[float, float] | None]) -> None:
    """Write each curve's name near its end without overlap, joined by a thin line."""
    shown = [(curve, end) for curve, end in zip(curves, ends, strict=True) if end is not None]
    if not shown:
        return
    to_axes = axes.transData + axes.transAxes.inverted()
    places = np.array([to_axes.transform(end) for _, end in shown])
    inches = axes.get_position().height * axes.figure.get_figheight()
    heights = spaced(places[:, 1], 0.165 / inches)
    for (curve, _), (x, y), height in zip(shown, places, heights, strict=True):
        colour = curve.style[0]
        axes.plot(
            [x, 1.025, 1.045], [y, height, height], color=colour, linewidth=0.7, alpha=0.6,
            transform=axes.transAxes, clip_on=False, zorder=1,
        )  # fmt: skip
        axes.text(
            1.055, height, curve.name, transform=axes.transAxes, va="center", color=colour,
            fontsize=9, fontweight="bold" if curve.strong else "normal",
        )  # fmt: skip


def spaced(heights: ArrayLike, gap: float) -> NDArray[np.float64]:
    """Return heights (n,) close to the given ones, in the same order, at least a gap apart.

    The mean of each crowded run does not change.

    >>> spaced([0.5, 0.5, 0.0], 0.25).tolist()
    [0.375, 0.625, 0.0]
    """
    wanted = np.asarray(heights, dtype=np.float64)
    order = np.argsort(wanted, kind="stable")
    runs: list[list[float]] = []  # each: sum of (wanted height less offset), count
    for height in wanted[order]:
        runs.append([float(height), 1.0])
        while len(runs) > 1:
            (total, count), before = runs[-1], runs[-2]
            if before[0] / before[1] + gap * before[1] <= total / count - 1e-12:
                break  # there is room above the previous run
            runs.pop()
            before[0] += total - count * before[1] * gap
            before[1] += count
    placed = np.empty(len(wanted))
    stands = [total / count + gap * at for total, count in runs for at in range(int(count))]
    placed[order] = stands
    return placed
