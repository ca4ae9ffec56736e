"""Blends with the lowest priced error: weights, parts and costs."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from outsample import Correlated, Diffusion, InverseDistance, NeighborLoss
from outsample.placers.blend import Blend
from outsample.placers.local import LocalPlacer
from outsample.placers.selection import keep_promising
from outsample.placers.stacking import (
    COST_EXPONENT,
    MIN_BLEND_ROWS,
    MIN_GAIN,
    WEIGHT_STEPS,
    Costs,
    convex_weights,
    grow_blend,
    price,
)


def equal_costs(count):
    return Costs(np.zeros(count), np.ones(count))


def total(errors, weights):
    return np.linalg.norm(np.tensordot(weights, errors, 1), axis=1).sum()


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_weights_minimise_the_error(count, seed):
    rng = np.random.default_rng(seed)
    errors = rng.standard_t(2, size=(count, 80, 2)) * rng.uniform(0.5, 2, (count, 1, 1))
    weights = convex_weights(errors)
    assert (weights >= 0).all() and weights.sum() == pytest.approx(1)
    assert total(errors, weights) <= total(errors, reference.convex_weights(errors)) * (1 + 1e-4)
    for _ in range(50):  # convex: no step towards another mixture lowers the error
        other = 0.98 * weights + 0.02 * rng.dirichlet(np.ones(count))
        assert total(errors, weights) <= total(errors, other) * (1 + 1e-6)


def test_weights_in_closed_form():
    errors = np.random.default_rng(0).normal(size=(1, 50, 2))
    np.testing.assert_allclose(convex_weights(np.concatenate([errors, -errors])), 0.5)
    # An error of three times the size and opposite sign is cancelled by a weight of 1/4.
    np.testing.assert_allclose(convex_weights(np.concatenate([errors, -3 * errors])), [0.75, 0.25])
    np.testing.assert_allclose(convex_weights(np.concatenate([errors, 2 * errors])), [1, 0])
    np.testing.assert_allclose(convex_weights(np.concatenate([errors, 0 * errors])), [0, 1],
                               atol=1e-12)  # fmt: skip
    np.testing.assert_allclose(convex_weights(np.concatenate([errors, errors])), 0.5)
    np.testing.assert_allclose(convex_weights(np.zeros((3, 50, 2))).sum(), 1)


def test_errors_that_cancel_are_blended():
    errors = np.random.default_rng(1).normal(size=(6, 400, 2))
    parts, weights = grow_blend(errors, equal_costs(6))
    best = int(np.linalg.norm(errors, axis=2).mean(axis=1).argmin())
    assert best in parts and len(set(parts)) == 3
    assert sum(weights) == 1.0 and weights == sorted(weights, reverse=True)
    assert all((weight * WEIGHT_STEPS).is_integer() for weight in weights)
    assert grow_blend(errors, equal_costs(6), max_parts=1) == ([best], [1.0])


def test_a_blend_has_the_lowest_score_of_all_pairs():
    errors = np.random.default_rng(3).normal(size=(5, 300, 2))
    costs = Costs(np.array([1.0, 30.0, 2.0, 900.0, 5.0]), np.full(5, 10.0))

    def score(pair):
        lengths = total(errors[pair], convex_weights(errors[pair])) / 300
        return lengths * price(costs.placing[pair].sum() + 10.0)

    parts, _ = grow_blend(errors, costs, max_parts=2)
    alone = np.linalg.norm(errors, axis=2).mean(axis=1) * price(costs.alone())
    first = int(alone.argmin())
    pairs = [[first, other] for other in range(5) if other != first]
    assert sorted(parts) == sorted(min(pairs, key=score))


@pytest.mark.parametrize("seed", range(10))
def test_errors_that_do_not_cancel_are_not_blended(seed):
    rng = np.random.default_rng(seed)
    errors = rng.normal(size=(1, 400, 2))
    worse = errors * rng.uniform(1.0, 3.0, (5, 400, 1))  # parallel errors do not cancel
    assert grow_blend(np.concatenate([errors, worse]), equal_costs(6)) == ([0], [1.0])
    few_rows = rng.normal(size=(3, MIN_BLEND_ROWS - 1, 2))
    assert len(grow_blend(few_rows, equal_costs(3)).parts) == 1


def test_errors_of_rounding_are_equal_and_the_cheapest_is_taken():
    rng = np.random.default_rng(0)
    costs = Costs(np.array([4.0, 2.0, 3.0]), np.ones(3))
    for errors in (np.zeros((3, 400, 2)), 1e-15 * rng.normal(size=(3, 400, 2))):
        assert grow_blend(errors, costs) == ([1], [1.0])
        assert grow_blend(errors, equal_costs(3)) == ([0], [1.0])


def test_scores_that_differ_by_rounding_take_the_first():
    errors = np.random.default_rng(0).normal(size=(1, 40, 2))
    candidates = np.concatenate([errors * (1 + 1e-12), errors])
    assert grow_blend(candidates, equal_costs(2)).parts == [0]


def test_a_candidate_twice_as_bad_is_never_a_part():
    rng = np.random.default_rng(4)
    errors = rng.normal(size=(2, 400, 2))
    errors[1] = -2.1 * errors[0]  # a weight of a third would cancel all errors
    assert grow_blend(errors, equal_costs(2)).parts == [0]
    errors[1] = -1.9 * errors[0]
    assert len(grow_blend(errors, equal_costs(2)).parts) == 2


def test_doubling_the_cost_must_buy_1_4_percent():
    assert price(np.array(2.0)) / price(np.array(1.0)) == pytest.approx(2**COST_EXPONENT)
    errors = np.random.default_rng(0).normal(size=(1, 200, 2))
    costs = Costs(np.array([0.0, 10.0]), np.full(2, 10.0))
    for gain, first in ((0.013, 0), (0.015, 1)):
        candidates = np.concatenate([errors, errors * (1 - gain)])
        assert grow_blend(candidates, costs).parts == [first]


def test_a_further_part_must_lower_the_score():
    """A part that lowers the error by less than its price, or than 0.2 %, is not added."""
    rng = np.random.default_rng(5)
    errors = rng.normal(size=(400, 2)) + 0.2 * rng.normal(size=(2, 400, 2))
    weights = convex_weights(errors)
    gain = 1 - total(errors, weights) / min(total(errors, [1, 0]), total(errors, [0, 1]))
    assert MIN_GAIN < gain < 0.02
    assert len(grow_blend(errors, equal_costs(2)).parts) == 2
    expensive = Costs(np.array([0.0, 1000.0]), np.ones(2))
    assert grow_blend(errors, expensive).parts == [0]


def test_one_search_serves_all_parts():
    costs = Costs(np.array([1.0, 2.0, 4.0]), np.array([0.0, 10.0, 10.0]))
    np.testing.assert_array_equal(costs.alone(), [1, 12, 14])
    np.testing.assert_array_equal(costs.with_each([0]), [2, 13, 15])
    np.testing.assert_array_equal(costs.with_each([0, 1]), [14, 15, 17])


def test_costs_of_models():
    near = LocalPlacer(InverseDistance(4.0), 4, 0, "squared", 1)
    wide = LocalPlacer(Correlated("linear", 1.0, 0.0), 12, 1, "squared", 2)
    median = LocalPlacer(InverseDistance(8.0), 7, 0, "absolute", 1)
    costs = [placer.cost_microseconds(100, 3) for placer in (near, median, wide, NeighborLoss())]
    assert costs == sorted(costs)
    blend = Blend((near, wide), (0.5, 0.5))
    assert blend.cost_microseconds(100, 3) == pytest.approx(costs[0] + costs[2])
    small, large = (Diffusion().cost_microseconds(n, 3) for n in (900, 9000))
    assert large == pytest.approx(10 * small)


def test_promising_candidates_are_kept():
    rng = np.random.default_rng(6)
    errors = rng.normal(size=(40, 150, 2))
    errors[20:] *= 5  # clearly worse
    kept = keep_promising(errors, equal_costs(40))
    assert kept == sorted(set(kept)) and max(kept) < 20 and len(kept) <= 33
    assert set(grow_blend(errors, equal_costs(40)).parts) <= set(kept)


def test_a_candidate_that_is_typically_best_is_kept():
    """Two rows in a wrong cluster dominate its mean error; its typical error is much lower."""
    rng = np.random.default_rng(7)
    errors = rng.normal(size=(2, 150, 2))
    errors[1] *= 0.5
    errors[1, :2] = 300.0
    means = np.linalg.norm(errors, axis=2).mean(axis=1)
    assert means[1] > 2 * means[0]
    assert keep_promising(errors, equal_costs(2)) == [0, 1]
