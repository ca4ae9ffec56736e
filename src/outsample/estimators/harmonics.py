"""Geometric harmonics: extension of a map by eigenfunctions of a Gaussian kernel."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from outsample.estimators.kernel_expansion import KernelExpansion
from outsample.spectral import affinity, eigenpairs, transitions
from outsample.spectral.bandwidth import left_out_of_kernel


class GeometricHarmonics(KernelExpansion):
    r"""Extend a map by geometric harmonics: eigenfunctions of a Gaussian kernel.

    The eigenvectors of the kernel matrix ``G_ij = exp(-|x_i - x_j|^2 / epsilon)`` (Eq. 7.2, 7.3)
    are extended to a new point by the Nyström formula (Eq. 7.1),

    ``phi_i(x) = (1 / lambda_i) sum_j g(x, x_j) phi_i(x_j)``,

    and the map f, less its mean, by its projection on those that extend stably,
    ``f(x) = sum_i <f, phi_i> phi_i(x)`` over ``lambda_i > lambda_max / condition``.

    Parameters
    ----------
    bandwidth : float or "auto", default="auto"
        Epsilon, a squared length. ``"auto"`` tries doublings of the squared typical distance to
        the 15th neighbour, from 1/16 to 128, and selects the one with the smallest leave-one-out
        error of the map, in closed form on at most 2000 training points. A smooth map needs a wide
        kernel, a map with fine detail a narrow one.
    condition : float, default=1e8
        Largest ratio of eigenvalues, by which an error in the images is multiplied at most.
    n_jobs : int, default=None
        Threads, as in scikit-learn.

    Attributes
    ----------
    bandwidth_ : float
        Fitted epsilon.
    selection_ : list of Choice
        Candidate bandwidths with their leave-one-out errors divided by the size of the map; the
        selected one is first. Empty if the bandwidth was a number.
    eigenvalues_ : ndarray of shape (n_components_,)
        Eigenvalues of the harmonics.
    n_components_ : int
        Number of harmonics.
    condition_ : float
        Ratio of the largest and the smallest of these eigenvalues.
    n_features_in_ : int
        D.

    See Also
    --------
    NystroemExtension : The same with the kernel normalised to transition probabilities.

    Notes
    -----
    Time grows as n^3, memory as three n x n matrices; a query costs O(n D). Far from the data
    every harmonic tends to 0, and the coordinates to the mean of the images.

    Mean hold-out error over the size of the map, digits, 80/20, 3 splits, defaults: 0.015 on a
    diffusion map to 5 dimensions. On torn maps local methods are better: 0.116 on t-SNE, where
    inverse-distance weights of 15 neighbours have 0.060.

    References
    ----------
    R. R. Coifman, S. Lafon, "Geometric harmonics: a novel tool for multiscale out-of-sample
    extension of empirical functions", Appl. Comput. Harmon. Anal. 21 (2006) 31-52.

    Examples
    --------
    >>> import numpy as np
    >>> from outsample import GeometricHarmonics
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 200)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> extension = GeometricHarmonics().fit(circle, np.cos(3 * angle))
    >>> extension.transform([[np.cos(1.0), np.sin(1.0)]]).round(3)    # cos 3 = -0.990
    array([[-0.99]])
    """

    def __init__(
        self,
        *,
        bandwidth: float | Literal["auto"] = "auto",
        condition: float = 1e8,
        n_jobs: int | None = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.condition = condition
        self.n_jobs = n_jobs

    def _left_out(self, G: np.ndarray, f: np.ndarray) -> np.ndarray | None:
        """Return leave-one-out residuals; the largest row sum replaces the largest eigenvalue."""
        return left_out_of_kernel(G, f, G.sum(axis=1).max() / float(self.condition))

    def _values(self, Q: Any) -> np.ndarray:
        return affinity.expansion(
            self.points_, Q, self.epsilon_, self.coefficients_, n_jobs=self.training_.n_jobs
        )

    def _expand(self, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        G = affinity.gaussian(self.points_, self.epsilon_, self.n_jobs)
        values, vectors = eigenpairs.eigenpairs_above(G, float(self.condition))
        return values, transitions.solve_in(values, vectors, f)
