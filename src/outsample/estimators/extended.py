"""Any embedding with ``fit_transform`` gets a ``transform`` and a ``place``."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    MetaEstimatorMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from outsample.estimators.pca_extension import PCAExtension
from outsample.records import Placement

INPUT: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}


def _can_place(extended: Extended) -> bool:
    """Tell whether the extension says how far to trust it; None is a `PCAExtension`."""
    if extended.extension is not None and not hasattr(extended.extension, "place"):
        raise AttributeError(
            f"{type(extended.extension).__name__} has no place; use transform, or an extension "
            "that has it, such as PCAExtension."
        )
    return True


class Extended(
    MetaEstimatorMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """An embedding that can also place points it has not seen.

    ``fit`` runs the embedding once; afterwards its map is frozen and new points are placed into
    it by the extension.

    Parameters
    ----------
    embedding : estimator
        Anything with ``fit_transform(X)`` that returns an array (n, d): t-SNE, MDS, Isomap, LLE,
        spectral embedding, UMAP, ...
    extension : estimator, default=None
        Anything with ``fit(X, Y)`` and ``transform(X)``; None is ``PCAExtension()``.

    Attributes
    ----------
    embedding_ : estimator
        The fitted embedding.
    extension_ : estimator
        The fitted extension.
    n_features_in_ : int
        D.

    See Also
    --------
    PCAExtension : Extend a map that exists already, from points and images.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.manifold import TSNE
    >>> from outsample import Extended
    >>> X = load_iris().data
    >>> tsne = Extended(TSNE(random_state=0)).fit(X[:140])
    >>> tsne.transform(X[140:]).shape
    (10, 2)
    """

    def __init__(self, embedding: Any, extension: Any = None) -> None:
        self.embedding = embedding
        self.extension = extension

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that the type of the points is kept."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.embedding).input_tags.sparse
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> Extended:
        """Embed the points and learn to extend the map.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Points.
        y : array-like, default=None
            Passed to the embedding, for supervised ones.

        Returns
        -------
        self
        """
        self._embed(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Embed the points and learn to extend the map; return the embedding's own coordinates.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Points.
        y : array-like, default=None
            Passed to the embedding, for supervised ones.

        Returns
        -------
        ndarray of shape (n, d)
        """
        return self._embed(X, y)

    def transform(self, X: Any) -> np.ndarray:
        """Coordinates of new points in the frozen map.

        Parameters
        ----------
        X : array-like of shape (q, D)
            New points.

        Returns
        -------
        ndarray of shape (q, d)
        """
        check_is_fitted(self)
        return np.asarray(self.extension_.transform(self._checked(X)))

    @available_if(_can_place)
    def place(self, X: Any) -> Placement:
        """Coordinates of new points with what is known about their quality.

        Parameters
        ----------
        X : array-like of shape (q, D)
            New points.

        Returns
        -------
        Placement
        """
        check_is_fitted(self)
        return self.extension_.place(self._checked(X))

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _checked(self, X: Any) -> np.ndarray:
        with np.errstate(invalid="ignore"):  # of sums by which scikit-learn looks for NaN
            return validate_data(self, X, reset=False, **INPUT)

    def _embed(self, X: Any, y: Any) -> np.ndarray:
        if not hasattr(self.embedding, "fit_transform"):
            raise TypeError(
                f"embedding is {self.embedding!r}, but must be an estimator with fit_transform."
            )
        with np.errstate(invalid="ignore"):
            X = validate_data(self, X, ensure_min_samples=2, **INPUT)
        self.embedding_ = clone(self.embedding)
        Y = np.asarray(self.embedding_.fit_transform(X, y))
        if Y.ndim != 2 or len(Y) != X.shape[0] or not np.isfinite(Y).all():
            raise ValueError(
                f"{type(self.embedding).__name__}.fit_transform gave an array of shape {Y.shape} "
                f"for {X.shape[0]} points; a finite one of shape ({X.shape[0]}, d) is needed."
            )
        extension = PCAExtension() if self.extension is None else self.extension
        self.extension_ = clone(extension).fit(X, Y)
        self.n_components_ = Y.shape[1]
        return Y.astype(X.dtype, copy=False)
