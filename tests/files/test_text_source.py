"""Text read block by block: the same numbers whatever the blocks, the parser, the compression."""

import gzip
import io

import numpy as np
import pytest

from outsample.files import text_source
from outsample.files.source import CellError, Position
from outsample.files.tables import open_table, typed
from outsample.files.text_source import TextSource

VALUES = np.random.default_rng(0).normal(size=(200, 3)) * 10.0 ** np.arange(-8, 16, 8)


def lines(values=VALUES, delimiter=","):
    rows = ([f'"row, {at}"', *map(repr, row)] for at, row in enumerate(values.tolist()))
    return "".join(delimiter.join(row) + "\n" for row in (["id", "a", "b", "c"], *rows))


@pytest.fixture(params=["pyarrow", "python"])
def parser(request, monkeypatch):
    """Both ways of reading a block."""
    if request.param == "python":
        monkeypatch.setattr(text_source, "find_spec", lambda name: None)
    else:
        pytest.importorskip("pyarrow")
        monkeypatch.setattr(text_source, "MIN_ARROW_BYTES", 0)


def read(source, features=(1, 2, 3), carried=(0,), **options):
    parts = list(source.rows(features, carried, **options))
    texts = [cell for part in parts for cell in part.carried.get("id", [])]
    return np.concatenate([part.numbers for part in parts]), texts, parts


@pytest.mark.parametrize("block", [64, 1000, 2**20])
def test_numbers_come_back_to_the_last_bit(tmp_path, monkeypatch, parser, block):
    monkeypatch.setattr(text_source, "BLOCK_BYTES", block)
    path = tmp_path / "a.csv"
    path.write_text(lines())
    numbers, texts, parts = read(open_table(path))
    assert (numbers == VALUES).all()
    assert texts == [f"row, {at}" for at in range(200)]
    assert [part.begin for part in parts[1:]] == [part.end for part in parts[:-1]]
    assert parts[-1].end == (200, path.stat().st_size, 201)


def test_reading_goes_on_from_any_chunk(tmp_path, monkeypatch, parser):
    monkeypatch.setattr(text_source, "BLOCK_BYTES", 500)
    (tmp_path / "a.csv").write_text(lines())
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write(lines())
    for name in ("a.csv", "a.csv.gz"):
        parts = read(open_table(tmp_path / name))[2]
        assert len(parts) > 5
        rest, texts, _ = read(open_table(tmp_path / name), start=parts[2].end)
        assert (rest == VALUES[parts[2].end.row :]).all() and texts[0] == f"row, {parts[2].end.row}"


def test_a_pipe_is_read_once_and_needs_no_file(monkeypatch, parser):
    monkeypatch.setattr(text_source, "BLOCK_BYTES", 500)
    source = TextSource("pipe", stream=io.BytesIO(lines(delimiter=";").encode()))
    assert source.names == ["id", "a", "b", "c"] and source.size is None
    assert (read(source)[0] == VALUES).all()


def test_line_ends_and_marks_inside_quotation_marks(tmp_path, monkeypatch, parser):
    text = 'id,x\n"one\ntwo",1\n"say ""so""",2\n\n"",3'
    (tmp_path / "a.csv").write_text("\ufeff\n" + text, encoding="utf-8")
    for block in (4, 2**20):
        monkeypatch.setattr(text_source, "BLOCK_BYTES", block)
        numbers, texts, _ = read(open_table(tmp_path / "a.csv"), [1])
        assert numbers.ravel().tolist() == [1, 2, 3]
        assert texts == ["one\ntwo", 'say "so"', ""]


@pytest.mark.parametrize("cell", ["nan", " 5 ", "+5", "1e400", "-Infinity", '"5"', "0005", "5."])
def test_cells_mean_the_same_to_both_parsers(tmp_path, parser, cell):
    (tmp_path / "a.csv").write_text(f"x,y\n1,{cell}\n")
    value = read(open_table(tmp_path / "a.csv"), [1], [])[0][0, 0]
    np.testing.assert_equal(value, float(cell.strip('"')))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("x,1,2,no", "line 3, column 4: 'no' is not a number"),
        ("x,1,2,", "line 3, column 4: a cell is empty"),
        ("x,1,2", "line 3 has 3 columns, but others have 4"),
        ("x,1,2,3,4", "line 3 has 5 columns, but others have 4"),
        ("x,1,2,0x10", "'0x10' is not a number"),
        ("x,1,2,2024_01", "'2024_01' is not a number"),
        ("x,1,2,1_0.5", "'1_0.5' is not a number"),
        ("x,1,2,\uff11\uff12", "'\uff11\uff12' is not a number"),
        ("x,1,2,\u0661", "'\u0661' is not a number"),
    ],
)
def test_faults_are_told_in_place_or_left_empty(tmp_path, parser, row, words):
    (tmp_path / "a.csv").write_text(f"id,a,b,c\n\n{row}\ny,4,5,6\n")
    with pytest.raises(CellError, match=words):
        read(open_table(tmp_path / "a.csv"))
    numbers, texts, _ = read(open_table(tmp_path / "a.csv"), lenient=True)
    assert np.isnan(numbers[0]).any() and numbers[1].tolist() == [4, 5, 6]
    assert texts[1] == "y"


def test_files_that_are_no_text(tmp_path, parser):
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(lines().encode())[:-30])
    (tmp_path / "no.csv.gz").write_bytes(b"plain text, not compressed")
    (tmp_path / "mac.csv").write_text("a,b\r1,2\r", newline="")
    for name, words in [("cut", "damaged"), ("no", "damaged"), ("mac", "carriage return")]:
        with pytest.raises(CellError, match=words):
            read(open_table(next(tmp_path.glob(f"{name}.*"))))
    latin = "id,x\n\xe9,1\n".encode("latin-1")
    (tmp_path / "latin.csv").write_bytes(latin)
    with pytest.raises(CellError, match="not text in UTF-8"):
        read(open_table(tmp_path / "latin.csv"), [1])


def test_a_quotation_mark_without_partner_ends_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr(text_source, "BLOCK_BYTES", 100)
    monkeypatch.setattr(text_source, "MAX_ROW_BYTES", 1000)
    (tmp_path / "a.csv").write_text('id,x\n5" pipe,1\n' + "a,1\n" * 1000)
    with pytest.raises(CellError, match=r"row from line 2 on has no end.*quotation mark"):
        read(open_table(tmp_path / "a.csv"), [1])


def test_the_delimiter_can_be_given(tmp_path):
    (tmp_path / "a.txt").write_text("a,b|c\n1|2\n")
    source = open_table(tmp_path / "a.txt", delimiter="|")
    assert source.names == ["a,b", "c"] and read(source, [0, 1], [])[0].tolist() == [[1, 2]]
    (tmp_path / "b.txt").write_text("a  b\n1   2\n")
    assert open_table(tmp_path / "b.txt", delimiter=" ").names == ["a", "b"]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1", "-2"], [1, -2]),
        (["1.50", "2"], [1.5, 2.0]),
        (["007", "8"], ["007", "8"]),
        (["a", "1"], ["a", "1"]),
        (["99999999999999999999"], ["99999999999999999999"]),
        (["2024_01", "2024_02"], ["2024_01", "2024_02"]),
        (["\uff11", "\uff12"], ["\uff11", "\uff12"]),
        (["1", "nan"], [1.0, np.nan]),
    ],
)
def test_text_becomes_numbers_only_where_it_loses_nothing(cells, values):
    np.testing.assert_array_equal(typed(np.array(cells, dtype=object)), values)


@pytest.mark.parametrize("cell", ["True", "true", "TRUE", " False ", '"false"'])
def test_booleans_are_numbers_in_text_as_in_parquet(tmp_path, parser, cell):
    (tmp_path / "a.csv").write_text(f"x,y\n1,{cell}\n2,3\n")
    numbers = read(open_table(tmp_path / "a.csv"), [0, 1], [])[0]
    assert numbers.tolist() == [[1, float("rue" in cell.lower())], [2, 3]]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("1_1,1_2", ["1_1", "1_2"]),
        ("inf,sup", ["inf", "sup"]),
        ("\uff11,\uff12", ["\uff11", "\uff12"]),
        ("true,name", ["true", "name"]),
        ("1,2", None),
        ("nan,inf", None),
        ("true,false", None),
        ("1_1,2", None),
    ],
)
def test_a_heading_is_words_without_any_number(tmp_path, line, names):
    (tmp_path / "a.csv").write_text(f"{line}\n3,4\n", encoding="utf-8")
    source = open_table(tmp_path / "a.csv")
    assert source.has_names == (names is not None)
    assert names is None or source.names == names


@pytest.mark.parametrize("broken", [False, True])
def test_a_long_cell_is_a_cell(tmp_path, parser, broken):
    """pyarrow has no limit; Python's reader, which takes over for a bad cell, has 131,072."""
    text = "a" * 200_000
    (tmp_path / "a.csv").write_text(f"id,x\n{text},1\nb,{'no' if broken else 2}\n")
    numbers, texts, _ = read(open_table(tmp_path / "a.csv"), [1], lenient=True)
    assert texts == [text, "b"] and numbers[0, 0] == 1
    (tmp_path / "b.csv").write_text(f"id,{text}\nb,1\n")
    assert open_table(tmp_path / "b.csv").names == ["id", text]


def test_a_line_without_end_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(text_source, "BLOCK_BYTES", 100)
    monkeypatch.setattr(text_source, "MAX_ROW_BYTES", 1000)
    (tmp_path / "first.csv").write_text("\n" + "1," * 2000)
    (tmp_path / "second.csv").write_text("a,b\n" + "1," * 2000)
    with pytest.raises(CellError, match=r"first.csv: the row from line 2 on has no end"):
        open_table(tmp_path / "first.csv")
    with pytest.raises(CellError, match=r"second.csv: the row from line 2 on has no end"):
        read(open_table(tmp_path / "second.csv"), [1], [])


def test_a_position_starts_at_the_beginning():
    assert Position() == (0, 0, 0)
