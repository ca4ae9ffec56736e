"""Any embedding with ``fit_transform`` gets a ``transform`` and a ``place``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    MetaEstimatorMixin,
    RegressorMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from outsample._dask import lazy_on_dask
from outsample._validation import TrainingRecord, check_given, check_images, check_rows, is_map
from outsample.estimators.fitting import fit_in_one_step
from outsample.estimators.map_extension import MapExtension
from outsample.estimators.pca_extension import PCAExtension
from outsample.points import relative_error
from outsample.records import Placement, Reals

if TYPE_CHECKING:
    Method = TypeVar("Method", bound=Callable[..., Any])

    def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
        """Tell type checkers that the method stays what it is."""
else:
    from sklearn.utils.metaestimators import available_if


@dataclass(frozen=True)
class NotKept:
    """Stands for what a model file does not keep: an embedding, which is code, or a generator."""

    words: str

    def __repr__(self) -> str:
        return f"<not kept: {self.words}>"


def _can_place(extended: Extended) -> bool:
    """Tell whether the extension, fitted or to be fitted, has ``place``; None is `PCAExtension`."""
    extension = getattr(extended, "extension_", extended.extension)
    if extension is not None and not hasattr(extension, "place"):
        raise AttributeError(
            f"{type(extension).__name__} has no place; use transform, or an extension "
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
        spectral embedding, UMAP, ... It need not be a class of scikit-learn's.
    extension : estimator, default=None
        Anything with ``fit(X, Y)``, and ``transform(X)`` or ``predict(X)``: a regressor predicts.
        None is ``PCAExtension()``.

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
    A model file (`save`) keeps the map and the extension, but not the embedding, which may be any
    code: after `load`, ``transform`` and ``place`` work as before, and ``fit`` asks for another
    embedding.

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

    training_: TrainingRecord

    def __init__(self, embedding: Any, extension: Any = None) -> None:
        self.embedding = embedding
        self.extension = extension

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that sparse points are welcome and their type is kept."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True  # of few columns; of many, if the parts take it
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> Extended:
        """Embed the points and learn to extend the map.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Points.
        y : array-like, default=None
            Passed to embeddings that take a y, the supervised ones.

        Returns
        -------
        self
        """
        fit_in_one_step(self, X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Reals:
        """Embed the points and learn to extend the map; return the embedding's own coordinates.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Points.
        y : array-like, default=None
            Passed to embeddings that take a y, the supervised ones.

        Returns
        -------
        ndarray of shape (n, d)
        """
        return fit_in_one_step(self, X, y)

    @lazy_on_dask
    def transform(self, X: Any) -> Reals:
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
        X, dtype = check_rows(self, X)
        if not isinstance(self.extension_, MapExtension):  # which takes any real type
            X = X.astype(dtype, copy=False)
        kind = self.training_.answer_type(dtype)
        return images_by(self.extension_, X).astype(kind, copy=False)

    @available_if(_can_place)
    @lazy_on_dask
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
        return self.extension_.place(check_rows(self, X)[0])

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the mean error: the higher, the better; 0 is perfect.

        The error is the distance of a placed point from its true image, over the root mean square
        size of the map that was fitted.

        Parameters
        ----------
        X : array-like of shape (q, D)
            Points.
        y : array-like of shape (q, d), default=None
            Their images in the frozen map, a column if it has one coordinate.

        Returns
        -------
        float
            NaN for class labels, 1-D or strings: they do not tell how good a place is.
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
                "give one by set_params(embedding=...)."
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
        X = check_given(self, X, least_rows=2)
        self.embedding_ = clone(self.embedding, safe=False)
        embed = self.embedding_.fit_transform
        Y = np.asarray(embed(X, y) if y is not None and _takes_y(embed) else embed(X))
        if Y.ndim != 2 or len(Y) != X.shape[0] or not np.isfinite(Y).all():
            raise ValueError(
                f"{type(self.embedding).__name__}.fit_transform gave an array of shape {Y.shape} "
                f"for {X.shape[0]} points; a finite one of shape ({X.shape[0]}, d) is needed."
            )
        self.extension_ = clone(extension, safe=False)
        self.extension_.fit(X, Y)
        self.n_components_, self.training_ = Y.shape[1], TrainingRecord.of(X, Y)
        return Y.astype(self.training_.answer_type(X.dtype), copy=False)


def images_by(fitted: Any, X: Any) -> np.ndarray:
    """Images (q, d) under a fitted extension or regressor."""
    # A regressor that has both ``transform`` and ``predict`` predicts.
    predicts = isinstance(fitted, RegressorMixin) or not hasattr(fitted, "transform")
    placed = np.asarray(fitted.predict(X) if predicts else fitted.transform(X))
    return placed[:, None] if placed.ndim == 1 else placed


def _takes_y(embed: Any) -> bool:
    """Tell whether a second argument is the labels: one called y, or any number of them."""
    try:
        parameters = list(signature(embed).parameters.values())
    except (TypeError, ValueError):  # compiled, without a signature
        return True
    spread = any(one.kind is Parameter.VAR_POSITIONAL for one in parameters)
    return spread or any(one.name == "y" for one in parameters[1:2])
