"""Files that commands write: never an input, never two writers, complete or as before."""

import os
import re
import subprocess
import sys
import time

import click
import pytest

import outsample
from cli_data import make_model, points, run
from cli_docs import commands
from outsample.cli import options
from outsample.files.atomic import OutputError, atomic_write
from outsample.report.page import write_file

posix = pytest.mark.skipif(os.name != "posix", reason="links, locks and modes are posix")
COMMAND = [sys.executable, "-c", "from outsample.cli import main; main()"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    for name in ("m.outsample", "new.csv", "points.csv", "map.csv"):
        (tmp_path / name).write_bytes((made / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# What a command reads, and the option that would write to it.
WRITES_TO_INPUT = [
    ("place m.outsample new.csv", "new.csv"),
    ("place m.outsample new.csv", "m.outsample"),
    ("place m.outsample new.csv --resume", "new.csv"),
    ("fit points.csv map.csv --id name --id kind", "points.csv"),
    ("fit points.csv map.csv --id name --id kind", "map.csv"),
    ("report m.outsample", "m.outsample"),
    ("report m.outsample new.csv", "new.csv"),
]


@posix
@pytest.mark.parametrize("link", ["same", "symbolic", "hard", "other folder"])
@pytest.mark.parametrize(("words", "target"), WRITES_TO_INPUT)
def test_no_command_writes_to_its_input(folder, words, target, link):
    out = target
    if link == "symbolic":
        os.symlink(target, out := f"link_{target}")
    elif link == "hard":
        os.link(target, out := f"link_{target}")
    elif link == "other folder":
        os.symlink(folder, "elsewhere")
        out = os.path.join("elsewhere", target)
    if out.endswith(".outsample") and words.startswith("place"):
        os.symlink(out, "out.csv")  # an ending that `place` can write
        out = "out.csv"
    before = contents(folder)
    result = run(*words.split(), "-o", out, code=2)
    assert f"{out}: is an input of this command" in result.stderr
    assert contents(folder) == before


@posix
def test_the_files_of_a_folder_are_never_inputs(folder):
    (folder / "compare.csv").write_bytes((folder / "points.csv").read_bytes())
    before = contents(folder)
    words = ["compare", "compare.csv", "map.csv", "--id", "name", "--id", "kind", "--out", "."]
    assert "compare.csv: is an input of this command" in run(*words, code=2).stderr
    assert contents(folder) == before


@posix
def test_the_partial_file_is_never_an_input(folder):
    before = contents(folder)
    os.symlink("new.csv", "out.csv.partial")
    run("place", "m.outsample", "new.csv", "-o", "out.csv", code=2)
    assert contents(folder) == before | {"out.csv.partial": before["new.csv"]}


@posix
def test_redirections_are_inputs_and_outputs_too(folder):
    before = contents(folder)
    with open("new.csv", "rb") as stdin:
        done = subprocess.run([*COMMAND, *"place m.outsample - -o new.csv".split()], stdin=stdin,
                              capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 2 and "new.csv: is an input" in done.stderr
    with open("new.csv", "ab") as stdout:  # would read its own answers for ever
        done = subprocess.run([*COMMAND, *"place m.outsample new.csv".split()], stdout=stdout,
                              stderr=subprocess.PIPE, text=True, timeout=120)  # fmt: skip
    assert done.returncode == 2 and "standard output is an input" in done.stderr
    assert contents(folder) == before


def test_every_path_of_a_command_is_an_input_or_an_output():
    for name, command in commands():
        for parameter in command.params:
            if isinstance(parameter.type, click.Path):
                is_output = parameter.name in ("out", "learned")
                is_folder = not parameter.type.file_okay
                is_input = isinstance(parameter.type, options.InputFile)
                assert is_output or is_folder or is_input, (name, parameter.name)


@posix
def test_two_runs_to_one_file(folder):
    words = [*COMMAND, *"place m.outsample - -o out.csv".split()]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as first:
        first.stdin.write(b"a,b,c\n0.1,0.2,0.3\n")
        first.stdin.flush()
        while not os.path.exists("out.csv.partial") and first.poll() is None:
            time.sleep(0.01)
        for more in ([], ["--resume"], ["--restart"]):
            result = run("place", "m.outsample", "new.csv", "-o", "out.csv", *more, code=2)
            assert "out.csv: another process is writing it" in result.stderr
        first.stdin.close()
        assert first.wait() == 0, first.stderr.read()
    assert len((folder / "out.csv").read_text().splitlines()) == 2
    assert not list(folder.glob("*.partial*"))
    run("place", "m.outsample", "new.csv", "-o", "out.csv")
    assert len((folder / "out.csv").read_text().splitlines()) == 61


@posix
def test_two_writers_of_one_file(tmp_path):
    path = tmp_path / "a.txt"
    with atomic_write(path) as stream:
        stream.write(b"first")
        with pytest.raises(OutputError, match=r"a\.txt: another process is writing it"):
            write_file(path, "second")
        assert not path.exists()
    assert path.read_text() == "first" and os.listdir(tmp_path) == ["a.txt"]


@posix
@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
@pytest.mark.parametrize(
    ("words", "out"),
    [
        ("report m.outsample", "page.html"),
        ("place m.outsample new.csv", "out.csv"),
        ("place m.outsample new.csv", "out.npz"),
        ("fit points.csv map.csv --id name --id kind --n-neighbors 5 --order 0", "new.outsample"),
    ],
)
def test_modes_are_those_of_the_umask_or_of_the_file_before(folder, words, out, mask):
    before = os.umask(mask)
    try:
        run(*words.split(), "-o", out)
        assert os.stat(out).st_mode & 0o777 == 0o666 & ~mask
        os.chmod(out, 0o640)
        run(*words.split(), "-o", out)
        assert os.stat(out).st_mode & 0o777 == 0o640
    finally:
        os.umask(before)


@posix
@pytest.mark.parametrize(
    ("words", "ending"),
    [
        ("report m.outsample", ".html"),
        ("place m.outsample new.csv", ".csv"),
        ("place m.outsample new.csv", ".npz"),
        ("fit points.csv map.csv --id name --id kind --n-neighbors 5 --order 0", ".outsample"),
    ],
)
def test_symbolic_links_are_followed(folder, words, ending):
    os.mkdir("real")
    os.symlink(f"real/file{ending}", f"link{ending}")
    run(*words.split(), "-o", f"link{ending}")
    assert os.path.islink(f"link{ending}") and os.listdir("real") == [f"file{ending}"]
    assert not list(folder.glob("*.partial*"))


@pytest.mark.parametrize(
    ("words", "out"),
    [
        ("fit points.csv map.csv --id name --id kind --n-neighbors 5 --order 0", "new.outsample"),
        ("report m.outsample", "page.html"),
        ("place m.outsample new.csv", "out.npz"),
    ],
)
def test_a_full_disk_names_the_file(folder, monkeypatch, words, out):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    before = contents(folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        result = run(*words.split(), "-o", out, code=1)
    assert re.search(rf"cannot write to .*{out}(.partial)?: No space left", result.stderr)
    assert contents(folder) == before


@posix
def test_rows_are_on_the_disk_before_the_journal_counts_them(folder, monkeypatch):
    """Every journal follows a sync of the rows it counts, and is synced itself."""
    events = []
    sync, replace = os.fsync, os.replace

    def recorded_sync(descriptor):
        name = os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))
        events.append(("sync", name, os.fstat(descriptor).st_size))
        return sync(descriptor)

    def recorded_replace(source, target):
        events.append(("rename", os.path.basename(target), os.stat(source).st_size))
        return replace(source, target)

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc")
    monkeypatch.setattr(os, "fsync", recorded_sync)
    monkeypatch.setattr(os, "replace", recorded_replace)
    run("place", "m.outsample", "new.csv", "-o", "out.csv")
    at = [event[:2] for event in events].index(("rename", "out.csv.partial.json"))
    synced = [name for kind, name, size in events[:at] if kind == "sync" and size]
    assert synced[0] == "out.csv.partial" and "out.csv.partial.json" in synced[1]


def test_a_model_may_be_saved_over_the_file_it_was_loaded_from(folder):
    model = outsample.load("m.outsample")
    outsample.save(model, "m.outsample")
    assert outsample.load("m.outsample").n_features_in_ == points(1).shape[1]
