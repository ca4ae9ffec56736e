"""Adds ``transform`` and ``place`` to any embedding with ``fit_transform``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import MetaEstimatorMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from outsample._dask import lazy_on_dask
from outsample._validation import TrainingRecord, check_embedded, check_images, check_rows, is_map
from outsample.estimators.map_extension import MapExtension, MapTransformer, fit_in_one_step
from outsample.estimators.pca_extension import PCAExtension
from outsample.points import relative_error
from outsample.records import Placement, Reals

if TYPE_CHECKING:
    Method = TypeVar("Method", bound=Callable[..., Any])

    def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
        """Return a decorator that keeps the type of the method."""
else:
    from sklearn.utils.metaestimators import available_if


@dataclass(frozen=True)
class NotKept:
    """Placeholder for what a model file does not contain: an embedding (code) or a generator."""

    words: str

    def __repr__(self) -> str:
        return f"<not kept: {self.words}>"


def _can_place(extended: Extended) -> bool:
    """Return True if the extension has ``place``, or raise AttributeError for `available_if`."""
    extension = getattr(extended, "extension_", extended.extension)
    if extension is not None and not hasattr(extension, "place"):
        raise AttributeError(
            f"{type(extension).__name__} has no place; use transform, or an extension with place, "
            "such as PCAExtension."
        )
    return True


class Extended(MetaEstimatorMixin, MapTransformer):
    """Embedding that can also place new points.

    ``fit`` runs the embedding once. Its map is then frozen, and an extension places new points
    into it.

    Parameters
    ----------
    embedding : estimator
        Any object whose ``fit_transform(X)`` returns an array (n, d): t-SNE, MDS, Isomap, LLE,
        spectral embedding, UMAP, ... It need not be a scikit-learn estimator.
    extension : estimator, default=None
        Any object with ``fit(X, Y)``, and ``transform(X)`` or ``predict(X)``; for a regressor,
        ``predict`` is used. None is ``PCAExtension()``.

    Attributes
    ----------
    embedding_ : estimator
        The fitted embedding.
    extension_ : estimator
        The fitted extension.
    n_features_in_ : int
        D.

    Notes
    -----
    A model file (`save`) contains the map and the extension, but not the embedding, which may be
    any code. After `load`, ``transform`` and ``place`` work, and ``fit`` needs another embedding.

    See Also
    --------
    PCAExtension : Extend an existing map, from points and images.

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

    def fit(self, X: Any, y: Any = None) -> Extended:
        """Embed the points, and fit the extension to their map.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Points.
        y : array-like, default=None
            Passed to supervised embeddings, which have a parameter y.

        Returns
        -------
        self
        """
        fit_in_one_step(self, X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Reals:
        """Embed the points and fit the extension; return the coordinates of the embedding.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Points.
        y : array-like, default=None
            Passed to supervised embeddings, which have a parameter y.

        Returns
        -------
        ndarray of shape (n, d)
        """
        return fit_in_one_step(self, X, y)

    @lazy_on_dask
    def transform(self, X: Any) -> Reals:
        """Return the coordinates of new points on the frozen map.

        Parameters
        ----------
        X : array-like of shape (q, D)
            New points.

        Returns
        -------
        ndarray of shape (q, d)
        """
        check_is_fitted(self)
        X, dtype = check_rows(self, X)
        if not isinstance(self.extension_, MapExtension):  # which accepts any real type
            X = X.astype(dtype, copy=False)
        kind = self.training_.answer_type(dtype)
        return images_by(self.extension_, X).astype(kind, copy=False)

    @available_if(_can_place)
    @lazy_on_dask
    def place(self, X: Any) -> Placement:
        """Return the coordinates of new points on the map, and how far to trust them.

        Parameters
        ----------
        X : array-like of shape (q, D)
            New points.

        Returns
        -------
        Placement
        """
        check_is_fitted(self)
        return self.extension_.place(check_rows(self, X)[0])

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the mean error: higher is better, 0 is perfect.

        The error is the distance of a placed point from its true image, divided by the root mean
        square size of the fitted map.

        Parameters
        ----------
        X : array-like of shape (q, D)
            Points.
        y : array-like of shape (q, d), default=None
            Their images on the frozen map; a column if it has one coordinate.

        Returns
        -------
        float
            NaN for class labels (1-D or strings), which are not images.
        """
        placed = self.transform(X).astype(np.float64, copy=False)
        if not is_map(y):
            return np.nan
        return -relative_error(placed, check_images(y, placed.shape), self.training_.map_size)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _fit(self, X: Any, y: Any) -> np.ndarray:
        if isinstance(self.embedding, NotKept):
            raise TypeError(
                f"embedding was not kept in the model file ({self.embedding.words}); to fit again, "
                "pass one with set_params(embedding=...)."
            )
        if isinstance(self.embedding, type) or not hasattr(self.embedding, "fit_transform"):
            raise TypeError(
                f"embedding is {self.embedding!r}, but must be an estimator with fit_transform."
            )
        extension = PCAExtension() if self.extension is None else self.extension
        if not hasattr(extension, "transform") and not hasattr(extension, "predict"):
            raise TypeError(
                f"extension is {extension!r}, but must have fit, and transform or predict."
            )
        X = check_embedded(self, X, min_rows=2)
        self.embedding_ = clone(self.embedding, safe=False)
        embed = self.embedding_.fit_transform
        Y = np.asarray(embed(X, y) if y is not None and _takes_y(embed) else embed(X))
        if Y.ndim != 2 or len(Y) != X.shape[0] or not np.isfinite(Y).all():
            raise ValueError(
                f"{type(self.embedding).__name__}.fit_transform returned an array of shape "
                f"{Y.shape} for {X.shape[0]} points; it must be finite, of shape ({X.shape[0]}, d)."
            )
        self.extension_ = clone(extension, safe=False)
        self.extension_.fit(X, Y)
        self.n_components_, self.training_ = Y.shape[1], TrainingRecord.of(X, Y)
        return Y.astype(self.training_.answer_type(X.dtype), copy=False)


def images_by(fitted: Any, X: Any) -> np.ndarray:
    """Return the images (q, d) of points by a fitted extension or regressor."""
    # A regressor that has both ``transform`` and ``predict`` predicts.
    predicts = isinstance(fitted, RegressorMixin) or not hasattr(fitted, "transform")
    placed = np.asarray(fitted.predict(X) if predicts else fitted.transform(X))
    return placed[:, None] if placed.ndim == 1 else placed


def _takes_y(embed: Any) -> bool:
    """Return True if the second argument is called y, or if there is any number of arguments."""
    try:
        parameters = list(signature(embed).parameters.values())
    except (TypeError, ValueError):  # compiled, without a signature
        return True
    is_variadic = any(each.kind is Parameter.VAR_POSITIONAL for each in parameters)
    return is_variadic or any(each.name == "y" for each in parameters[1:2])
