"""The data folder of a benchmark, and the versions of the packages it measures."""

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from outsample import __version__


def data_folder(folder: str | None = None) -> Path | None:
    """Return the data folder: the argument, OUTSAMPLE_DATA, or the default; None if missing."""
    path = Path(folder or os.environ.get("OUTSAMPLE_DATA") or "../shared/data")
    return path if path.is_dir() else None


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of outsample, Python and the measured packages, by name.

    >>> versions(["no-such-package"])["no-such-package"]
    'not installed'
    """
    versions_by_name = {"outsample": __version__, "python": platform.python_version()}
    for package in packages:
        try:
            versions_by_name[package] = version(package)
        except PackageNotFoundError:
            versions_by_name[package] = "not installed"
    return versions_by_name
