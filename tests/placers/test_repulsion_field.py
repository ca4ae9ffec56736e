"""The repulsion of all images at a position, interpolated on a grid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outsample
import reference
from outsample import NeighborLoss, PCAExtension
from outsample._compiled import field as kernels
from outsample._compiled import neighbor_loss
from outsample.placers import repulsion_field as fields
from outsample.placers.candidates import Constraints, allows_neighbor_loss

PATCHED = "outsample.placers.neighbor_loss.MAX_FACTORED_ROWS"
OPEN = Constraints(None, None, None, None, None)


def sheet(n, seed=0):
    """Return points of a curved surface and a map of it with discontinuities."""
    rng = np.random.default_rng(seed)
    u = rng.random((n, 2))
    X = np.column_stack([u, np.sin(3 * u), u.prod(axis=1)])
    return X, 20 * u + np.floor(3 * u) * [4.0, 7.0]


def field_at(field, y):
    slope = np.empty(2)
    return kernels.field_at(field.corner, field.step, field.coefficients, y, slope), slope


@pytest.mark.kernels
@given(fraction=st.floats(0, 1, exclude_max=True))
def test_splines(fraction):
    values, slopes = np.empty(6), np.empty(6)
    kernels.spline_values(fraction, values, slopes)
    expected = reference.spline_values(fraction)
    np.testing.assert_allclose(values, expected[0], atol=1e-14)
    np.testing.assert_allclose(slopes, expected[1], atol=1e-14)
    assert values.sum() == pytest.approx(1) and abs(slopes.sum()) < 1e-14


@pytest.mark.kernels
@given(seed=st.integers(0, 10**6), step=st.floats(0.2, 3.0))
def test_the_mass_of_images(seed, step):
    Z = np.random.default_rng(seed).normal(size=(9, 2))
    corner = Z.min(axis=0) - 4 * step
    shape = tuple(((Z.max(axis=0) - corner) / step).astype(int) + 5)
    mass = np.zeros(shape)
    kernels.spread(Z, corner, step, mass)
    np.testing.assert_allclose(mass, reference.spread(Z, corner, step, shape), atol=1e-13)
    assert mass.sum() == pytest.approx(len(Z))


@pytest.mark.kernels
@given(seed=st.integers(0, 10**6), width=st.floats(0.1, 8.0))
def test_the_field_is_the_sum_over_all_images(seed, width):
    """The value is accurate to 2e-4 of the sum, the slope to 2e-3."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(60, 2)) * width + rng.choice([-15.0, 0.0, 11.0], (60, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fields, "CELLS_PER_IMAGE", 10**5)
        field = fields.repulsion_field(Z)
    assert field.step == fields.MIN_STEP
    for y in (*Z[:5], *(Z[:20] + rng.normal(size=(20, 2)) * 0.5)):
        value, slope = field_at(field, y)
        expected = reference.closeness(Z, y)
        crowd = expected[0]
        np.testing.assert_allclose(value, expected[0], rtol=0, atol=2e-4 * crowd)
        np.testing.assert_allclose(slope, expected[1], rtol=0, atol=2e-3 * crowd)


@pytest.mark.kernels
def test_beyond_the_grid_the_sum_is_exact():
    Z = np.random.default_rng(0).normal(size=(400, 2))
    field = fields.repulsion_field(Z)
    grid = field.corner, field.step, field.coefficients
    for y in (np.array([50.0, 0.0]), np.array([0.0, -1e200]), np.array([np.nan, 0.0])):
        assert not kernels.is_on_grid(*grid, y)
    y, force = np.array([50.0, 3.0]), np.zeros(2)
    value, slope = reference.closeness(Z, y)
    assert neighbor_loss.closeness(Z, y, -1, *grid) == pytest.approx(value, rel=1e-12)
    neighbor_loss.add_repulsion(Z, y, -1, 2.0, *grid, force)
    np.testing.assert_allclose(force, -slope, rtol=1e-12)


@pytest.mark.parametrize("shape", ["dot", "line", "far", "farther", "plane"])
def test_the_grid_of_any_map_is_bounded(shape):
    Z = np.random.default_rng(0).normal(size=(300, 2)) * 1e3
    if shape == "dot":
        Z[:] = 3.0
    elif shape == "line":
        Z[:, 1] = 0.0
    elif shape != "plane":
        Z[0] = {"far": 1e9, "farther": 1e250}[shape]
    field = fields.repulsion_field(Z)
    assert field.coefficients.size <= fields.CELLS_PER_IMAGE * len(Z)
    assert np.isfinite(field.coefficients).all()
    grid = field.corner, field.step, field.coefficients
    assert all(kernels.is_on_grid(*grid, z) for z in Z)


def test_positions_equal_those_of_exact_sums(monkeypatch):
    X, Y = sheet(1100)
    exact = PCAExtension(weighting=NeighborLoss()).fit(X[:900], Y[:900])
    monkeypatch.setattr(PATCHED, 899)
    ours = PCAExtension(weighting=NeighborLoss()).fit(X[:900], Y[:900])
    assert exact.model_.fitted.field is None and ours.model_.fitted.field.step == fields.MIN_STEP
    np.testing.assert_allclose(ours.model_.fitted.crowd, exact.model_.fitted.crowd, rtol=1e-4)
    positions, c = ours.transform(X[900:]), exact.model_.fitted.unit
    differences = np.linalg.norm(positions - exact.transform(X[900:]), axis=1) / c
    assert (
        np.median(differences) < 3e-4 and (differences < 0.01).mean() > 0.98
    )  # others converge to another minimum
    rows = ours.left_out_.rows
    left_out_differences = (
        np.linalg.norm(ours.left_out_.coordinates - exact.left_out_.coordinates, axis=1) / c
    )
    assert len(rows) > 100 and np.median(left_out_differences) < 3e-4
    # A training point keeps its image, and a row alone is placed as in a batch.
    np.testing.assert_array_equal(ours.transform(X[:900]), Y[:900])
    alone = np.vstack([ours.transform(x[None]) for x in X[900:930]])
    np.testing.assert_array_equal(alone, positions[:30])


def test_rotating_the_map_rotates_the_positions(monkeypatch):
    """Equivariance holds to the accuracy of interpolation, because the grid is axis-aligned."""
    monkeypatch.setattr(PATCHED, 899)
    X, Y = sheet(1000)
    rotation = np.array([[0.6, 0.8], [-0.8, 0.6]])
    ours = PCAExtension(weighting=NeighborLoss()).fit(X[:900], Y[:900])
    rotated = PCAExtension(weighting=NeighborLoss()).fit(X[:900], 3 * Y[:900] @ rotation + 5)
    differences = rotated.transform(X[900:]) - (3 * ours.transform(X[900:]) @ rotation + 5)
    lengths = np.linalg.norm(differences, axis=1) / rotated.model_.fitted.unit
    assert np.median(lengths) < 3e-4 and (lengths < 0.01).mean() > 0.95


def test_a_saved_field_gives_equal_results(monkeypatch, tmp_path):
    X, Y = sheet(300)
    monkeypatch.setattr(PATCHED, 99)
    ours = PCAExtension(weighting=NeighborLoss(5.0)).fit(X[:250], Y[:250])
    outsample.save(ours, tmp_path / "model.outsample")
    loaded = outsample.load(tmp_path / "model.outsample")
    np.testing.assert_array_equal(loaded.transform(X[250:]), ours.transform(X[250:]))
    assert ours.model_.fitted.field is not None


def test_a_field_for_a_map_of_three_dimensions_is_rejected(monkeypatch, tmp_path):
    X, Y = sheet(200)
    monkeypatch.setattr(PATCHED, 99)
    plane = PCAExtension(weighting=NeighborLoss(5.0)).fit(X, Y)
    solid = PCAExtension(weighting=NeighborLoss(5.0)).fit(X, X[:, :3])
    assert solid.model_.fitted.field is None
    fitted = replace(solid.model_.fitted, field=plane.model_.fitted.field)
    solid.model_ = solid.model_._replace(fitted=fitted)
    with pytest.raises(ValueError, match="field is two-dimensional, but the map is not"):
        outsample.save(solid, tmp_path / "model.outsample")


def test_auto_considers_it_on_plane_maps_of_any_size():
    for n, d, is_tried in [(180, 2, 0), (8192, 3, 1), (8193, 3, 0), (8193, 2, 1), (10**6, 2, 1)]:
        assert allows_neighbor_loss(OPEN, n, d) == is_tried
