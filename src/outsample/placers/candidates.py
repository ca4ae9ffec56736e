"""The candidate models of the selection: which weightings, how many neighbours, order and loss.

A new weighting is one file in this package and one line in `CONSTANTS` below.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from outsample._validation import check_choice
from outsample.neighbors import local_pca
from outsample.placers.all_points import MAX_FACTORED_ROWS
from outsample.placers.diffusion import Diffusion
from outsample.placers.kriging import Correlated, GaussianProcess
from outsample.placers.local import LocalPlacer
from outsample.placers.neighbor_loss import NeighborLoss
from outsample.placers.problem import DIMENSION_ROWS, WIDE_NEIGHBORS, Problem
from outsample.placers.protocol import ModelFamily, Placer, Weighting
from outsample.placers.tangent import LocalTangent, SplitTangent, Tangent
from outsample.placers.two_levels import TwoLevels
from outsample.placers.weighting import (
    PLAIN_SIZES,
    FunctionOfDistance,
    GaussianDistance,
    InverseDistance,
)

NAMED: dict[str, Weighting] = {
    "distance": InverseDistance(2.0),
    "tangent": Tangent(),
    "local_tangent": LocalTangent(),
    "split_tangent": SplitTangent(),
}
DISTANCE = NAMED["distance"]
ROUGH = (Correlated("linear", 1.0, 0.0), Correlated("matern52", 4.0, 1e-3))
SMOOTH = (Correlated("matern52", 16.0, 1e-9), Correlated("gaussian", 8.0, 1e-10))
# For maps by locally linear embedding; the nugget was chosen on such maps of digits and an s-curve.
AFFINE = Correlated("affine", 1.0, 0.01)
# Models of order 0: weighting, numbers of neighbours, loss. In a study on 98 maps a list more than
# twice as long had the same error.
Constant = tuple[Weighting, tuple[int, ...], str]
CONSTANTS: list[Constant] = [
    (DISTANCE, (3, 5, 10, 15), "squared"),
    (InverseDistance(4.0), (3, 5, 7, 10), "squared"),
    (NAMED["tangent"], (10, 15), "squared"),
    (InverseDistance(8.0), (3, 5, 7, 10, 15), "absolute"),
    (GaussianDistance(0.35), (5, 10, 20), "absolute"),
]
CORRELATED: list[Constant] = [
    *((covariance, covariance.sizes, "squared") for covariance in ROUGH),
    *((covariance, (20, WIDE_NEIGHBORS), "squared") for covariance in SMOOTH),
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
# Model families of the values of ``weighting`` that leave the model to the data.
OPEN_FAMILIES = {
    "auto": ModelFamily((DISTANCE,), (*PROCESSES, *DIFFUSIONS), is_open=True),
    "correlated": ModelFamily((*ROUGH, *SMOOTH, AFFINE), PROCESSES, is_open=True),
    "diffusion": ModelFamily((), DIFFUSIONS, is_open=True),
}
# If the best all-points model is a diffusion, its length times these factors is also tried.
LENGTH_FACTORS = (2.0**-0.25, 2.0**0.25)


class CandidateGroup(NamedTuple):
    """Local models that differ in their number of neighbours only."""

    weighting: Weighting
    sizes: tuple[int, ...]
    order: int
    loss: str
    tangent_dim: int


class Constraints(NamedTuple):
    """The parameters that the user fixed; None is left to the selection."""

    weighting: Any
    n_neighbors: int | None
    order: int | None
    loss: str | None
    tangent_dim: int | None

    @property
    def family(self) -> ModelFamily:
        """The models that agree with the weighting."""
        return family_of("auto" if self.weighting is None else self.weighting)

    @property
    def is_open(self) -> bool:
        """True if there is anything to select."""
        return None in self or self.family.is_open


def family_of(weighting: Any) -> ModelFamily:
    """Return the models that a value of the parameter ``weighting`` allows, or raise ValueError."""
    if hasattr(weighting, "family"):
        weighting.check()
        return weighting.family()
    if callable(weighting):
        return FunctionOfDistance(weighting).family()
    check_choice("weighting", weighting, ["auto", *NAMED, "correlated", "diffusion"])
    if weighting in OPEN_FAMILIES:
        return OPEN_FAMILIES[weighting]
    return NAMED[weighting].family()


def local_candidates(problem: Problem, constraints: Constraints) -> list[Placer]:
    """Return the models of neighbourhoods that satisfy the constraints, the simplest first.

    There is at least one, and they are all different.
    """
    n, d = problem.n, problem.Y.shape[1]
    in_balls = problem.search.radius is not None
    candidates: dict[Placer, None] = {}
    for group in _groups(problem, constraints):
        sizes = group.sizes
        if constraints.n_neighbors is not None:
            sizes = (constraints.n_neighbors,)
        elif in_balls:
            sizes = (min(d, n),)
        else:
            sizes = tuple(min(k, max(1, n - 1)) for k in sizes)  # one row is left out
        for k in sizes:
            candidates[LocalPlacer(group.weighting, k, *group[2:])] = None
    if not in_balls and allows_neighbor_loss(constraints, n, d):
        candidates[NEIGHBOR_LOSS] = None
    return list(candidates)


def allows_neighbor_loss(constraints: Constraints, n: int, d: int) -> bool:
    """Return True if `NeighborLoss` is a candidate for n points of a d-dimensional map.

    The sums over many images are interpolated on a grid, which exists for 2-D maps only.
    """
    is_open = constraints[:2] == (None, None) and constraints.loss is None
    has_sums = d == 2 or (d <= 3 and n <= MAX_FACTORED_ROWS)
    is_large = n > 3 * NEIGHBOR_LOSS.n_neighbors
    return is_open and constraints.order in (None, 0) and has_sums and is_large


def all_points_candidates(problem: Problem, constraints: Constraints) -> tuple[Placer, ...]:
    """Return the all-points models that satisfy the constraints; of dense points only."""
    has_constants = constraints.order in (None, 0) and constraints.loss in (None, "squared")
    is_dense = isinstance(problem.X, np.ndarray) and problem.search.radius is None
    return constraints.family.all_points if has_constants and is_dense else ()


def neighboring_lengths(best: Placer) -> list[Placer]:
    """Return models with lengths next to that of the best all-points model."""
    if best not in DIFFUSIONS:
        return []
    return [Diffusion(best.weighting.length * factor) for factor in LENGTH_FACTORS]


def with_landmarks(placer: Any) -> TwoLevels | None:
    """Return the landmark model for an all-points model, if it has one."""
    settings = placer.first_level
    return None if settings is None else TwoLevels(*settings)


def _tangent_dim(problem: Problem, constraints: Constraints) -> int:
    """Return the tangent dimension: fixed, or estimated by local PCA if a model uses it."""
    if constraints.tangent_dim is not None:
        return constraints.tangent_dim
    if constraints.weighting == "split_tangent":
        k = min(problem.n - 1, constraints.n_neighbors or PLAIN_SIZES[1])
        neighborhoods = problem.left_out(problem.sample(DIMENSION_ROWS), k)
        frames = local_pca.image_frames(problem.Y, *neighborhoods.framed, problem.n_jobs)
        return local_pca.tangent_dimension(frames.spread)
    return 1 if constraints.order == 0 else problem.dimension


def _groups(problem: Problem, constraints: Constraints) -> Iterator[CandidateGroup]:
    """Yield the groups of local candidates."""
    t, family = _tangent_dim(problem, constraints), constraints.family
    losses = ("squared", "absolute") if constraints.loss is None else (constraints.loss,)
    orders = (0, 1, 2) if constraints.order is None else (constraints.order,)
    if not family.is_open:
        (weighting,) = family.weightings
        for order in orders:
            sizes = weighting.sizes
            if order > 0:
                sizes = _polynomial_sizes(order, t) or (WIDE_NEIGHBORS,)
            yield from (CandidateGroup(weighting, sizes, order, loss, t) for loss in losses)
        return
    if constraints.weighting is None:
        yield from _constants(CONSTANTS, orders, losses, t)
        for tangent_dim in sorted({t, min(problem.Y.shape[1], problem.X.shape[1])}):
            yield from _polynomials(constraints, orders, tangent_dim)
    # Correlated errors need a k x k system, and a ball may hold thousands of points: in balls only
    # if the user requests them.
    if constraints.weighting is not None or problem.search.radius is None:
        yield from _constants(CORRELATED, orders, losses, t)
        drifts = (1,) if constraints.order is None else orders
        sizes, loss = (20, WIDE_NEIGHBORS), constraints.loss or "squared"
        for order in drifts:
            if order > 0:
                yield CandidateGroup(ROUGH[0], sizes, order, loss, t)


def _constants(
    rows: list[Constant], orders: tuple[int, ...], losses: tuple[str, ...], t: int
) -> Iterator[CandidateGroup]:
    """Yield the groups of order 0 whose loss is allowed."""
    for weighting, sizes, loss in rows:
        if 0 in orders and loss in losses:
            yield CandidateGroup(weighting, sizes, 0, loss, t)


def _polynomials(
    constraints: Constraints, orders: tuple[int, ...], t: int
) -> Iterator[CandidateGroup]:
    """Yield the groups of orders 1 and 2, weighted by distance.

    Absolute loss with a polynomial is expensive and did not pay: only if the user requests it.
    """
    for order in orders:
        if order > 0:
            sizes = _polynomial_sizes(order, t)
            if constraints.order is not None:
                sizes = sizes or (WIDE_NEIGHBORS,)
            yield CandidateGroup(DISTANCE, sizes, order, constraints.loss or "squared", t)


def _polynomial_sizes(order: int, t: int) -> tuple[int, ...]:
    """Return neighbourhoods that support a polynomial: a few times its number of terms."""
    n_terms = 1 + t if order == 1 else 1 + t + t * (t + 1) // 2
    return tuple(factor * n_terms for factor in (2, 3, 5) if factor * n_terms <= WIDE_NEIGHBORS)
