"""Time of the first use: a new process with nothing compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys

FIXED = {"weighting": "tangent", "n_neighbors": 10, "order": 0, "loss": "squared"}

PROGRAM = """
import json, sys, time
wall, cpu = [time.perf_counter()], [time.process_time()]

def note():
    wall.append(time.perf_counter())
    cpu.append(time.process_time())

import importlib, pkgutil
import numpy as np
from outsample import PCAExtension

rng = np.random.default_rng(0)
X, Q = rng.normal(size=(500, 5)), rng.normal(size=(50, 5))
Y = X[:, :2] + 0.1 * X[:, 2:4] ** 2
model = PCAExtension(**json.loads(sys.argv[1]))
note()
model.fit(X, Y)
note()
model.transform(Q)
note()
from outsample import _compiled
kernels = {}
for module in pkgutil.iter_modules(_compiled.__path__):
    loaded = importlib.import_module(f"outsample._compiled.{module.name}")
    for name, kernel in vars(loaded).items():
        if getattr(kernel, "nopython_signatures", ()) and kernel.__module__ == loaded.__name__:
            kernels[f"{module.name}.{name}"] = len(kernel.nopython_signatures)
model.place(Q)
note()
steps = ("import", "fit", "transform", "place")
print(json.dumps({
    "wall": dict(zip(steps, np.diff(wall).tolist())),
    "cpu": dict(zip(steps, np.diff(cpu).tolist())),
    "kernels": kernels,
}))
"""


def cold_start(cache, **parameters):
    """Return seconds per step with an empty cache of compiled code, and signatures per kernel."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, json.dumps(parameters)],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
