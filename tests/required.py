"""Programs that tests need: a test is skipped if its program is missing, but fails in CI."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def skip_or_fail(reason: str) -> NoReturn:
    """Skip the test; under CI=true fail it, unless OUTSAMPLE_ALLOW_SKIPS=1 allows the skip."""
    is_ci = os.environ.get("CI", "").lower() in ("true", "1")
    if is_ci and os.environ.get("OUTSAMPLE_ALLOW_SKIPS") != "1":
        pytest.fail(f"{reason}; install it, or set OUTSAMPLE_ALLOW_SKIPS=1", pytrace=False)
    pytest.skip(reason)


def required_program(*names: str) -> str:
    """Return the path of the first of these programs that is installed."""
    folders = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])  # where nginx is
    paths = (shutil.which(name, path=folders) for name in names)
    return next(filter(None, paths), None) or skip_or_fail(f"{names[0]} is not installed")
