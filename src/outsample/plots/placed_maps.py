"""Pictures of maps with placed points."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from outsample.plots.canvas import new_figure, png, settings
from outsample.plots.colours import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILLION

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Mask = NDArray[np.bool_]

# Six colours of the palette, yellow darkened for a white background, and three that differ in
# lightness from the others. `_draw_map` also writes the class on the map.
CLASS_COLOURS = (
    *(BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY),
    *("#b8a800", "#3a3f45", "#882255", "#5b4bb5"),
)


def placed_map(Y: Array, labels: Labels, hidden: Mask, placed: Array, *, title: str = "") -> bytes:
    """Return a PNG of a map (n, 2) with placed points and lines to their true positions.

    `labels` are classes from 0 to 9; `placed` (q, 2) are the positions of the `hidden` points.
    """
    with settings():
        figure = new_figure(5.2, 5.6, title)
        _draw_map(figure.add_axes((0.01, 0.01, 0.98, 0.92)), Y, labels, hidden, placed)
        return png(figure)


def error_map(Y: Array, hidden: Mask, placed: Array, size: float, *, title: str = "") -> bytes:
    """Return a PNG of a map with the placed points coloured by error in units of `size`."""
    errors = np.linalg.norm(placed - Y[hidden], axis=1) / size
    order = np.argsort(errors)  # draws the largest errors last
    with settings():
        from matplotlib.colors import LogNorm

        figure = new_figure(5.2, 5.6, title)
        axes = figure.add_axes((0.01, 0.12, 0.98, 0.81))
        axes.scatter(*Y[~hidden].T, s=7, color="#dfe3e8", linewidths=0)
        dots = axes.scatter(
            *placed[order].T, c=errors[order].clip(1e-3, 1.0), cmap="viridis_r",
            norm=LogNorm(1e-3, 1.0), s=20, linewidths=0.4, edgecolors="white",
        )  # fmt: skip
        _hide_axes(axes)
        bar = figure.colorbar(
            dots, cax=figure.add_axes((0.2, 0.09, 0.6, 0.02)), orientation="horizontal"
        )
        bar.set_ticks([1e-3, 1e-2, 1e-1, 1.0], labels=["0.1 %", "1 %", "10 %", "100 %"])
        bar.ax.tick_params(length=0, which="both", labelsize=9)
        bar.outline.set_visible(False)
        bar.set_label("error relative to the size of the map", fontsize=9)
        return png(figure)


def hero(Y: Array, labels: Labels, hidden: Mask, placed: Array) -> bytes:
    """Return a PNG of the map of `placed_map` for the top of a page, 1600 pixels wide."""
    with settings():
        figure = new_figure(10.0, 5.2)
        title = f"{hidden.sum()} new digits on a t-SNE map of {(~hidden).sum()}"
        figure.text(0.5, 0.955, title, ha="center", fontsize=12)
        _draw_map(figure.add_axes((0.01, 0.01, 0.98, 0.93)), Y, labels, hidden, placed)
        return png(figure, dpi=160)


def _draw_map(axes: Any, Y: Array, labels: Labels, hidden: Mask, placed: Array) -> None:
    """Draw training points in pale colours, placed points and lines to their true positions."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgb
    from matplotlib.patheffects import withStroke

    colours = np.array([to_rgb(colour) for colour in CLASS_COLOURS])[labels]
    axes.scatter(*Y[~hidden].T, s=8, color=0.28 * colours[~hidden] + 0.72, linewidths=0)
    segments = np.stack([placed, Y[hidden]], axis=1)
    axes.add_collection(LineCollection(list(segments), colors=INK, linewidths=0.7, alpha=0.6))
    axes.scatter(
        *placed.T, s=17, color=colours[hidden], linewidths=0.4, edgecolors="white", zorder=3
    )
    for label in np.unique(labels):
        # At the point nearest the median of its class: a mean may lie in another class.
        members = Y[labels == label]
        x, y = members[np.abs(members - np.median(members, axis=0)).sum(axis=1).argmin()]
        halo = [withStroke(linewidth=3.5, foreground="white")]
        style = {"fontsize": 15, "fontweight": "bold", "path_effects": halo, "zorder": 4}
        axes.text(x, y, str(label), ha="center", va="center", **style)
    _hide_axes(axes)


def _hide_axes(axes: Any) -> None:
    """Set equal scales and hide the axes, whose values have no meaning."""
    axes.set_aspect("equal")
    axes.margins(0.02)
    axes.set_axis_off()
