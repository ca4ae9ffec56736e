"""Schemas of the transformers of `PreparedModel`: a fixed table of scikit-learn's, and our own.

The fitted attributes of scikit-learn's transformers are stored as they are: numbers, strings,
arrays, lists, dicts, and transformers of the table. Only our own transformers pass arrays to
compiled code, so their shapes are checked here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
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

from outsample.files.kinds import (
    any_float,
    array,
    boolean,
    column_names,
    either,
    integer,
    mapping,
    one_of,
    optional,
    sequence,
    size,
    string,
)
from outsample.files.schema import (
    FUNCTIONS,
    SCALAR_TYPES,
    SCHEMAS,
    check_object,
    is_a,
    parameter,
    parameter_names,
    register,
    register_function,
)
from outsample.files.scope import SchemaError, Scope, describe_value
from outsample.preparation.columns import Column, Columns
from outsample.preparation.recipes import PreparationTrial, PreparationTrials
from outsample.preparation.table_cells import DATE_FORMATS
from outsample.preparation.table_preparation import TablePreparation
from outsample.preparation.transformers import ColumnWeights, NearestRowsImputer, SubspaceDistance

MAX_COLUMNS, MAX_STORED_CATEGORIES = 100_000, 1_000_000
NAMED_FUNCTIONS = (
    np.log1p, np.expm1, np.log, np.log2, np.log10, np.sqrt, np.cbrt, np.square, np.abs, np.arcsinh,
    np.arctan, np.tanh, np.sign,
)  # fmt: skip
# Fitted attributes by class; those that some versions or settings do not have are optional.
FITTED: dict[type, str] = {
    Pipeline: "",
    FeatureUnion: "",
    ColumnTransformer: "_columns _transformer_to_input_indices _remainder sparse_output_ "
    "transformers_ output_indices_ _name_to_fitted_passthrough",
    StandardScaler: "n_samples_seen_ mean_ var_ scale_",
    RobustScaler: "center_ scale_",
    MinMaxScaler: "n_samples_seen_ scale_ min_ data_min_ data_max_ data_range_",
    MaxAbsScaler: "n_samples_seen_ max_abs_ scale_",
    QuantileTransformer: "n_quantiles_ references_ quantiles_",
    PowerTransformer: "lambdas_ _scaler",
    Normalizer: "",
    OneHotEncoder: "_infrequent_enabled categories_ drop_idx_ _drop_idx_after_grouping "
    "_n_features_outs _infrequent_indices _default_to_infrequent_mappings",
    OrdinalEncoder: "_infrequent_enabled categories_ _missing_indices _infrequent_indices "
    "_default_to_infrequent_mappings",
    SimpleImputer: "statistics_ indicator_ _fit_dtype _fill_dtype",
    KNNImputer: "indicator_ _fit_X _mask_fit_X _valid_mask",
    MissingIndicator: "_precomputed _n_features features_",
    PCA: "_fit_svd_solver mean_ noise_variance_ n_samples_ n_components_ components_ "
    "explained_variance_ explained_variance_ratio_ singular_values_",
    TruncatedSVD: "components_ explained_variance_ explained_variance_ratio_ singular_values_",
    FunctionTransformer: "",
}
TRANSFORMERS = (*FITTED, TablePreparation, NearestRowsImputer, ColumnWeights, SubspaceDistance)


def data(value: Any, scope: Scope) -> None:
    """Accept values without code, and transformers of the table, in lists, tuples and dicts."""
    if type(value) in TRANSFORMERS:
        check_object(value, scope)
    elif isinstance(value, dict):
        for item in value.values():
            data(item, scope)
    elif isinstance(value, list | tuple):
        for item in value:
            data(item, scope)
    elif not isinstance(value, (*SCALAR_TYPES, np.ndarray, slice, np.dtype, type(None), type)):
        if not any(value is function for function in FUNCTIONS.values()):
            raise SchemaError(f"is {describe_value(value)}, which no transformer contains")


for _function in NAMED_FUNCTIONS:
    register_function(f"numpy.{_function.__name__}", _function)
_OPTIONAL = ("n_features_in_", "feature_names_in_", "_sklearn_output_config")
for _class, _names in FITTED.items():
    _fields = [*parameter_names(_class), *_OPTIONAL, *_names.split()]
    register(
        _class,
        dict.fromkeys(_fields, data),
        optional=[*_OPTIONAL, *_names.split()],
        separate=True,
    )
_columns = {
    "n_features_in_": size("D"),
    "feature_names_in_": column_names,
    "_sklearn_output_config": mapping(one_of(None, "default", "pandas", "polars")),
}
_strings = sequence(string, MAX_STORED_CATEGORIES, tuple)
register(
    Column,
    {"name": string, "kind": string, "treatment": string, "range": string,
     "categories": _strings, "rare": _strings, "date_format": one_of(*DATE_FORMATS),
     "has_phase": boolean},
)  # fmt: skip
register(Columns, {"rows": sequence(is_a(Column), MAX_COLUMNS, tuple)})
_number = optional(either(any_float, integer()))
register(
    PreparationTrial,
    {"preparation": string, "screening_error": _number, "error": _number,
     "standard_errors": _number, "is_chosen": boolean},
)  # fmt: skip
register(PreparationTrials, {"rows": sequence(is_a(PreparationTrial), 1000, tuple)})
register(
    TablePreparation,
    {**_columns, "kinds": optional(mapping(string)), "columns_": is_a(Columns),
     "pipeline_": is_a(Pipeline), "selection_": is_a(PreparationTrials),
     "sources_": array(None, dtype=np.int64, low=0)},
    optional=_OPTIONAL[1:],
    separate=True,
)  # fmt: skip
register(
    NearestRowsImputer,
    {**_columns, "n_neighbors": integer(1, 10**6), "rows_": array("n", "D", has_nan=True)},
    optional=_OPTIONAL[1:],
    separate=True,
)
register(
    ColumnWeights,
    {**_columns, "weights": either(parameter, array("D"))},
    optional=_OPTIONAL[1:],
    separate=True,
)
register(
    SubspaceDistance,
    {**_columns, "projection": is_a(PCA, TruncatedSVD), "projection_": is_a(PCA, TruncatedSVD)},
    optional=_OPTIONAL[1:],
    separate=True,
)
assert all(transformer in SCHEMAS for transformer in TRANSFORMERS)

PREPARATION_FIELDS = {
    "prepare": either(one_of("auto", None), is_a(*TRANSFORMERS)),
    "preparation_": optional(is_a(*TRANSFORMERS)),
    "columns_": is_a(Columns),
    "selection_": is_a(PreparationTrials),
}


def check_prepared(model: Any, scope: Scope) -> None:
    """Check that the parts of a `PreparedModel` fit together."""
    scope.set_size("n", model.training_.n_rows)
    if model.training_.map_columns:
        scope.set_size("d", model.training_.map_columns)
    if not hasattr(model.estimator_, "n_features_in_"):
        raise SchemaError(".estimator_ is not fitted")
    if isinstance(model.preparation_, TablePreparation) and (
        model.preparation_.n_features_in_ != model.n_features_in_
    ):
        raise SchemaError(".preparation_ is for other columns")
