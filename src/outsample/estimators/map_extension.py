"""What every extension of a map tells scikit-learn about itself."""

from __future__ import annotations

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags


class MapExtension(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Estimator with ``fit(X, Y)``, Y the images, and ``transform(X)``."""

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that the images are required and may have many columns."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
