"""Model files, as commands open them."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from outsample.cli.exit_codes import BAD_USE, Failure


class Opened(NamedTuple):
    """A model with what its file says of it, and the columns carried about its training points."""

    model: Any
    info: Any
    columns: dict[str, Any]

    @property
    def map_names(self) -> list[str]:
        """Names of the coordinates, given or counted; none for a detector without a map."""
        if self.info.map_names:
            return list(self.info.map_names)
        return [f"map_{at + 1}" for at in range(self.info.n_coordinates or 0)]

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features, if it was fitted on any."""
        return list(self.info.feature_names) if self.info.feature_names else None


def open_model(path: str) -> Opened:
    """Load a model file; a file that is not there is bad use, a bad one `ModelFileError`."""
    from outsample.files.model_file import describe, load, read_columns

    check_there(path)
    info = describe(path)
    return Opened(load(path), info, read_columns(path))


def check_there(path: str) -> None:
    """Refuse a path that is no file."""
    if not os.path.isfile(path):
        raise Failure(f"{path}: no such file", BAD_USE)
