"""The model that a service answers with: its columns, its digest, its explanations."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from outsample.files.model_file import describe, identity, load, read_columns

# Numbers that accompany the coordinates, in the order of the columns of an answer.
NUMBERS = ("error_bar", "abnormality", "p_value", "bound", "n_neighbors")
N_NEIGHBORS_SHOWN = 10


class ServedModel:
    """A fitted model, the description in its file, and columns about its training rows."""

    def __init__(self, model: Any, description: dict[str, Any], columns: dict[str, Any]) -> None:
        self.model, self.description, self.columns = model, description, columns
        self.digest: str = description["digest"]
        self.n_features: int = description["n_features"]
        self.feature_names: list[str] | None = description["feature_names"]
        self.map_names: list[str] = description["map_names"]
        # Columns are matched by name in `tables`; the model gets plain arrays.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        # Compiles what is not compiled yet, and verifies a large file.
        self.numbers = [name for name in self.place(np.eye(2, self.n_features)) if name in NUMBERS]

    def place(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return coordinates and numbers of rows (q, D), by name."""
        return placement_columns(self.model.place(rows))

    def with_model(self, model: Any) -> ServedModel:
        """Return the same description around another state of the model."""
        return ServedModel(model, self.description, self.columns)

    def table(self, answer: dict[str, Any]) -> dict[str, np.ndarray]:
        """Return an answer as columns of equal length."""
        axes = zip(self.map_names, answer["coordinates"].T, strict=True)
        names = [name for name in (*self.numbers, "accepted") if name in answer]
        return {**dict(axes), **{name: answer[name] for name in names}}

    @property
    def interface(self) -> tuple[Any, ...]:
        """What clients depend on; a model with another interface cannot replace this one."""
        return self.n_features, self.feature_names, self.map_names, self.numbers

    @property
    def core(self) -> Any:
        """The detector or extension inside a stream."""
        return self.model.extension if hasattr(self.model, "learn") else self.model

    def explain(self, rows: np.ndarray) -> list[Any] | None:
        """Explain why rows (q, D) are strange; None if the model has no explanations."""
        explain = getattr(self.core, "explain", None)
        return None if explain is None else list(explain(rows))

    def neighbors(self, row: np.ndarray) -> list[dict[str, Any]]:
        """Return the nearest training rows of a row (D,), nearest first, with their columns."""
        n_neighbors = min(N_NEIGHBORS_SHOWN, self.description["n_points"])
        near = self.core.kneighbors(row[None], n_neighbors=n_neighbors)
        pairs = zip(near.indices[0].tolist(), near.distances[0].tolist(), strict=True)
        neighbors: list[dict[str, Any]] = [{"row": at, "distance": far} for at, far in pairs]
        for neighbor in neighbors if self.columns else ():
            at = neighbor["row"]
            neighbor["columns"] = {name: column[at] for name, column in self.columns.items()}
        return neighbors


def placement_columns(placed: Any) -> dict[str, np.ndarray]:
    """Return a placement as arrays by name, without those that the model does not have."""
    values = {name: getattr(placed, name, None) for name in NUMBERS}
    columns = {"coordinates": np.ascontiguousarray(placed.coordinates)}
    return columns | {name: column for name, column in values.items() if column is not None}


def open_model(path: str | os.PathLike[str], copies: str | None = None) -> ServedModel:
    """Open a private copy of a model file.

    A loaded model is mapped from its file. The copy stays as it is when the file is overwritten,
    which would otherwise change answers or end the process. Workers that name the same folder of
    ``copies`` map the same copy; without a folder the copy has no name once it is mapped.
    """
    if not os.path.isfile(path):
        describe(path)  # raises with the reason
    with tempfile.TemporaryDirectory(prefix="outsample-", dir=copies) as folder:
        copy = Path(folder, "model.outsample")
        shutil.copyfile(path, copy)
        if copies is not None:
            shared = Path(copies, f"{identity(copy)}.outsample")
            copy = copy.replace(shared) if not shared.exists() else shared
        try:
            return _opened(copy, path)
        except ValueError as error:  # names the file that the user knows
            raise type(error)(str(error).replace(str(copy), str(path))) from None


def _opened(copy: Path, path: str | os.PathLike[str]) -> ServedModel:
    info = describe(copy)
    if info.n_coordinates is None:
        raise ValueError(
            f"{path}: contains a {info.class_name} that cannot place points: serve a PCAExtension, "
            "an Extended, or a NoveltyDetector with a map."
        )
    model = load(copy)
    if not hasattr(model, "place"):
        raise ValueError(f"{path}: contains a {info.class_name}, which has no method `place`.")
    names = info.map_names or [f"map_{axis + 1}" for axis in range(info.n_coordinates)]
    kept = ("class_name", "package_version", "n_points", "n_features", "feature_names")
    description = {name: getattr(info, name) for name in kept} | {
        "name": os.path.basename(path).removesuffix(".outsample"),
        "digest": identity(copy), "map_names": names,
    }  # fmt: skip
    return ServedModel(model, description, read_columns(copy))
