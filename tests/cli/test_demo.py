"""The demo's experiments on digits."""

import numpy as np
import pytest

from outsample.demo import anomaly_table, placement_table
from outsample.demo.digits import DigitsMap, hide_fifth, load_digits
from outsample.demo.placement_table import DEFAULTS, REFERENCE


@pytest.fixture(scope="module")
def small_map():
    """A cheap map: 200 digits by the sums of two halves of their pixels."""
    X, labels = load_digits()
    X, labels = X[:200], labels[:200]
    Y = np.column_stack([X[:, :32].sum(axis=1), X[:, 32:].sum(axis=1)])
    return DigitsMap(X, labels, Y, 1.0)


def test_digits():
    X, labels = load_digits()
    assert X.shape == (1797, 64) and X.dtype == np.float64
    assert sorted(set(labels.tolist())) == list(range(10))


def test_a_split_hides_a_fifth_and_follows_the_seed():
    first, again, other = (hide_fifth(100, seed) for seed in (1, 1, 2))
    assert first.sum() == 20
    assert (first == again).all() and not (first == other).all()


def test_errors_of_each_method(small_map):
    names = list(placement_table.methods())
    assert names[0] == REFERENCE and names[-1] == DEFAULTS
    for name in names:
        row = placement_table.measure(name, small_map, seeds=(0, 1))
        assert 0 < row.error < 1 and 0 <= row.share_large <= 1 and row.seconds > 0


def test_new_digits_belong_and_anomalies_do_not():
    rows = anomaly_table.measure(load_digits().X)
    new, anomalies = rows[0], rows[1:]
    assert [row.kind for row in anomalies] == ["constant", "times-10", "noise", "permuted"]
    assert new.auc is None and 0.02 < new.share_flagged < 0.09
    assert all(row.share_flagged > 0.99 and row.auc >= 0.999 for row in anomalies)
    table = anomaly_table.section(rows).tables[0]
    assert len(table.rows) == 5 and table.rows[0][-1] == ""
