"""PCAExtension: the paper's figures, neighbourhoods, parameters, bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from outsample import PCAExtension

PAPER = {"order": 0, "loss": "squared"}


@pytest.mark.parametrize("weighting", ["distance", "tangent", "local_tangent", "split_tangent"])
def test_error_falls_with_the_radius(weighting):
    """Section 5: the error is O(h), so halving h at least nearly halves the error."""
    rng = np.random.default_rng(0)
    queries = rng.uniform(0.2, 0.8, (300, 2))
    errors = []
    for points in (11, 21, 41, 81):
        axis = np.linspace(0, 1, points)
        X = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
        surface = lambda x: np.column_stack([x, np.sin(2 * x).prod(axis=1)])  # noqa: E731
        extension = PCAExtension(radius=2.3 * axis[1], weighting=weighting, **PAPER)
        placed = extension.fit(X, surface(X)).transform(queries)
        errors.append(np.linalg.norm(placed - surface(queries), axis=1).mean())
    slope = np.polyfit(np.log([11, 21, 41, 81]), np.log(errors), 1)[0]
    assert slope < -0.9


def test_ball_reports_the_number_of_points_inside():
    X = np.arange(10.0)[:, None]
    extension = PCAExtension(radius=1.5, weighting="distance", **PAPER).fit(X, X)
    placed = extension.place([[4.2], [11.4], [40.0]])
    np.testing.assert_array_equal(placed.n_neighbors, [3, 0, 0])
    assert placed.coordinates[2, 0] == 9.0  # the nearest one, since d = 1
    wider = extension.set_params(n_neighbors=2).fit(X, X).place([[40.0]])
    assert 8 < wider.coordinates[0, 0] < 9
    assert wider.n_neighbors[0] == 0


def test_ball_includes_its_edge():
    X = np.array([[0.0], [0.5], [1.0], [3.0]])
    placed = PCAExtension(radius=1.0, **PAPER).fit(X, X).place([[0.0], [2.0]])
    np.testing.assert_array_equal(placed.n_neighbors, [3, 2])


def test_number_of_neighbors_is_reported(paraboloid):
    X, Y, queries, _ = paraboloid
    placed = PCAExtension(n_neighbors=12, **PAPER).fit(X, Y).place(queries)
    np.testing.assert_array_equal(placed.n_neighbors, 12)


def test_function_equals_named_weighting(paraboloid):
    X, Y, queries, _ = paraboloid
    named = PCAExtension(n_neighbors=9, weighting="distance", **PAPER).fit(X, Y).place(queries)
    function = PCAExtension(n_neighbors=9, weighting=lambda r: r**-2.0, **PAPER).fit(X, Y)
    other = function.place(queries)
    for left, right in zip(named, other, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12)


def test_a_function_that_does_not_interpolate(paraboloid):
    X, Y, _, _ = paraboloid
    extension = PCAExtension(n_neighbors=9, weighting=lambda r: np.exp(-10 * r), **PAPER)
    placed = extension.fit(X, Y).transform(X[:5])
    assert 0 < np.abs(placed - Y[:5]).max() < 0.1


def test_a_function_that_vanishes_gives_the_nearest_point():
    X = np.arange(5.0)[:, None]
    extension = PCAExtension(n_neighbors=3, weighting=lambda r: (r < 0.1) * 1.0, **PAPER)
    np.testing.assert_array_equal(extension.fit(X, X).transform([[2.3]]), [[2.0]])


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda r: -r, "weights must be at least 0"),
        (lambda r: r * np.nan, "weights must be at least 0"),
        (lambda r: r[:3], "one weight per distance"),
    ],
)
def test_a_bad_function_is_rejected(paraboloid, function, message):
    X, Y, queries, _ = paraboloid
    with pytest.raises(ValueError, match=message):
        PCAExtension(weighting=function, **PAPER).fit(X, Y).transform(queries)


def test_small_curvature_is_the_fourth_power(paraboloid):
    X, Y, queries, _ = paraboloid
    small = PCAExtension(n_neighbors=9, weighting="tangent", curvature=1e-6, **PAPER)
    fourth = PCAExtension(n_neighbors=9, weighting=lambda r: r**-4.0, **PAPER)
    np.testing.assert_allclose(
        small.fit(X, Y).transform(queries), fourth.fit(X, Y).transform(queries), rtol=1e-9
    )


def test_tangent_dimension(paraboloid):
    X, Y, queries, _ = paraboloid
    assert PCAExtension(weighting="split_tangent", **PAPER).fit(X, Y).tangent_dim_ == 2
    split = PCAExtension(weighting="split_tangent", tangent_dim=3, n_neighbors=9, **PAPER)
    distance = PCAExtension(weighting="distance", n_neighbors=9, **PAPER)
    np.testing.assert_allclose(  # all directions tangent: r^-2 in each
        split.fit(X, Y).transform(queries), distance.fit(X, Y).transform(queries), rtol=1e-12
    )


def test_more_rows_than_the_sample(monkeypatch, paraboloid):
    X, Y, queries, truth = paraboloid
    monkeypatch.setattr("outsample.placers.selection.FINAL_ROWS", 50)
    first = PCAExtension(weighting="tangent", **PAPER).fit(X, Y)
    second = PCAExtension(weighting="tangent", **PAPER).fit(X, Y)
    assert first.curvature_ == second.curvature_
    assert np.abs(first.transform(queries) - truth).max() < 0.2


def test_one_dimensional_images(paraboloid):
    X, Y, queries, _ = paraboloid
    flat = PCAExtension(**PAPER).fit(X, Y[:, 2]).transform(queries)
    assert flat.shape == (60, 1)
    np.testing.assert_array_equal(flat, PCAExtension(**PAPER).fit(X, Y[:, 2:]).transform(queries))


def test_later_changes_of_the_arrays_do_not_reach_the_model(paraboloid):
    X, Y, queries, _ = (a.copy() for a in paraboloid)
    extension = PCAExtension(**PAPER).fit(X, Y)
    before = extension.transform(queries)
    X[:], Y[:] = 0, 0
    np.testing.assert_array_equal(extension.transform(queries), before)


def test_pandas(paraboloid):
    X, Y, queries, _ = paraboloid
    columns = ["east", "north"]
    extension = PCAExtension(**PAPER).fit(pd.DataFrame(X, columns=columns), Y)
    extension.set_output(transform="pandas")
    frame = extension.transform(pd.DataFrame(queries, columns=columns, index=range(100, 160)))
    assert list(frame.columns) == ["pcaextension0", "pcaextension1", "pcaextension2"]
    assert frame.index[0] == 100
    with pytest.raises(ValueError, match="south"):
        extension.transform(pd.DataFrame(queries, columns=["east", "south"]))


BAD_PARAMETERS = [
    ({"n_neighbors": 0}, r"n_neighbors is 0, but must be an integer from 1 to 400"),
    ({"n_neighbors": 401}, r"n_neighbors is 401, but must be an integer from 1 to 400"),
    ({"n_neighbors": 2.5}, r"n_neighbors is 2.5, but must be an integer"),
    ({"n_neighbors": True}, r"n_neighbors is True"),
    ({"radius": 0}, r"radius is 0, but must be a number above 0"),
    ({"radius": -1.5}, r"radius is -1.5, but must be a number above 0"),
    ({"radius": np.inf}, r"radius is inf"),
    ({"radius": "wide"}, r"radius is 'wide'"),
    ({"tangent_radius": np.nan}, r"tangent_radius is nan"),
    ({"weighting": "flat"}, r"weighting is 'flat', but must be one of 'auto', 'distance'"),
    ({"order": 7}, r"order is 7, but must be one of"),
    ({"loss": "cubic"}, r"loss is 'cubic', but must be one of"),
    ({"curvature": -2}, r"curvature is -2, but must be a number above 0"),
    ({"tangent_dim": 3}, r"tangent_dim is 3, but must be an integer from 1 to 2"),
    (
        {"tangent_dim": 4, "weighting": "split_tangent"},
        r"tangent_dim is 4, but must be an integer from 1 to 3",
    ),
    ({"lipschitz": -1.0}, r"lipschitz is -1.0, but must be a number of 0 or more"),
    ({"metric": "odd"}, r"metric is 'odd', but must be one of 'euclidean'"),
    ({"index": "magic"}, r"index is 'magic', but must be one of 'auto', 'kd_tree', 'brute'"),
    ({"n_jobs": 0}, r"n_jobs is 0, but must be None, or an integer other than 0"),
    ({"n_jobs": 1.5}, r"n_jobs is 1.5"),
]


@pytest.mark.parametrize("parameters, message", BAD_PARAMETERS)
def test_bad_parameters(paraboloid, parameters, message):
    X, Y, _, _ = paraboloid
    with pytest.raises(ValueError, match=message):
        PCAExtension(**parameters).fit(X, Y)


def test_bad_arrays(paraboloid):
    X, Y, queries, _ = paraboloid
    bad = X.copy()
    bad[7, 1] = np.nan
    with pytest.raises(ValueError, match=r"(?s)Input X contains NaN.*X: row 7, column 1\."):
        PCAExtension().fit(bad, Y)
    worse = Y.copy()
    worse[3, 2] = worse[9, 0] = np.inf
    with pytest.raises(ValueError, match=r"(?s)Input y contains infinity.*y: row 3, column 2 \(2"):
        PCAExtension().fit(X, worse)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[400, 399\]"):
        PCAExtension().fit(X, Y[:-1])
    with pytest.raises(ValueError, match="0 sample"):
        PCAExtension().fit(X[:0], Y[:0])
    with pytest.raises(ValueError, match="1 sample"):
        PCAExtension().fit(X[:1], Y[:1])
    with pytest.raises(ValueError, match="north"):
        PCAExtension().fit([["north", "south"]] * 5, Y[:5])
    with pytest.raises(ValueError, match=r"Input X has an entry of size 1e\+305"):
        PCAExtension().fit(X * 1e305 / X.max(), Y)
    extension = PCAExtension().fit(X, Y)
    with pytest.raises(ValueError, match="X has 3 features, but PCAExtension is expecting 2"):
        extension.transform(np.ones((4, 3)))
    queries = queries.copy()
    queries[0, 0] = -np.inf
    with pytest.raises(ValueError, match=r"(?s)infinity.*X: row 0, column 0\."):
        extension.place(queries)
    with pytest.raises(ValueError, match="Expected 2D array"):
        extension.transform(queries[1])
    with pytest.raises(ValueError, match="0 sample"):
        extension.transform(queries[:0])


def test_not_fitted():
    with pytest.raises(Exception, match="not fitted"):
        PCAExtension().place([[1.0]])
