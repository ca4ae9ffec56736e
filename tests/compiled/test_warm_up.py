"""After `outsample warm-up` a new process compiles nothing."""

from __future__ import annotations

import subprocess
import sys

from click.testing import CliRunner

from outsample._compiled import compiling
from outsample.cli import main

FRESH = """
import sys
import numpy as np
from outsample import NoveltyDetector, PCAExtension, load, save
from outsample._compiled import compiling

rng = np.random.default_rng(1)
X = rng.normal(size=(250, 5))
for Y in (X[:, :3] ** 2, X[:, :2] + 5 * (X[:, 2:4] > 0)):
    detector = NoveltyDetector(PCAExtension()).fit(X, Y)
    detector.place(X[:7] + 0.1), detector.p_values(X[:1] + 0.1), detector.explain(X[:1])
    save(detector, sys.argv[1])
    load(sys.argv[1]).place(X[:7].astype(np.float32))
PCAExtension(weighting="local_tangent", order=1, loss="absolute").fit(X, Y).place(X[:9] + 0.1)
print(compiling.COMPILED.count)
"""


def test_after_a_warm_up_nothing_is_compiled(tmp_path):
    result = CliRunner().invoke(main, ["warm-up"])
    assert result.exit_code == 0, result.output
    assert compiling.cache_folder() in result.stdout
    again = CliRunner().invoke(main, ["warm-up"])
    assert "Nothing to compile" in again.stdout
    command = [sys.executable, "-W", "error", "-c", FRESH, str(tmp_path / "model.outsample")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0"]
