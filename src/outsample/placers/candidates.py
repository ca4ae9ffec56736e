"""The models that the choice considers: which weightings, how many neighbours, order and loss.

Measured on torn, rough, smooth and analytic maps; a family that never wins by leave-one-out does
not belong here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from outsample.placers.covariance import Correlated
from outsample.placers.model import Model, Weighting
from outsample.placers.weights import GaussianDistance, InverseDistance

# Largest neighbourhood of a candidate; models that do best with it are tried with more.
WIDE = 60
PLAIN_SIZES = (5, 10, 15, 20, 30)
POWERS = (4.0, 6.0)
STEEP_POWERS = (8.0, 12.0, 16.0, 24.0)
GAUSSIANS = tuple(GaussianDistance(length) for length in (0.25, 0.3, 0.35, 0.42, 0.5, 0.7))
ROUGH = (Correlated("linear", 1.0, 0.0), Correlated("matern52", 4.0, 1e-3))
SMOOTH = (
    Correlated("matern52", 4.0, 1e-6),
    Correlated("matern52", 16.0, 1e-9),
    Correlated("gaussian", 4.0, 1e-9),
    Correlated("gaussian", 8.0, 1e-10),
)

Family = tuple[Weighting, tuple[int, ...], int, str, int]


class Given(NamedTuple):
    """What the user fixed; None is left to the choice."""

    weighting: Weighting | None
    n_neighbors: int | None
    order: int | None
    loss: str | None
    tangent_dim: int | None


class Shape(NamedTuple):
    """Training points, ambient and embedding dimension."""

    n: int
    D: int
    d: int


def candidates(given: Given, shape: Shape, t: int, in_ball: bool) -> list[Model]:
    """Models that agree with what is given, from the simplest to the most elaborate.

    Parameters
    ----------
    given : Given
        What the user fixed.
    shape : Shape
        Of the training set.
    t : int
        Estimated tangent dimension.
    in_ball : bool
        Whether the neighbours are those in a ball.

    Returns
    -------
    list of Model
        At least one, all different.
    """
    models: dict[Model, None] = {}
    for weighting, sizes, order, loss, tangent in _families(given, shape, t, in_ball):
        if given.n_neighbors is not None:
            sizes = (given.n_neighbors,)
        elif in_ball:
            sizes = (min(shape.d, shape.n),)
        for k in sizes:
            if given.n_neighbors is None and not in_ball:
                k = min(k, max(1, shape.n - 1))  # one is left out
            models[Model(weighting, k, order, loss, tangent)] = None
    return list(models)


def _families(given: Given, shape: Shape, t: int, in_ball: bool) -> Iterator[Family]:
    """Yield weighting, sizes, order, loss and tangent dimension of each family."""
    orders = (0, 1, 2) if given.order is None else (given.order,)
    losses = ("squared", "absolute") if given.loss is None else (given.loss,)
    # Absolute loss with a polynomial costs, and has not been seen to pay: only where asked for.
    polynomial_losses = ("squared",) if given.loss is None else losses
    if given.weighting is not None and given.weighting != "correlated":
        plain = (5, 10, 20, WIDE) if isinstance(given.weighting, Correlated) else PLAIN_SIZES
        for order in orders:
            for loss in losses:
                yield given.weighting, _sizes(order, t, plain) or (WIDE,), order, loss, t
        return
    if given.weighting is None:
        if 0 in orders and "squared" in losses:
            yield "distance", (3, 5, 10, 15), 0, "squared", t
            for power in POWERS:
                yield InverseDistance(power), (3, 5, 7, 10), 0, "squared", t
            yield "tangent", (10, 15), 0, "squared", t
        for loss in losses if 0 in orders else ():
            yield from ((g, (5, 10, 20), 0, loss, t) for g in GAUSSIANS)
        if 0 in orders and "absolute" in losses:
            for power in STEEP_POWERS:
                yield InverseDistance(power), (3, 5, 7, 10, 15), 0, "absolute", t
        for order in orders:
            for tangent in sorted({t, min(shape.d, shape.D)}) if order else ():
                for loss in polynomial_losses:
                    sizes = _sizes(order, tangent, ())
                    if given.order is not None:
                        sizes = sizes or (WIDE,)
                    yield "distance", sizes, order, loss, tangent
        if in_ball:
            return  # a ball may hold thousands: no k x k systems unless asked for
    if 0 in orders and "squared" in losses:
        yield from ((c, (5, 10, 20, WIDE), 0, "squared", t) for c in (*ROUGH, SMOOTH[0]))
        yield from ((c, (20, WIDE), 0, "squared", t) for c in SMOOTH[1:])
    if 0 in orders and "absolute" in losses:
        yield from ((c, (10, 20, 40), 0, "absolute", t) for c in ROUGH)
    for order in orders:
        for loss in polynomial_losses:
            if order == 1 or (order == 2 and given.order is not None):
                yield ROUGH[0], (20, WIDE), order, loss, t


def _sizes(order: int, t: int, plain: tuple[int, ...]) -> tuple[int, ...]:
    """Neighbourhoods that support a polynomial: a few times its number of terms."""
    if order == 0:
        return plain
    terms = 1 + t if order == 1 else 1 + t + t * (t + 1) // 2
    return tuple(size for size in (2 * terms, 3 * terms, 5 * terms) if size <= WIDE)
