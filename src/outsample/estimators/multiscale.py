"""Multiscale extension: coarse to fine projections on columns of Gaussian kernels."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from outsample._validation import check_choice, check_jobs, check_number, check_random, random_seed
from outsample.estimators.map_extension import MapExtension
from outsample.points import Points
from outsample.spectral import affinity
from outsample.spectral.memory_check import require_memory
from outsample.spectral.multiscale_cascade import Cascade
from outsample.spectral.scales import squared_diameter
from outsample.spectral.units import MapUnit, PointUnit, exact_mean

# The first scale T over the squared diameter: at this scale the data are one smooth patch.
COARSE_SCALE = 4.0
# Fewer points are not cross-validated.
MIN_CROSS_VALIDATION_ROWS = 16


class MultiscaleExtension(MapExtension):
    r"""Extend a map by multiscale data sampling and function extension (MSE).

    At scale ``eps_s = T / 2^s`` a randomized interpolative decomposition (Algorithm 7.1) samples
    columns ``B_s`` of the Gaussian kernel of Eq. 7.3. The residual of the coarser scales is
    projected on them (Algorithm 7.2), ``c_s = B_s^+ (f - F_{s-1})``, until the training error is
    below ``tolerance`` (Algorithm 7.3), or, by default, until finer scales increase the
    cross-validation error. The value at a new point is

    ``F(x) = sum_s sum_j exp(-|x - x_{s_j}|^2 / eps_s) c_{s,j}``,

    for the map minus its mean, which is added at the end.

    .. warning::
       The method is claimed in the United States patent US 9,147,162 B2. Check whether you may use
       it; the other extensions of this library serve the same purpose.

    Parameters
    ----------
    stop : {"auto", "tolerance"}, default="auto"
        - ``"auto"``: the paper's rule, but no scale finer than the one with the smallest error in
          four-fold cross-validation (on at most 800 rows), and no scale if the mean of the map is
          best;
        - ``"tolerance"``: the paper's rule alone.
    tolerance : float, default=1e-3
        The paper's err: scales are added until the root mean square training error, divided by
        that of the map minus its mean, is below it.
    initial_scale : float or "auto", default="auto"
        The paper's T, a squared length. ``"auto"`` is four times the squared distance from the
        point farthest from the mean to the point farthest from that one.
    delta : float, default=1e-3
        Accuracy that defines the numerical rank of a kernel: columns are sampled while their
        pivots are above delta times the first. Sampling starts at the rank bound of Algorithm 7.3
        (`interpolative.rank_bound`, for the box along the principal axes), which is sometimes too
        low and too large in many dimensions, so the pivots decide. Singular values of ``B_s`` below
        ``delta / 1000`` of the largest are truncated, which keeps the coefficients small.
    max_scales : int, default=60
        Maximum number of scales.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the decomposition.
    n_jobs : int, default=None
        Threads, as in scikit-learn: None is 1, -1 all cores.

    Attributes
    ----------
    scales_ : ndarray of shape (s,)
        The eps_s, squared lengths.
    errors_ : ndarray of shape (s,)
        Training error after each scale, divided by the size of the map. The last is above
        ``tolerance`` only if cross-validation, ``max_scales`` or double precision ended the loop,
        for example if points coincide but their images do not.
    sampled_ : list of ndarray
        Training rows sampled at each scale.
    coefficients_ : list of ndarray of shape (l_s, d)
        The c_s, for a map scaled by a power of two.
    n_features_in_ : int
        D.

    Notes
    -----
    ``fit`` stores two n x n arrays and takes O(n^3) time at fine scales.

    On smooth maps hold-out errors decrease from scale to scale, and cross-validation stops none.
    If one point is far from all others on the map, as in spiky eigenvectors, fine scales oscillate
    around it, with errors up to 26 times that of the mean of the map; cross-validation then omits
    these scales.

    References
    ----------
    A. Bermanis, A. Averbuch, R. R. Coifman, "Multiscale data sampling and function extension",
    Applied and Computational Harmonic Analysis 34 (2013) 15-29.

    Examples
    --------
    >>> import numpy as np
    >>> from outsample import MultiscaleExtension
    >>> angle = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> extension = MultiscaleExtension().fit(X, np.sin(2 * angle))
    >>> bool(abs(extension.transform([[np.cos(0.3), np.sin(0.3)]])[0, 0] - np.sin(0.6)) < 2e-3)
    True
    """

    sampled_: list[np.ndarray]
    coefficients_: list[np.ndarray]

    def __init__(
        self,
        *,
        stop: Literal["auto", "tolerance"] = "auto",
        tolerance: float = 1e-3,
        initial_scale: float | Literal["auto"] = "auto",
        delta: float = 1e-3,
        max_scales: int = 60,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.stop = stop
        self.tolerance = tolerance
        self.initial_scale = initial_scale
        self.delta = delta
        self.max_scales = max_scales
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _learn(self, X: Points, Y: np.ndarray) -> None:
        """Sample the kernels and project the map on them, scale by scale (Algorithm 7.3)."""
        n = X.shape[0]
        advice = "fit on a sample, or use PCAExtension, which is local."
        require_memory(n, "The kernel matrix", advice, arrays=3)
        self.unit_, self.map_unit_ = PointUnit.of(X), MapUnit.of(Y, exact_mean(Y))
        X = self.points_ = self.unit_.points(X)
        f = self.map_unit_.images(Y)
        scale = COARSE_SCALE * squared_diameter(X)
        if self.initial_scale != "auto":
            scale = float(np.clip(self.unit_.square(float(self.initial_scale)), 1e-290, 1e290))
        seed = random_seed(self.random_state)
        tolerance, max_levels = float(self.tolerance), int(self.max_scales)
        cascade = Cascade(scale, float(self.delta), tolerance, max_levels, seed)
        if self.stop == "auto" and n >= MIN_CROSS_VALIDATION_ROWS:
            cascade = cascade._replace(max_levels=cascade.levels_that_pay(X, f, self.n_jobs))
        levels = list(cascade.levels(X, f, self.n_jobs))
        self.sampled_ = [level.rows for level in levels]
        self.coefficients_ = [level.coefficients for level in levels]
        self.errors_ = np.array([level.error for level in levels])
        self.inner_scales_ = np.array([level.scale for level in levels])
        with np.errstate(over="ignore", under="ignore"):
            self.scales_ = self.unit_.given(self.inner_scales_)

    def _extend(self, X: Points) -> np.ndarray:
        """Return the sum of the scales (Algorithms 7.2 and 7.3); far away, the mean of the map."""
        X = self.unit_.points(X)
        values = np.zeros((X.shape[0], self._n_features_out))
        for scale, rows, coefficients in zip(
            self.inner_scales_, self.sampled_, self.coefficients_, strict=True
        ):
            values += affinity.expansion(
                self.points_[rows], X, float(scale), coefficients, n_jobs=self.training_.n_jobs
            )
        return self.map_unit_.back(values)

    def _check_parameters(self) -> None:
        check_choice("stop", self.stop, ("auto", "tolerance"))
        check_number("tolerance", self.tolerance, 0, np.inf)
        if self.initial_scale != "auto":
            check_number("initial_scale", self.initial_scale, 0, np.inf, open_below=True)
        check_number("delta", self.delta, 1e-10, 0.5)
        check_number("max_scales", self.max_scales, 1, np.inf, whole=True)
        check_random(self.random_state)
        check_jobs(self.n_jobs)
