"""What the estimators share: an all-or-nothing fit, and the interface of extensions of a map."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
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
    check_rows,
    check_training,
)
from outsample.chunks import map_chunks
from outsample.points import Points, relative_error
from outsample.records import Reals


def fit_in_one_step(estimator: Any, *data: Any) -> Any:
    """Run ``_fit`` on an unfitted copy, take over its state in one assignment, return its result.

    Fitted attributes are those with a trailing underscore, as in scikit-learn. Those of an earlier
    fit are removed. If ``_fit`` raises, the estimator stays as it was.
    """
    fresh = copy(estimator)
    for name in [name for name in vars(fresh) if name.endswith("_")]:
        delattr(fresh, name)
    result = fresh._fit(*data)
    estimator.__dict__ = vars(fresh)
    return result


class MapTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Transformer of dense or sparse points that preserves float32."""

    training_: TrainingRecord

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class MapExtension(MapTransformer):
    """Estimator with ``fit(X, Y)``, where Y are the images of X, and ``transform(X)``."""

    n_jobs: int | None

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: images are required and may have many columns."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the extension to points and their images.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
            Training points.
        y : array-like of shape (n, d) or (n,)
            Their images under any map.

        Returns
        -------
        self
        """
        fit_in_one_step(self, X, y)
        return self

    @lazy_on_dask
    def transform(self, X: Any) -> Reals:
        """Return the coordinates of new points on the map.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            New points.

        Returns
        -------
        ndarray of shape (q, d)
            float32 for float32 points if the largest image is between 1e-18 and 1e18 in size
            (or all are 0), otherwise float64.
        """
        check_fitted(self)
        X, dtype = check_rows(self, X)
        return self._coordinates(X, self.training_.answer_type(dtype))

    def score(self, X: Any, y: Any) -> float:
        """Return minus the mean error: higher is better, 0 is perfect.

        The error is the distance of a placed point from its true image, divided by the root mean
        square size of the fitted map, as in `compare`. ``GridSearchCV`` and ``cross_val_score``
        use it by default.

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
        placed = self._coordinates(check_rows(self, X)[0], np.dtype(np.float64))
        return -relative_error(placed, check_images(y, placed.shape), self.training_.map_size)

    @property
    def _n_features_out(self) -> int:
        return self.training_.map_columns

    def _coordinates(self, X: Points, dtype: np.dtype) -> np.ndarray:
        return self._map_chunks(lambda rows: [self._extend(rows).astype(dtype, copy=False)], X)[0]

    def _map_chunks(
        self, answer: Callable[[Points], Sequence[np.ndarray]], X: Points
    ) -> list[np.ndarray]:
        return map_chunks(answer, X)

    def _fit(self, X: Any, y: Any) -> None:
        self._check_parameters()
        X, Y = check_training(self, X, y)
        metric = getattr(self, "metric", "euclidean")
        self.training_ = TrainingRecord.of(X, Y, metric, self.n_jobs)
        with one_blas_thread:
            self._learn(X, Y)

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise ValueError or TypeError for parameters outside their range."""

    @abstractmethod
    def _learn(self, X: Points, Y: np.ndarray) -> None:
        """Fit to checked points (n, D) and images (n, d)."""

    @abstractmethod
    def _extend(self, X: Points) -> np.ndarray:
        """Return coordinates (q, d) of checked points, by fitted attributes only."""
