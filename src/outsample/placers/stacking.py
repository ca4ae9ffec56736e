"""Stacking: convex combinations of candidates with the lowest priced leave-one-out error.

Errors are those of training rows placed by all others, ``e_ij = f_j(x_i) - y_i`` for J candidates
on s rows in d coordinates, over the size of the map: arrays (J, s, d). The weights of a blend are
not negative and sum to one, so that its errors are ``sum_j w_j e_ij`` (Wolpert 1992, Breiman 1996).

A score is a mean error times a price, which grows slowly with the estimated time per placed row.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

MAX_BLEND_PARTS = 3
# Exponent of the cost in the price: a model twice as expensive must be 1.4 % more accurate.
COST_EXPONENT = 0.02
# A further part must lower the score of a blend by at least this share.
MIN_GAIN = 0.002
# Candidates worse than the best by this factor are not used: one with a single huge error made a
# blend several times worse on an Isomap map.
MAX_ERROR_RATIO = 2.0
# Fewer rows than this do not determine the weights of a blend.
MIN_BLEND_ROWS = 64
# Mean errors below this, over the size of the map, are rounding errors: all are equally good.
ROUNDING_ERROR = 1e-13
# Scores that differ by less than this share are equal: the first candidate is taken, so that a
# rotated or scaled map selects the same model.
EQUAL_SCORES = 1e-9
# Weights are multiples of one over this, so that they sum to one exactly.
WEIGHT_STEPS = 1024
# Reweighted least squares: iterations for the weights of a blend, the change at which they stop,
# and iterations for the weight of one further part.
MAX_ITERATIONS, CONVERGED_CHANGE, QUICK_ITERATIONS = 50, 3e-5, 6
# Error lengths below this share of their mean are raised to it: row weights are one over them.
MIN_RELATIVE_LENGTH = 1e-3
# Added to the mean square of each candidate, so that candidates that agree get equal weights.
RIDGE = 1e-14


class Costs(NamedTuple):
    """Estimated microseconds per placed row: of each candidate (J,), and of the search it needs."""

    placing: np.ndarray
    searching: np.ndarray

    def alone(self) -> np.ndarray:
        """Return the cost (J,) of each candidate on its own."""
        return self.placing + self.searching

    def with_each(self, parts: list[int]) -> np.ndarray:
        """Return the cost (J,) of a blend of the parts and each candidate, with one search."""
        searching = np.maximum(self.searching[parts].max(), self.searching)
        return searching + self.placing[parts].sum() + self.placing


class Combination(NamedTuple):
    """A convex combination: indices of its candidates, the heaviest first, and their weights."""

    parts: list[int]
    weights: list[float]


def price(microseconds: np.ndarray) -> np.ndarray:
    """Return the factor by which the error of a model is multiplied for its cost."""
    return microseconds**COST_EXPONENT


def grow_blend(errors: np.ndarray, costs: Costs, max_parts: int = MAX_BLEND_PARTS) -> Combination:
    """Return the blend that starts with the best candidate and adds parts while its score falls.

    Parameters
    ----------
    errors : ndarray of shape (J, s, d)
        Leave-one-out errors over the size of the map.
    costs : Costs
        Of the same J candidates.
    max_parts : int
        1 returns the best single candidate.
    """
    mean_errors = np.maximum(error_lengths(errors).mean(axis=1), ROUNDING_ERROR)
    is_barred = mean_errors > MAX_ERROR_RATIO * mean_errors.min()
    scores = mean_errors * price(costs.alone())
    scores[is_barred] = np.inf
    parts, weights = [_first_lowest(scores)], np.ones(1)
    best_score = scores[parts[0]]
    if errors.shape[1] < MIN_BLEND_ROWS or mean_errors[parts[0]] <= ROUNDING_ERROR:
        max_parts = 1
    while len(parts) < max_parts:
        prices = price(costs.with_each(parts))
        scores = mean_errors_with_each(combine(errors[parts], weights), errors) * prices
        scores[is_barred] = scores[parts] = np.inf
        addition = _first_lowest(scores)
        if not scores[addition] < best_score * (1 - MIN_GAIN):
            break
        grown_weights = convex_weights(errors[[*parts, addition]])
        if grown_weights.min() < 1 / WEIGHT_STEPS:
            break
        parts, weights = [*parts, addition], grown_weights
        best_score = error_lengths(combine(errors[parts], weights)).mean() * prices[addition]
    return _rounded(parts, weights)


def convex_weights(errors: np.ndarray) -> np.ndarray:
    """Return weights (J,), not negative and of sum one, with the least ``sum_i |sum_j w_j e_ij|``.

    Iteratively reweighted least squares: row i has one over the length of its error as weight.

    >>> convex_weights(np.array([[[1.0], [3.0]], [[-1.0], [-3.0]]]))
    array([0.5, 0.5])
    """
    J, s, _ = errors.shape
    products = np.einsum("jsd,ksd->jks", errors, errors).reshape(J * J, s)
    row_weights, weights = np.ones(s), np.zeros(J)
    for _ in range(MAX_ITERATIONS):
        previous, weights = weights, _least_squares_weights((products @ row_weights).reshape(J, J))
        if np.abs(weights - previous).max() < CONVERGED_CHANGE:
            break
        squares = np.outer(weights, weights).ravel() @ products
        row_weights = _inverse_lengths(np.sqrt(np.maximum(squares, 0.0)))
    return weights


def mean_errors_with_each(blended: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Return the mean error (J,) of a blend (s, d) with each candidate, at its best weight."""
    differences = errors - blended
    along, squares = (differences * blended).sum(axis=2), (differences**2).sum(axis=2)
    blend_squares = (blended**2).sum(axis=1)
    lengths = np.broadcast_to(np.sqrt(blend_squares), along.shape)
    for _ in range(QUICK_ITERATIONS):
        row_weights = _inverse_lengths(lengths)
        total = (row_weights * squares).sum(axis=1, keepdims=True)
        weight = -(row_weights * along).sum(axis=1, keepdims=True) / np.where(total > 0, total, 1.0)
        weight = np.clip(weight, 0.0, 1.0)
        lengths = np.sqrt(np.maximum(blend_squares + weight * (2 * along + weight * squares), 0.0))
    return lengths.mean(axis=1)


def combine(errors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the errors (s, d) of a blend."""
    return np.einsum("j,jsd->sd", weights, errors)


def error_lengths(errors: np.ndarray) -> np.ndarray:
    """Return the Euclidean length (..., s) of each error (..., s, d)."""
    return np.sqrt((errors**2).sum(axis=-1))


def _first_lowest(scores: np.ndarray) -> int:
    """Return the index of the first score that equals the lowest but for rounding."""
    return int(np.argmax(scores <= scores.min() * (1 + EQUAL_SCORES)))


def _rounded(parts: list[int], weights: np.ndarray) -> Combination:
    """Return the parts by weight, the weights rounded to multiples of one over `WEIGHT_STEPS`."""
    steps = np.round(weights * WEIGHT_STEPS)
    steps[steps.argmax()] += WEIGHT_STEPS - steps.sum()
    order = [at for at in np.argsort(-steps, kind="stable") if steps[at] > 0]
    return Combination([parts[at] for at in order], (steps[order] / WEIGHT_STEPS).tolist())


def _least_squares_weights(gram: np.ndarray) -> np.ndarray:
    """Return convex weights (J,) with the least ``w' gram w``: the best over all supports."""
    J = len(gram)
    gram = gram / (np.trace(gram) or 1.0) + RIDGE * np.eye(J)
    weights, least = np.eye(J)[0], np.inf
    for size in range(J, 0, -1):
        for support in combinations(range(J), size):
            block = gram[np.ix_(support, support)]
            solved = np.linalg.solve(block, np.ones(size))
            total = solved.sum()  # one over the least value
            if (solved >= 0).all() and total * least > 1:
                weights, least = np.zeros(J), 1 / total
                weights[list(support)] = solved / total
        if size == J and least < np.inf:
            break
    return weights


def _inverse_lengths(lengths: np.ndarray) -> np.ndarray:
    """Return one over lengths (..., s), short lengths raised to a small share of the mean."""
    smallest = MIN_RELATIVE_LENGTH * lengths.mean(axis=-1, keepdims=True) + 1e-300
    return 1.0 / np.maximum(lengths, smallest)
