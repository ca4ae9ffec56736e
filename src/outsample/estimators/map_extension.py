"""What is common to every extension of a map: how it is fitted, used and described."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags

from outsample._dask import lazy_on_dask
from outsample._parallel import one_blas_thread
from outsample._validation import (
    TrainingRecord,
    check_fitted,
    check_images,
    check_queries,
    check_rows,
    check_training,
)
from outsample.chunks import map_chunks
from outsample.estimators.fitting import fit_in_one_step
from outsample.points import Points, relative_error
from outsample.records import Reals


class MapExtension(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Estimator with ``fit(X, Y)``, Y the images, and ``transform(X)``."""

    n_jobs: int | None
    training_: TrainingRecord

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that the images are required and may have many columns."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the map from points and their images.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
            Points.
        y : array-like of shape (n, d) or (n,)
            Their images under the map; any map.

        Returns
        -------
        self
        """
        fit_in_one_step(self, X, y)
        return self

    @lazy_on_dask
    def transform(self, X: Any) -> Reals:
        """Coordinates of new points, and nothing that is not needed for them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            New points.

        Returns
        -------
        ndarray of shape (q, d)
            float32 for float32 points if the largest image is between 1e-18 and 1e18 in size
            (or all are 0), else float64.
        """
        check_fitted(self)
        X, dtype = check_rows(self, X)
        kind = self.training_.answer_type(dtype)
        return map_chunks(lambda rows: [self._extend(rows).astype(kind, copy=False)], X)[0]

    def score(self, X: Any, y: Any) -> float:
        """Return minus the mean error: the higher, the better; 0 is perfect.

        The error is the distance of a placed point from its true image, over the root mean square
        size of the map that was fitted, as in `compare`. ``GridSearchCV`` and ``cross_val_score``
        take it by default.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            Points.
        y : array-like of shape (q, d) or (q,)
            Their true images.

        Returns
        -------
        float
        """
        check_fitted(self)
        placed = self._extend(check_queries(self, X)[0])
        return -relative_error(placed, check_images(y, placed.shape), self.training_.map_size)

    @property
    def _n_features_out(self) -> int:
        return self.training_.map_columns

    def _fit(self, X: Any, y: Any) -> None:
        self._check_parameters()
        X, Y = check_training(self, X, y)
        metric = getattr(self, "metric", "euclidean")
        self.training_ = TrainingRecord.of(X, Y, metric, self.n_jobs)
        with one_blas_thread:
            self._learn(X, Y)

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse parameters outside their range."""

    @abstractmethod
    def _learn(self, X: Points, Y: np.ndarray) -> None:
        """Fit to points (n, D) and images (n, d) that have been checked."""

    @abstractmethod
    def _extend(self, X: Points) -> np.ndarray:
        """Coordinates (q, d) of points that have been checked; parameters do not matter."""
