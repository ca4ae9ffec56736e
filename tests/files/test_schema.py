"""Registering classes, and the values that a model file can contain: scikit-learn transformers."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

from outsample.files import kinds
from outsample.files.encoding import Arrays, Decoder, Encoder
from outsample.files.kinds import (
    any_dtype,
    any_float,
    array,
    boolean,
    categories,
    column_names,
    column_selection,
    either,
    instance,
    integer,
    mapping,
    named_steps,
    numeric_dtype,
    one_of,
    optional,
    sequence,
    size,
    slices,
)
from outsample.files.layout import parse_json
from outsample.files.schema import (
    CLASSES,
    FUNCTIONS,
    SCHEMAS,
    check_object,
    is_a,
    parameter,
    register,
    register_function,
)
from outsample.files.scope import SchemaError, Scope


@pytest.fixture
def transformers():
    """Register transformers of scikit-learn for one test."""
    tables = [SCHEMAS, CLASSES, FUNCTIONS]
    before = [table.copy() for table in tables]
    columns = {"n_features_in_": size("D"), "feature_names_in_": column_names}
    register_function("numpy.log1p", np.log1p)
    scaler = {"mean_": array("D"), "var_": array("D", low=0), "scale_": array("D", low=0)}
    register(
        StandardScaler, {**columns, **scaler, "n_samples_seen_": either(integer(1), any_float)},
        optional=["feature_names_in_"], separate=True,
    )  # fmt: skip
    register(
        SimpleImputer,
        {**columns, "statistics_": either(array("D", has_nan=True), kinds.objects("D")),
         "_fit_dtype": any_dtype, "_fill_dtype": any_dtype, "indicator_": one_of(None)},
        optional=["feature_names_in_"], separate=True,
    )  # fmt: skip
    register(
        KNNImputer,
        {**columns, "indicator_": one_of(None), "_fit_X": array("n", "D", has_nan=True),
         "_mask_fit_X": array("n", "D", dtype=np.bool_, low=0, high=1),
         "_valid_mask": array("D", dtype=np.bool_, low=0, high=1)},
        optional=["feature_names_in_"], separate=True,
    )  # fmt: skip
    register(
        OneHotEncoder,
        {**columns, "dtype": numeric_dtype, "_infrequent_enabled": boolean,
         "categories_": sequence(categories), "drop_idx_": one_of(None),
         "_drop_idx_after_grouping": one_of(None), "_n_features_outs": sequence(integer())},
        lambda value, scope: _one_list_per_column(value, scope),
        optional=["feature_names_in_"], separate=True,
    )  # fmt: skip
    register(
        OrdinalEncoder,
        {**columns, "dtype": numeric_dtype, "_infrequent_enabled": boolean,
         "categories_": sequence(categories), "_missing_indices": mapping(integer(), integer())},
        optional=["feature_names_in_"], separate=True,
    )  # fmt: skip
    register(
        FunctionTransformer,
        {**columns, "func": one_of(*FUNCTIONS.values()), "kw_args": optional(mapping(parameter))},
        optional=["feature_names_in_", "n_features_in_"], separate=True,
    )  # fmt: skip
    single = is_a(
        StandardScaler, SimpleImputer, KNNImputer, OneHotEncoder, OrdinalEncoder,
        FunctionTransformer,
    )  # fmt: skip
    register(Pipeline, {"steps": named_steps(single)}, separate=True)
    step = either(one_of("drop", "passthrough"), single, is_a(Pipeline))
    steps = named_steps(step, column_selection)
    register(
        ColumnTransformer,
        {**columns, "transformers": steps, "transformers_": steps,
         "_columns": sequence(column_selection), "sparse_output_": boolean,
         "_transformer_to_input_indices": mapping(sequence(integer())),
         "_remainder": lambda value, scope: steps([value], scope),
         "output_indices_": mapping(slices)},
        optional=["feature_names_in_"], separate=True,
    )  # fmt: skip
    yield
    for table, contents in zip(tables, before, strict=True):
        table.clear()
        table.update(contents)


def _one_list_per_column(encoder, scope):
    if len(encoder.categories_) != scope.size("D"):
        raise SchemaError(".categories_ must have one array per column")


def stored(value):
    arrays = Arrays()
    encoder = Encoder(arrays)
    node = encoder.encode(value, "value")
    return json.dumps([encoder.objects, node]), arrays.arrays


def restored(text, arrays):
    objects, node = parse_json(text)
    decoder = Decoder(arrays.__getitem__)
    decoder.build(objects)
    return decoder.decode(node)


@pytest.mark.parametrize(
    "value",
    [
        np.array(["a", None, 1.5, True, 3], dtype=object),
        np.array([["a", "b"], ["c", None]], dtype=object),
        np.array(["a", "b\0", "ü\U0001f600"]),
        np.array([["ab", "c"]]),
        np.array([], dtype=object),
        np.array([], dtype="<U3"),
        np.array(["x"], dtype=object),
    ],
)
def test_arrays_of_strings_and_objects_keep_their_dtype(value):
    result = restored(*stored(value))
    assert result.dtype == value.dtype and result.shape == value.shape
    assert result.tolist() == value.tolist()
    assert [*map(type, result.ravel().tolist())] == [*map(type, value.ravel().tolist())]


@pytest.mark.parametrize(
    "value",
    [
        slice(1, None, 2), slice("a", "c"), np.dtype("float32"), np.dtype("<U7"), np.dtype(object),
        np.float64, np.int8, np.bool_, float, object, {"a": slice(0, 3)}, {0: 2, 5: 1}, {"a": (1,)},
        [("name", "drop", ["a", "b"]), ("other", "passthrough", [0, 1])], np.dtype(bool),
    ],
)  # fmt: skip
def test_slices_types_and_dicts_are_restored(value):
    result = restored(*stored(value))
    assert result == value and type(result) is type(value)


def test_nan_in_object_arrays_is_restored():
    result = restored(*stored(np.array(["a", np.nan, np.float32(2)], dtype=object)))
    assert result[0] == "a" and np.isnan(result[1]) and type(result[2]) is np.float32


def test_arrays_with_one_path_do_not_replace_one_another():
    result = restored(*stored({0: np.zeros(3), 1: np.ones(3), 2: np.zeros(3)}))
    assert result[0] is result[2] and result[1].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "value",
    [
        np.array([object()], dtype=object), np.array([[1, 2]], dtype=object)[..., None].tolist,
        np.array([[1], "a"], dtype=object), {(1, 2): 3}, np.zeros(2, "M8[s]"), np.dtype("M8[s]"),
        len, print, StandardScaler, {1, 2}, lambda x: x,
    ],
)  # fmt: skip
def test_other_objects_and_code_are_rejected(value):
    with pytest.raises(TypeError):
        stored(value)


@pytest.mark.parametrize(
    "node",
    [
        {"dtype": "M8[s]"}, {"dtype": "V8"}, {"dtype": "<U99999999"}, {"dtype": "os"},
        {"dtype": "f8,f8"}, {"dtype": ""}, {"dtype": "<f3"}, {"type": "type"}, {"type": []},
        {"function": "os.system"}, {"slice": [1, 2]}, {"slice": "abc"}, {"pairs": [[1]]},
        {"pairs": [[[], 1]]}, {"pairs": [[1, 1], [1, 2]]}, {"mixed": "words"}, {"strings": "words"},
        {"mixed": "floats"}, {"strings": "characters"}, {"strings": "floats"}, {"words": 3},
        {"dict": {}, "more": 1}, {"scalar": "float64"}, {"scalar": "float64", "value": 1, "x": 1},
    ],
)  # fmt: skip
def test_hostile_values_are_rejected(node):
    arrays = {
        "floats": np.zeros(3),
        "words": np.frombuffer(b'["a", "b"]', np.uint8),
        "characters": np.array([[0x110000]], np.uint32),
    }
    with pytest.raises(ValueError):
        Decoder(arrays.__getitem__).decode(node)


@pytest.fixture
def table():
    return pd.DataFrame({
        "length": [1.0, 2.0, np.nan, 4.0], "width": [5.0, 6.0, 7.0, 9.0],
        "color": ["red", "blue", "red", None], "is_new": [True, False, True, True],
    })  # fmt: skip


@pytest.fixture
def preparation(transformers, table):
    numbers = Pipeline([("fill", SimpleImputer()), ("scale", StandardScaler())])
    steps = [
        ("numbers", numbers, ["length", "width"]),
        ("colors", OneHotEncoder(handle_unknown="ignore"), ["color"]),
        ("ranks", OrdinalEncoder(), slice("color", "is_new")),
        ("logs", FunctionTransformer(np.log1p, feature_names_out="one-to-one"), [1]),
        ("neighbors", KNNImputer(), ["length", "is_new"]),
        ("none", "drop", ["width"]),
    ]
    return ColumnTransformer(steps).fit(table)


def test_registered_transformers_return_the_same_results(preparation, table):
    result = restored(*stored(preparation))
    check_object(result, Scope())
    np.testing.assert_array_equal(result.transform(table), preparation.transform(table))
    assert repr(result) == repr(preparation)
    assert [*result.get_feature_names_out()] == [*preparation.get_feature_names_out()]
    colors = result.named_transformers_["colors"].categories_[0]
    assert colors.tolist() == ["blue", "red", None] and colors.dtype == object


def test_transformers_have_sizes_of_their_own(preparation):
    scope = Scope()
    scope.set_size("D", 99)
    check_object(restored(*stored(preparation)), scope)


def test_transformers_that_are_not_valid_are_rejected(preparation):
    scaler = preparation.named_transformers_["numbers"].steps[1][1]
    scaler.mean_ = scaler.mean_[:1]
    with pytest.raises(SchemaError, match=r"\.transformers_\.steps\.mean_ has D = 1"):
        check_object(preparation, Scope())
    del scaler.mean_
    with pytest.raises(SchemaError, match=r"\.mean_ is unknown or missing"):
        check_object(preparation, Scope())


def test_an_object_that_is_not_valid_is_not_valid_at_the_second_look(preparation):
    scaler = StandardScaler().fit(np.eye(3))
    scaler.mean_ = np.zeros(2)
    with pytest.raises(SchemaError, match="mean_"):
        either(is_a(StandardScaler), is_a(StandardScaler, OneHotEncoder))(scaler, Scope())


def test_an_attribute_that_is_not_registered_is_rejected(preparation):
    preparation.cache_ = 1
    with pytest.raises(TypeError, match="ColumnTransformer has the attribute cache_"):
        stored(preparation)


def test_an_unfitted_transformer_can_be_a_parameter(preparation):
    text, arrays = stored(StandardScaler(with_mean=False))
    result = restored(text, arrays)
    check_object(result, Scope())
    assert repr(result) == "StandardScaler(with_mean=False)"


def test_renamed_classes_and_fields_keep_their_names_in_files(transformers):
    from dataclasses import dataclass

    @dataclass
    class Quality:
        error: float

    register(Quality, {"error": any_float}, stored_name="Judge2", stored_fields={"error": "wrong"})
    text, arrays = stored(Quality(0.5))
    assert json.loads(text) == [[["Judge2", {"wrong": 0.5}]], {"object": 0}]
    assert restored(text, arrays) == Quality(0.5)
    with pytest.raises(ValueError, match="two classes"):
        register(StandardScaler, {}, stored_name="Judge2")


@pytest.mark.parametrize(
    ("kind", "valid", "wrong"),
    [
        (column_selection, [["a"], [0, 1], slice("a", "b"), "a", 3, np.array([True])],
         [len, [1, "a"], [1.5], None, slice(0.5), np.array([1.5])]),
        (categories, [np.array(["a"]), np.arange(3), np.array(["a", None, 1.0], object)],
         [["a"], np.zeros((2, 2)), np.array([[1]], object), np.zeros(2, "M8[s]")]),
        (numeric_dtype, [np.float64, np.dtype("f4"), np.int8, float, bool],
         [object, str, np.dtype("O"), "float64", None, Scope]),
        (mapping(instance(int)), [{}, {"a": 1}], [{1: 1}, {"a": "b"}, []]),
        (array("q", has_nan=True), [np.array([np.nan, 1])], [np.array([np.inf])]),
        (parameter, [None, 1, "a", (0, 1), [None, 2.5]], [{}, [[1]], len, np.zeros(2)]),
    ],
)  # fmt: skip
def test_kinds(kind, valid, wrong):
    for value in valid:
        kind(value, Scope())
    for value in wrong:
        with pytest.raises(SchemaError):
            kind(value, Scope())
