"""The extension inside a detector."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from outsample.estimators.pca_extension import PCAExtension
from outsample.placers.map_model import MapModel
from outsample.points import Points


class InnerExtensionMixin:
    """Estimator with a parameter ``extension``, which is fitted as ``extension_``."""

    extension: Any
    extension_: Any
    n_jobs: int | None

    @property
    def _core(self) -> Any:
        """The fitted extension, without an `Extended` around it."""
        return getattr(self.extension_, "extension_", self.extension_)

    @property
    def _map(self) -> MapModel | None:
        """The fitted model of the extension, if it has neighbourhoods."""
        return getattr(self._core, "model_", None)

    def _makes_its_map(self) -> bool:
        """Return True if the extension embeds the points itself and needs no map."""
        return self.extension is not None and not get_tags(self.extension).target_tags.required

    def _fit_extension(self, X: Points, Y: np.ndarray | None) -> None:
        self.extension_ = None
        if self._makes_its_map():
            self.extension_ = clone(self.extension).fit(X)
        elif Y is not None:
            self.extension_ = clone(self.extension or PCAExtension(n_jobs=self.n_jobs)).fit(X, Y)
