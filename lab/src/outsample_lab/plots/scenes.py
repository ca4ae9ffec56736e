"""3-D pictures of points: as data for the interactive viewer, and as static images.

The static picture and the data come from one record, so both show the same points.
"""

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outsample.plots.canvas import legend, new_figure, png, settings
from outsample.plots.colours import FAINT, INK

MARKERS = {"circle": "o", "square": "s", "diamond": "D", "triangle": "^"}
COORDINATE_DIGITS = 5  # Significant digits of a coordinate; a screen shows fewer
REACH = 1.62  # Half the width of the still picture, in units of the box; its height is 0.83 of it
LETTER, TALL = 0.055, 0.1  # Width and height of a letter of a label, in the same units
SLICES = 24  # Depth levels; near points are drawn over far ones
FRAME = "#d5dae0"


class Layer(NamedTuple):
    """Points of one kind."""

    name: str
    points: ArrayLike  # Shape (n, 3)
    colour: str
    shape: str = "circle"
    size: float = 3.0  # Radius on the screen, in pixels
    rim: str = ""  # Colour of the outline; none if empty
    labels: Sequence[str] = ()  # Labels of points under the mouse; one per point, or empty
    named: Sequence[int] = ()  # Points whose labels are always shown
    origins: ArrayLike | None = None  # Where a line to each point begins, shape (n, 3)


class Scene(NamedTuple):
    """One picture."""

    title: str
    layers: Sequence[Layer]
    axes: tuple[str, str, str] = ("", "", "")
    equal: bool = True  # Whether the three axes share one scale; otherwise each fills the box
    magnify: float = 1.0  # Lines from origins are drawn this many times longer than they are
    turn: float = 0.6
    tilt: float = 0.35  # Initial view, in radians
    group: str = ""  # Pictures of one group turn together
    around: ArrayLike | None = None  # Points of the box, (n, 3); by default those of the layers


def scene_data(scene: Scene) -> dict[str, Any]:
    """Return a scene and its box as plain values for the viewer.

    Numbers are rounded; points that are not finite are left out.

    >>> data = scene_data(Scene("One", [Layer("a", [[0, 1, 2.000001]], "#000000")]))
    >>> data["layers"][0]["points"]
    [[0.0, 1.0, 2.0]]
    """
    layers = [_finite(layer) for layer in scene.layers]
    rounded = [
        shown._asdict() | {"points": _rounded(shown.points), "origins": _rounded(shown.origins)}
        for shown in layers
    ]
    payload = scene._asdict() | {"layers": rounded}
    del payload["around"]
    return payload | {key: value.tolist() for key, value in _box(scene, layers)._asdict().items()}


def scene_picture(scene: Scene) -> bytes:
    """Return a PNG of the initial view of the scene."""
    layers = [_finite(layer) for layer in scene.layers]
    box = _box(scene, layers)
    with settings():
        from matplotlib import rcParams

        rcParams["text.parse_math"] = False  # a dollar in a label is a dollar
        rows = -(-len(layers) // 3)
        height = 4.85 + 0.22 * rows
        figure = new_figure(5.4, height, scene.title)
        low = (0.12 + 0.22 * rows) / height
        axes = figure.add_axes((0.0, low, 1.0, 1 - 0.36 / height - low))
        axes.set_axis_off()
        axes.set(xlim=(-REACH, REACH), ylim=(-0.83 * REACH, 0.83 * REACH), aspect="equal")
        _frame(axes, scene, box)
        _draw(axes, scene, layers, box)
        marks = ((shown.name, shown.colour, MARKERS[shown.shape], shown.rim) for shown in layers)
        legend(figure, *marks, columns=min(3, len(layers)))
        return png(figure, dpi=140)


def _points(values: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64).reshape(-1, 3)


def _finite(layer: Layer) -> Layer:
    """Return the layer without points that are not finite."""
    points = _points(layer.points)
    origins = None if layer.origins is None else _points(layer.origins)
    keep = np.isfinite(points).all(axis=1)
    if origins is not None:
        keep &= np.isfinite(origins).all(axis=1)
    kept = np.flatnonzero(keep).tolist()
    new = {old: at for at, old in enumerate(kept)}
    return layer._replace(
        points=points[kept],
        origins=None if origins is None else origins[kept],
        labels=[layer.labels[at] for at in kept] if layer.labels else (),
        named=[new[at] for at in layer.named if at in new],
    )


def _rounded(values: ArrayLike | None) -> list[list[float]] | None:
    if values is None:
        return None
    return [[float(f"{value:.{COORDINATE_DIGITS}g}") for value in row] for row in _points(values)]


class _Box(NamedTuple):
    """Shift and scale that bring all points near the cube from -1 to 1, and half their box."""

    middle: NDArray[np.float64]
    scale: NDArray[np.float64]
    half: NDArray[np.float64]

    def fit(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return points in the coordinates of the box."""
        return (points - self.middle) * self.scale


def _box(scene: Scene, layers: Sequence[Layer]) -> _Box:
    held = [layer.points for layer in layers] if scene.around is None else [scene.around]
    every = np.concatenate([np.zeros((0, 3)), *map(_points, held)])
    every = every[np.isfinite(every).all(axis=1)]
    every = every if len(every) else np.zeros((1, 3))
    low, high = every.min(axis=0), every.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    scale = 2.0 / (np.full(3, span.max()) if scene.equal else span)
    scale *= np.sqrt(3.0) / np.linalg.norm(span * scale / 2)  # corners as far out as a cube's
    return _Box((low + high) / 2, scale, span * scale / 2)


def _project(scene: Scene, points: ArrayLike) -> NDArray[np.float64]:
    """Return right, up and towards the viewer for points in the coordinates of the box."""
    x, y, z = _points(points).T
    near = x * np.cos(scene.turn) + y * np.sin(scene.turn)
    right = y * np.cos(scene.turn) - x * np.sin(scene.turn)
    up, towards = np.cos(scene.tilt), np.sin(scene.tilt)
    return np.column_stack([right, z * up - near * towards, near * up + z * towards])


def _frame(axes: Any, scene: Scene, box: _Box) -> None:
    """Draw the edges of the box, and label each axis at its lowest or leftmost edge."""
    signs = np.array(list(product((-1.0, 1.0), repeat=3)))
    corners = _project(scene, signs * box.half)
    for corner, other in combinations(range(8), 2):
        if np.sum(signs[corner] != signs[other]) == 1:
            axes.plot(*corners[[corner, other], :2].T, color=FRAME, linewidth=0.8, zorder=0)
    for axis, word in enumerate(scene.axes):
        edges = np.where(np.arange(3) == axis, 0.0, 1.16 * signs) * box.half
        spots = _project(scene, edges)
        at = np.argmin(spots[:, 0] if axis == 2 else spots[:, 1])
        side = REACH - 0.03 * len(word) - 0.03
        right = float(np.clip(spots[at, 0], -side, side))
        axes.text(right, spots[at, 1], word, color=FAINT, fontsize=9, ha="center", va="center")


def _draw(axes: Any, scene: Scene, layers: Sequence[Layer], box: _Box) -> None:
    """Draw the points, far ones first and paler, then the labels."""
    from matplotlib.collections import LineCollection

    spots = []
    for layer in layers:
        seen = _project(scene, box.fit(_points(layer.points)))
        if layer.origins is not None:
            origins = _points(layer.origins)
            longer = origins + scene.magnify * (_points(layer.points) - origins)
            starts, seen = (_project(scene, box.fit(ends)) for ends in (origins, longer))
            lines = np.stack([starts, seen], axis=1)[:, :, :2]
            drawn = LineCollection(list(lines), colors=layer.colour, linewidths=0.9, alpha=0.7)
            drawn.set_zorder(2.5)
            axes.add_collection(drawn)
        spots.append(seen)
        for places in _slices(seen[:, 2]):
            depth = float(seen[places, 2].mean())
            axes.scatter(
                *seen[places, :2].T, s=2.2 * layer.size**2, color=layer.colour,
                alpha=float(np.clip(0.78 + 0.3 * depth, 0.25, 1.0)), zorder=3.0 + depth,
                marker=MARKERS[layer.shape], edgecolors=layer.rim or "none", linewidths=0.6,
            )  # fmt: skip
    _name(axes, layers, spots)


def _slices(depth: NDArray[np.float64]) -> list[NDArray[np.int64]]:
    """Return the rows of the points, slice by slice from far to near."""
    order = np.argsort(depth)
    cuts = np.searchsorted(depth[order], np.linspace(-2.0, 2.0, SLICES + 1)[1:-1])
    return [part for part in np.split(order, cuts) if len(part)]


def _name(axes: Any, layers: Sequence[Layer], spots: Sequence[NDArray[np.float64]]) -> None:
    """Write labels next to their points where there is room."""
    from matplotlib.patheffects import withStroke

    taken = [  # the marks themselves
        (float(x) - 0.04, float(y), 0.08, 0.06)
        for layer, seen in zip(layers, spots, strict=True)
        for x, y, _ in seen[list(layer.named)]
    ]
    halo = [withStroke(linewidth=2.5, foreground="white", alpha=0.9)]
    for layer, seen in reversed(list(zip(layers, spots, strict=True))):
        for at in layer.named:
            place = _free(seen[at], LETTER * len(layer.labels[at]), taken)
            if place is None:
                continue
            taken.append(place)
            axes.text(
                *place[:2], layer.labels[at], fontsize=8, color=INK, zorder=9, va="center",
                path_effects=halo,
            )  # fmt: skip


def _free(
    spot: NDArray[np.float64], wide: float, taken: Sequence[tuple[float, float, float, float]]
) -> tuple[float, float, float, float] | None:
    """Return left end, middle, width and height of a label at a spot; None without room."""
    right, up, _ = spot
    for left, middle in product((right + 0.05, right - 0.05 - wide), (up + 0.07, up - 0.08)):
        inside = -REACH < left and left + wide < REACH
        clear = all(
            abs(middle - m) >= (TALL + h) / 2 or left >= x + w or x >= left + wide
            for x, m, w, h in taken
        )
        if inside and clear:
            return float(left), float(middle), wide, TALL
    return None
