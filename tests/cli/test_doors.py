"""The command line: quick help, a demo from end to end, and clear words when it cannot be."""

import json
import os
import re
import subprocess
import sys

import click
import numpy as np
import pytest
from click.testing import CliRunner

from outsample import __version__
from outsample.cli import main
from outsample.demo.demo import Size, run_demo
from outsample.report import terminal
from outsample.report.comparison_page import comparison_table

HEAVY = ("numpy", "numba", "sklearn", "scipy", "matplotlib", "rich")
TINY = Size(n_digits=200, splits=(0,))


def modules_after(code):
    """Names of the heavy modules a fresh interpreter has loaded after running some code."""
    program = f"import sys\n{code}\nimport json\n"
    program += f"print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stderr.splitlines()[-1])


def test_importing_the_package_loads_nothing_heavy():
    assert modules_after("import outsample") == []


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--version"],
        ["demo", "--help"],
        ["compare", "--help"],
        ["fit", "--help"],
        ["place", "--help"],
        ["inspect", "--help"],
        ["report", "--help"],
        ["completion", "bash"],
        ["bench", "--help"],
        ["bench", "accuracy", "--help"],
        ["bench", "novelty", "--help"],
        ["bench", "speed", "--help"],
    ],
)
def test_help_loads_nothing_heavy(words):
    code = f"from outsample.cli import main\nmain({words!r}, standalone_mode=False)"
    assert modules_after(code) == []


BENCHES = ["bench accuracy", "bench novelty", "bench speed"]


@pytest.mark.parametrize("name", ["", *main.list_commands(None), *BENCHES])
def test_every_command_and_option_has_help(name):
    result = CliRunner().invoke(main, [*name.split(), "--help"])
    assert result.exit_code == 0
    command = main
    for word in name.split():
        command = command.get_command(None, word)
    assert command.help
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, option.name
        else:
            assert option.make_metavar(click.Context(command)).strip("[]") in command.help


def test_version():
    assert CliRunner().invoke(main, ["--version"]).output == f"outsample {__version__}\n"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """One run of the command on small data, in a folder that does not exist yet."""
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("outsample.demo.demo.QUICK", TINY)
        result = CliRunner().invoke(main, ["demo", "--quick", "--out", str(folder)])
    assert result.exit_code == 0, result.output
    return folder, result


def test_the_last_line_says_where_the_page_is(demo):
    folder, result = demo
    page = folder / "index.html"
    assert result.stdout.splitlines()[-1] == f"Report: {page}"
    assert page.is_absolute()
    assert os.listdir(folder) == ["index.html"]


def test_output_that_is_no_terminal_is_plain(demo):
    _, result = demo
    assert "\x1b" not in result.output
    assert max(map(len, result.stdout.splitlines()[:-1])) <= 80
    steps = result.stderr.splitlines()
    assert steps[0].startswith("[  0%]") and steps[-1] == "[100%] done"
    for word in ("All defaults", "Inverse-distance 15-NN", "digits t-SNE"):
        assert word in result.stdout


def test_the_page_is_self_contained(demo):
    html = (demo[0] / "index.html").read_text(encoding="utf-8")
    sources = re.findall(r'(?:src|href)\s*=\s*["\']?(.{5})', html)
    assert set(sources) == {"data:"}
    assert not re.search(r"https?://|@import|url\(|<script|<link", html)
    assert html.count("<img ") == 5
    assert "Handwritten digits" in html and "Does it belong?" in html


def test_progress_only_grows_and_ends_at_one(tmp_path):
    told = []
    result = run_demo(tmp_path, TINY, lambda share, what_next: told.append(share))
    assert told == sorted(told) and told[0] == 0.0 and told[-1] == 1.0
    assert result.page == tmp_path / "index.html"
    assert len(result.placements) == 4 and len(result.anomalies) == 5


def test_without_matplotlib_the_page_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr("outsample.plots.canvas.find_spec", lambda name: None)
    html = run_demo(tmp_path, TINY).page.read_text(encoding="utf-8")
    assert "<img" not in html
    assert "outsample[plots]" in html


def test_a_folder_that_cannot_be_made_is_one_line_and_no_work(tmp_path, monkeypatch):
    monkeypatch.setattr("outsample.demo.demo.map_digits", None)  # must not be reached
    (tmp_path / "file").touch()
    result = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "file" / "sub")])
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: cannot write to ") and result.stderr.count("\n") == 1


def test_a_file_in_place_of_the_folder_is_a_usage_error(tmp_path):
    (tmp_path / "file").touch()
    result = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "file")])
    assert result.exit_code == 2
    assert "is a file" in result.stderr


def test_a_terminal_gets_a_bar_with_the_time_left(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    with terminal.shown_progress() as tell:
        tell(0.0, "first")
        tell(0.5, "second")
    assert "second" in capsys.readouterr().err


@pytest.fixture
def pair(tmp_path):
    """A folder with points and a map of them, in several formats."""
    X = np.random.default_rng(0).random((60, 3))
    np.save(tmp_path / "X.npy", X)
    np.savetxt(tmp_path / "Y.csv", X[:, :2], delimiter=",", header="a,b", comments="")
    np.savez(tmp_path / "both.npz", X=X, Y=X[:, :2])
    return tmp_path


def compare(*words):
    return CliRunner().invoke(main, ["compare", *map(str, words)])


def test_compare_prints_a_plain_table_and_writes_files(pair):
    result = compare(pair / "X.npy", pair / "Y.csv", "--splits", 1, "--out", pair / "new" / "out")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split()[:2] == ["extension", "error"] and "\x1b" not in result.output
    assert lines[5:] == [
        f"Wrote {pair / 'new' / 'out' / name}"
        for name in ("compare.json", "compare.csv", "compare.html")
    ]
    told = json.loads((pair / "new" / "out" / "compare.json").read_text())
    assert told["n_points"] == 60 and len(told["rows"]) == 4
    html = (pair / "new" / "out" / "compare.html").read_text()
    assert not re.search(r"https?://|@import|url\(|<script|<link", html)


def test_compare_for_machines(pair):
    result = compare(pair / "both.npz", "--splits", 1, "--json")
    told = json.loads(result.stdout)
    assert told["n_points"] == 60 and len(told["rows"]) == 4 and result.stderr == ""


def test_compare_takes_both_from_one_file_and_follows_the_seed(pair):
    one, other = (compare(pair / "both.npz", "--splits", 1, "--seed", s).stdout for s in (0, 1))
    assert len(one.splitlines()) == 5 and one != other


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["none.npy", "Y.csv"], 2, "none.npy: no such file"),
        (["X.npy"], 2, "MAP is missing"),
        (["X.npy", "short.npy"], 3, "X.npy has 60 rows, but {}/short.npy has 59"),
        (["X.npy", "text.csv"], 3, "text.csv: line 2, column 1: 'two' is not a number"),
        (["X.npy", "nan.npy"], 3, "nan.npy: row 1, column 'column_1' is missing or infinite"),
        (["X.npy", "Y.csv", "--splits", "0"], 2, "0 is not in the range"),
        (["X.npy", "Y.csv", "--out", "X.npy/sub"], 1, "cannot write to"),
    ],
)
def test_compare_says_in_one_line_what_is_wrong(pair, monkeypatch, words, code, message):
    monkeypatch.chdir(pair)
    np.save("short.npy", np.zeros((59, 2)))
    np.save("nan.npy", np.full((60, 1), np.nan))
    (pair / "text.csv").write_text("1,2\ntwo,3\n")
    result = compare(*words)
    assert result.exit_code == code
    last = result.stderr.splitlines()[-1]
    assert last.startswith("Error: ") and message.replace("{}/", "") in last
    assert "Traceback" not in result.output


def test_a_terminal_gets_a_drawn_table(capsys):
    from rich.console import Console

    from outsample.comparison.compare import Comparison, ComparisonRow

    nan = float("nan")
    rows = Comparison(
        [
            ComparisonRow("good", 0.1, 0.0, 0.1, 0.2, 1.0, 0.1),
            ComparisonRow("bad", nan, nan, nan, nan, nan, nan, "ValueError: no [x]"),
        ]
    )
    Console().print(terminal.terminal_table("errors", comparison_table(rows), 80))
    shown = capsys.readouterr().out
    assert "good" in shown and "ValueError: no [x]" in shown and "0.100" in shown


def test_the_time_left_is_told_once_there_is_something_to_tell(monkeypatch):
    monkeypatch.setattr(terminal, "monotonic", lambda: 60.0)
    assert terminal.time_left(0.0, 0.5) == " (1.0 min left)"
    assert terminal.time_left(55.0, 0.5) == "" == terminal.time_left(0.0, 1.0)


def narrow_rows():
    from outsample.comparison.compare import Comparison, ComparisonRow

    return Comparison(
        [
            ComparisonRow("PCAExtension()", 1.23e-15, 4e-16, 5.67e-15, 8.91e-15, 12.34, 0.123),
            ComparisonRow("tangent weights (Eq. 4.5)", 2.34e-05, 6e-07, 1e-05, 7e-5, 0.98, 0.012),
        ]
    )


@pytest.mark.parametrize(
    ("width", "columns"), [(100, 6), (80, 6), (60, 4), (40, 2), (30, 1), (20, 1)]
)
def test_a_narrow_terminal_cuts_no_figure(width, columns, capsys):
    from rich.console import Console

    table = comparison_table(narrow_rows())
    Console(width=width).print(terminal.terminal_table("errors", table, width))
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= width and "\N{HORIZONTAL ELLIPSIS}" not in shown
    for row in table.rows:
        for figure in row[1 : 1 + columns]:
            assert figure in shown.split()
    gone = ", ".join(table.header[1 + columns :])
    told = f"Too wide for {width} characters; omitted: {gone}."
    assert (told in " ".join(shown.split())) == bool(gone)


def test_headings_are_folded_before_columns_go(capsys):
    from rich.console import Console

    from outsample.report.page import Table

    table = Table(["set", "mean rank of all", "area under curve"], [["a", "1.5", "0.9"]])
    Console(width=30).print(terminal.terminal_table("title", table, 30))
    shown = capsys.readouterr().out
    assert "1.5" in shown and "0.9" in shown and "Left out" not in shown
    empty = terminal.terminal_table("title", table._replace(rows=[]), 30)
    Console(width=30).print(empty)


def program(*words, **options):
    code = "import sys; from outsample.cli import main; main(sys.argv[1:], prog_name='outsample')"
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device here")
def test_a_full_device_is_named(pair):
    with open("/dev/full", "w") as full:
        run = program("compare", pair / "both.npz", "--splits", 1, stdout=full)
        told = run.communicate()[1]
    assert run.returncode == 1 and "Traceback" not in told
    last = told.splitlines()[-1]
    assert last == "Error: cannot write to the standard output: No space left on device"


def test_a_file_that_does_not_fit_is_named(pair, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("outsample.files.atomic.os.fsync", full)
    result = compare(pair / "both.npz", "--splits", 1, "--out", pair / "out")
    target = pair / "out" / "compare.json"
    assert result.stderr.splitlines()[-1] == (
        f"Error: cannot write to {target}: No space left on device"
    )
    assert result.exit_code == 1 and os.listdir(pair / "out") == []


def test_a_closed_pipe_ends_quietly_after_the_work(pair):
    out = pair / "out"
    run = program("compare", pair / "both.npz", "--splits", 1, "--out", out, stdout=subprocess.PIPE)
    run.stdout.close()  # nobody reads, as after `| head -1`
    told = run.stderr.read()
    run.wait()
    assert "Traceback" not in told and "Error" not in told and "Exception" not in told
    assert sorted(os.listdir(out)) == ["compare.csv", "compare.html", "compare.json"]


def test_rows_are_counted_on_a_terminal_and_nowhere_else(monkeypatch, capsys):
    from outsample.cli.showing import row_progress, waiting

    with row_progress(100) as tell, waiting("learning", silent=False):
        tell(10, 50)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    with row_progress(100) as tell:
        tell(1000, 50)
        tell(2000, 80)
    shown = capsys.readouterr().err
    assert "2,000 rows" in shown and "rows/s" in shown and "left" in shown
    with waiting("learning", silent=True):
        pass
    with waiting("learning", silent=False):
        pass


@pytest.mark.parametrize("words", [["bench", "speed", "--quick"], ["reproduce"], ["bench"]])
def test_without_the_lab_its_commands_say_how_to_get_it(words, monkeypatch):
    monkeypatch.setattr("outsample.cli.lab_commands.entry_points", lambda **query: ())
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 1
    assert result.output.count("\n") == 1 and "pip install ./lab" in result.output
    assert "outsample-lab" in CliRunner().invoke(main, ["--help"]).output
