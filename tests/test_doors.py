"""The command line: quick help, a demo from end to end, and clear words when it cannot be."""

import json
import os
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from outsample import __version__, cli
from outsample.cli import main
from outsample.demo import Size, run_demo

HEAVY = ("numpy", "numba", "sklearn", "scipy", "matplotlib", "rich")
TINY = Size(n_per_axis=(8, 9), n_new=10, n_seeds=2, n_digits=200, splits=(0,))


def modules_after(code):
    """Names of the heavy modules a fresh interpreter has loaded after running some code."""
    program = f"import sys\n{code}\nimport json\n"
    program += f"print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stderr.splitlines()[-1])


def test_importing_the_package_loads_nothing_heavy():
    assert modules_after("import outsample") == []


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["demo", "--help"]])
def test_help_loads_nothing_heavy(words):
    code = f"from outsample.cli import main\nmain({words!r}, standalone_mode=False)"
    assert modules_after(code) == []


@pytest.mark.parametrize("name", ["", *main.commands])
def test_every_command_and_option_has_help(name):
    result = CliRunner().invoke(main, [*name.split(), "--help"])
    assert result.exit_code == 0
    command = main.commands[name] if name else main
    assert command.help
    for option in command.params:
        assert option.help, option.name


def test_version():
    assert CliRunner().invoke(main, ["--version"]).output == f"outsample {__version__}\n"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """One run of the command on small data, in a folder that does not exist yet."""
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("outsample.demo.QUICK", TINY)
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
    for word in ("All defaults", "Inverse-distance 15-NN", "sphere, 64", "digits t-SNE"):
        assert word in result.stdout


def test_the_page_is_self_contained(demo):
    html = (demo[0] / "index.html").read_text(encoding="utf-8")
    sources = re.findall(r'(?:src|href)\s*=\s*["\']?(.{5})', html)
    assert set(sources) == {"data:"}
    assert not re.search(r"https?://|@import|url\(|<script|<link", html)
    assert html.count("<img ") == 9
    assert "Handwritten digits" in html and "The paper's sphere".replace("'", "&#x27;") in html


def test_progress_only_grows_and_ends_at_one(tmp_path):
    told = []
    result = run_demo(tmp_path, TINY, lambda share, what_next: told.append(share))
    assert told == sorted(told) and told[0] == 0.0 and told[-1] == 1.0
    assert result.page == tmp_path / "index.html"
    assert len(result.sphere) == 10 and len(result.digits) == 4


def test_without_matplotlib_the_page_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr("outsample.demo.find_spec", lambda name: None)
    html = run_demo(tmp_path, TINY).page.read_text(encoding="utf-8")
    assert "<img" not in html
    assert "outsample[plots]" in html


def test_a_folder_that_cannot_be_made_is_one_line_and_no_work(tmp_path, monkeypatch):
    monkeypatch.setattr("outsample.experiments.sphere.run", None)  # must not be reached
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
    with cli._progress() as tell:
        tell(0.0, "first")
        tell(0.5, "second")
    assert "second" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "words"), [(1.0, "1 x"), (0.5, "0.5 x"), (1e-5, "< 0.001 x"), (2.0, "2 x")]
)
def test_ratios_to_the_reference(error, words):
    assert cli._ratio(error, 1.0) == words
