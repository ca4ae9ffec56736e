"""Reading tables: every format, and words that say where a file is wrong."""

import sys

import numpy as np
import pytest

from outsample.files.tables import read_table

TABLE = np.array([[1.0, 2.5], [-3.0, 4e-3], [0.0, 6.0]])


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "bool", "float16"])
def test_npy_keeps_float32_and_widens_the_rest(tmp_path, dtype):
    values = TABLE.astype(dtype)
    np.save(tmp_path / "a.npy", values)
    table = read_table(tmp_path / "a.npy")
    assert table.dtype == ("float32" if dtype == "float32" else "float64")
    assert (table == values).all()


def test_a_plain_list_of_numbers_is_one_column(tmp_path):
    np.save(tmp_path / "a.npy", TABLE[:, 0])
    assert read_table(tmp_path / "a.npy").shape == (3, 1)


def test_npz_by_name_or_the_only_one(tmp_path):
    np.savez(tmp_path / "two.npz", X=TABLE, Y=TABLE[:, :1])
    np.savez(tmp_path / "one.npz", points=TABLE)
    assert read_table(tmp_path / "two.npz", "Y").shape == (3, 1)
    assert (read_table(tmp_path / "one.npz", "Y") == TABLE).all()
    with pytest.raises(ValueError, match="no array called Z; it contains X, Y"):
        read_table(tmp_path / "two.npz", "Z")
    np.save(tmp_path / "a.npy", TABLE)
    (tmp_path / "a.npy").rename(tmp_path / "named.npz")
    assert (read_table(tmp_path / "named.npz") == TABLE).all()


@pytest.mark.parametrize(
    "text",
    [
        "1,2.5\n-3,4e-3\n0,6\n",
        "x,y\n1,2.5\n-3,4e-3\n0,6",
        "x;y\r\n1;2.5\r\n-3;4e-3\r\n0;6\r\n",
        "1\t2.5\n-3\t4e-3\n0\t6\n",
        "1 2.5\n-3   4e-3\n 0 6\n",
        "\n\nx y\n1 2.5\n\n-3 4e-3\n0 6\n",
        '"x","y"\n"1","2.5"\n"-3","4e-3"\n"0","6"\n',
        "0,1\n1,2.5\n-3,4e-3\n0,6\n",
        ",x,y\n0,1,2.5\n1,-3,4e-3\n2,0,6\n",
        ",0,1\n0,1,2.5\n1,-3,4e-3\n2,0,6\n",
        ",x,y\nfirst,1,2.5\nsecond,-3,4e-3\nthird,0,6\n",
        "\ufeffx,y\n1,2.5\n-3,4e-3\n0,6\n",
    ],
)
def test_text_of_many_kinds(tmp_path, text):
    assert (read_table(write(tmp_path / "a.csv", text)) == TABLE).all()


def test_one_column_of_text_keeps_its_first_number(tmp_path):
    assert read_table(write(tmp_path / "a.txt", "0\n1\n")).tolist() == [[0.0], [1.0]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n3,four\n", "line 3, column 2: 'four' is not a number"),
        ("1,2\n3,\n", "line 2, column 2: a cell is empty"),
        ("1,,3\n4,5,6\n", "line 1, column 2: a cell is empty"),
        (",2,3\n4,5,6\n", "line 1, column 1: a cell is empty"),
        ("NA,2\n3,4\n", "line 1, column 1: 'NA' is not a number"),
        ("NA;NA\n3;4\n", "line 1, column 1: 'NA' is not a number"),
        (",\n3,4\n", "line 1, column 1: a cell is empty"),
        ("x,2020\n3,4\n", "line 1, column 1: 'x' is not a number"),
        ("\n1 two\n3 4\n", "line 2, column 2: 'two' is not a number"),
        ("1,2\n3,4,5\n", "line 2 has 3 columns, but others have 2"),
        (",x\nfirst,1\nsecond,no\n", "line 3, column 2: 'no' is not a number"),
        ("", "not rows and columns"),
        ("a,b\n", "not rows and columns"),
    ],
)
def test_faults_of_text_are_found_in_place(tmp_path, text, words):
    with pytest.raises(ValueError, match=words):
        read_table(write(tmp_path / "a.csv", text))


def test_other_encodings_are_refused(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe\x00,1\n")
    (tmp_path / "b.csv").write_bytes(b"1,2\n3,\xe9\n")
    for name in ("a.csv", "b.csv"):
        with pytest.raises(ValueError, match=r"UTF-8|is not a number"):
            read_table(tmp_path / name)


def test_pickles_are_never_opened(tmp_path):
    objects = np.array([{}, 1], dtype=object)
    np.save(tmp_path / "a.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "a.npz", X=objects)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(ValueError, match="not a plain array of numbers"):
            read_table(tmp_path / name)


@pytest.mark.parametrize("values", [np.array(["a"]), np.zeros((2, 2, 2)), np.zeros((2, 1)) * 1j])
def test_what_is_no_table_of_numbers(tmp_path, values):
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(ValueError, match=r"not real numbers|not rows and columns"):
        read_table(tmp_path / "a.npy")


def test_damage_endings_and_missing_files(tmp_path):
    np.save(tmp_path / "a.npy", TABLE)
    (tmp_path / "a.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"a\.npy: damaged"):
        read_table(tmp_path / "a.npy")
    with pytest.raises(ValueError, match=r"unknown ending; the formats are \.npy"):
        read_table(tmp_path / "a.mat")
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_table(tmp_path / "none.npy")


def frame_file(path, frame):
    """Write columns as Parquet, an Arrow file, or an Arrow stream."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import feather, ipc, parquet

    table = pyarrow.table(frame)
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    elif path.suffix == ".arrows":
        with ipc.new_stream(str(path), table.schema) as writer:
            writer.write_table(table)
    else:
        feather.write_feather(table, str(path), compression="uncompressed")
    return path


class TestArrow:
    @pytest.mark.parametrize("ending", [".parquet", ".arrow", ".feather", ".arrows"])
    def test_numbers(self, tmp_path, ending):
        path = frame_file(tmp_path / f"a{ending}", {"x": [1, 2], "y": [0.5, None]})
        assert np.array_equal(read_table(path), [[1, 0.5], [2, np.nan]], equal_nan=True)

    def test_float32_stays_and_bits_are_numbers(self, tmp_path):
        values = np.array([[1.5], [0.1]], dtype=np.float32)
        path = frame_file(tmp_path / "a.parquet", {"x": values[:, 0]})
        assert read_table(path).dtype == np.float32 and (read_table(path) == values).all()
        path = frame_file(tmp_path / "b.parquet", {"x": [True, False]})
        assert read_table(path).tolist() == [[1.0], [0.0]]

    def test_text_in_a_column(self, tmp_path):
        path = frame_file(tmp_path / "a.parquet", {"x": [1], "name": ["a"]})
        with pytest.raises(ValueError, match="column 'name' contains string, not numbers"):
            read_table(path)

    @pytest.mark.parametrize("ending", [".parquet", ".arrow"])
    def test_damage(self, tmp_path, ending):
        path = frame_file(tmp_path / f"a{ending}", {"x": [1.0] * 50})
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(ValueError, match=r"a\..*: damaged"):
            read_table(path)

    def test_without_pyarrow(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(ValueError, match=r"pip install \"outsample\[tables\]\""):
            read_table(write(tmp_path / "a.parquet", "not read"))
