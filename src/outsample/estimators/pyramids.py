"""Laplacian pyramids: a map as a sum of ever finer smoothings of what is left of it."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from outsample._validation import (
    check_choice,
    check_jobs,
    check_number,
)
from outsample.estimators.map_extension import MapExtension
from outsample.points import Points, root_mean_square
from outsample.spectral.pyramid_search import search
from outsample.spectral.scales import squared_diameter
from outsample.spectral.smoothing import Smoother, pyramid
from outsample.spectral.units import MapUnit, PointUnit, exact_mean

# The paper halves the scale; dividing by the root of two suits smooth maps better.
RATIOS = (2.0, 2.0**0.5)


class Candidate(NamedTuple):
    """One pyramid of the search.

    Attributes
    ----------
    initial_scale : float
        Its sigma_0.
    ratio : float
        The quotient of successive scales.
    levels : int
        Number of levels with the smallest leave-one-out error.
    error : float
        That error, over the root mean square size of the map.
    """

    initial_scale: float
    ratio: float
    levels: int
    error: float


class LaplacianPyramids(MapExtension):
    r"""Extend a map by Laplacian pyramids, plain or auto-adaptive.

    With ``w_l(x, y) = exp(-|x - y|^2 / sigma_l)``, ``sigma_l = sigma_0 / ratio^l`` and weights
    that sum to one at the point where the value is wanted, level ``l`` smooths what the coarser
    levels have left over (Eq. 7.4, 7.5), and a new point ``y`` gets the sum (Eq. 7.6):

    ``s_l(y) = sum_i w_l(y, x_i) d_l(x_i) / sum_i w_l(y, x_i)``,
    ``d_0 = f``, ``d_l = f - sum_{i<l} s_i``, ``f(y) = sum_l s_l(y)``.

    The paper writes the kernel as ``k_l(x_i, y) = w_l(x_i, y) / q_l(x_i)``; its order of arguments
    would normalise at the training point. Normalised at ``y``, as its words ("smoothing operator")
    and the sources have it, constants are reproduced.

    Parameters
    ----------
    stop : {"auto", "tolerance"}, default="auto"
        - ``"auto"``: with the diagonal of the training kernels set to 0 the training error is the
          leave-one-out error; the pyramid ends at the level where it is smallest (see Notes);
        - ``"tolerance"``: the paper's rule; levels are added until the training error is below
          ``tolerance``.
    tolerance : float, default=1e-3
        Training error to reach with ``stop="tolerance"``, over the root mean square size of the
        map. It cannot be reached where points coincide but their images do not.
    initial_scale : float or "auto", default="auto"
        The paper's sigma_0, a squared length. ``"auto"`` is the squared distance from the point
        farthest from the mean to the point farthest from that one, about the squared diameter;
        with ``stop="auto"`` the smallest leave-one-out error decides among it and its halves,
        down to the distance of nearest neighbours.
    ratio : float or "auto", default="auto"
        Quotient of successive scales; the paper has 2. With ``stop="auto"``, ``"auto"`` lets the
        leave-one-out error choose between 2 and its root; else it is 2.
    max_levels : int, default=60
        No more levels than this.
    n_jobs : int, default=None
        Threads, as in scikit-learn: None is 1, -1 all cores.

    Attributes
    ----------
    levels_ : int
        Number of levels.
    scales_ : ndarray of shape (levels_,)
        The sigma_l, squared lengths.
    errors_ : ndarray of shape (levels_,)
        Root mean square of the residual after each level, over the size of the map: of the
        leave-one-out residual with ``stop="auto"``, else of the training residual.
    residuals_ : ndarray of shape (levels_, n, d)
        The d_l, for a map scaled by a power of two.
    selection_ : list of Candidate
        The pyramids that were tried, best first; empty with ``stop="tolerance"``.
    n_features_in_ : int
        D.

    Notes
    -----
    The leave-one-out error is that of Fernandez et al.: at each level, the value at ``x_i`` is
    smoothed from the residuals of all points but ``x_i``. For the first level this is leaving
    ``x_i`` out altogether. At later levels the residuals of the others have themselves seen
    ``f(x_i)``, so that it is not the error of n pyramids refitted without a point each.

    The zero diagonal decides where to stop, and nothing else: the d_l of the extension come from
    the full kernels of Eq. 7.4. A new point does see its nearest training point at full weight;
    residuals made without theirs, as in Fernandez et al., do not fit that (on a smooth function
    on a circle of 480 points the mean error is 2e-2 with them).

    No kernel is kept. Rows whose weights fall below 1e-12 within 64 neighbours are summed over
    these, the others in chunks, so that memory grows with n, time with n^2 at coarse scales.

    Hold-out error over the size of the map, 80/20 splits of the digits (1797 x 64), defaults:
    diffusion map to 5-D 0.014, Isomap to 2-D 0.085, t-SNE 0.024, UMAP 0.016. On the torn maps
    (t-SNE, UMAP) that is one fine level, in effect the nearest neighbours' mean. The
    paper's pyramid (sigma_0 the squared diameter, halved) is far behind local methods there, 0.10
    for both, and has 0.024 on the diffusion map.

    References
    ----------
    N. Rabin, R. R. Coifman, "Heterogeneous datasets representation and learning using diffusion
    maps and Laplacian pyramids", SDM 2012.

    A. Fernandez, N. Rabin, D. Fishelov, J. R. Dorronsoro, "Auto-adaptive Laplacian pyramids for
    high-dimensional data analysis", arXiv:1311.6594.

    Examples
    --------
    >>> import numpy as np
    >>> from outsample import LaplacianPyramids
    >>> angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> pyramid = LaplacianPyramids().fit(X, np.sin(2 * angle))
    >>> bool(abs(pyramid.transform([[np.cos(0.3), np.sin(0.3)]])[0, 0] - np.sin(0.6)) < 1e-3)
    True
    """

    selection_: list[Candidate]

    def __init__(
        self,
        *,
        stop: str = "auto",
        tolerance: float = 1e-3,
        initial_scale: float | Literal["auto"] = "auto",
        ratio: float | Literal["auto"] = "auto",
        max_levels: int = 60,
        n_jobs: int | None = None,
    ) -> None:
        self.stop = stop
        self.tolerance = tolerance
        self.initial_scale = initial_scale
        self.ratio = ratio
        self.max_levels = max_levels
        self.n_jobs = n_jobs

    def _learn(self, X: Points, Y: np.ndarray) -> None:
        self.unit_, self.map_unit_ = PointUnit.of(X), MapUnit.of(Y, exact_mean(Y))
        self.points_, f = self.unit_.points(X), self.map_unit_.images(Y)
        size = root_mean_square(f) or 1.0
        top = squared_diameter(self.points_)
        if self.initial_scale != "auto":
            top = float(np.clip(self.unit_.square(float(self.initial_scale)), 1e-290, 1e290))
        smoother = Smoother(self.points_, self.n_jobs)
        self.selection_, left_out = [], None
        if self.stop == "auto":
            scales, left_out = self._search(smoother, f, size, top)
        else:
            ratio = 2.0 if self.ratio == "auto" else float(self.ratio)
            scales = _scales(top, ratio, min(smoother.finest, top), self.max_levels)
        residuals, errors = [], []
        for scale in scales:
            residuals.append(f)
            f = f - smoother.smooth(f, scale, others_only=False)
            errors.append(root_mean_square(f) / size)
            if self.stop == "tolerance" and errors[-1] <= self.tolerance:
                break
        self.inner_scales_ = scales[: len(errors)]
        with np.errstate(over="ignore", under="ignore"):
            self.scales_ = self.unit_.given(self.inner_scales_)
        self.residuals_ = np.array(residuals)
        self.errors_ = np.array(errors if left_out is None else left_out)

    def _extend(self, X: Points) -> np.ndarray:
        """Eq. 7.6. Far from the data it tends to the value at the nearest training point."""
        Q, n_jobs = self.unit_.points(X), self.training_.n_jobs
        values = pyramid(self.points_, Q, self.inner_scales_, self.residuals_, n_jobs)
        return self.map_unit_.back(values)

    @property
    def levels_(self) -> int:
        """Number of levels."""
        return len(self.scales_)

    def _search(
        self, smoother: Smoother, f: np.ndarray, size: float, top: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scales of the pyramid with the smallest leave-one-out error, and its errors."""
        base = min(RATIOS) if self.ratio == "auto" else float(self.ratio)
        steps = (2, 1) if self.ratio == "auto" else (1,)
        octave = max(1, round(np.log(2) / np.log(base)))
        grid = _scales(top, base, min(smoother.finest, top), octave * int(self.max_levels))
        starts = range(0, len(grid), octave) if self.initial_scale == "auto" else (0,)
        found = search(smoother, f, grid, starts, steps, octave, self.max_levels)
        with np.errstate(over="ignore"):
            self.selection_ = [
                Candidate(
                    self.unit_.given(float(grid[one.start])),
                    2.0 if one.step == 2 else base,
                    one.levels,
                    one.best / size,
                )
                for one in found
            ]
        best = found[0]
        scales = grid[best.start :: best.step][: best.levels]
        return scales, np.array(best.errors[: best.levels]) / size

    def _check_parameters(self) -> None:
        check_choice("stop", self.stop, ["auto", "tolerance"])
        check_number("tolerance", self.tolerance, 0, np.inf)
        if self.initial_scale != "auto":
            check_number("initial_scale", self.initial_scale, 0, np.inf, open_below=True)
        if self.ratio != "auto":
            check_number("ratio", self.ratio, 1.05, np.inf)
        check_number("max_levels", self.max_levels, 1, np.inf, whole=True)
        check_jobs(self.n_jobs)


def _scales(top: float, ratio: float, finest: float, most: int) -> np.ndarray:
    """``top / ratio^l`` down to the finest, at least one."""
    finest = max(finest, top * 1e-300)  # else their quotient may be beyond a double
    count = 1 + int(np.log(top / finest) / np.log(ratio))
    return top / ratio ** np.arange(min(count, most))
