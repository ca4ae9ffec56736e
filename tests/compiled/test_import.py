"""Import and first use: read-only folders, messages, and compiled kernels."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import outsample
from cold_start import FIXED, cold_start
from outsample._compiled import compiling

ALL = "import outsample\nfor name in outsample.__all__: getattr(outsample, name)\n"
COMPILE = """
import numpy as np
from outsample._compiled.linear_algebra import cholesky_solve
b = np.ones(2)
assert cholesky_solve(np.eye(2), b) and (b == 1).all()
"""
# A path below a file cannot be created, not even by root, who ignores permissions.
NOWHERE = os.devnull + "/nowhere"


@pytest.fixture
def read_only(tmp_path):
    """Return the environment for a copy of the package that cannot store compiled code."""
    package = tmp_path / "site" / "outsample"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(outsample.__file__).parent, package, ignore=ignored)
    (package / "_compiled" / "__pycache__").touch()  # a file where the folder would be
    environment = {
        **os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": NOWHERE, "XDG_CACHE_HOME": NOWHERE, "TMPDIR": str(tmp_path),
    }  # fmt: skip
    environment.pop("NUMBA_CACHE_DIR", None)
    return environment


def run(program, environment):
    """Return the standard error of a program that must succeed."""
    command = [sys.executable, "-W", "always", "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_compiled_code_is_cached_in_the_temporary_folder_if_necessary(read_only, tmp_path):
    output = run(ALL + COMPILE, read_only)
    assert output.count("NUMBA_CACHE_DIR") == 1
    assert str(tmp_path / "outsample-") in output
    assert output.count("is compiling for its first use") == 1
    (folder,) = tmp_path.glob("outsample-*")
    assert list(folder.rglob("*.nbc"))
    if os.name == "posix":
        assert folder.stat().st_mode & 0o077 == 0
    output = run(ALL + COMPILE, read_only)
    assert output.count("NUMBA_CACHE_DIR") == 1
    assert "is compiling" not in output


def test_without_a_temporary_folder_nothing_is_kept(read_only, tmp_path):
    program = f"import tempfile\ntempfile.tempdir = {NOWHERE!r}\n" + ALL + COMPILE
    output = run(program, read_only)
    assert output.count("NUMBA_CACHE_DIR") == 1
    assert output.count("every process") == 1
    assert "no cache is written" in output
    assert not list(tmp_path.rglob("*.nbc"))


@pytest.mark.skipif(os.name != "posix", reason="temporary files are the user's own elsewhere")
def test_a_folder_that_others_can_write_is_not_trusted(monkeypatch, tmp_path):
    monkeypatch.setattr(compiling.tempfile, "tempdir", str(tmp_path))
    folder = Path(compiling.private_folder())
    assert compiling.private_folder() == str(folder)
    folder.chmod(0o770)
    with pytest.raises(PermissionError, match="another user"):
        compiling.private_folder()
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(PermissionError):
        compiling.private_folder()


def test_a_full_disk_does_not_stop_the_program(read_only, tmp_path):
    full = "raise OSError(28, 'No space left on device')"
    program = f"""
from numba.core.caching import IndexDataCacheFile
def save(self, key, data):
    {full}
IndexDataCacheFile.save = save
"""
    environment = read_only | {"NUMBA_CACHE_DIR": str(tmp_path / "given")}
    output = run(program + ALL + COMPILE, environment)
    assert output.count("No space left") == 1


def test_code_of_another_version_of_a_kernel_is_not_used(read_only, tmp_path):
    environment = read_only | {"NUMBA_CACHE_DIR": str(tmp_path / "given")}
    assert "is compiling" in run(COMPILE, environment)
    assert run(COMPILE, environment) == ""
    (search,) = tmp_path.rglob("_compiled/search.py")
    search.write_text(search.read_text() + "\n# changed\n")
    assert "is compiling" in run(COMPILE, environment)


def test_a_notice_is_a_line_on_a_terminal_and_a_warning_elsewhere(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    notice = compiling.Notice()
    with pytest.warns(UserWarning, match="outsample is busy"):
        notice.show("is busy", terminal=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        notice.show("is busy", terminal=True)
        monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
        compiling.Notice().show("is busy", terminal=True)
    assert screen.getvalue() == "outsample: is busy\n"


def test_a_first_fit_compiles_each_kernel_once(tmp_path):
    cold = cold_start(tmp_path, **FIXED)  # `outsample bench speed --parts cold` has the times
    files = {name.partition(".")[0] for name in cold["kernels"]}
    assert files <= {
        "bounds", "distinct", "frames", "gls", "heap", "linear_algebra", "mirrors", "search",
        "stumps", "tree", "tree_building", "weights",
    }  # fmt: skip
    assert set(cold["kernels"].values()) == {1}


NEWER_NUMBA = """
import sys, types
import numba
numba.version_info = (99, 0)
private = sys.modules["numba.core.caching"]
sys.modules["numba.core.caching"] = types.ModuleType("numba.core.caching")  # has nothing
import numpy as np
from outsample._compiled import compiling
from outsample._compiled.search import distance
assert not compiling.HAS_TESTED_CACHES
sys.modules["numba.core.caching"] = private  # which numba itself needs
print(distance(np.zeros(2), np.array([3.0, 4.0])), compiling.cache_folder())
"""


@pytest.mark.parametrize("is_writable", [True, False])
def test_a_newer_numba_is_used_with_public_options(tmp_path, is_writable):
    folder = tmp_path / "kept"
    (folder.mkdir if is_writable else folder.touch)()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", NEWER_NUMBA]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("5.0 ")
    if is_writable:
        assert [*folder.glob("*/**/search.distance*.nbi")]
