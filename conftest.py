"""Settings and data that all tests share; modules with a missing package are not collected."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from outsample._compiled import compiling

NEEDS = {"src/outsample/anndata.py": "anndata", "src/outsample/files/atlas.py": "pyarrow"}
collect_ignore = [path for path, package in NEEDS.items() if find_spec(package) is None]

# Helper modules of the tests, such as `reference`.
sys.path.insert(0, str(Path(__file__).parent / "tests"))

settings.register_profile(
    "default",
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# `make test-long`: many more examples, new ones every night, printed so that they can be repeated.
settings.register_profile(
    "nightly",
    parent=settings.get_profile("default"),
    max_examples=200,
    derandomize=False,
    print_blob=True,
)
# Without the compiler the same examples take a hundred times as long.
settings.register_profile("plain", parent=settings.get_profile("default"), max_examples=3)
settings.load_profile("plain" if os.environ.get("NUMBA_DISABLE_JIT") == "1" else "default")
# Which test is the first to compile a kernel differs from run to run.
compiling.FIRST_USE.is_shown = True


@pytest.fixture(scope="session")
def paraboloid():
    """Return a smooth map from the square to a surface: 400 points, 60 queries, true images."""
    rng = np.random.default_rng(0)

    def surface(X):
        return np.column_stack([X, (X**2).sum(axis=1)])

    X = rng.random((400, 2))
    queries = 0.1 + 0.8 * rng.random((60, 2))
    return X, surface(X), queries, surface(queries)
