"""Novelty detection: abnormality scores, conformal p-values and explanations."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from outsample._dask import lazy_on_dask
from outsample._validation import (
    TrainingRecord,
    check_choice,
    check_jobs,
    check_number,
    check_points,
    check_random,
    check_rows,
    check_training,
    is_map,
    random_seed,
)
from outsample.estimators.map_extension import fit_in_one_step
from outsample.estimators.neighbor_queries import NeighborQueriesMixin, TrainingState
from outsample.estimators.novelty_model import NoveltyModel, embeds_points, fit_extension
from outsample.estimators.outlier_scores import OutlierScores
from outsample.neighbors.duplicates import Duplicates, find_duplicates
from outsample.neighbors.index import CHOICES, NeighborIndex
from outsample.placers.map_model import MapModel
from outsample.points import Points, in_chords, in_metric
from outsample.records import JudgedPlacement, Reals
from outsample.trust import conformal
from outsample.trust.abnormality import training_scores
from outsample.trust.explanation import Explanation

# Above every abnormality (logarithms of doubles over 0.02), but finite.
LARGEST_OFFSET = 1e5


class NoveltyDetector(NeighborQueriesMixin, OutlierScores):
    r"""Detect points that are unlike the training points, with conformal p-values.

    Two lengths are measured around a point: its distance from the nearest training points, and its
    distance from the planes that its neighbours span. Their mean logarithm is compared with those
    of training points in two ways: less a part of the width of its own neighbourhood, and relative
    to the widths of its neighbours' own neighbourhoods. The abnormality is the larger of the two,
    in units of the excess of the most unusual tenth of the training points. Beyond the most
    isolated training point it is the logarithm of the distance alone, so that moving a point
    straight away from the data never lowers it. Scaling, shifting or rotating X does not change
    it; duplicate rows and discrete values are allowed.

    Comparing the abnormality of a point with those of training points that were left out gives the
    conformal p-value ``p = (1 + #{c >= s}) / (m + 1)``.

    Parameters
    ----------
    extension : PCAExtension or Extended, default=None
        Places points into the map; its metric and index are also used for the scores. None is
        ``PCAExtension()`` if images are passed to ``fit``.
    calibration : {"leave-one-out", "split"}, default="leave-one-out"
        Source of the p-values.

        - ``"leave-one-out"``: every training point is scored by the others. All points are used
          for everything; the p-values are approximate.
        - ``"split"``: a random half of the points is fitted, and the other half scored. The
          p-values are exact for points exchangeable with the training points:
          ``P(p <= a) <= a`` for every a and every distribution. The map uses the fitted half.
    alpha : float, default=0.05
        ``predict`` returns -1 for points with ``p <= alpha``, the rate of false alarms among
        normal points. At most 0.5; with fewer than ``1 / alpha - 1`` calibration points no p-value
        is that small, and no point is abnormal.
    random_state : int, RandomState, Generator or None, default=0
        Selects the half of ``calibration="split"``.
    n_jobs : int, default=None
        Threads, as in scikit-learn.

    Attributes
    ----------
    scores_ : ndarray of shape (m,)
        Abnormality scores of the calibration points, ascending.
    offset_ : float
        ``decision_function`` is ``score_samples - offset_``; -100000, below every score, if there
        are too few calibration points for alpha.
    extension_ : estimator or None
        The fitted extension; None without a map.
    metric_, recall_
        Metric of the distances; share of true neighbours that the search returns for a sample.
    training_rows_ : ndarray of int
        Fitted rows of X: all of them, or the half of ``calibration="split"``.
    n_features_in_ : int
        D.

    Notes
    -----
    m(x) of the paper alone does not detect novelty: as the minimised objective it shrinks away
    from the data, and the other reading, `Placement.dispersion`, is about as good as a local
    outlier factor. `explain` and `place` return both. The abnormality uses the points alone,
    because no combination with m(x) was better on labelled sets; the guide has the figures.
    P-values are at least ``1 / (m + 1)``; `abnormality` also ranks points beyond that.

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
    distinct_: Duplicates
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

    def fit(self, X: Any, y: Any = None) -> NoveltyDetector:
        """Fit the detector to normal points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
            Normal points, at least two; four with ``calibration="split"``.
        y : array-like of shape (n, d), default=None
            Their images under a map: two-dimensional numbers, one column for a map of one
            coordinate. Class labels, which are 1-D or strings, are ignored. Without images there
            is no map, unless the extension is an `Extended`, which computes its own.

        Returns
        -------
        self
        """
        fit_in_one_step(self, X, y)
        return self

    def _fit(self, X: Any, y: Any) -> None:
        self._check_parameters()
        min_rows = 4 if self.calibration == "split" else 2
        if is_map(y) and not embeds_points(self.extension):
            points, images = check_training(self, X, y, min_rows)
        else:
            points, images = check_points(self, X, min_rows)[0], None
        rows = self.fitted_rows(n := points.shape[0])
        calibration_rows = np.setdiff1d(np.arange(n), rows)
        self.training_rows_ = rows
        images = None if images is None else images[rows]
        self.extension_ = fit_extension(self.extension, points[rows], images, self.n_jobs)
        core, metric = self.extension if self._core is None else self._core, "euclidean"
        kind, radius = "auto", None
        if hasattr(core, "place") and hasattr(core, "metric"):
            check_choice("index", core.index, CHOICES)
            metric, kind, radius = core.metric, core.index, core.radius
        self.training_ = TrainingRecord(n, sparse.issparse(points), metric, self.n_jobs)
        if self._map is None:
            fitted_points = in_metric(points[rows], metric)
            self.distinct_ = find_duplicates(fitted_points, self.n_jobs)
            index = NeighborIndex(fitted_points[self.distinct_.rows], kind, self.n_jobs)
        else:
            self.distinct_, index = self._core.distinct_, self._map.search.index
        radius = in_chords(radius, metric)
        training = training_scores(index, self.distinct_, radius, self.n_jobs)
        self.model_ = NoveltyModel(index, training, self._map, self.n_jobs, metric)
        self.scores_ = np.sort(training.scores)
        if self.calibration == "split":
            self.scores_ = np.sort(self._abnormality(points[calibration_rows]))
        self.offset_ = -min(conformal.threshold(self.scores_, self.alpha), LARGEST_OFFSET)

    @property
    def _core(self) -> Any:
        """The fitted extension, without an `Extended` around it."""
        return getattr(self.extension_, "extension_", self.extension_)

    @property
    def _map(self) -> MapModel | None:
        """The fitted model of the extension, if it has neighbourhoods."""
        return getattr(self._core, "model_", None)

    def fitted_rows(self, n: int) -> np.ndarray:
        """Return the rows of n that are fitted: all, or the half of ``calibration="split"``."""
        if self.calibration != "split":
            return np.arange(n)
        order = np.random.default_rng(random_seed(self.random_state)).permutation(n)
        return np.sort(order[: n // 2])

    @lazy_on_dask
    def abnormality(self, X: Any) -> Reals:
        """Return the abnormality scores of points: higher is more unusual.

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
        return self._abnormality(check_rows(self, X)[0])

    def _abnormality(self, Q: Points) -> np.ndarray:
        model = self.model_
        return model.search.map_chunks(lambda rows: [model.abnormality(rows)], Q, self.metric_)[0]

    @lazy_on_dask
    def place(self, X: Any) -> JudgedPlacement:
        """Return coordinates of new points, their quality, and abnormality scores with p-values.

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
                "There is no map to place points into: pass the images, shape (n, d), to fit."
            )
        Q, dtype = check_rows(self, X)
        if self._map is None:
            scores: Any = {"abnormality": self.abnormality(X), "p_value": self.p_values(X)}
            return JudgedPlacement(**self.extension_.place(Q)._asdict(), **scores)
        model, search = self.model_, self._map.search
        context = self._map, self.scores_, self._core.training_.answer_type(dtype)
        fields = search.map_chunks(lambda rows: model.place(rows, *context), Q, self.metric_)
        return JudgedPlacement(*fields)

    def explain(self, X: Any) -> list[Explanation]:
        """Return for each point the numbers that differ from those of the training points.

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
        left_out = getattr(self._core, "left_out_", None)
        if left_out is not None:
            left_out = left_out._replace(rows=self.distinct_.groups[left_out.rows])
        explanations = self.model_.explain(check_rows(self, X)[0], self.scores_, left_out)
        rows = self.training_rows_[self.distinct_.rows]
        return [each._replace(neighbors=rows[each.neighbors]) for each in explanations]

    def _training_state(self) -> TrainingState:
        return TrainingState(
            index=self.model_.index, duplicates=self.distinct_, metric=self.metric_,
            model=self._map, rows=self.training_rows_, n_rows=self.training_.n_rows,
            images=getattr(self._core, "embedding_", None),
        )  # fmt: skip

    @property
    def metric_(self) -> str:
        """Metric of the distances."""
        return self.training_.metric

    def _check_parameters(self) -> None:
        methods = "place", "embedding"
        if self.extension is not None and not any(hasattr(self.extension, m) for m in methods):
            allowed = "a PCAExtension, an Extended or None"
            raise TypeError(f"extension is {self.extension!r}, but must be {allowed}.")
        check_choice("calibration", self.calibration, ("leave-one-out", "split"))
        check_number("alpha", self.alpha, 0, 0.5, open_below=True)
        check_random(self.random_state)
        check_jobs(self.n_jobs)
