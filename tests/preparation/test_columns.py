"""Kinds of columns, and what each kind becomes, compared with plain twins."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from outsample.preparation.columns import describe_columns
from outsample.preparation.table_cells import best_date_format, read_table
from outsample.preparation.table_preparation import TablePreparation
from outsample.preparation.transformers import NearestRowsImputer

RNG = np.random.default_rng(0)
N = 60


def frame():
    table = pd.DataFrame({
        "number": RNG.normal(size=N),
        "row": RNG.permutation(N),
        "name": [f"person {at}" for at in range(N)],
        "sex": RNG.choice(["f", "m"], N),
        "is_new": RNG.random(N) > 0.5,
        "island": pd.Categorical(RNG.choice(["a", "b", "c"], N)),
        "moment": pd.date_range("2020-01-01 06:00", periods=N, freq="7h"),
        "day": [f"{1 + at % 28:02d}/02/2021" for at in range(N)],
        "unit": "kg",
        "empty": np.full(N, np.nan),
        "text_number": [str(at / 7) for at in range(N)],
    })  # fmt: skip
    table.loc[3, ["number", "sex", "moment"]] = None
    return table


KINDS = {
    "number": "number", "row": "id", "name": "id", "sex": "category", "is_new": "category",
    "island": "category", "moment": "date", "day": "date", "unit": "constant",
    "empty": "constant", "text_number": "number",
}  # fmt: skip


@pytest.mark.parametrize(
    "convert",
    [
        lambda table: table,
        pl.from_pandas,
        lambda table: pa.Table.from_pandas(table, preserve_index=False),
        lambda table: {name: table[name].to_numpy() for name in table},
        lambda table: {name: table[name].tolist() for name in table},
    ],
    ids=["pandas", "polars", "Arrow", "dict of arrays", "dict of lists"],
)
def test_kinds_and_numbers_do_not_depend_on_the_library(convert):
    table = frame()
    preparation = TablePreparation().fit(table)
    assert {column.name: column.kind for column in preparation.columns_} == KINDS
    other = TablePreparation().fit(convert(table))
    assert other.columns_ == preparation.columns_
    expected = preparation.transform(table)
    np.testing.assert_array_equal(other.transform(convert(table)), expected)
    np.testing.assert_array_equal(preparation.transform(convert(table)), expected)


def test_a_csv_file_and_a_parquet_file_have_the_same_columns(tmp_path):
    table = frame().drop(columns="island")
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    text, typed = (
        pd.read_csv(tmp_path / "t.csv", float_precision="round_trip"),
        pd.read_parquet(tmp_path / "t.parquet"),
    )
    text["is_new"] = text["is_new"].astype(str)  # "True", as a reader without booleans has it
    a, b = TablePreparation().fit(text), TablePreparation().fit(typed)
    assert a.columns_ == b.columns_
    np.testing.assert_array_equal(a.transform(typed), b.transform(text))


def test_numbers_are_standardised_and_dates_are_days():
    table = {"a": [1.0, 2.0, 6.0], "d": ["2020-01-01", "2020-01-03", "2020-01-11"]}
    X = TablePreparation().fit_transform(table)
    for column, values in zip(X.T, ([1, 2, 6], [0, 2, 10]), strict=True):
        np.testing.assert_allclose(column, (values - np.mean(values)) / np.std(values))


def test_the_time_of_the_day_is_a_point_of_the_unit_circle():
    hours = np.arange(48)
    moments = np.datetime64("2020-01-01") + hours.astype("timedelta64[h]")
    X = TablePreparation().fit_transform({"t": moments})
    angle = 2 * np.pi * hours / 24
    np.testing.assert_allclose(X[:, 1:], np.column_stack([np.cos(angle), np.sin(angle)]), atol=1e-9)


def test_categories_are_equally_far_apart_and_one_column_is_for_those_never_seen():
    table = {"c": ["a"] * 9 + ["b"] * 7 + ["rare", "scarce"]}
    preparation = TablePreparation().fit(table)
    column = preparation.columns_[0]
    assert column.categories == ("a", "b") and column.rare == ("rare", "scarce")
    assert column.outputs == ["c_a", "c_b", "c_other", "c_unseen"]
    X = preparation.transform({"c": ["a", "b", "rare", "scarce", "new"]})
    np.testing.assert_array_equal(X, np.eye(4)[[0, 1, 2, 2, 3]])
    distances = np.linalg.norm(X[[0, 1, 2, 4]][:, None] - X[[0, 1, 2, 4]], axis=2)
    np.testing.assert_allclose(distances, np.sqrt(2) * (1 - np.eye(4)))


def test_at_most_twenty_categories_have_a_column():
    labels = [f"c{at:02d}" for at in range(25) for _ in range(6 + at)]
    column = TablePreparation().fit({"c": labels}).columns_[0]
    assert len(column.categories) == 20 and column.rare == ("c04", "c03", "c02", "c01", "c00")


def test_many_columns_of_similar_spread_are_one_block():
    X = RNG.normal(size=(50, 25)) * RNG.uniform(1, 5, 25)
    preparation = TablePreparation().fit(X)
    assert {column.kind for column in preparation.columns_} == {"vector"}
    np.testing.assert_array_equal(preparation.transform(X), X)
    X[:, ::2] *= 1e4
    assert {column.kind for column in TablePreparation().fit(X).columns_} == {"number"}


def test_missing_cells_are_filled_from_the_nearest_rows():
    X = RNG.normal(size=(40, 4))
    X[RNG.random(X.shape) < 0.2] = np.nan
    queries = RNG.normal(size=(9, 4))
    queries[RNG.random(queries.shape) < 0.4] = np.nan
    queries[0] = np.nan
    expected = queries.copy()
    for i, row in enumerate(queries):
        with np.errstate(invalid="ignore"):
            counts = (~np.isnan(X - row)).sum(axis=1)
            distances = np.where(
                counts, np.nansum((X - row) ** 2, axis=1) / np.maximum(counts, 1), np.inf
            )
        for a in np.flatnonzero(np.isnan(row)):
            donors = [j for j in np.argsort(distances, kind="stable") if not np.isnan(X[j, a])]
            donors = [j for j in donors if distances[j] < np.inf][:5]
            expected[i, a] = X[donors, a].mean() if donors else np.nanmean(X[:, a])
    imputer = NearestRowsImputer().fit(X)
    np.testing.assert_allclose(imputer.transform(queries), expected)
    single = np.vstack([imputer.transform(row[None]) for row in queries])
    np.testing.assert_array_equal(single, imputer.transform(queries))


def test_row_numbers_of_a_part_of_the_rows_are_ids():
    rows = np.random.default_rng(0).permutation(400)[:300]
    assert TablePreparation().fit({"row": rows, "x": np.sqrt(rows)}).columns_[0].kind == "id"
    assert TablePreparation().fit({"age": rows % 90, "x": rows * 7.0}).columns_[0].kind == "number"


def test_kinds_can_be_given():
    table = frame()
    kinds = {"row": "number", "number": "drop", "name": "category", "sex": "id"}
    columns = TablePreparation(kinds=kinds).fit(table).columns_
    assert {c.name: c.kind for c in columns if c.name in kinds} == kinds
    with pytest.raises(ValueError, match="'colour', which the table does not have"):
        TablePreparation(kinds={"colour": "id"}).fit(table)
    with pytest.raises(ValueError, match=r"kinds\['sex'\] is 'gender', but must be one of"):
        TablePreparation(kinds={"sex": "gender"}).fit(table)


def test_errors_name_the_column():
    preparation = TablePreparation().fit({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]})
    with pytest.raises(ValueError, match="'a' contains numbers, but its row 1 is 'two'"):
        preparation.transform({"a": ["1", "two"], "b": ["x", "x"]})
    with pytest.raises(ValueError, match="'a' contains infinity in row 0"):
        preparation.transform({"a": [np.inf], "b": ["x"]})
    with pytest.raises(ValueError, match=r"lacks the column\(s\) 'b'"):
        preparation.transform({"a": [1.0]})
    with pytest.raises(TypeError, match="'b' has a cell of type list"):
        TablePreparation().fit({"a": [1.0, 2.0], "b": np.array([[1], "x"], dtype=object)})
    with pytest.raises(ValueError, match="'a' contains a missing cell in row 1"):
        TablePreparation(fill="refuse").fit({"a": [1.0, np.nan, 2.0]})
    with pytest.raises(ValueError, match="No column of the table can be used"):
        TablePreparation().fit({"a": [1.0, 1.0]})
    with pytest.raises(ValueError, match="different lengths"):
        TablePreparation().fit({"a": [1.0, 2.0], "b": [1.0]})


def test_columns_are_matched_by_name():
    table = frame()
    preparation = TablePreparation().fit(table)
    shuffled = table[list(table)[::-1]].assign(other=1)
    expected = preparation.transform(table)
    np.testing.assert_array_equal(preparation.transform(shuffled), expected)
    np.testing.assert_array_equal(preparation.transform(table.drop(columns="name")), expected)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["2020-01-31", "2021-02-01"], "iso"),
        (["01/31/2020", "02/28/2020"], "%m/%d/%Y"),
        (["31/01/2020", "28/02/2020"], "%d/%m/%Y"),
        (["31.01.2020 12:30", "28.02.2020 00:00"], "%d.%m.%Y %H:%M"),
    ],
)
def test_formats_of_dates(cells, expected):
    assert best_date_format(np.array(cells, dtype=object)) == (expected, 1.0)


def test_time_zones_are_converted():
    zone = datetime.timezone(datetime.timedelta(hours=2))
    moments = [datetime.datetime(2020, 1, day, 2, tzinfo=zone) for day in (1, 2, 3)]
    columns = describe_columns(read_table({"t": np.array(moments, dtype=object)}))
    assert columns[0].encode(np.array(moments, dtype=object))[:, 0].tolist() == [
        18262,
        18263,
        18264,
    ]
