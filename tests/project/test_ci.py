"""CI skips no test because a program is missing; a user's machine may."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDS_BROWSER = """
from browser import browser

def test_page(tmp_path):
    with browser(tmp_path):
        pass
"""


def environment(**variables):
    others = {
        name: value
        for name, value in os.environ.items()
        if name not in ("CI", "OUTSAMPLE_ALLOW_SKIPS") and not name.startswith("PYTEST")
    }
    return others | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | variables  # fmt: skip


@pytest.mark.parametrize(
    ("variables", "outcome"),
    [
        ({}, "1 skipped"),
        ({"CI": "true"}, "1 failed"),
        ({"CI": "true", "OUTSAMPLE_ALLOW_SKIPS": "1"}, "1 skipped"),
    ],
)
def test_without_a_browser(tmp_path, variables, outcome):
    (tmp_path / "test_it.py").write_text(NEEDS_BROWSER)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        env=environment(PATH="", PYTHONPATH=str(ROOT / "tests"), **variables),
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert outcome in done.stdout, done.stdout + done.stderr
    assert done.returncode == (1 if "failed" in outcome else 0)


@pytest.mark.skipif(os.name != "posix", reason="a shell script")
@pytest.mark.parametrize("code", [0, 3])
def test_the_script_says_what_it_could_not_install_and_runs_all_the_same(tmp_path, code):
    """On a machine with Python, make and git alone; `make test` decides."""
    programs = {
        "apt-get": "exit 1",
        "make": f'echo "make $1 with CI=$CI"; exit {code}',
        "id": "echo 0",
    }
    for name, body in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    for name in ("bash", "dirname", "timeout"):
        os.symlink(f"/usr/bin/{name}", tmp_path / name)
    done = subprocess.run(
        [tmp_path / "bash", ROOT / ".ci" / "run"],
        env=environment(PATH=str(tmp_path)), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == code and done.stdout == "make test with CI=true\n", done.stderr
    assert "could not be installed" in done.stderr and "OUTSAMPLE_ALLOW_SKIPS=1" in done.stderr
