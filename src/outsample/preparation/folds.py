"""Calibration by folds, where the preparation is fitted to the training rows.

A projection fits its training rows better than new rows. Scores and errors of training rows are
therefore too small. In folds, the preparation and the model are refitted without the rows that
are scored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from outsample.estimators.novelty_detector import LARGEST_OFFSET
from outsample.placers.map_model import MapModel
from outsample.preparation.table_cells import number_of_rows, take_rows
from outsample.preparation.table_preparation import TablePreparation
from outsample.preparation.transformers import (
    ColumnWeights,
    NearestRowsImputer,
    SubspaceDistance,
)
from outsample.trust import conformal
from outsample.trust.error_bars import conformal_quantile

# Transformers of single columns, whose few parameters hardly depend on a tenth of the rows.
COLUMNWISE = (
    StandardScaler, RobustScaler, MinMaxScaler, MaxAbsScaler, QuantileTransformer,
    PowerTransformer, Normalizer, OneHotEncoder, OrdinalEncoder, SimpleImputer, KNNImputer,
    MissingIndicator, FunctionTransformer, TablePreparation, NearestRowsImputer, ColumnWeights,
)  # fmt: skip
PARTS = {Pipeline: "steps", FeatureUnion: "transformer_list", ColumnTransformer: "transformers"}


def needs_folds(transformer: Any) -> bool:
    """Return True if a part is a projection, or any transformer that is not known to be harmless.

    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> needs_folds(StandardScaler()), needs_folds(make_pipeline(StandardScaler(), PCA(2)))
    (False, True)
    """
    return any(
        not isinstance(part, (*COLUMNWISE, str, type(None))) for part in _leaves(transformer)
    )


def _leaves(transformer: Any) -> Iterator[Any]:
    parts = PARTS.get(type(transformer))
    if parts is None:
        yield transformer
    else:
        for _, part, *_ in getattr(transformer, parts):
            yield from _leaves(part)


def with_subspace_distance(transformer: Any) -> Any:
    """Return the unfitted transformer with the distance off the subspace after each projection."""
    if isinstance(transformer, PCA | TruncatedSVD):
        return SubspaceDistance(transformer)
    parts = PARTS.get(type(transformer))
    if parts is None:
        return transformer
    replaced = [
        (name, with_subspace_distance(part), *columns)
        for name, part, *columns in getattr(transformer, parts)
    ]
    return clone(transformer).set_params(**{parts: replaced})


def calibrate_by_folds(estimator: Any, prepare: Any, table: Any, folds: int) -> None:
    """Replace the scores and rescale the error bars of a fitted estimator by those of folds.

    Parameters
    ----------
    estimator : NoveltyDetector, PCAExtension or Extended
        Fitted to the prepared table.
    prepare : transformer
        The preparation, unfitted.
    table : table
        Training rows.
    folds : int
        Number of folds.
    """
    n = number_of_rows(table)
    core = getattr(estimator, "_core", getattr(estimator, "extension_", estimator))
    Y = core.embedding_ if hasattr(core, "left_out_") else None
    is_detector = hasattr(estimator, "abnormality")
    extension = None if Y is None else _same_model(core)
    template = clone(estimator).set_params(extension=extension) if is_detector else extension
    scores, ratios = [], []
    for fold in np.array_split(np.random.default_rng(0).permutation(n), min(folds, n)):
        others = np.setdiff1d(np.arange(n), fold)
        preparation = clone(prepare)
        X = preparation.fit_transform(take_rows(table, others))
        queries = preparation.transform(take_rows(table, fold))
        model = clone(template).fit(X, None if Y is None else Y[others])
        if Y is not None:
            placed = model.place(queries)
            errors = np.linalg.norm(placed.coordinates - Y[fold], axis=1)
            ratios.append(errors / np.maximum(placed.error_bar, np.finfo(float).tiny))
        if is_detector:
            scores.append(model.abnormality(queries) if Y is None else placed.abnormality)
    if is_detector:
        estimator.scores_ = np.sort(np.concatenate(scores))
        estimator.offset_ = -min(
            conformal.threshold(estimator.scores_, estimator.alpha), LARGEST_OFFSET
        )
    if Y is not None:
        factor = conformal_quantile(np.concatenate(ratios), core.level)
        core.model_ = with_scaled_error_bars(core.model_, factor)
        if is_detector:
            estimator.model_ = replace(estimator.model_, model=core.model_)


def with_scaled_error_bars(model: MapModel, factor: float) -> MapModel:
    """Return the model of a map with all error bars multiplied by a factor."""
    quality = model.quality
    quality = quality._replace(error_bars=quality.error_bars.scaled(factor))
    return model._replace(quality=quality)


def _same_model(core: Any) -> Any:
    """Return an unfitted extension with the blend that was selected, if it is one."""
    if not core.selection_ or not hasattr(core.weighting_, "parts") or core.radius is not None:
        return clone(core)
    open_parameters = dict.fromkeys(("n_neighbors", "order", "loss", "tangent_dim"), "auto")
    return clone(core).set_params(weighting=core.weighting_, **open_parameters)
