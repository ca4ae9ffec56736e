"""The placers that the race considers: which weightings, how many neighbours, order and loss.

Measured on torn, rough, smooth and analytic maps; a family that never wins by leave-one-out does
not belong here. A new family is one file beside this one, and one line below.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from outsample._validation import check_choice
from outsample.placers.diffusion import Diffusion
from outsample.placers.kriging import Correlated, GaussianProcess
from outsample.placers.local import LocalPlacer
from outsample.placers.neighbor_loss import NeighborLoss
from outsample.placers.over_all import FACTORED_ROWS
from outsample.placers.problem import WIDE
from outsample.placers.protocol import Family, Placer, Weighting
from outsample.placers.tangent import LocalTangent, SplitTangent, Tangent
from outsample.placers.two_levels import TwoLevels
from outsample.placers.weighting import FunctionOfDistance, GaussianDistance, InverseDistance

NAMED: dict[str, Weighting] = {
    "distance": InverseDistance(2.0),
    "tangent": Tangent(),
    "local_tangent": LocalTangent(),
    "split_tangent": SplitTangent(),
}
DISTANCE = NAMED["distance"]
ROUGH = (Correlated("linear", 1.0, 0.0), Correlated("matern52", 4.0, 1e-3))
SMOOTH = (
    Correlated("matern52", 4.0, 1e-6),
    Correlated("matern52", 16.0, 1e-9),
    Correlated("gaussian", 4.0, 1e-9),
    Correlated("gaussian", 8.0, 1e-10),
)
# For maps by locally linear embedding; the nugget was chosen on such maps of digits and an s-curve.
AFFINE = Correlated("affine", 1.0, 0.01)
GAUSSIANS = tuple(GaussianDistance(length) for length in (0.25, 0.3, 0.35, 0.42, 0.5, 0.7))
# Constants (order 0) that "auto" tries, from the simplest on: weighting, neighbours, loss.
CONSTANTS: list[tuple[Weighting, tuple[int, ...], str]] = [
    (DISTANCE, (3, 5, 10, 15), "squared"),
    *((InverseDistance(power), (3, 5, 7, 10), "squared") for power in (4.0, 6.0)),
    (NAMED["tangent"], (10, 15), "squared"),
    *((gaussian, (5, 10, 20), "squared") for gaussian in GAUSSIANS),
    *((gaussian, (5, 10, 20), "absolute") for gaussian in GAUSSIANS),
    *((InverseDistance(power), (3, 5, 7, 10, 15), "absolute") for power in (8.0, 12.0, 16.0, 24.0)),
]
CORRELATED: list[tuple[Weighting, tuple[int, ...], str]] = [
    *((covariance, covariance.sizes, "squared") for covariance in (*ROUGH, SMOOTH[0])),
    *((covariance, (20, WIDE), "squared") for covariance in SMOOTH[1:]),
    *((covariance, (10, 20, 40), "absolute") for covariance in ROUGH),
    (AFFINE, (5, 10, 12, 15, 20), "squared"),
]
PROCESSES = tuple(
    GaussianProcess(Correlated(kind, length, nugget))
    for kind, nugget, lengths in (
        ("matern52", 1e-8, (1.0, 2.0, 4.0, 8.0, 16.0)),
        ("gaussian", 1e-9, (1.0, 2.0, 4.0, 8.0)),
    )
    for length in lengths
)
# For maps by t-SNE; the perplexity and the length were chosen on such a map of digits.
NEIGHBOR_LOSS = NeighborLoss()
DIFFUSIONS = tuple(Diffusion(2.0 ** (half / 2)) for half in range(6))
# What the open values of the parameter ``weighting`` stand for; "auto" has families of its own.
OPEN = {
    "auto": Family((DISTANCE,), (*PROCESSES, *DIFFUSIONS), is_open=True),
    "correlated": Family((*ROUGH, *SMOOTH, AFFINE), PROCESSES, is_open=True),
    "diffusion": Family((), DIFFUSIONS, is_open=True),
}
# The best length over all points is then tried this much shorter and longer, if it is a diffusion.
BESIDE = (2.0**-0.25, 2.0**0.25)

# Weighting, sizes, order, loss and tangent dimension.
Group = tuple[Weighting, tuple[int, ...], int, str, int]


class Given(NamedTuple):
    """What the user fixed; None is left to the choice."""

    weighting: Any
    n_neighbors: int | None
    order: int | None
    loss: str | None
    tangent_dim: int | None

    @property
    def family(self) -> Family:
        """What the weighting stands for."""
        return family_of("auto" if self.weighting is None else self.weighting)

    @property
    def is_open(self) -> bool:
        """Whether there is anything to choose."""
        return None in self or self.family.is_open


def family_of(weighting: Any) -> Family:
    """Return what a value of the parameter ``weighting`` stands for; refuse what is none."""
    if hasattr(weighting, "family"):
        weighting.check()
        return weighting.family()
    if callable(weighting):
        return FunctionOfDistance(weighting).family()
    check_choice("weighting", weighting, ["auto", *NAMED, "correlated", "diffusion"])
    return OPEN[weighting] if weighting in OPEN else NAMED[weighting].family()


def local_placers(
    given: Given, shape: tuple[int, int, int], t: int, in_ball: bool
) -> list[LocalPlacer]:
    """Local placers that agree with what is given, from the simplest to the most elaborate.

    ``shape`` is (n, D, d), ``t`` the estimated tangent dimension; at least one, all different.
    """
    n, D, d = shape
    placers: dict[LocalPlacer, None] = {}
    for weighting, sizes, order, loss, tangent in _groups(given, min(d, D), t, in_ball):
        if given.n_neighbors is not None:
            sizes = (given.n_neighbors,)
        elif in_ball:
            sizes = (min(d, n),)
        for k in sizes:
            if given.n_neighbors is None and not in_ball:
                k = min(k, max(1, n - 1))  # one is left out
            placers[LocalPlacer(weighting, k, order, loss, tangent)] = None
    return list(placers)


def neighbor_losses(
    given: Given, shape: tuple[int, int, int], in_ball: bool
) -> list[NeighborLoss]:
    """Losses of neighbour embeddings, for maps of two or three dimensions where all is open.

    Many images repel by a field, which there is of the plane only.
    """
    n, _, d = shape
    is_open = given[:2] == (None, None) and given.order in (None, 0) and given.loss is None
    fits = 3 * NEIGHBOR_LOSS.n_neighbors < n and (d == 2 or (d <= 3 and n <= FACTORED_ROWS))
    return [NEIGHBOR_LOSS] if is_open and fits and not in_ball else []


def beside(best: Placer) -> list[Placer]:
    """Placers to try once the best one over all points is known."""
    if best not in DIFFUSIONS:
        return []
    return [Diffusion(best.weighting.length * factor) for factor in BESIDE]


def over_many(placer: Any) -> TwoLevels | None:
    """Return what stands for a placer over all points where these are too many to be factored."""
    settings = placer.first_level
    return None if settings is None else TwoLevels(*settings)


def _groups(given: Given, d: int, t: int, in_ball: bool) -> Iterator[Group]:
    """Yield the groups of local candidates."""
    orders = (0, 1, 2) if given.order is None else (given.order,)
    losses = ("squared", "absolute") if given.loss is None else (given.loss,)
    # Absolute loss with a polynomial costs, and has not been seen to pay: only where asked for.
    polynomial_losses = ("squared",) if given.loss is None else losses
    family = given.family
    if not family.is_open:
        (weighting,) = family.weightings
        for order in orders:
            for loss in losses:
                yield weighting, _sizes(order, t, weighting.sizes) or (WIDE,), order, loss, t
        return
    plain_losses = losses if 0 in orders else ()
    if given.weighting is None:
        yield from ((w, sizes, 0, loss, t) for w, sizes, loss in CONSTANTS if loss in plain_losses)
        for order in orders:
            for tangent in sorted({t, d}) if order else ():
                for loss in polynomial_losses:
                    sizes = _sizes(order, tangent, ())
                    if given.order is not None:
                        sizes = sizes or (WIDE,)
                    yield DISTANCE, sizes, order, loss, tangent
        if in_ball:
            return  # a ball may hold thousands: no k x k systems unless asked for
    yield from ((w, sizes, 0, loss, t) for w, sizes, loss in CORRELATED if loss in plain_losses)
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
