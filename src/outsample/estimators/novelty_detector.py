"""Does a point belong? Scores, conformal p-values and reasons."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from outsample._validation import (
    check_choice,
    check_jobs,
    check_number,
    check_points,
    check_queries,
    check_training,
)
from outsample.estimators.extended import Extended
from outsample.estimators.pca_extension import PCAExtension
from outsample.neighbors.index import NeighborIndex
from outsample.placers import gls
from outsample.placers.model import neighbor_weights
from outsample.points import Points, in_chords, in_metric
from outsample.records import JudgedPlacement, Neighbors
from outsample.trust import conformal
from outsample.trust.abnormality import CHUNK_ROWS, Lengths, Yardstick, measure, widest, yardstick
from outsample.trust.abnormality import abnormality as strangeness

CALIBRATIONS = ("leave-one-out", "split")
# Neighbours that an explanation names.
NAMED = 5
# The numbers of a placement that look at images.
DISAGREEMENT = ("residual", "dispersion")


class Reason(NamedTuple):
    """One number of a point beside those of the training points.

    Attributes
    ----------
    value : float
        The number.
    typical : float
        Its median over the training points, each left out of the others.
    p_value : float
        Share of them with at least that value, the point counted among them.
    """

    value: float
    typical: float
    p_value: float


class Explanation(NamedTuple):
    """Why a point is strange, or not.

    Attributes
    ----------
    abnormality, p_value : float
        As from the detector.
    speaks : str
        Name of the number that is least like those of the training points.
    reasons : dict of str to Reason
        ``isolation`` (mean distance of the two nearest training points) and ``off_manifold``
        (distance from the soft planes of 10, 20 and 40 neighbours); with a map also ``residual``
        and ``dispersion``, the two readings of Eq. 2.9.
    neighbors : ndarray of int
        The nearest training rows, of the X that was fitted.
    distances : ndarray of float
        How far they are.
    """

    abnormality: float
    p_value: float
    speaks: str
    reasons: dict[str, Reason]
    neighbors: np.ndarray
    distances: np.ndarray

    def __str__(self) -> str:
        lines = [f"abnormality {self.abnormality:.2f}, p = {self.p_value:.3g}: {self.speaks}"]
        for name, (value, typical, p) in self.reasons.items():
            lines.append(f"  {name:<13}{value:<10.4g} typical {typical:<10.4g} p = {p:.3g}")
        pairs = zip(self.neighbors, self.distances, strict=True)
        lines.append("  nearest: " + ", ".join(f"row {row} at {apart:.4g}" for row, apart in pairs))
        return "\n".join(lines)


class NoveltyDetector(OutlierMixin, BaseEstimator):
    r"""Tell whether new points are like the training points, and with what confidence.

    The abnormality of a point is the mean logarithm of two lengths, its distance from the
    nearest training points and its distance from the planes that its neighbours span, less a
    fifth of what its neighbours have themselves. Beyond the most isolated training point it is
    the logarithm of the distance alone, so that moving a point straight away from the data never
    lowers it there. Scaling, shifting or rotating X changes nothing; repeated rows do no harm.

    Each point's abnormality, compared with those of training points that were left out, gives a
    conformal p-value ``p = (1 + #{c >= s}) / (m + 1)``.

    Parameters
    ----------
    extension : PCAExtension or Extended, default=None
        Places points into the map. None is ``PCAExtension()`` if images are given to ``fit``.
        Its metric counts for the scores too.
    calibration : {"leave-one-out", "split"}, default="leave-one-out"
        Where the p-values come from.

        - ``"leave-one-out"``: every training point is scored by the others. All points are used
          for everything; the p-values are approximate.
        - ``"split"``: a random half of the points is learned from, and the other half scored. The
          p-values are exact for points exchangeable with the training ones: ``P(p <= a) <= a`` for
          every a, whatever the distribution. The map is learned from the same half.
    alpha : float, default=0.05
        ``predict`` calls a point abnormal if ``p <= alpha``: that is the share of false alarms
        among normal points. At most 0.5; with fewer than ``1 / alpha - 1`` calibration points no
        p-value is so small, and a point stranger than all of them is abnormal.
    random_state : int, default=0
        Chooses the half of ``calibration="split"``.
    n_jobs : int, default=None
        Threads, as in scikit-learn.

    Attributes
    ----------
    scores_ : ndarray of shape (m,)
        Abnormalities of the calibration points, ascending.
    offset_ : float
        ``decision_function`` is ``score_samples - offset_``.
    extension_ : estimator or None
        The fitted extension; None without a map.
    metric_ : str
        Metric of the distances.
    training_rows_ : ndarray of int
        Rows of X that were learned from: all of them, or the half of ``calibration="split"``.
    n_features_in_ : int
        D.

    See Also
    --------
    PCAExtension.place : The numbers behind it, for each point.

    Notes
    -----
    m(x) of the paper alone is no answer: as the minimised objective it shrinks away from the
    data, and the other reading, `Placement.dispersion`, is about as good as a local outlier
    factor. Both are reported by `explain` and `place`; the abnormality itself rests on the points
    alone, because no combination with them did better on labelled sets. The guide has the figures.

    P-values cannot be less than ``1 / (m + 1)``; `abnormality` goes on to rank beyond that.

    Examples
    --------
    >>> import numpy as np
    >>> from outsample import NoveltyDetector
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> detector = NoveltyDetector().fit(X)
    >>> detector.predict([[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]])
    array([ 1, -1])
    >>> detector.p_values([[9.0, 9.0, 9.0]]).round(3)
    array([0.002])
    """

    extension_: PCAExtension | Extended | None
    index_: NeighborIndex
    yardstick_: Yardstick
    scores_: np.ndarray
    offset_: float
    training_rows_: np.ndarray

    def __init__(
        self,
        extension: PCAExtension | Extended | None = None,
        *,
        calibration: str = "leave-one-out",
        alpha: float = 0.05,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.extension = extension
        self.calibration = calibration
        self.alpha = alpha
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that sparse points are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None) -> NoveltyDetector:
        """Learn what is normal.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
            Normal points, at least two; four with ``calibration="split"``.
        y : array-like of shape (n, d), default=None
            Their images under a map. Without them there is no map, unless the extension is an
            `Extended`, which makes its own.

        Returns
        -------
        self
        """
        self._check_parameters()
        least = 4 if self.calibration == "split" else 2
        has_map = y is not None and not isinstance(self.extension, Extended)
        if has_map:
            points, images = check_training(self, X, y, least)
        else:
            points, images = check_points(self, X, least)[0], None
        n = points.shape[0]
        rows, rest = np.arange(n), np.arange(0)
        if self.calibration == "split":
            order = np.random.default_rng(self.random_state).permutation(n)
            rows, rest = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
        self.training_rows_ = rows
        self._fit_extension(points[rows], None if images is None else images[rows])
        core = self._core() or self.extension
        self.metric_, radius = "euclidean", None
        if isinstance(core, PCAExtension):
            self.metric_, radius = core.metric, in_chords(core.radius, core.metric)
        self.index_ = NeighborIndex(in_metric(points[rows], self.metric_), n_jobs=self.n_jobs)
        self.yardstick_ = yardstick(self.index_, radius)
        scores = self.yardstick_.scores
        if self.calibration == "split":
            scores = self._abnormality(points[rest])
        self.scores_ = np.sort(scores)
        self.offset_ = -conformal.threshold(self.scores_, self.alpha)
        return self

    def abnormality(self, X: Any) -> np.ndarray:
        """How strange points are: the higher, the stranger.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            Points.

        Returns
        -------
        ndarray of shape (q,)
            0 is typical of the training points.
        """
        check_is_fitted(self)
        return self._abnormality(check_queries(self, X)[0])

    def p_values(self, X: Any) -> np.ndarray:
        """Conformal p-values: how often a normal point is at least so strange.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            Points.

        Returns
        -------
        ndarray of shape (q,)
            From 1 / (m + 1) to 1.
        """
        return conformal.p_values(self.abnormality(X), self.scores_)

    def discoveries(self, X: Any, *, fdr: float = 0.1) -> np.ndarray:
        """Points of a batch that do not belong, with the rate of false ones under control.

        Benjamini and Hochberg's procedure on the p-values: among the points picked out, the
        expected share of normal ones is at most ``fdr``. The answer for a point depends on the
        batch.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            The batch.
        fdr : float, default=0.1
            False discovery rate, from 0 to 1.

        Returns
        -------
        ndarray of bool of shape (q,)
        """
        check_number("fdr", fdr, 0, 1)
        return conformal.benjamini_hochberg(self.p_values(X), fdr)

    def score_samples(self, X: Any) -> np.ndarray:
        """Return minus the abnormality: the higher, the more normal, as in scikit-learn.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            Points.

        Returns
        -------
        ndarray of shape (q,)
        """
        return -self.abnormality(X)

    def decision_function(self, X: Any) -> np.ndarray:
        """Score above the threshold: negative for abnormal points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            Points.

        Returns
        -------
        ndarray of shape (q,)
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Tell normal points (+1) from abnormal ones (-1), with p-values of at most ``alpha``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            Points.

        Returns
        -------
        ndarray of int of shape (q,)
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def place(self, X: Any) -> JudgedPlacement:
        """Coordinates of new points, their quality, and whether the points belong.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            Points.

        Returns
        -------
        JudgedPlacement
        """
        check_is_fitted(self)
        if self.extension_ is None:
            raise ValueError("There is no map to place points into: give fit the images as well.")
        Q, dtype = check_queries(self, X)
        placed = self.extension_.place(Q.astype(dtype, copy=False))
        strange = self._abnormality(Q)
        return JudgedPlacement(*placed, strange, conformal.p_values(strange, self.scores_))

    def explain(self, X: Any) -> list[Explanation]:
        """Say for each point which of its numbers is unlike those of the training points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            Points.

        Returns
        -------
        list of Explanation
            Each prints as a few lines.

        Examples
        --------
        >>> import numpy as np
        >>> from outsample import NoveltyDetector
        >>> X = np.column_stack([np.linspace(0, 1, 100), np.zeros(100)])      # a line
        >>> NoveltyDetector().fit(X).explain([[0.5, 0.005]])[0].speaks
        'off_manifold'
        """
        check_is_fitted(self)
        Q = check_queries(self, X)[0]
        near, lengths = self._look_around(Q)
        strange = strangeness(self.yardstick_, lengths, near)
        p = conformal.p_values(strange, self.scores_)
        known = self.yardstick_.lengths
        numbers = {name: (getattr(lengths, name), getattr(known, name)) for name in known._fields}
        core = self._core()
        if core is not None:
            placed = core.place(Q)
            for name, reference in zip(DISAGREEMENT, self._left_out(core), strict=True):
                numbers[name] = (getattr(placed, name), reference)
        reasons = {name: _reasons(*values) for name, values in numbers.items()}
        indices = near.indices.reshape(len(p), -1)[:, :NAMED]
        distances = near.distances.reshape(len(p), -1)[:, :NAMED]
        found = []
        for i in range(len(p)):
            mine = {name: reason[i] for name, reason in reasons.items()}
            speaks = min(mine, key=lambda name: mine[name].p_value)
            rows = self.training_rows_[indices[i]]
            found.append(
                Explanation(float(strange[i]), float(p[i]), speaks, mine, rows, distances[i])
            )
        return found

    def _check_parameters(self) -> None:
        if self.extension is not None and not isinstance(self.extension, PCAExtension | Extended):
            raise TypeError(
                f"extension is {self.extension!r}, but must be a PCAExtension, an Extended or None."
            )
        check_choice("calibration", self.calibration, CALIBRATIONS)
        check_number("alpha", self.alpha, 0, 0.5, open_below=True)
        check_number("random_state", self.random_state, 0, 2**32 - 1, whole=True)
        check_jobs(self.n_jobs)

    def _fit_extension(self, X: Points, Y: np.ndarray | None) -> None:
        self.extension_ = None
        if isinstance(self.extension, Extended):
            self.extension_ = clone(self.extension).fit(X)
        elif Y is not None:
            extension = PCAExtension() if self.extension is None else self.extension
            self.extension_ = clone(extension).fit(X, Y)

    def _core(self) -> PCAExtension | None:
        """Return the fitted extension that knows its neighbourhoods, if there is one."""
        core: Any = self.extension_
        if isinstance(core, Extended):
            core = core.extension_
        return core if isinstance(core, PCAExtension) else None

    def _look_around(self, X: Points) -> tuple[Neighbors, Lengths]:
        X = in_metric(X, self.metric_)
        near = self.index_.nearest(X, widest(self.index_.X.shape[0]))
        return near, measure(self.index_, X, near)

    def _abnormality(self, X: Points) -> np.ndarray:
        parts = []
        for at in range(0, X.shape[0], CHUNK_ROWS):
            rows = X[at : at + CHUNK_ROWS]
            near, lengths = self._look_around(rows)
            parts.append(strangeness(self.yardstick_, lengths, near))
        return np.concatenate(parts)

    def _left_out(self, core: PCAExtension) -> tuple[np.ndarray, np.ndarray]:
        """Residual and dispersion of training points that the others placed."""
        around, coordinates = core.left_out_.around, core.left_out_.coordinates
        weights = neighbor_weights(core.model_, core.map_, around, self.n_jobs)
        return gls.disagreement(core.embedding_, around.near, weights, coordinates, self.n_jobs)


def _reasons(values: np.ndarray, reference: np.ndarray) -> list[Reason]:
    reference = np.sort(reference)
    p = conformal.p_values(values, reference)
    typical = float(np.median(reference))
    pairs = zip(values.tolist(), p.tolist(), strict=True)
    return [Reason(value, typical, share) for value, share in pairs]

