"""The laws of every estimator, on generated arrays; `laws/claims.py` lists the exceptions."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

from laws.arrays import (
    angles,
    any_map,
    clear_maps,
    coarse,
    distinct_maps,
    fine,
    has_clear_neighbors,
    maps,
    rotated,
    shifts,
)
from laws.claims import GAPS, LAWS, LIMITS, MAX_DUPLICATES, MAX_QUERY_SIZE, STATED, gap, law, table
from laws.parameters import changes
from laws.subjects import (
    LENGTHS,
    SUBJECTS,
    answers,
    as_container,
    as_points,
    coordinates,
    fit,
    learned_rows,
    main_result,
    sparse_stays,
)
from outsample import load, save
from outsample._parallel import ROWS_PER_THREAD

# Coverage comes from the other tests.
pytestmark = [pytest.mark.laws, pytest.mark.no_cover]
# On smooth maps rounding does less; see `Subject.atol` for rough ones.
SMOOTH_ATOL = {
    "kernel": 1e-6, "diffusion map": 1e-6, "detector": 1e-5, "detector with map": 1e-5,
    "order 2": 1e-5,
}  # fmt: skip
SEEDS = [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3, 4))]


def smooth_atol(name):
    return SMOOTH_ATOL.get(name, SMOOTH_ATOL.get(SUBJECTS[name].group, 1e-8))


@pytest.fixture(scope="module", autouse=True)
def one_library_thread():
    """Limit BLAS and OpenMP to one thread: more threads slow down work on tiny arrays."""
    with threadpool_limits(1):
        yield


def fixed_map(seed, n=60, D=3, d=2, q=9):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    Y = np.sin(X @ rng.normal(size=(D, d))) + 0.2 * X[:, :1]
    return X, Y, rng.normal(size=(q, D))


def arrays_for(name, arrays):
    """Return points, images and queries as the subject expects them."""
    X, Y, Q = arrays
    return as_points(name, X), Y, as_points(name, Q)


def assert_same(actual, expected):
    assert actual.keys() == expected.keys()
    for field in actual:
        assert actual[field].dtype == expected[field].dtype, field
        np.testing.assert_array_equal(actual[field], expected[field], err_msg=field)


def rows_of(results, rows):
    return {field: values[rows] for field, values in results.items()}


# The same row gives the same result.


@law("batch")
@given(drawn=any_map(queries=(2, 9)), random=st.randoms(use_true_random=False))
def test_batch_is_single_is_shuffled(name, drawn, random):
    X, Y, Q = arrays_for(name, drawn)
    model = fit(name, X, Y)
    whole = answers(name, model, Q)
    if {"transform", "coordinates"} <= whole.keys():
        np.testing.assert_array_equal(whole["transform"], whole["coordinates"])
    order = random.sample(range(len(Q)), len(Q))
    assert_same(rows_of(whole, order), answers(name, model, Q[order]))
    for i in range(len(Q)):
        row = slice(i, i + 1)
        assert_same(rows_of(whole, row), answers(name, model, Q[row]))


@law("chunks")
def test_chunks_and_threads_change_nothing(name, monkeypatch):
    n = 2 * ROWS_PER_THREAD + 12  # work for two threads in `fit` and in `place`
    X, Y, Q = arrays_for(name, fixed_map(1, n=n, q=n))
    model = fit(name, X, Y)
    whole = answers(name, model, Q)
    modules = [module for key, module in sys.modules.items() if key.startswith("outsample.")]
    chunked = [
        (module, constant)
        for module in modules
        for constant in vars(module)
        if constant.endswith("CHUNK_ROWS")
    ]
    assert chunked
    for module, constant in chunked:
        monkeypatch.setattr(module, constant, 33)
    assert_same(whole, answers(name, model, Q))
    assert_same(whole, answers(name, fit(name, X, Y, n_jobs=2), Q))


@law("file")
def test_a_saved_model_returns_the_same_results(name, tmp_path):
    X, Y, Q = arrays_for(name, fixed_map(1, n=40))
    model = fit(name, X, Y)
    if callable(getattr(model, "weighting", None)):
        with pytest.raises(TypeError, match="contains no code"):
            save(model, tmp_path / "model.outsample")
        return
    save(model, tmp_path / "model.outsample")
    again = load(tmp_path / "model.outsample")
    assert_same(answers(name, model, Q), answers(name, again, Q))


@pytest.mark.long
@law("chunks")
def test_rows_of_a_large_batch_equal_those_of_small_batches(name):
    X, Y, Q = arrays_for(name, fixed_map(1, n=300, q=9000))
    model = fit(name, X, Y)
    whole = answers(name, model, Q)
    for rows in (slice(0, 50), slice(4080, 4110), slice(8950, None)):
        assert_same(rows_of(whole, rows), answers(name, model, Q[rows]))


@law("pure")
@given(drawn=any_map())
def test_a_query_changes_nothing(name, drawn):
    X, Y, Q = arrays_for(name, drawn)
    model = fit(name, X, Y)
    before = pickle.dumps(model)
    answers(name, model, Q)
    assert pickle.dumps(model) == before


def fitted_attributes(model):
    """Return fitted attributes and properties that are numbers, strings or arrays."""
    names = [name for name in dir(model) if name.endswith("_") and not name.startswith("_")]
    values = {name: getattr(model, name) for name in names}
    return {k: v for k, v in values.items() if isinstance(v, int | float | str | np.ndarray)}


@law("fitted")
def test_later_parameters_do_not_change_a_fitted_model(name):
    X, Y, Q = arrays_for(name, fixed_map(1, n=40))
    model = fit(name, X, Y)
    before, facts_before = answers(name, model, Q), fitted_attributes(model)
    for parameter, value, values in changes(model):
        model.set_params(**{parameter: values.first})
        assert_same(before, answers(name, model, Q))
        np.testing.assert_equal(fitted_attributes(model), facts_before, err_msg=parameter)
        model.set_params(**{parameter: value})


@law("failed fit")
def test_a_fit_that_raises_changes_nothing(name, monkeypatch):
    """Bad parameters, bad data, and an error at any assignment of a fitted attribute."""
    X, Y, Q = arrays_for(name, fixed_map(1, n=24))
    model, bad = fit(name, X, Y), X.copy()
    bad[3, 0] = np.nan
    before, pickle_before = answers(name, model, Q), pickle.dumps(model)
    images = Y if SUBJECTS[name].has_images else None
    failing = [(bad, images), (X[:1], None if images is None else Y[:1])]
    if images is not None:
        failing.append((X, Y[:-1]))
    for points, map_ in failing:
        unfitted = clone(model)
        for estimator in (model, unfitted):
            with pytest.raises(ValueError):
                estimator.fit(as_container(name, points), map_)
        assert pickle.dumps(model) == pickle_before
        with pytest.raises(NotFittedError):
            main_result(name, unfitted, Q)
    for parameter, value, values in changes(model):
        model.set_params(**{parameter: values.invalid})
        with pytest.raises((ValueError, TypeError, AttributeError)):
            model.fit(as_container(name, X[:, ::-1][:, 1:]), images)
        model.set_params(**{parameter: value})
        assert pickle.dumps(model) == pickle_before, parameter
    assert_same(before, answers(name, model, Q))
    for at in range(30):
        if not fails_at(model, at, as_container(name, X + 1.0), images, monkeypatch):
            break
        assert pickle.dumps(model) == pickle_before
    assert 3 <= at < 29


def fails_at(model, at, X, Y, monkeypatch):
    """Return whether a fit has an assignment ``at`` of a fitted attribute, and raises there."""
    left = iter(range(at))

    def assign(self, name, value):
        if name.endswith("_") and next(left, None) is None:
            raise MemoryError
        object.__setattr__(self, name, value)

    with monkeypatch.context() as patch:
        patch.setattr(type(model), "__setattr__", assign, raising=False)
        try:
            model.fit(X, Y)
        except MemoryError:
            return True
    return False


@law("indexes")
@given(drawn=any_map())
def test_indexes_agree_bit_for_bit(name, drawn):
    X, Y, Q = arrays_for(name, drawn)
    tree, brute = fit(name, X, Y, index="kd_tree"), fit(name, X, Y, index="brute")
    for points in (Q, X):
        assert_same(answers(name, tree, points), answers(name, brute, points))


@law("indexes")
def test_indexes_agree_on_more_points(name):
    X, Y, Q = arrays_for(name, fixed_map(2, n=200, D=12, q=40))
    tree, brute = fit(name, X, Y, index="kd_tree"), fit(name, X, Y, index="brute")
    for points in (Q, X):
        assert_same(answers(name, tree, points), answers(name, brute, points))


@law("row order")
@given(drawn=clear_maps(), random=st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(name, drawn, random):
    X, Y, Q = arrays_for(name, drawn)
    order = random.sample(range(len(X)), len(X))
    plain, other = fit(name, X, Y), fit(name, X[order], Y[order])
    np.testing.assert_allclose(
        main_result(name, other, Q), main_result(name, plain, Q), atol=SUBJECTS[name].atol
    )


@law("container")
@given(drawn=any_map())
def test_dense_and_sparse_points_with_few_columns_give_equal_models(name, drawn):
    X, Y, Q = arrays_for(name, drawn)
    dense, thin = fit(name, X, Y), fit(name, sparse.csr_matrix(X), Y)
    for model in (dense, thin):
        assert_same(answers(name, dense, Q), answers(name, model, sparse.csr_matrix(Q)))
    assert_same(answers(name, dense, Q), answers(name, thin, Q))


@law("sparse")
@given(drawn=clear_maps())
def test_sparse_points_give_the_results_of_dense_points(name, drawn):
    X, Y, Q = arrays_for(name, drawn)
    dense = fit(name, X, Y)
    with sparse_stays():
        thin = fit(name, sparse.csr_matrix(X), Y)
    actual, expected = main_result(name, thin, sparse.csr_matrix(Q)), main_result(name, dense, Q)
    np.testing.assert_allclose(actual, expected, atol=SUBJECTS[name].atol)


# The map is reproduced.


@law("own coordinates")
@given(drawn=distinct_maps())
def test_training_points_keep_their_coordinates(name, drawn):
    X, Y, _ = arrays_for(name, drawn)
    model = fit(name, X, Y)
    rows = learned_rows(model, X)
    if SUBJECTS[name].group == "diffusion map":
        np.testing.assert_allclose(coordinates(name, model, X), model.embedding_, atol=1e-8)
        return
    placed = answers(name, model, X[rows])
    np.testing.assert_array_equal(placed["coordinates"], Y[rows])
    assert np.isfinite(placed["residual"]).all()
    np.testing.assert_array_equal(placed["bound"], 0)


@law("duplicates")
@given(
    drawn=distinct_maps(min_rows=8),
    duplicate_rows=st.sets(st.integers(0, 6), max_size=MAX_DUPLICATES - 1),
)
def test_duplicate_points_give_the_mean_of_their_coordinates(name, drawn, duplicate_rows):
    X, Y, _ = arrays_for(name, drawn)
    X[list(duplicate_rows)] = X[7]
    model = fit(name, X, Y)
    rows = learned_rows(model, X)
    placed = answers(name, model, X[rows])
    assert np.isfinite(placed["residual"]).all()
    for x, where in zip(X[rows], placed["coordinates"], strict=True):
        same = rows[(X[rows] == x).all(axis=1)]
        np.testing.assert_allclose(where, Y[same].mean(axis=0), rtol=1e-14, atol=1e-15)


@law("constant")
@given(drawn=any_map())
def test_a_constant_map_is_reproduced(name, drawn):
    X, Y, Q = arrays_for(name, drawn)
    constant = np.tile(Y[0] / 3, (len(X), 1))
    results = answers(name, fit(name, X, constant), Q)
    if not SUBJECTS[name].places:
        np.testing.assert_allclose(results["transform"], constant[:1].repeat(len(Q), 0), rtol=1e-14)
        return
    np.testing.assert_array_equal(results["coordinates"], constant[:1].repeat(len(Q), 0))
    np.testing.assert_array_equal(results["residual"], 0)
    np.testing.assert_array_equal(results["dispersion"], 0)


@law("affine")
@given(drawn=clear_maps(rows=(24, 40)), columns=st.data())
def test_an_affine_map_is_reproduced(name, drawn, columns):
    assert_polynomial_is_reproduced(name, drawn, columns, order=1)


@law("quadratic")
@given(drawn=clear_maps(rows=(24, 40)), columns=st.data())
def test_a_quadratic_map_is_reproduced(name, drawn, columns):
    assert_polynomial_is_reproduced(name, drawn, columns, order=2)


def assert_polynomial_is_reproduced(name, drawn, columns, order):
    """Use two columns, the number of tangent coordinates."""
    X, Q = drawn.X[:, :2], drawn.Q[:, :2]
    assume(has_clear_neighbors(X, Q))

    def terms(P):
        columns_of_terms = [np.ones(len(P)), P[:, 0], P[:, 1]]
        if order == 2:
            columns_of_terms += [P[:, 0] ** 2, P[:, 0] * P[:, 1], P[:, 1] ** 2]
        return np.column_stack(columns_of_terms)

    A = columns.draw(fine((3 * order, 2)))
    model = fit(name, X, terms(X) @ A)
    np.testing.assert_allclose(coordinates(name, model, Q), terms(Q) @ A, atol=1e-6)


# Moving points and map.


@law("rotate X", "shift X")
@given(drawn=clear_maps(), degrees=angles, shift=shifts)
def test_moving_the_points_leaves_the_map_alone(name, drawn, degrees, shift):
    X, Y, Q = arrays_for(name, drawn)
    by = shift[: X.shape[1]] if gap("shift X", name) is None else 0.0

    def motion(P):
        return rotated(P, degrees) + by

    plain = main_result(name, fit(name, X, Y), Q)
    moved = main_result(name, fit(name, motion(X), Y), motion(Q))
    np.testing.assert_allclose(moved, plain, atol=SUBJECTS[name].atol)


@law("move Y")
@given(drawn=clear_maps(), degrees=angles, shift=shifts)
def test_moving_the_map_moves_the_result(name, drawn, degrees, shift):
    X, Y, Q = arrays_for(name, drawn)

    def motion(P):
        return rotated(P, degrees) + shift[: P.shape[1]]

    plain = main_result(name, fit(name, X, Y), Q)
    moved = main_result(name, fit(name, X, motion(Y)), Q)
    np.testing.assert_allclose(moved, motion(plain), atol=SUBJECTS[name].atol)


@law("rotate X", "shift X", "move Y")
@pytest.mark.parametrize("seed", SEEDS)
def test_moving_a_smooth_map(name, seed):
    X, Y, Q = arrays_for(name, fixed_map(seed))
    rng = np.random.default_rng(seed)
    degrees, shift = rng.uniform(-180, 180, 6), rng.normal(size=4)

    def motion(P, shifts=True):
        return rotated(P, degrees) + shift[: P.shape[1]] * shifts

    atol, shifts = smooth_atol(name), gap("shift X", name) is None
    plain = main_result(name, fit(name, X, Y), Q)
    moved = main_result(name, fit(name, motion(X, shifts), Y), motion(Q, shifts))
    np.testing.assert_allclose(moved, plain, atol=atol)
    if SUBJECTS[name].has_images:
        moved = main_result(name, fit(name, X, motion(Y)), Q)
        np.testing.assert_allclose(moved, motion(plain), atol=atol)


def assert_units_do_not_matter(name, arrays, scales, atol):
    X, Y, Q = arrays_for(name, arrays)
    subject = SUBJECTS[name]
    parameters = subject.estimator.get_params()
    plain = main_result(name, fit(name, X, Y), Q)
    for scale_x, scale_y in scales:
        lengths = {
            key: parameters[key] * scale_x for key in LENGTHS if parameters.get(key) is not None
        }
        model = fit(name, X * scale_x, Y * scale_y, **lengths)
        other = main_result(name, model, Q * scale_x)
        scale = scale_y if subject.has_images else 1.0
        message = f"units {scale_x} of X, {scale_y} of Y"
        np.testing.assert_allclose(other / scale, plain, rtol=1e-8, atol=atol, err_msg=message)
        for field, values in answers(name, model, Q * scale_x).items():
            assert np.isfinite(values).all(), (field, message)


# Units of X and Y: the four pairs of extremes, and ordinary ones.
UNITS = (
    (1e-160, 1e-100), (1e-160, 1e100), (1e160, 1e-100), (1e160, 1e100), (0.3, 1.0), (1e5, 1e-100),
    (1.0, 1e100),
)  # fmt: skip


@law("units")
def test_units_do_not_matter(name):
    atol = 1e-10 if name == "order 2" else smooth_atol(name) / 100
    units = UNITS
    if name == "function":  # r^-3 itself overflows at the ends of the range
        units = [unit for unit in UNITS if 1e-100 < unit[0] < 1e100]
    assert_units_do_not_matter(name, fixed_map(3), units, atol)


@law("binary units", "units")
@given(
    drawn=clear_maps(),
    power_x=st.integers(-500, 500),
    power_y=st.integers(-300, 300),
    odd=st.sampled_from([1, 3, 5, 7]),
)
def test_units_do_not_matter_on_generated_maps(name, drawn, power_x, power_y, odd):
    power_x = power_x // 10 if name == "function" else power_x
    odd = odd if gap("units", name) is None else 1
    scales = odd * 2.0**power_x, odd * 2.0**power_y
    assert_units_do_not_matter(name, drawn, [scales], SUBJECTS[name].atol)


@law("float32")
@given(drawn=any_map())
def test_float32(name, drawn):
    X, Y, Q = (array.astype(np.float32) for array in arrays_for(name, drawn))
    model = fit(name, X, Y)
    narrow, wide = main_result(name, model, Q), main_result(name, model, Q.astype(np.float64))
    assert wide.dtype == np.float64
    if SUBJECTS[name].group != "detector":
        assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, wide, rtol=1e-6, atol=1e-6)
    if gap("own coordinates", name) is None and SUBJECTS[name].has_images:
        rows = learned_rows(model, X)
        same = (X[rows, None] == X[rows]).all(axis=2).sum(axis=1)
        alone = rows[same == 1]
        if len(alone):
            np.testing.assert_array_equal(coordinates(name, model, X[alone]), Y[alone])


# Degenerate and invalid input.

POINTS = {
    "duplicates": lambda X, rng: X[rng.integers(0, 4, len(X))],
    "all equal": lambda X, rng: np.ones_like(X),
    "collinear": lambda X, rng: np.outer(np.arange(float(len(X))), [1.0, 2.0, 3.0]),
    "constant columns": lambda X, rng: X * [1.0, 0.0, 0.0] + [0.0, 5.0, 5.0],
    "near duplicates": lambda X, rng: np.vstack([X[:15], X[:15] + 1e-14]),
    "mixed scales": lambda X, rng: X * np.repeat([1e-160, 1.0, 1e160], 10)[:, None],
}
IMAGES = {
    "spread": lambda rng: rng.normal(size=(30, 5)),  # k <= d in places
    "few": lambda rng: np.eye(5)[rng.integers(0, 3, 30)],
    "equal": lambda rng: np.ones((30, 5)),
    "on a line": lambda rng: np.outer(rng.normal(size=30), np.ones(5)),
}


def assert_finite(name, X, Y, Q):
    results = answers(name, fit(name, X, Y), Q)
    for field, values in results.items():
        assert np.isfinite(values).all(), field
    for field in {"residual", "dispersion"} & results.keys():
        assert (results[field] >= 0).all(), field


def kinds_of_maps():
    """Each kind of points with two kinds of images; the other pairs are marked long."""
    for at, points in enumerate(POINTS):
        for to, images in enumerate(IMAGES):
            is_long = (at + to) % 4 > 1
            yield pytest.param(points, images, marks=[pytest.mark.long] * is_long)


@law("finite")
@pytest.mark.parametrize(("points", "images"), kinds_of_maps())
def test_finite_in_finite_out(name, points, images):
    rng = np.random.default_rng(5)
    X = POINTS[points](rng.normal(size=(30, 3)), rng)
    Y = IMAGES[images](rng)
    far = np.array([[1e160, 0.0, 0.0], [1e-160, 0.0, 0.0], [-1.0, 1.0, 1.0]])
    far[-1] *= MAX_QUERY_SIZE.get(SUBJECTS[name].group, 1e300)
    Q = np.vstack([X, X + 1e-160, X + 1e-9, X * (1 + 1e-15), rng.normal(size=(9, 3)), far])
    assert_finite(name, as_points(name, X), Y, as_points(name, Q))


@law("finite")
@given(
    drawn=maps(coarse, rows=(4, 12), images=(1, 9)),
    power_x=st.integers(-100, 100),
    power_y=st.integers(-100, 100),
)
def test_finite_maps_give_finite_results(name, drawn, power_x, power_y):
    X, Y, Q = drawn
    if name == "function":
        power_x = 0
    X, Q = X * 10.0**power_x, Q * 10.0**power_x
    assert_finite(name, as_points(name, X), Y * 10.0**power_y, as_points(name, np.vstack([X, Q])))


@law("few")
@pytest.mark.parametrize("n", [2, 3, 5])
def test_very_few_training_points(name, n):
    if "split" in name and n < 4:
        pytest.skip("one half is fitted, the other half calibrates")
    X, Y, Q = arrays_for(name, fixed_map(11))
    model = fit(name, X[:n], Y[:n])
    for field, values in answers(name, model, Q).items():
        assert np.isfinite(values).all(), field


@law("invalid input", "location of invalid input")
@given(drawn=maps(fine, rows=(8, 12)), place=st.data(), bad=st.sampled_from([np.nan, np.inf]))
def test_bad_entries_are_rejected_by_name(name, drawn, place, bad):
    X, Y, Q = arrays_for(name, drawn)
    model = fit(name, X, Y)
    calls = {"X": (X, lambda A: fit(name, A, Y)), "Q": (Q, lambda A: main_result(name, model, A))}
    if SUBJECTS[name].has_images and not name.startswith("extended"):  # its y goes to the embedding
        calls["y"] = Y, lambda A: fit(name, X, A)
    for which, (array, call) in calls.items():
        at = tuple(place.draw(st.integers(0, size - 1)) for size in array.shape)
        array = array.copy()
        array[at] = bad
        message = f"Input {'y' if which == 'y' else 'X'} contains "
        message += "NaN" if np.isnan(bad) else "infinity"
        with pytest.raises(ValueError, match=message) as raised:
            call(array)
        if gap("location of invalid input", name) is None:
            assert f"row {at[0]}, column {at[1]}" in str(raised.value)


@law("invalid input")
def test_wrong_columns_are_rejected_by_name(name):
    X, Y, Q = arrays_for(name, fixed_map(7))
    D = X.shape[1]
    model = fit(name, X, Y)
    with pytest.raises(ValueError, match=f"has {D - 1} features.*expecting {D}"):
        main_result(name, model, Q[:, :-1])
    if SUBJECTS[name].has_images:
        with pytest.raises(ValueError, match=r"inconsistent numbers|59, 2\) for 60 points"):
            fit(name, X, Y[:-1])
    if SUBJECTS[name].is_sparse:
        return
    columns = list("abcd")[:D]
    model = fit(name, pd.DataFrame(X, columns=columns), Y)
    with pytest.raises(ValueError, match="feature names should match"):
        main_result(name, model, pd.DataFrame(Q, columns=columns[::-1]))


# Weights: with the n unit vectors as images, coordinates are weights.


@law("sum")
@given(drawn=clear_maps(rows=(8, 16)))
def test_weights_sum_to_one(name, drawn):
    assert_weights_sum_to_one(name, drawn)


@law("sum of duplicates")
@given(drawn=any_map(rows=(4, 16)))
def test_weights_of_duplicates_sum_to_one(name, drawn):
    assert_weights_sum_to_one(name, drawn)


def assert_weights_sum_to_one(name, drawn):
    X, _, Q = arrays_for(name, drawn)
    model = fit(name, X, np.eye(len(X)))
    np.testing.assert_allclose(coordinates(name, model, Q).sum(axis=1), 1.0, rtol=1e-6)


@law("nearer")
@given(Y=fine((2, 2)), at=st.integers(1, 31))
def test_the_nearer_neighbor_has_the_larger_weight(name, Y, at):
    """Of two neighbours, the result is closer to the coordinates of the nearer one."""
    assume((Y[0] != Y[1]).any())
    X, at = np.array([[0.0], [1.0]]), at / 64
    if SUBJECTS[name].is_cosine:
        at = np.tan(at * np.pi / 4)
    if "split" in name.split() and SUBJECTS[name].judges:
        X, Y = np.repeat(X, 2, axis=0), np.repeat(Y, 2, axis=0)
    query = as_points(name, np.array([[at]]))
    answer = coordinates(name, fit(name, as_points(name, X), Y), query)[0]
    assert np.linalg.norm(answer - Y[0]) < np.linalg.norm(answer - Y[-1])


@law("box")
@given(drawn=clear_maps())
def test_scalar_weights_are_positive_and_fall_with_distance(name, drawn):
    X, _, Q = arrays_for(name, drawn)
    n, k = len(X), min(6, len(X))
    weights = coordinates(name, fit(name, X, np.eye(n), n_neighbors=k), Q)
    if SUBJECTS[name].is_cosine:
        X, Q = (P / np.linalg.norm(P, axis=1, keepdims=True) for P in (X, Q))
    near = np.argsort(np.linalg.norm(Q[:, None] - X, axis=2), axis=1)
    ordered = np.take_along_axis(weights, near, axis=1)
    assert (ordered >= 0).all() and (ordered[:, k:] == 0).all()
    assert (np.diff(ordered[:, :k], axis=1) < 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)


@law("box")
@given(drawn=clear_maps())
def test_results_of_scalar_weights_are_in_the_bounding_box(name, drawn):
    X, Y, Q = arrays_for(name, drawn)
    k = min(6, len(X))
    model = fit(name, X, Y, n_neighbors=k)
    near = model.model_.solve(Q).near.near  # the neighbours, ties included
    images = model.model_.quality.Y[near.indices]  # the mean, for duplicates
    answer = coordinates(name, model, Q)
    assert (answer >= np.minimum.reduceat(images, near.indptr[:-1]) - 1e-12).all()
    assert (answer <= np.maximum.reduceat(images, near.indptr[:-1]) + 1e-12).all()


# Quality of a placement.


@law("limit")
def test_the_residual_tends_to_its_value_on_a_training_point(name):
    X, Y, _ = arrays_for(name, fixed_map(9))
    model = fit(name, X, Y)
    row = learned_rows(model, X)[:1]
    at, near = answers(name, model, X[row]), answers(name, model, X[row] + 1e-9)
    np.testing.assert_allclose(near["residual"], at["residual"], rtol=1e-5)
    np.testing.assert_allclose(near["coordinates"], at["coordinates"], atol=1e-9)


# Maps of the plane with a known Lipschitz constant.
LIPSCHITZ = {
    "rotation": (lambda x: x @ np.array([[0.6, -0.8], [0.8, 0.6]]), 1.0),
    "stretch": (lambda x: x * [3.0, 0.5], 3.0),
    "sphere": (
        lambda x: np.column_stack(
            [np.sin(x[:, 0]) * np.cos(x[:, 1]), np.sin(x[:, 0]) * np.sin(x[:, 1]), np.cos(x[:, 0])]
        ),
        1.0,
    ),
    "waves": (lambda x: np.sin(5 * x), 5.0),
    "folds": (lambda x: np.abs(x - 0.3), 1.0),
    "constant": (lambda x: 0 * x + 7.0, 0.0),
}


@law("certificate")
@given(
    drawn=any_map(columns=(2, 2)),
    which=st.sampled_from(sorted(LIPSCHITZ)),
    spread=st.sampled_from([0.01, 1.0, 30.0]),
)
def test_the_certificate_is_never_below_the_error(name, drawn, which, spread):
    function, K = LIPSCHITZ[which]

    def image(P):
        P = P.astype(np.float64)
        if SUBJECTS[name].is_cosine:
            P = P / np.linalg.norm(P, axis=1, keepdims=True)
        return function(P[:, :2])

    X = as_points(name, drawn.X)
    Q = as_points(name, np.vstack([drawn.Q * spread, drawn.X[:3], drawn.X[:3] + 1e-12]))
    model = fit(name, X, image(X), lipschitz=K)
    for points in (Q, Q.astype(np.float32)):
        placed = answers(name, model, points)
        error = np.linalg.norm(placed["coordinates"] - image(points), axis=1)
        assert (placed["bound"] >= error).all()


@law("p range")
@given(drawn=any_map())
def test_p_values_are_ranks(name, drawn):
    X, Y, Q = arrays_for(name, drawn)
    model = fit(name, X, Y)
    results = answers(name, model, np.vstack([Q, X]))
    m = len(model.scores_)
    expected = 1 + (model.scores_ >= results["score"][:, None]).sum(axis=1)
    np.testing.assert_array_equal(results["p"], expected / (m + 1))
    assert (1 / (m + 1) <= results["p"]).all() and (results["p"] <= 1).all()


@law("p valid")
@given(drawn=any_map(rows=(4, 20), queries=(1, 1)))
def test_p_values_are_valid(name, drawn):
    """Swap the query with each calibration point: #{p <= a} <= a (m + 1) for every a."""
    X, Y, Q = arrays_for(name, drawn)
    model = fit(name, X, Y)
    p = [model.p_values(Q)[0]]
    for row in np.setdiff1d(np.arange(len(X)), model.training_rows_):
        other = X.copy()
        other[row] = Q[0]
        p.append(fit(name, other, Y).p_values(X[[row]])[0])
    ranks = np.arange(1, len(p) + 1) / len(p)
    assert (np.sort(p) >= ranks - 1e-12).all()


# The table of claims.


def test_claims():
    print(f"\n{table()}")
    assert set(LAWS) == STATED
    names = {*SUBJECTS, *(subject.group for subject in SUBJECTS.values())}
    for which, reasons in GAPS.items():
        assert which in LAWS and names.issuperset(reasons) and all(reasons.values()), which
    assert LIMITS.keys() <= LAWS.keys()
    for which in LAWS:
        assert any(gap(which, name) is None for name in SUBJECTS), f"no subject claims {which}"
