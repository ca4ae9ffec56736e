"""Transformers that scikit-learn does not have: filling, weights, distance off a subspace."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from outsample._compiled.nearest_fill import nearest_fill
from outsample._parallel import over_rows
from outsample._validation import check_number

# Training rows that missing cells are filled from; of more rows, an even sample.
MAX_DONORS = 5000


class NearestRowsImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fill missing cells with the mean of the nearest training rows that have the cell.

    The distance of two rows is the root mean squared difference over the cells that both have.
    Unlike ``KNNImputer``, the result for a row does not depend on the batch: distances are summed
    cell by cell instead of by a matrix product, and ties are resolved by the order of the rows.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of rows that a cell is filled from.

    Examples
    --------
    >>> from outsample.preparation.transformers import NearestRowsImputer
    >>> imputer = NearestRowsImputer(n_neighbors=2).fit([[0.0, 1.0], [0.1, 3.0], [9.0, 7.0]])
    >>> imputer.transform([[0.2, float("nan")]])
    array([[0.2, 2. ]])
    """

    rows_: np.ndarray

    def __init__(self, n_neighbors: int = 5) -> None:
        self.n_neighbors = n_neighbors

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: missing values are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the rows that cells are filled from."""
        check_number("n_neighbors", self.n_neighbors, 1, 10**6, whole=True)
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        n = len(X)
        self.rows_ = np.array(X if n <= MAX_DONORS else X[np.arange(MAX_DONORS) * n // MAX_DONORS])
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the rows (q, D) without missing cells."""
        check_is_fitted(self)
        X = validate_data(
            self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False, copy=True
        )
        if np.isnan(X).any():
            counts = np.maximum((~np.isnan(self.rows_)).sum(axis=0), 1)
            means = np.nansum(self.rows_, axis=0) / counts
            X = np.ascontiguousarray(X)
            over_rows(nearest_fill, len(X), None, X, self.rows_, int(self.n_neighbors), means)
        return X


class ColumnWeights(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Multiply each column by its weight; a weight of 0 removes the column from all distances.

    Parameters
    ----------
    weights : array-like of shape (D,)
        Weights of the columns.

    Examples
    --------
    >>> from outsample.preparation.transformers import ColumnWeights
    >>> ColumnWeights([1.0, 0.5]).fit_transform([[3.0, 4.0]])
    array([[3., 2.]])
    """

    def __init__(self, weights: Any) -> None:
        self.weights = weights

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check that there is one weight per column."""
        X = validate_data(self, X, ensure_all_finite="allow-nan")
        if np.shape(self.weights) != (X.shape[1],):
            raise ValueError(f"weights must have {X.shape[1]} entries, one per column.")
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the weighted columns (q, D)."""
        check_is_fitted(self)
        X = validate_data(self, X, ensure_all_finite="allow-nan", reset=False)
        return X * np.asarray(self.weights, dtype=np.float64)


class SubspaceDistance(TransformerMixin, BaseEstimator):
    """Scores of a projection, with the distance of each row from its subspace as a last column.

    A projection fitted to the training rows hides what is unusual about new rows outside its
    subspace. The distance off the subspace contains it.

    Parameters
    ----------
    projection : PCA or TruncatedSVD
        The projection.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from outsample.preparation.transformers import SubspaceDistance
    >>> rows = [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]
    >>> SubspaceDistance(PCA(1)).fit(rows).transform([[1.5, 2.0]])[:, 1]
    array([2.])
    """

    projection_: Any
    n_features_in_: int

    def __init__(self, projection: Any) -> None:
        self.projection = projection

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: those of the projection."""
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.projection).input_tags
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the projection."""
        self.projection_ = clone(self.projection).fit(X)
        self.n_features_in_ = self.projection_.n_features_in_
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the scores and the distances off the subspace (q, c + 1)."""
        check_is_fitted(self)
        scores = np.asarray(self.projection_.transform(X))
        fitted = self.projection_.inverse_transform(scores)
        if sparse.issparse(X):
            X = X.toarray()
        off = np.linalg.norm(np.asarray(X, dtype=np.float64) - fitted, axis=1)
        return np.column_stack([scores, off])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the scores, and ``off_subspace``."""
        return np.append(self.projection_.get_feature_names_out(), "off_subspace").astype(object)
