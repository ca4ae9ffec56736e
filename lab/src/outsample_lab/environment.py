"""Where a benchmark runs: the folder of its data, and the versions of what it measures."""

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from outsample import __version__


def data_folder(given: str | None = None) -> Path | None:
    """Return the folder of data: given, of OUTSAMPLE_DATA, or the usual one; None without any."""
    chosen = Path(given or os.environ.get("OUTSAMPLE_DATA") or "../shared/data")
    return chosen if chosen.is_dir() else None


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of outsample, Python and some packages, by name.

    >>> versions(["no-such-package"])["no-such-package"]
    'not installed'
    """
    found = {"outsample": __version__, "python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
