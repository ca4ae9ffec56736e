"""Tables as R writes them: row names under a heading that is one cell shorter, quoted words."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from outsample import load
from outsample.cli import main
from outsample.files.tables import read_table

TABLES = {
    # write.table(points, "points.txt"): blanks, quoted names, the heading one cell shorter.
    "write.table": ("points.txt", '"x" "y"\n"1" 1.5 2\n"2" -3e-05 4.25\n"cell three" 5 6\n'),
    # write.table(points, sep = "\t", quote = FALSE)
    "tabs": ("points.tsv", "x\ty\nr1\t1.5\t2\nr2\t-3e-05\t4.25\nr3\t5\t6\n"),
    # write.table(points, sep = "\t", col.names = NA)
    "tabs, NA": ("points.tsv", '""\t"x"\t"y"\n"r1"\t1.5\t2\n"r2"\t-3e-05\t4.25\n"r3"\t5\t6\n'),
    # write.csv(points)
    "write.csv": ("points.csv", '"","x","y"\n"1",1.5,2\n"2",-3e-05,4.25\n"a, b",5,6\n'),
    # write.csv(points, row.names = FALSE)
    "no row names": ("points.csv", '"x","y"\n1.5,2\n-3e-05,4.25\n5,6\n'),
    # data.table::fwrite(points), readr::write_csv(points)
    "fwrite": ("points.csv", "x,y\n1.5,2\n-3e-05,4.25\n5,6\n"),
    # write.table(points, row.names = FALSE, col.names = FALSE)
    "bare": ("points.txt", "1.5 2\n-3e-05 4.25\n5 6\n"),
    # on Windows
    "write.table, CRLF": ("points.txt", '"x" "y"\r\n"1" 1.5 2\r\n"2" -3e-05 4.25\r\n"3" 5 6\r\n'),
}


@pytest.mark.parametrize("name", TABLES)
def test_what_r_writes_is_read(tmp_path, name):
    ending, text = TABLES[name]
    path = tmp_path / ending
    path.write_bytes(text.encode())
    np.testing.assert_array_equal(read_table(path), [[1.5, 2], [-3e-05, 4.25], [5, 6]])


@pytest.mark.parametrize(("word", "column"), [("NA", 2), ("NaN", None), ("Inf", None)])
def test_missing_values_of_r_are_told_or_kept(tmp_path, word, column):
    path = tmp_path / "points.csv"
    path.write_text(f'"","x","y"\n"1",1.5,2\n"2",{word},4.25\n')
    if column is None:  # numbers to a reader; the estimators refuse them, and say where
        assert not np.isfinite(read_table(path)[1, 0])
    else:
        with pytest.raises(ValueError, match=f"line 3, column {column}: '{word}' is not a number"):
            read_table(path)


def written_by_r(path, values, names, rows):
    """What `write.table(x, path)` writes."""
    lines = [" ".join(f'"{name}"' for name in names)]
    lines += [
        " ".join([f'"{row}"', *map(repr, value)]) for row, value in zip(rows, values, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")


def test_from_write_table_to_read_csv(tmp_path):
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(60, 3)), rng.normal(size=(4, 3))
    names = [f"cell {at}" for at in range(60)]
    written_by_r(tmp_path / "points.txt", X.tolist(), ["PC_1", "PC_2", "PC_3"], names)
    written_by_r(tmp_path / "map.txt", X[:, :2].tolist(), ["UMAP_1", "UMAP_2"], names)
    written_by_r(tmp_path / "new.txt", Q[:, ::-1].tolist(), ["PC_3", "PC_2", "PC_1"], "abcd")
    files = {
        name: str(tmp_path / name)
        for name in ("points.txt", "map.txt", "new.txt", "m.outsample", "out.csv")
    }
    plain = ["--weighting", "distance", "--order", "0", "--loss", "squared", "--n-neighbors", "5"]
    for call in (
        ["fit", files["points.txt"], files["map.txt"], "-o", files["m.outsample"], *plain],
        ["place", files["m.outsample"], files["new.txt"], "--id", "", "-o", files["out.csv"]],
    ):
        done = CliRunner().invoke(main, call)
        assert done.exit_code == 0, done.output
    with open(files["out.csv"], newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row[""] for row in rows] == list("abcd")  # read.csv(..., row.names = 1)
    found = np.array([[float(row["UMAP_1"]), float(row["UMAP_2"])] for row in rows])
    model = load(files["m.outsample"])
    asked = pd.DataFrame(Q, columns=["PC_1", "PC_2", "PC_3"])
    np.testing.assert_array_equal(found, model.place(asked).coordinates)
