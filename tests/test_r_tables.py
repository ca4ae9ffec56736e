"""Tables as R writes them: row names under a heading that is one cell shorter, quoted words."""

from __future__ import annotations

import numpy as np
import pytest

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
        with pytest.raises(ValueError, match=f"line 3, column {column}: '{word}' is no number"):
            read_table(path)
