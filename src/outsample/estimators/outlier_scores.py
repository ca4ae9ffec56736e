"""P-values, discoveries and scikit-learn's outlier interface, computed from abnormality scores."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils import Tags

from outsample._dask import lazy_on_dask
from outsample._validation import check_number, check_rows
from outsample.records import Counts, Reals
from outsample.trust import conformal


class OutlierScores(OutlierMixin, BaseEstimator):
    """Estimator with ``abnormality(X)`` and ascending scores of calibration points."""

    scores_: np.ndarray
    offset_: float

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: sparse points are allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def abnormality(self, X: Any) -> Reals:
        """Return the abnormality scores of points: higher is more unusual."""

    def fit_predict(self, X: Any, y: Any = None) -> Counts:
        """Fit, and return -1 for training rows that are abnormal among the others, else 1.

        Each row is scored by the other rows, so that about a share ``alpha`` of the rows is
        abnormal. ``fit(X).predict(X)`` treats X as new points, each of which coincides with a
        training point.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
            Points.
        y : array-like of shape (n, d), default=None
            Their images under a map, as in ``fit``.

        Returns
        -------
        ndarray of int of shape (n,)
        """
        self.fit(X, y)
        rows, m = self.training_rows_, len(self.scores_)
        scores = self.model_.training.scores_of_rows(self.distinct_.groups)
        p = np.empty(self.training_.n_rows)
        p[rows] = conformal.p_values(scores, self.scores_)
        calibrating = np.setdiff1d(np.arange(len(p)), rows)
        if len(calibrating):
            scores = self.abnormality(check_rows(self, X)[0][calibrating])
        else:
            calibrating = rows
        # A row's own score is one of the m: it is not counted twice.
        p[calibrating] = (conformal.p_values(scores, self.scores_) * (m + 1) - 1) / m
        return np.where(p <= self.alpha, -1, 1)

    @lazy_on_dask
    def p_values(self, X: Any) -> Reals:
        """Return conformal p-values: the share of normal points that are at least as unusual.

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

    def discoveries(self, X: Any, *, fdr: float = 0.1) -> NDArray[np.bool_]:
        """Return which points of a batch are abnormal, at a controlled false discovery rate.

        Benjamini and Hochberg's procedure on the p-values: among the selected points, the expected
        share of normal ones is at most ``fdr``. The result for a point depends on the batch.

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

    def score_samples(self, X: Any) -> Reals:
        """Return minus the abnormality: higher is more normal, as in scikit-learn.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            Points.

        Returns
        -------
        ndarray of shape (q,)
        """
        return -self.abnormality(X)

    def decision_function(self, X: Any) -> Reals:
        """Return the score minus ``offset_``: negative for abnormal points, ``p <= alpha``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            Points.

        Returns
        -------
        ndarray of shape (q,)
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Counts:
        """Return +1 for normal points and -1 for abnormal ones, ``p <= alpha``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            Points.

        Returns
        -------
        ndarray of int of shape (q,)
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)
