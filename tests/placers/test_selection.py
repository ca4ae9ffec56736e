"""Model selection by leave-one-out error: exact, deterministic, with fixed parameters kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from outsample import Correlated, Diffusion, GaussianDistance, InverseDistance, PCAExtension
from outsample.neighbors.index import NeighborIndex
from outsample.neighbors.neighborhoods import Search
from outsample.placers.candidates import NAMED
from outsample.placers.leave_one_out import leave_out
from outsample.placers.problem import Problem
from outsample.points import map_size

PAPER = {"order": 0, "loss": "squared"}
LINEAR = Correlated("linear", 1.0, 0.0)
MODELS = {
    "distance": PCAExtension(weighting="distance", n_neighbors=6, **PAPER),
    "power": PCAExtension(weighting=InverseDistance(5.0), n_neighbors=6, **PAPER),
    "tangent": PCAExtension(weighting="tangent", n_neighbors=6, curvature=1.2, **PAPER),
    "split": PCAExtension(weighting="split_tangent", n_neighbors=6, curvature=1.2, tangent_dim=1,
                          **PAPER),
    "median": PCAExtension(weighting="distance", n_neighbors=6, order=0, loss="absolute"),
    "plane": PCAExtension(weighting="distance", n_neighbors=9, order=1, loss="squared",
                          tangent_dim=2),
    "quadric": PCAExtension(weighting="distance", n_neighbors=16, order=2, loss="squared",
                            tangent_dim=2),
    "absolute plane": PCAExtension(weighting="distance", n_neighbors=9, order=1, loss="absolute",
                                   tangent_dim=2),
    "correlated": PCAExtension(weighting=LINEAR, n_neighbors=12, **PAPER),
    "consensus": PCAExtension(weighting=LINEAR, n_neighbors=12, order=0, loss="absolute"),
    "ball": PCAExtension(weighting="distance", radius=1.0, n_neighbors=3, **PAPER),
    "ball plane": PCAExtension(weighting="distance", radius=1.5, n_neighbors=3, order=1,
                               loss="squared", tangent_dim=2),
    "wide": PCAExtension(weighting="distance", n_neighbors=38, order=1, loss="squared",
                         tangent_dim=2),
}  # fmt: skip


def data(seed, n=40, d=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(X @ rng.normal(size=(3, d))) + 0.1 * rng.normal(size=(n, d))


def left_out_of(extension):
    """Return the leave-one-out placement of all training points, in the order of the index."""
    curvature = None if extension.curvature == "auto" else extension.curvature
    problem = Problem(extension.model_.search, extension.model_.quality.Y, curvature, None)
    placer = extension.model_.fitted.placer
    return leave_out(problem, placer, np.arange(problem.n))[1]


@pytest.mark.parametrize("name", MODELS)
@given(seed=st.integers(0, 10**6))
def test_leave_one_out_is_refitting_without_the_row(name, seed):
    """For five of the rows; `test_the_error_is_the_mean_over_the_rows` refits without each row."""
    X, Y = data(seed)
    extension = MODELS[name].fit(X, Y)
    left_out, rows = left_out_of(extension).coordinates, extension.distinct_.rows
    for at in range(seed % 8, len(rows), 8):
        model = MODELS[name].fit(*(np.delete(array, rows[at], axis=0) for array in (X, Y)))
        expected = model.transform(X[[rows[at]]])[0]
        np.testing.assert_allclose(left_out[at], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_the_error_is_the_mean_over_the_rows(name):
    X, Y = data(0)
    extension = MODELS[name].fit(X, Y)
    positions = reference.leave_one_out(X, Y, lambda a, b: MODELS[name].fit(a, b).transform)
    size = np.sqrt(((Y - Y.mean(axis=0)) ** 2).sum(axis=1).mean())
    assert map_size(Y) == pytest.approx(size)
    assert MODELS[name].fit(X, Y).loo_error_ == pytest.approx(
        np.linalg.norm(positions - Y, axis=1).mean() / size, rel=1e-8
    )
    assert len(extension.selection_) <= 1  # nothing was selected


def test_a_point_with_duplicates_is_left_out_of_its_neighbors():
    X, Y = data(1)
    X[:8] = X[0]
    extension = MODELS["distance"].fit(X, Y)
    near = left_out_of(extension).near.near
    assert (np.diff(near.indptr) == 6).all() and len(near.inside) == 33
    for i in range(33):
        assert i not in near.indices[6 * i : 6 * i + 6]


SETTINGS = [
    {},
    {"order": 1},
    {"order": 2},
    {"loss": "absolute"},
    {"loss": "squared", "order": 0},
    {"weighting": "tangent"},
    {"weighting": InverseDistance(3.0)},
    {"weighting": GaussianDistance(0.5)},
    {"weighting": "correlated"},
    {"weighting": "diffusion"},
    {"weighting": Correlated("matern52", 4.0, 1e-3)},
    {"n_neighbors": 9},
    {"n_neighbors": 9, "order": 1, "loss": "absolute"},
    {"radius": 1.0},
    {"radius": 1.0, "order": 1},
    {"tangent_dim": 2, "order": 1},
    {"tangent_dim": 2, "weighting": "diffusion"},
]


def score(extension, trial):
    """Return the error of a trial times the price of its model; rounding errors count as equal."""
    n, D = extension.index_.X.shape
    search = 0.0 if trial.placer.n_neighbors is None else 5.0 + 1e-4 * n * D
    microseconds = search + trial.placer.cost_microseconds(n, D)
    return max(trial.error, 1e-13) * microseconds**0.02 * (1 - 1e-9)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_fixed_parameters_are_kept_and_the_table_is_sorted(settings):
    X, Y = data(2, 100)
    extension = PCAExtension(**settings).fit(X, Y)
    trials = extension.selection_
    assert len(trials) > 1 and trials[0].placer == extension.model_.fitted.placer
    if "tangent_dim" in settings and settings.get("weighting") != "diffusion":
        assert extension.tangent_dim_ == settings["tangent_dim"]
    for trial in trials:
        uses_all_points = trial.placer.n_neighbors is None
        for name, value in settings.items():
            if name == "radius":
                assert not isinstance(trial.placer.weighting, Correlated)
            elif value in ("correlated", "diffusion"):
                kind = {"correlated": Correlated, "diffusion": Diffusion}[value]
                assert isinstance(trial.placer.weighting, kind)
            elif name == "weighting":
                assert trial.placer.weighting == NAMED.get(value, value)
            elif name != "tangent_dim" or not uses_all_points:
                assert getattr(trial.placer, name) == value
        assert uses_all_points or 1 <= trial.placer.n_neighbors <= len(X)
        assert trial.error >= 0 and trial.seconds >= 0
    ranking = [(-trial.n_rows, trial.error) for trial in trials[1:]]
    if not any(trial.placer.n_neighbors is None for trial in trials):
        assert ranking == sorted(ranking)
        assert trials[0].n_rows == max(trial.n_rows for trial in trials)
        final = [trial for trial in trials if trial.n_rows == trials[0].n_rows]
        assert score(extension, trials[0]) <= min(score(extension, trial) for trial in final)
    if extension.model_.fitted.placer.n_neighbors and trials[0].n_rows == len(X):
        assert extension.loo_error_ == pytest.approx(trials[0].error, rel=1e-9)


def test_the_same_data_gives_the_same_selection():
    X, Y = data(3, 120)
    first, second = PCAExtension().fit(X, Y), PCAExtension(n_jobs=2).fit(X, Y)
    assert first.model_.fitted.placer == second.model_.fitted.placer
    assert [t[:2] for t in first.selection_] == [t[:2] for t in second.selection_]
    queries = np.random.default_rng(0).normal(size=(9, 3))
    np.testing.assert_array_equal(first.transform(queries), second.transform(queries))


def test_ties_go_to_the_cheapest():
    """On a constant map every candidate has no error."""
    X, _ = data(4, 100)
    extension = PCAExtension().fit(X, np.ones((100, 2)))
    assert (extension.weighting_, extension.n_neighbors_, extension.order_, extension.loss_) == (
        "distance", 3, 0, "squared"
    )  # fmt: skip


def test_the_selection_depends_on_the_map():
    rng = np.random.default_rng(5)
    X = rng.random((200, 2))
    smooth = PCAExtension().fit(X, np.column_stack([np.sin(3 * X[:, 0]), X.prod(axis=1)]))
    assert isinstance(smooth.weighting_, Diffusion) and smooth.loo_error_ < 1e-6
    affine = PCAExtension(weighting="distance").fit(X, X @ [[1.0, 2.0], [0.5, 3.0]])
    assert affine.order_ >= 1 and affine.loo_error_ < 1e-8
    torn = X + 10 * rng.integers(0, 2, (200, 1))  # random clusters
    models = [PCAExtension(n_neighbors=k, **PAPER) for k in ("auto", 5, 15)]
    scores = [score(model.fit(X, torn), model.selection_[0]) for model in models]
    assert scores[0] <= min(scores[1:])


def test_a_selected_process():
    X, Y = data(6, 60)
    Y = np.sin(X[:, :2])
    extension = PCAExtension(weighting="correlated", n_neighbors=60).fit(X, Y)
    assert extension.model_.fitted.placer.n_neighbors is None
    assert extension.n_neighbors_ == 60 and extension.order_ == 0 and extension.loss_ == "squared"
    assert extension.loo_error_ == pytest.approx(extension.selection_[0].error, rel=1e-12)


def test_too_many_rows_for_a_process(monkeypatch):
    X, Y = data(7)
    monkeypatch.setattr("outsample.placers.selection.MAX_FACTORED_ROWS", 39)
    with pytest.raises(ValueError, match="n_neighbors is 40, all training points"):
        PCAExtension(weighting=LINEAR, n_neighbors=40, **PAPER).fit(X, Y)
    PCAExtension(weighting=LINEAR, n_neighbors=39, **PAPER).fit(X, Y)
    PCAExtension(weighting="distance", n_neighbors=40, **PAPER).fit(X, Y)


def test_samples_are_nested():
    def sample(n, count):
        X = np.arange(float(n))[:, None]
        return Problem(Search(NeighborIndex(X), None, None, 1), X, None, None).sample(count)

    small, large = sample(1000, 50), sample(1000, 400)
    np.testing.assert_array_equal(small, large[:50])
    assert len(set(large)) == 400 and len(sample(30, 50)) == 30
