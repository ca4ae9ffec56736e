"""Check the installed package in an environment without extras; run by `make package`.

Kernels run as plain Python here (NUMBA_DISABLE_JIT=1), which is faster than compiling them.
"""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path

import numpy as np

import outsample

# Modules that need an extra; all others must be importable without one.
NEED_AN_EXTRA = ("outsample.anndata", "outsample.plots", "outsample.service")


def main() -> None:
    installed = Path(outsample.__file__).parent
    assert Path(sys.prefix) in installed.parents, f"{installed} is not the installed package"
    assert distribution("outsample").version == outsample.__version__
    assert (installed / "py.typed").is_file()
    for name in outsample.__all__:
        assert getattr(outsample, name).__doc__, name
    for module in pkgutil.walk_packages(outsample.__path__, "outsample."):
        if not module.name.startswith(NEED_AN_EXTRA):
            importlib.import_module(module.name)

    angles = np.linspace(0, 3, 40)
    X = np.column_stack([np.cos(angles), np.sin(angles), angles])
    detector = outsample.NoveltyDetector(outsample.PCAExtension(weighting="distance"))
    detector.fit(X, angles[:, None] * [[1.0, 2.0]])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.outsample"
        outsample.save(detector, path)
        again = outsample.load(path)
        for kept, loaded in zip(detector.place(X + 0.01), again.place(X + 0.01), strict=True):
            np.testing.assert_array_equal(kept, loaded)
    command = Path(sys.executable).with_name("outsample")
    shown = subprocess.run([command, "--help"], check=True, capture_output=True, text=True).stdout
    assert "place" in shown
    serve = subprocess.run([command, "serve", "m"], capture_output=True, text=True)
    assert serve.returncode and "outsample[serve]" in serve.stderr, serve.stderr
    bench = subprocess.run([command, "bench"], capture_output=True, text=True)
    assert bench.returncode == 1 and "outsample-lab" in bench.stderr, bench.stderr
    print(f"outsample {outsample.__version__} works as installed in {installed}")


if __name__ == "__main__":
    main()
