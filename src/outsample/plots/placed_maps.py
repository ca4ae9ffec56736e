"""Maps with the points that were placed on them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from outsample.plots.canvas import legend, new_figure, png, settings
from outsample.plots.colours import BLUE, GREEN, INK, ORANGE, PALE, PURPLE, SKY, VERMILLION

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Mask = NDArray[np.bool_]

# Ten classes: six of the colours, yellow darkened for a white ground, and three that differ in
# lightness from all of them.
CLASSES = (
    *(BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY),
    *("#b8a800", "#3a3f45", "#882255", "#5b4bb5"),
)
SPHERE_MARKS = ("training", PALE), ("true image", GREEN), ("placed", VERMILLION)


def placed_sphere(
    training: Array, truth: Array, placed: Array, *, title: str = "", magnify: float = 1.0
) -> bytes:
    """Draw images on the sphere as PNG: (n, 3) known ones, (q, 3) true and placed, joined by lines.

    Errors are drawn `magnify` times longer than they are; the caller's caption must say so.
    """
    with settings():
        figure = new_figure(4.8, 5.2, title)
        axes = figure.add_axes((0, 0.05, 1, 0.88), projection="3d")
        _draw_sphere(axes, training, truth, placed, magnify)
        legend(figure, *SPHERE_MARKS)
        return png(figure)


def placed_map(Y: Array, labels: Labels, hidden: Mask, placed: Array, *, title: str = "") -> bytes:
    """Draw a map (n, 2), its hidden points placed again, and a line from each to the truth, as PNG.

    `labels` are classes from 0 to 9; `placed` (q, 2) follows the order of the hidden points.
    """
    with settings():
        figure = new_figure(5.2, 5.6, title)
        _draw_map(figure.add_axes((0.01, 0.01, 0.98, 0.92)), Y, labels, hidden, placed)
        return png(figure)


def error_map(Y: Array, hidden: Mask, placed: Array, size: float, *, title: str = "") -> bytes:
    """Draw the placed points coloured by how far off they are in units of `size`, as PNG."""
    off = np.linalg.norm(placed - Y[hidden], axis=1) / size
    order = np.argsort(off)  # the worst on top
    with settings():
        from matplotlib.colors import LogNorm

        figure = new_figure(5.2, 5.6, title)
        axes = figure.add_axes((0.01, 0.12, 0.98, 0.81))
        axes.scatter(*Y[~hidden].T, s=7, color="#dfe3e8", linewidths=0)
        dots = axes.scatter(
            *placed[order].T, c=off[order].clip(1e-3, 1.0), cmap="viridis_r",
            norm=LogNorm(1e-3, 1.0), s=20, linewidths=0.4, edgecolors="white",
        )  # fmt: skip
        _bare(axes)
        bar = figure.colorbar(
            dots, cax=figure.add_axes((0.2, 0.09, 0.6, 0.02)), orientation="horizontal"
        )
        bar.set_ticks([1e-3, 1e-2, 1e-1, 1.0], labels=["0.1 %", "1 %", "10 %", "100 %"])
        bar.ax.tick_params(length=0, which="both", labelsize=9)
        bar.outline.set_visible(False)
        bar.set_label("error as a share of the map's size", fontsize=9)
        return png(figure)


def hero(digits: tuple[Array, Labels, Mask, Array], sphere: tuple[Array, Array, Array]) -> bytes:
    """Draw the head of a page, 1600 pixels wide, as PNG: the digits beside the sphere."""
    # The parts are the arguments of `placed_map` and of `placed_sphere`.
    with settings():
        hidden = digits[2]
        figure = new_figure(10.0, 5.2)
        words = f"{hidden.sum()} new digits on a t-SNE map of {(~hidden).sum()}"
        figure.text(0.27, 0.955, words, ha="center", fontsize=12)
        _draw_map(figure.add_axes((0.01, 0.01, 0.52, 0.93)), *digits)
        words = f"{len(sphere[1])} new points on a sphere of {len(sphere[0])}"
        figure.text(0.765, 0.955, words, ha="center", fontsize=12)
        _draw_sphere(figure.add_axes((0.54, 0.03, 0.45, 0.9), projection="3d"), *sphere)
        legend(figure, *SPHERE_MARKS, left=0.53)
        return png(figure, dpi=160)


def _draw_sphere(
    axes: Any, training: Array, truth: Array, placed: Array, magnify: float = 1.0
) -> None:
    """Scatter the three sets; a segment joins each true image to its placed one."""
    from mpl_toolkits.mplot3d.art3d import Line3DCollection

    shown = truth + magnify * (placed - truth)
    axes.computed_zorder = False  # otherwise grey points in front hide the ones we look at
    axes.scatter(*training.T, s=6, color=PALE, depthshade=False, linewidths=0)
    segments = Line3DCollection(np.stack([truth, shown], axis=1), colors=VERMILLION, linewidths=1.1)
    segments.set_zorder(2)
    axes.add_collection(segments)
    axes.scatter(*truth.T, s=17, color=GREEN, depthshade=False, linewidths=0, zorder=3)
    axes.scatter(*shown.T, s=6, color=VERMILLION, depthshade=False, linewidths=0, zorder=4)
    axes.view_init(elev=14, azim=78)
    axes.set_proj_type("ortho")
    axes.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
    axes.set_box_aspect((1, 1, 1), zoom=1.6)
    axes.set_axis_off()


def _draw_map(axes: Any, Y: Array, labels: Labels, hidden: Mask, placed: Array) -> None:
    """Training points pale, placed ones in full colour, with a line to the truth."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgb
    from matplotlib.patheffects import withStroke

    colours = np.array([to_rgb(colour) for colour in CLASSES])[labels]
    axes.scatter(*Y[~hidden].T, s=8, color=0.28 * colours[~hidden] + 0.72, linewidths=0)
    segments = np.stack([placed, Y[hidden]], axis=1)
    axes.add_collection(LineCollection(list(segments), colors=INK, linewidths=0.7, alpha=0.6))
    axes.scatter(
        *placed.T, s=17, color=colours[hidden], linewidths=0.4, edgecolors="white", zorder=3
    )
    for label in np.unique(labels):
        # A point of the class, the one nearest its median: a mean may fall on another class.
        members = Y[labels == label]
        x, y = members[np.abs(members - np.median(members, axis=0)).sum(axis=1).argmin()]
        halo = [withStroke(linewidth=3.5, foreground="white")]
        style = {"fontsize": 15, "fontweight": "bold", "path_effects": halo, "zorder": 4}
        axes.text(x, y, str(label), ha="center", va="center", **style)
    _bare(axes)


def _bare(axes: Any) -> None:
    """Take away what a map has no use for: its axes have no meaning, only its distances."""
    axes.set_aspect("equal")
    axes.margins(0.02)
    axes.set_axis_off()
