"""Eigenpairs, the normalised kernel, and closed-form leave-one-out errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

import reference
from outsample import DiffusionMaps
from outsample.spectral import affinity, bandwidth, eigenpairs, transitions
from outsample.spectral.scales import median_nearest


@pytest.fixture
def kernel():
    X = np.random.default_rng(0).normal(size=(60, 2))
    return X, affinity.gaussian(X, 1.0)


def test_markov_is_the_transition_matrix(kernel):
    X, G = kernel
    S, weights, roots = transitions.markov(G.copy(), 0.5)
    P = S * roots / roots[:, None]
    np.testing.assert_allclose(P, reference.transitions(X, X, 1.0, 0.5), rtol=1e-10)
    thin = transitions.markov(sparse.csr_matrix(G), 0.5)
    np.testing.assert_allclose(thin.conjugate.toarray(), S, rtol=1e-12)
    np.testing.assert_allclose(thin.weights, weights)


def test_both_solvers_agree():
    X = np.random.default_rng(1).normal(size=(700, 2))
    S = transitions.markov(affinity.gaussian(X, 0.5), 1.0).conjugate
    values, vectors = eigenpairs.leading_eigenpairs(S, 5)
    exact, basis = np.linalg.eigh(S)
    np.testing.assert_allclose(values, exact[:-6:-1], rtol=1e-10)
    np.testing.assert_allclose(np.abs(np.sum(vectors * basis[:, :-6:-1], axis=0)), 1, atol=1e-8)
    again = eigenpairs.leading_eigenpairs(S, 5)
    np.testing.assert_array_equal(vectors, again[1])
    np.testing.assert_array_less(0, vectors[np.argmax(np.abs(vectors), axis=0), range(5)])


def test_eigenpairs_above_a_cut(kernel):
    _, G = kernel
    values, vectors = eigenpairs.eigenpairs_above(G.copy(), 1e3)
    exact = np.linalg.eigvalsh(G)[::-1]
    np.testing.assert_allclose(values, exact[exact > exact[0] / 1e3], rtol=1e-9)
    np.testing.assert_allclose(G @ vectors, vectors * values, atol=1e-10)


@pytest.mark.kernels
def test_means_under_transition_probabilities_are_those_of_the_reference(kernel):
    X, _ = kernel
    rng = np.random.default_rng(3)
    Q, weights, c = rng.normal(size=(7, 2)), rng.random(60), rng.normal(size=(60, 3))
    ours = affinity.expansion(X, Q, 0.4, c, weights=weights, normalize=True)
    np.testing.assert_allclose(ours, reference.markov_mean(X, Q, 0.4, weights, c), rtol=1e-10)
    query_lengths, lengths = np.full(7, 0.3), np.full(60, 0.5)
    G = reference.gaussian(Q, X, 0.4) * weights * (reference.pairwise(Q, X) <= 0.5)
    G[:, 0] += 1e-300
    reached = G.sum(axis=1) > 1e-290
    ours = affinity.expansion(
        X,
        Q[reached],
        0.4,
        c,
        weights=weights,
        reach=(query_lengths[reached], lengths),
        normalize=True,
    )
    np.testing.assert_allclose(ours, (G @ c / G.sum(axis=1, keepdims=True))[reached], rtol=1e-10)


def test_leaving_a_row_out_of_the_kernel_is_exact(kernel):
    X, _ = kernel
    f = np.sin(X)
    epsilon = 0.05
    closed = bandwidth.left_out_of_kernel(affinity.gaussian(X, epsilon), f, 0.0)
    placed = reference.leave_one_out(
        X,
        f,
        lambda A, B: (
            lambda q: (
                reference.gaussian(q, A, epsilon)
                @ np.linalg.solve(reference.gaussian(A, A, epsilon), B)
            )
        ),
    )
    np.testing.assert_allclose(closed, f - placed, atol=1e-8)


def test_leaving_a_row_out_of_the_diffusion_is_close():
    X = np.random.default_rng(4).random((150, 2))
    f = np.sin(3 * X)
    f -= f.mean(axis=0)
    epsilon = 0.01
    kernel = transitions.markov(affinity.gaussian(X, epsilon), 1.0)
    closed = bandwidth.left_out_of_markov(kernel, f, 0.0)
    placed = reference.leave_one_out(
        X, f, lambda A, B: lambda q: reference.nystroem(A, B, q, epsilon, 1.0), step=3
    )
    true = np.linalg.norm(f[::3] - placed, axis=1).mean()
    assert np.linalg.norm(closed[::3], axis=1).mean() == pytest.approx(true, rel=0.3)


def test_an_isolated_row_counts_as_unknown():
    X = np.array([[0.0], [0.1], [0.2], [100.0]])
    f = np.array([[0.0], [1.0], [2.0], [5.0]])
    kernel = transitions.markov(affinity.gaussian(X, 0.01), 1.0)
    assert bandwidth.left_out_of_markov(kernel, f, 0.0)[3] == 5


def test_a_singular_kernel_has_no_inverse():
    assert bandwidth.inverse(-np.ones((3, 3)), 0.0) is None
    assert bandwidth.left_out_of_kernel(-np.ones((3, 3)), np.ones((3, 1)), 0.0) is None
    broken = transitions.Markov(-np.ones((3, 3)), np.ones(3), np.ones(3))
    assert bandwidth.left_out_of_markov(broken, np.ones((3, 1)), 0.0) is None


def test_a_choice_without_any_error_is_the_neighbor_distance(kernel):
    X, _ = kernel
    choices = bandwidth.choices(X, np.sin(X), lambda G, f: None, None)
    assert choices[0].bandwidth == pytest.approx(median_nearest(X, 15) ** 2)
    assert np.isinf(choices[0].error)
    assert len(choices) == len(set(choices)) == 14


def test_distant_groups_have_nearly_equal_eigenvalues():
    """Lanczos does not converge if eigenvalues differ only by rounding; the full solver does."""
    rng = np.random.default_rng(0)
    centers = np.repeat(1e3 * np.arange(60), 20)
    X = np.column_stack([centers, np.zeros(1200)]) + rng.normal(size=(1200, 2))
    Y = DiffusionMaps(n_components=3, bandwidth=1.0).fit_transform(X)
    assert Y.shape == (1200, 3) and np.isfinite(Y).all()


@pytest.mark.parametrize("fault", ["raises", "finds too few"])
def test_the_full_solver_is_used_if_the_partial_solver_fails(fault, monkeypatch):
    S = np.diag(np.arange(1.0, 7.0))
    solver = eigenpairs.eigh

    def faulty(S, driver=None, eigvals_only=False, **subset):
        if driver == "ev":
            return solver(S, driver=driver, **subset)
        if fault == "raises":
            raise np.linalg.LinAlgError("Internal Error.")
        return np.empty(0) if eigvals_only else (np.array([6.0]), np.eye(6)[:, 5:])

    monkeypatch.setattr(eigenpairs, "eigh", faulty)
    values, vectors = eigenpairs.leading_eigenpairs(S, 3)
    np.testing.assert_allclose(values, [6, 5, 4])
    np.testing.assert_allclose(vectors, np.eye(6)[:, [5, 4, 3]])
    np.testing.assert_allclose(eigenpairs.eigenpairs_above(S, 2.5)[0], [6, 5, 4, 3])
    assert eigenpairs.nth_eigenvalue(S, 1) == 5


def path_graph(n):
    """Return a path graph, with eigenvalues cos(pi j / (n + 1)), and its first eigenvector."""
    sides = np.full(n - 1, 0.5)
    first = np.sin(np.pi * np.arange(1, n + 1) / (n + 1))
    return sparse.diags([sides, sides], [-1, 1], format="csr"), first


@pytest.mark.parametrize("fault", ["short of the tolerance", "not a number"])
@pytest.mark.parametrize("has_factors", [True, False])
def test_a_block_solver_that_does_not_converge_is_replaced(fault, has_factors, monkeypatch):
    """Lanczos does not converge on this matrix; another solver replaces the block solver."""
    n, count = 1200, 3
    S, first = path_graph(n)
    calls = []

    def unsettled(matrix, block, **options):
        calls.append(options)
        value = np.nan if fault == "not a number" else 0.3
        warnings.warn("Exited postprocessing with accuracies", UserWarning, stacklevel=2)
        return np.full(block.shape[1], value), block / np.linalg.norm(block, axis=0)

    def without_factors(*args, **options):
        if "sigma" in options:
            raise RuntimeError("Factor is exactly singular")
        return solver(*args, **options)

    solver = eigenpairs.eigsh
    monkeypatch.setattr(eigenpairs, "MAX_DENSE_ROWS", 1000)
    monkeypatch.setattr(eigenpairs, "MAX_LANCZOS_PRODUCTS", 1)
    monkeypatch.setattr(eigenpairs, "lobpcg", unsettled)
    if not has_factors:
        monkeypatch.setattr(eigenpairs, "eigsh", without_factors)
    values, vectors = eigenpairs.leading_eigenpairs(S, count, first)
    assert calls
    np.testing.assert_allclose(values, np.cos(np.pi * np.arange(1, count + 1) / (n + 1)), rtol=1e-9)
    assert np.linalg.norm(S @ vectors - vectors * values, axis=0).max() < 1e-7
