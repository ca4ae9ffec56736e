"""`outsample place`: every format, any size of chunks, interrupted or not, the same answers."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

import outsample
from cli_data import CHEAP, make_model, named, points, run, write_csv
from outsample.cli import place_command
from outsample.files import source as source_module
from outsample.files import text_source
from outsample.files.tables import open_table, read_columns

NUMBERS = ["error_bar", "abnormality", "p_value", "bound", "n_neighbors"]
PLACED = ["name", "kind", "u", "v", *NUMBERS]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """A folder of its own to write into, with the model and the new points."""
    for name in ("m.outsample", "new.csv", "points.csv", "map.csv"):
        os.link(made / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answer(X):
    """What the library says of points, as the columns of the file."""
    model = outsample.load("m.outsample")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        placed = model.place(X)
    return np.column_stack([placed.coordinates, *(getattr(placed, name) for name in NUMBERS)])


def numbers(path):
    source = open_table(path)
    every = [source.names.index(name) for name in ("u", "v", *NUMBERS)]
    return read_columns(source, every, [])[0]


def test_one_row_each_with_ids_first_then_coordinates_then_numbers(folder):
    run("place", "m.outsample", "new.csv", "-o", "out.csv")
    assert open_table("out.csv").names == PLACED
    assert (numbers("out.csv") == answer(points(60, seed=1))).all()
    first = (folder / "out.csv").read_text().splitlines()[1].split(",")
    assert first[0] == "q0" and first[1] in ("left", "right") and first[-1] == "8"
    assert sorted(os.listdir(folder)) == sorted(
        ["m.outsample", "map.csv", "new.csv", "out.csv", "points.csv"]
    )


@pytest.mark.parametrize(
    "ending",
    ".csv .tsv .txt .csv.gz .parquet .arrow .feather .arrows .npy .npz".split(),
)
def test_every_format_in_and_out_gives_the_same_bits(folder, monkeypatch, ending):
    X = points(60, seed=1)
    new = folder / f"in{ending}"
    columns = named(X, "q")
    if ending in (".parquet", ".arrow", ".feather", ".arrows"):
        from test_tables import frame_file

        frame_file(new, columns)
    elif ending in (".npy", ".npz"):
        np.save(new, X) if ending == ".npy" else np.savez(new, X=X, name=columns["name"])
    elif ending == ".csv.gz":
        write_csv(folder / "in.csv", columns)
        new.write_bytes(gzip.compress((folder / "in.csv").read_bytes()))
    else:
        write_csv(new, columns, "," if ending == ".csv" else "\t")
    monkeypatch.setattr(source_module, "CHUNK_ROWS", 16)
    monkeypatch.setattr(text_source, "BLOCK_BYTES", 1000)
    run("place", "m.outsample", new, "-o", f"out{ending}")
    if ending == ".npy":
        assert (np.load("out.npy") == answer(X)).all()
    elif ending == ".npz":
        with np.load("out.npz") as out:
            assert out.files == ["name", "u", "v", *NUMBERS]
            assert (np.column_stack([out[name] for name in out.files[1:]]) == answer(X)).all()
            assert out["name"].tolist() == columns["name"]
    else:
        assert open_table(f"out{ending}").names == PLACED
        assert (numbers(f"out{ending}") == answer(X)).all()


def test_columns_are_matched_by_name_in_any_order(folder):
    columns = named(points(60, seed=1), "q")
    mixed = {name: columns[name] for name in ("c", "kind", "b", "a")} | {"extra": columns["a"]}
    write_csv(folder / "mixed.csv", mixed)
    result = run("place", "m.outsample", "mixed.csv", "-o", "out.csv")
    assert "not in the result, because neither features nor named by --id: 'extra'" in result.stderr
    assert (numbers("out.csv") == answer(points(60, seed=1))).all()
    run("place", "m.outsample", "mixed.csv", "-o", "out.csv", "--id", "extra")
    assert open_table("out.csv").names == ["kind", "extra", *PLACED[2:]]
    write_csv(folder / "less.csv", {"a": columns["a"], "name": columns["name"]})
    result = run("place", "m.outsample", "less.csv", "-o", "no.csv", code=3)
    assert "lacks 2 of the model's 3 features: 'b', 'c'" in result.stderr
    renamed = dict(zip("xyz", (columns[k] for k in "abc"), strict=True))
    write_csv(folder / "renamed.csv", renamed)
    run("place", "m.outsample", "renamed.csv", "-o", "out.csv", "--columns", "x,y,z")
    assert (numbers("out.csv") == answer(points(60, seed=1))).all()


def test_without_headings_columns_go_by_their_order(folder):
    X = points(60, seed=1)
    np.savetxt("bare.txt", X, fmt="%.17g")
    run("place", "m.outsample", "bare.txt", "-o", "out.csv")
    assert (numbers("out.csv") == answer(X)).all()
    np.savetxt("wide.txt", np.column_stack([np.arange(60), X]), fmt="%.17g")
    result = run("place", "m.outsample", "wide.txt", "-o", "no.csv", code=3)
    assert "has 4 columns for the model's 3 features; choose the features with" in result.stderr
    run("place", "m.outsample", "wide.txt", "--id", 1, "-o", "out.csv")
    assert (numbers("out.csv") == answer(X)).all()


def test_a_pipe_in_and_out(folder):
    run("place", "m.outsample", "new.csv", "-o", "out.csv")
    piped = run("place", "m.outsample", "-", input=(folder / "new.csv").read_bytes())
    assert piped.stdout == (folder / "out.csv").read_text() and piped.stderr == ""
    run("place", "m.outsample", "-", "-o", "piped.csv", input=(folder / "new.csv").read_bytes())
    assert (folder / "piped.csv").read_bytes() == (folder / "out.csv").read_bytes()


@pytest.mark.parametrize("jobs", [2, -1])
def test_threads_keep_the_order(folder, monkeypatch, jobs):
    monkeypatch.setattr(text_source, "BLOCK_BYTES", 300)
    run("place", "m.outsample", "new.csv", "-o", "out.csv", "--jobs", jobs)
    assert (numbers("out.csv") == answer(points(60, seed=1))).all()


def test_json_tells_about_the_run(folder):
    told = json.loads(run("place", "m.outsample", "new.csv", "-o", "out.csv", "--json").stdout)
    assert told["n_rows"] == 60 and told["columns"] == PLACED and told["out"] == "out.csv"


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_reasons_and_neighbours(folder, ending):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    run("place", "m.outsample", "new.csv", "-o", f"out{ending}", "--explain")
    source = open_table(f"out{ending}")
    assert source.names == [*PLACED, "main_reason", "neighbors"]
    _, texts = read_columns(source, [2], [9, 10])
    near = texts["neighbors"][0]
    near = json.loads(near) if ending == ".csv" else near
    model = outsample.load("m.outsample")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told = model.explain(points(60, seed=1)[:1])[0]
    assert near["ids"] == told.neighbors.tolist() and near["distances"] == told.distances.tolist()
    assert near["names"] == [f"p{row}" for row in near["ids"]]
    assert texts["main_reason"][0] == told.main_reason


def test_ids_with_gaps_and_times_and_small_row_groups(folder, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    from datetime import date

    from pyarrow import parquet

    from outsample.files import output

    monkeypatch.setattr(source_module, "CHUNK_ROWS", 16)
    monkeypatch.setattr(output, "ROW_GROUP_ROWS", 20)
    columns = named(points(60, seed=1), "q") | {
        "number": [None if at == 50 else at for at in range(60)],
        "day": [date(2020, 1, 1)] * 60,
        "yes": [True, None] * 30,
    }
    parquet.write_table(pyarrow.table(columns), folder / "gaps.parquet", row_group_size=25)
    ids = ["--id", "number", "--id", "day", "--id", "yes"]
    run("place", "m.outsample", "gaps.parquet", "-o", "out.parquet", *ids)
    out = parquet.read_table(folder / "out.parquet")
    assert out["number"].to_pylist() == columns["number"]
    assert out["day"].to_pylist()[0] == "2020-01-01" and out["yes"].to_pylist()[:2] == ["True", ""]
    assert (numbers("out.parquet") == answer(points(60, seed=1))).all()
    run("place", "m.outsample", "gaps.parquet", "-o", "out.csv", *ids)
    lines = (folder / "out.csv").read_text().splitlines()
    assert lines[50].startswith("q49,") and ",49,2020-01-01," in lines[50]
    assert ",,2020-01-01," in lines[51]


def test_the_delimiter_holds_for_what_is_written_too(folder):
    write_csv(folder / "bars.txt", named(points(60, seed=1), "q"), "|")
    run("place", "m.outsample", "bars.txt", "--delimiter", "|", "-o", "out.txt.gz")
    with gzip.open("out.txt.gz", "rt") as file:
        assert file.readline() == "|".join(PLACED) + "\n"


def test_no_rows_at_all(folder):
    (folder / "none.csv").write_text("a,b,c\n")
    run("place", "m.outsample", "none.csv", "-o", "out.csv")
    assert (folder / "out.csv").read_text() == ",".join(PLACED[2:]) + "\n"
    assert run("place", "m.outsample", "none.csv").stdout == ",".join(PLACED[2:]) + "\n"


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npy"])
def test_bad_rows_stop_or_are_left_empty(folder, ending):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    columns = named(points(60, seed=1), "q")
    columns["b"] = [*map(repr, columns["b"].tolist())]
    columns["b"][7] = "broken"
    write_csv(folder / "bad.csv", columns)
    result = run("place", "m.outsample", "bad.csv", "-o", "no.csv", code=3)
    assert result.stderr == "Error: bad.csv: line 9, column 3: 'broken' is not a number\n"
    columns["b"][7] = "nan"
    write_csv(folder / "nan.csv", columns)
    result = run("place", "m.outsample", "nan.csv", "-o", "no.csv", code=3)
    assert "row 8, column 'b' is missing or infinite" in result.stderr
    assert not list(folder.glob("no.csv*"))
    for bad in ("bad.csv", "nan.csv"):
        run("place", "m.outsample", bad, "-o", f"out{ending}", "--bad-rows", "empty")
        if ending == ".csv":
            lines = (folder / "out.csv").read_text().splitlines()
            assert lines[8].split(",")[0] == "q7" and lines[8].endswith(",,,,,,,")
            continue
        out = np.load("out.npy") if ending == ".npy" else numbers("out.parquet")
        assert np.isnan(out[7]).all()
        assert (np.delete(out, 7, 0) == np.delete(answer(points(60, seed=1)), 7, 0)).all()


class TestInterrupted:
    """The bytes of a run in pieces are those of one without a break."""

    @pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet", ".arrow", ".npy", ".npz"])
    def test_resuming_gives_the_same_bytes(self, folder, monkeypatch, ending):
        if ending in (".parquet", ".arrow"):
            pytest.importorskip("pyarrow")
        monkeypatch.setattr(text_source, "BLOCK_BYTES", 500)
        run("place", "m.outsample", "new.csv", "-o", f"whole{ending}")
        out = f"out{ending}"
        self.interrupted(monkeypatch, out, after=3)
        assert not os.path.exists(out) and os.path.exists(f"{out}.partial")
        with open(f"{out}.partial", "ab") as file:  # a kill may leave more than the journal knows
            file.write(b"half a row")
        result = run("place", "m.outsample", "new.csv", "-o", out, code=2)
        assert "continue with --resume, or start again with --restart" in result.stderr
        result = run("place", "m.outsample", "new.csv", "-o", out, "--resume")
        assert "continuing after" in result.stderr
        whole = (folder / f"whole{ending}").read_bytes()
        assert (folder / out).read_bytes() == whole or ending == ".npz"
        assert not list(folder.glob("*.partial*"))
        if ending == ".npz":
            with np.load(out) as one, np.load("whole.npz") as other:
                assert all((one[name] == other[name]).all() for name in other.files)

    def interrupted(self, monkeypatch, out, after):
        """Run until that many chunks are written, then as if Ctrl-C was pressed."""
        chunks = iter(range(after))

        def tell(rows, offset):
            if next(chunks, None) is None:
                raise KeyboardInterrupt

        class Progress:
            def __init__(self, total, silent):
                pass

            def __enter__(self):
                return tell

            def __exit__(self, *error):
                return None

        with monkeypatch.context() as patch:
            patch.setattr(place_command, "row_progress", Progress)
            result = run("place", "m.outsample", "new.csv", "-o", out, code=130)
        assert "to continue, add --resume to the command" in result.stderr

    def test_another_task_is_not_gone_on_with(self, folder, monkeypatch):
        monkeypatch.setattr(text_source, "BLOCK_BYTES", 500)
        self.interrupted(monkeypatch, "out.csv", after=2)
        words = "-o out.csv --resume --explain".split()
        result = run("place", "m.outsample", "new.csv", *words, code=2)
        assert "another run (explain differ)" in result.stderr
        (folder / "out.csv.partial.json").write_text("{")
        result = run("place", "m.outsample", "new.csv", "-o", "out.csv", "--resume", code=2)
        assert "damaged" in result.stderr and "--restart" in result.stderr
        run("place", "m.outsample", "new.csv", "-o", "out.csv", "--restart")
        assert (numbers("out.csv") == answer(points(60, seed=1))).all()

    def test_a_bad_row_keeps_the_rows_before(self, folder, monkeypatch):
        monkeypatch.setattr(text_source, "BLOCK_BYTES", 500)
        with open(folder / "bad.csv", "w") as file:
            file.write((folder / "new.csv").read_text() + "last,1,x,2,left\n")
        result = run("place", "m.outsample", "bad.csv", "-o", "out.csv", code=3)
        assert "continue with --resume --bad-rows empty" in result.stderr
        run("place", "m.outsample", "bad.csv", "-o", "out.csv", "--resume", "--bad-rows", "empty")
        assert (folder / "out.csv").read_text().splitlines()[-1] == "last,left,,,,,,,"

    def test_a_full_disk_is_told_by_the_name_of_the_file(self, folder, monkeypatch):
        from outsample.files.partial import PartialFile

        class Full(io.BytesIO):
            def flush(self):
                raise OSError(28, "No space left on device")

        opened = PartialFile.open

        def full(partial, **options):
            done = opened(partial, **options)
            partial._file = Full()
            return done

        monkeypatch.setattr(PartialFile, "open", full)
        result = run("place", "m.outsample", "new.csv", "-o", "out.csv", code=1)
        assert result.stderr.endswith("out.csv.partial: No space left on device\n")
        assert not list(folder.glob("out*"))

    @pytest.mark.skipif(os.name != "posix", reason="signals are sent")
    def test_killed_and_stopped_processes(self, folder):
        X = points(10_000, seed=2)
        write_csv(folder / "many.csv", named(X, "q"))
        command = [
            sys.executable, "-c",
            "import sys; from outsample.cli import main; from outsample.files import text_source;"
            " text_source.BLOCK_BYTES = 10000; main(sys.argv[1:])",
            "place", "m.outsample", "many.csv", "-o", "out.csv", "--resume",
        ]  # fmt: skip
        for sent, code in ((signal.SIGKILL, -9), (signal.SIGINT, 130)):
            before = journal(folder)
            started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            while journal(folder) <= before and started.poll() is None:
                time.sleep(0.01)
            started.send_signal(sent)
            told = started.communicate()[1]
            assert started.returncode == code, told
            assert "Traceback" not in told and not (folder / "out.csv").exists()
        assert journal(folder) < 10_000
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0 and "continuing after" in done.stderr
        run("place", "m.outsample", "many.csv", "-o", "whole.csv")
        assert (folder / "out.csv").read_bytes() == (folder / "whole.csv").read_bytes()


def journal(folder):
    """Rows that an interrupted run has done."""
    try:
        return json.loads((folder / "out.csv.partial.json").read_text())["row"]
    except FileNotFoundError:
        return 0


class TestFollow:
    def test_each_line_is_answered(self, folder):
        run("place", "m.outsample", "new.csv", "-o", "out.csv")
        lines = (folder / "new.csv").read_text()
        told = run("place", "m.outsample", "-", "--follow", input=lines)
        assert told.stdout == (folder / "out.csv").read_text()
        told = run("place", "m.outsample", "-", "--follow", "--json", "--explain", input=lines)
        rows = [json.loads(line) for line in told.stdout.splitlines()]
        assert [row["name"] for row in rows] == [f"q{at}" for at in range(60)]
        assert [row["u"] for row in rows] == numbers("out.csv")[:, 0].tolist()
        assert rows[0]["neighbors"]["names"][0].startswith("p")

    def test_a_bad_line_is_told_and_answered_by_empty_cells(self, folder):
        lines = "a,b,c\n\n1,2,x\n1,2\n0.1,0.2,0.3\n1,2,inf"
        told = run("place", "m.outsample", "-", "--follow", input=lines)
        assert told.stderr.splitlines() == [
            "Error: line 3 column 'c': 'x' is not a finite number",
            "Error: line 4 has 2 columns, but others have 3",
            "Error: line 6 column 'c': 'inf' is not a finite number",
        ]
        rows = told.stdout.splitlines()[1:]
        assert [row.count(",") for row in rows] == [6] * 4
        assert [row == "," * 6 for row in rows] == [True, True, False, True]
        stopped = run("place", "m.outsample", "-", "--follow", "--bad-rows", "stop", code=3,
                      input="a,b,c\n1,2,3\n1,2,x\n1,2,4\n")  # fmt: skip
        assert len(stopped.stdout.splitlines()) == 2
        assert stopped.stderr == "Error: line 3 column 'c': 'x' is not a finite number\n"

    @pytest.mark.parametrize(
        "cell", ["1" + "0" * 140_000, "a" * 140_000, "4\r5"], ids=["digits", "letters", "return"]
    )
    def test_a_cell_of_any_length_does_not_end_it(self, folder, cell):
        lines = f"a,b,c\n0.1,0.2,0.3\n1,2,{cell}\n0.1,0.2,0.3\n"
        told = run("place", "m.outsample", "-", "--follow", input=lines)
        first, bad, last = told.stdout.splitlines()[1:]
        assert bad == "," * 6 and first == last != bad
        assert told.stderr.startswith("Error: line 3 ") and len(told.stderr.splitlines()) == 1
        assert len(told.stderr) < 200

    def test_a_line_of_any_length_does_not_end_it(self, folder, monkeypatch):
        from outsample.cli import following

        monkeypatch.setattr(following, "MAX_ROW_BYTES", 2**20)
        monkeypatch.setattr(following, "READ_BYTES", 10_000)
        lines = "a,b,c\n0.1,0.2,0.3\n" + "1" * 2**21 + "\n0.1,0.2,0.3\n"
        told = run("place", "m.outsample", "-", "--follow", input=lines)
        first, bad, last = told.stdout.splitlines()[1:]
        assert bad == "," * 6 and first == last != bad
        assert told.stderr == "Error: line 3 is longer than 1 MB\n"
        told = run("place", "m.outsample", "-", "--follow", input="\n" + "1" * 2**21, code=3)
        assert told.stderr == "Error: standard input: line 2 is longer than 1 MB\n"

    def test_nothing_comes(self, folder):
        assert run("place", "m.outsample", "-", "--follow", input="\n\n").stdout == ""

    def test_lines_are_answered_before_the_next_one_comes(self, folder):
        command = [sys.executable, "-c", "from outsample.cli import main; main()", "place",
                   "m.outsample", "-", "--follow"]  # fmt: skip
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(command, text=True, bufsize=1, **pipes) as process:
            process.stdin.write("a,b,c\n")
            assert process.stdout.readline() == ",".join(PLACED[2:]) + "\n"
            for row in range(3):
                process.stdin.write(f"0.1,0.2,{row}\n")
                process.stdin.flush()
                assert process.stdout.readline().count(",") == 6
            process.stdin.close()
            assert process.wait() == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["none.outsample", "new.csv"], 2, "none.outsample: no such file"),
        (["m.outsample", "none.csv"], 2, "none.csv: no such file"),
        (["m.outsample", "new.xyz"], 3, "unknown ending"),
        (["m.outsample", "new.csv", "-o", "out.xyz"], 2, "unknown ending"),
        (["new.csv", "new.csv"], 4, "new.csv"),
        (["m.outsample", "new.csv", "-o", "none/out.csv"], 1, "cannot write to"),
        (["m.outsample", "new.csv", "--follow"], 2, "--follow reads -"),
        (["m.outsample", "-", "--resume"], 2, "--resume needs files"),
        (["m.outsample", "new.csv", "-o", "o.csv", "--resume", "--restart"], 2, "give either"),
        (["m.outsample", "new.csv", "--json"], 2, "-o"),
        (["m.outsample", "new.csv", "--id", "who"], 3, "no column 'who'; it has 'name', 'a'"),
        (["m.outsample", "new.csv", "--columns", "a,b"], 3, "has 2 columns for the model's 3"),
        (["m.outsample", "new.csv", "--columns", "a,,b"], 2, "empty name"),
        (["m.outsample", "new.csv", "--jobs", "0"], 2, "0 is neither"),
        (["m.outsample", "new.csv", "--delimiter", "ab"], 2, "not one character"),
        (["m.outsample"], 2, "Missing argument"),
    ],
)
def test_what_is_wrong_is_one_sentence_with_a_code(folder, words, code, message):
    (folder / "new.xyz").touch()
    result = run("place", *words, code=code)
    assert message in result.stderr.splitlines()[-1]
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    assert not list(folder.glob("*.partial*"))


def test_advice_names_options_that_the_command_has(folder):
    """`run` looks at the options in every message; these came from code that commands share."""
    run("compare", "points.csv", code=2)
    np.save("wide.npy", points(9)[:, [0, 1, 2, 0]])
    run("report", "m.outsample", "wide.npy", "-o", "page.html", code=3)
    run("place", "m.outsample", "wide.npy", code=3)


def test_a_reader_that_has_seen_enough_is_no_failure(folder):
    class Closed(io.RawIOBase):
        def writable(self):
            return True

        def write(self, data):
            raise BrokenPipeError

    from outsample.files.table_writer import write_all

    with pytest.raises(BrokenPipeError):
        write_all(Closed(), b"row")


# Not ru_maxrss, which a process inherits from the one that started it.
PEAK = """
import sys
from outsample.cli import main
main(sys.argv[1:], standalone_mode=False)
(peak,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(peak.split()[1], file=sys.stderr)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells the peak")
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_three_million_rows_need_no_more_memory_than_some(folder, ending):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    run("fit", "points.csv", "map.csv", "--id", "name", "--id", "kind", "--no-novelty", "-o",
        "cheap.outsample", *CHEAP[:2], "--n-neighbors", 3, *CHEAP[4:])  # fmt: skip
    rows = (folder / "new.csv").read_text().splitlines(keepends=True)
    peaks = []
    for times in (500, 50_000):
        with open(folder / "many.csv", "w") as file:
            file.write(rows[0])
            for _ in range(times):
                file.writelines(rows[1:])
        if ending == ".parquet":
            from pyarrow import csv, parquet

            parquet.write_table(csv.read_csv(folder / "many.csv"), folder / "many.parquet")
        words = ["place", "cheap.outsample", f"many{ending}", "-o", f"out{ending}"]
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PEAK, *words], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stderr.splitlines()[-1]) / 1024)
    print(peaks)
    assert peaks[1] < peaks[0] + 100  # megabytes
    out = open_table(f"out{ending}")
    assert sum(len(part.numbers) for part in out.rows([out.names.index("u")])) == 3_000_000
