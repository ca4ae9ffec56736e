"""Does a point belong? Scores, conformal p-values and reasons."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from outsample._dask import lazy_on_dask
from outsample._validation import (
    TrainingRecord,
    check_choice,
    check_jobs,
    check_number,
    check_points,
    check_queries,
    check_random,
    check_rows,
    check_training,
    is_map,
    random_seed,
)
from outsample.chunks import map_chunks
from outsample.estimators.fitting import fit_in_one_step
from outsample.estimators.inner_extension import InnerExtensionMixin
from outsample.estimators.neighbor_queries import NeighborQueriesMixin, TrainingState
from outsample.estimators.novelty_model import NoveltyModel
from outsample.estimators.outlier_scores import OutlierScores
from outsample.neighbors.duplicates import Distinct, distinct_points
from outsample.neighbors.index import CHOICES, NeighborIndex
from outsample.points import Points, in_chords, in_metric
from outsample.records import JudgedPlacement, Reals
from outsample.trust import conformal
from outsample.trust.abnormality import training_scores
from outsample.trust.explanation import Explanation

# Above every abnormality, logarithms of doubles over 0.02; finite, so that scores stay ranked.
NEVER = 1e5


class NoveltyDetector(InnerExtensionMixin, NeighborQueriesMixin, OutlierScores):
    r"""Tell whether new points are like the training points, and with what confidence.

    Two lengths are measured around a point, its distance from the nearest training points and its
    distance from the planes that its neighbours span. Their mean logarithm is compared with those
    of training points in two ways: less a part of the width of its own neighbourhood, and relative
    to the widths of its neighbours' own. The abnormality is the stranger of the two, in units of
    how far the strangest tenth of the training points goes. Beyond the most isolated training
    point it is the logarithm of the distance alone, so that moving a point straight away from the
    data never lowers it there. Scaling, shifting or rotating X changes nothing; repeated rows and
    discrete values do no harm.

    Each point's abnormality, compared with those of training points that were left out, gives a
    conformal p-value ``p = (1 + #{c >= s}) / (m + 1)``.

    Parameters
    ----------
    extension : PCAExtension or Extended, default=None
        Places points into the map. None is ``PCAExtension()`` if images are given to ``fit``.
        Its metric and its index count for the scores too.
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
        p-value is so small, and nothing is abnormal.
    random_state : int, RandomState, Generator or None, default=0
        Chooses the half of ``calibration="split"``.
    n_jobs : int, default=None
        Threads, as in scikit-learn.

    Attributes
    ----------
    scores_ : ndarray of shape (m,)
        Abnormalities of the calibration points, ascending.
    offset_ : float
        ``decision_function`` is ``score_samples - offset_``; -100000, below every score, if there
        are too few calibration points for alpha.
    extension_ : estimator or None
        The fitted extension; None without a map.
    metric_, recall_
        Metric of the distances; share of the neighbours that the search finds, on a sample.
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

    training_: TrainingRecord
    extension_: Any
    distinct_: Distinct
    model_: NoveltyModel
    training_rows_: np.ndarray

    def __init__(
        self,
        extension: Any = None,
        *,
        calibration: str = "leave-one-out",
        alpha: float = 0.05,
        random_state: Any = 0,
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
            Their images under a map: two-dimensional numbers, one column for a map of one
            coordinate. Anything else, 1-D or strings, is class labels and ignored. Without images
            there is no map, unless the extension is an `Extended`, which makes its own.

        Returns
        -------
        self
        """
        fit_in_one_step(self, X, y)
        return self

    def _fit(self, X: Any, y: Any) -> None:
        self._check_parameters()
        least = 4 if self.calibration == "split" else 2
        if is_map(y) and not self._makes_its_map():
            points, images = check_training(self, X, y, least)
        else:
            points, images = check_points(self, X, least)[0], None
        rows, rest = np.arange(n := points.shape[0]), np.arange(0)
        if self.calibration == "split":
            order = np.random.default_rng(random_seed(self.random_state)).permutation(n)
            rows, rest = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
        self.training_rows_ = rows
        self._fit_extension(points[rows], None if images is None else images[rows])
        core, metric = self.extension if self._core is None else self._core, "euclidean"
        kind, radius = "auto", None
        if hasattr(core, "place") and hasattr(core, "metric"):
            check_choice("index", core.index, CHOICES)
            metric, kind, radius = core.metric, core.index, core.radius
        self.training_ = TrainingRecord(n, sparse.issparse(points), metric, self.n_jobs)
        if self._map is None:
            own = in_metric(points[rows], self.metric_)
            self.distinct_ = distinct_points(own, self.n_jobs)
            index = NeighborIndex(own[self.distinct_.rows], kind, self.n_jobs)
        else:
            self.distinct_, index = self._core.distinct_, self._map.search.index
        radius = in_chords(radius, self.metric_)
        training = training_scores(index, self.distinct_, radius, self.n_jobs)
        self.model_ = NoveltyModel(index, training, self._map, self.n_jobs, metric)
        self.scores_ = np.sort(training.scores)
        if self.calibration == "split":
            self.scores_ = np.sort(self.model_.abnormality(self._in_metric(points[rest])))
        self.offset_ = -min(conformal.threshold(self.scores_, self.alpha), NEVER)

    @lazy_on_dask
    def abnormality(self, X: Any) -> Reals:
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
        scores, Q = self.model_.abnormality, check_rows(self, X)[0]
        return map_chunks(lambda rows: [scores(self._in_metric(rows))], Q)[0]

    @lazy_on_dask
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
            raise ValueError(
                "There is no map to place points into: give fit the images as well, shape (n, d)."
            )
        Q, dtype = check_rows(self, X)
        if self._map is None:
            judged: Any = {"abnormality": self.abnormality(X), "p_value": self.p_values(X)}
            return JudgedPlacement(**self.extension_.place(Q)._asdict(), **judged)
        kind = self._core.training_.answer_type(dtype)
        place, context = self.model_.place, (self._map, self.scores_, kind)
        return JudgedPlacement(*map_chunks(lambda rows: place(self._in_metric(rows), *context), Q))

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
        >>> NoveltyDetector().fit(X).explain([[0.5, 0.005]])[0].main_reason
        'plane_distance'
        """
        check_is_fitted(self)
        Q = self._in_metric(check_queries(self, X)[0])
        left_out = getattr(self._core, "left_out_", None)
        if left_out is not None:
            left_out = left_out._replace(rows=self.distinct_.groups[left_out.rows])
        explanations = self.model_.explain(Q, self.scores_, left_out)
        rows = self.training_rows_[self.distinct_.rows]
        return [each._replace(neighbors=rows[each.neighbors]) for each in explanations]

    def _training_state(self) -> TrainingState:
        parts = self.model_.index, self.distinct_, self.metric_, self._map, self.training_rows_
        return TrainingState(*parts, self.training_.n_rows, getattr(self._core, "embedding_", None))

    def _in_metric(self, X: Points) -> Points:
        return in_metric(X, self.metric_)

    @property
    def metric_(self) -> str:
        """Metric of the distances."""
        return self.training_.metric

    def _check_parameters(self) -> None:
        parts = "place", "embedding"
        if self.extension is not None and not any(hasattr(self.extension, p) for p in parts):
            allowed = "a PCAExtension, an Extended or None"
            raise TypeError(f"extension is {self.extension!r}, but must be {allowed}.")
        check_choice("calibration", self.calibration, ("leave-one-out", "split"))
        check_number("alpha", self.alpha, 0, 0.5, open_below=True)
        check_random(self.random_state)
        check_jobs(self.n_jobs)
