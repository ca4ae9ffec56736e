"""The model that a service answers with: its columns, its digest, its explanations.

Everything the service asks of a model file is here: which columns it has, how a table is matched
to them, which values it takes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from outsample._validation import LARGEST_VALUE
from outsample.files.matching import listed
from outsample.files.model_file import describe, identity, load, read_columns
from outsample.service.errors import RequestError

# Numbers that accompany the coordinates, in the order of the columns of an answer.
NUMBERS = ("error_bar", "abnormality", "p_value", "bound", "n_neighbors")
DESCRIBED = ("class_name", "package_version", "n_points", "n_features", "feature_names")
N_NEIGHBORS_SHOWN = 10


class ServedModel:
    """A fitted model, the description in its file, and columns about its training rows."""

    def __init__(self, model: Any, description: dict[str, Any], columns: dict[str, Any]) -> None:
        self.model, self.description, self.columns = model, description, columns
        self.name: str = description["name"]
        self.digest: str = description["digest"]
        self.n_features: int = description["n_features"]
        self.feature_names: list[str] | None = description["feature_names"]
        self.map_names: list[str] = description["map_names"]
        # Columns are matched by name here; the model gets plain arrays.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        # Compiles what is not compiled yet, and verifies a large file.
        self.numbers = [name for name in self.place(np.eye(2, self.n_features)) if name in NUMBERS]

    def with_model(self, model: Any) -> ServedModel:
        """Return the same description around another state of the model."""
        return ServedModel(model, self.description, self.columns)

    @property
    def interface(self) -> tuple[Any, ...]:
        """What clients depend on; a model with another interface cannot replace this one."""
        return self.n_features, self.feature_names, self.map_names, self.numbers

    @property
    def core(self) -> Any:
        """The detector or extension inside a stream."""
        return self.model.extension if hasattr(self.model, "learn") else self.model

    def place(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return coordinates and numbers of rows (q, D), by name."""
        return placement_columns(self.model.place(rows))

    def column_order(self, names: Sequence[str] | None, width: int) -> list[int]:
        """Return where the model's columns are in a table.

        Columns are matched by name where both have names, otherwise by position.
        """
        features = self.feature_names
        if names is None or features is None:
            if width != self.n_features:
                reason = f"rows have {width} columns, but the model takes {self.n_features}"
                raise RequestError(422, reason)
            return list(range(width))
        at = {name: number for number, name in enumerate(names)}
        missing = [name for name in features if name not in at]
        if missing:
            reason = f"{len(missing)} of the model's columns are missing: {listed(missing)}"
            raise RequestError(422, reason, column=missing[0])
        if width > len(features):
            expected = set(features)
            unmatched = (
                name for number, name in enumerate(names)
                if name not in expected or at[name] != number
            )  # fmt: skip
            extra = next(unmatched)
            reason = f"column {extra[:60]!r} is repeated, or is not one of the model's columns"
            raise RequestError(422, reason, column=extra)
        return [at[name] for name in features]

    def match_records(self, records: list[dict[str, float]]) -> np.ndarray:
        """Return records as rows (q, D) in the model's order of columns."""
        features = self.feature_names
        if features is None:
            raise RequestError(422, "the model has no column names; send rows as lists of numbers")
        expected = set(features)
        for row, record in enumerate(records):
            if record.keys() == expected:
                continue
            for name in [*features, *record]:
                if name not in record or name not in expected:
                    problem = "has no" if name not in record else "has an unknown"
                    reason = f"row {row} {problem} column {name[:60]!r}"
                    raise RequestError(422, reason, row=row, column=name)
        return np.array([[record[name] for name in features] for record in records])

    def check_values(self, rows: np.ndarray) -> np.ndarray:
        """Return rows (q, D) that are finite and not too large."""
        is_valid = abs(rows) <= LARGEST_VALUE  # false for NaN
        if not is_valid.all():
            row, column = (int(at) for at in np.argwhere(~is_valid)[0])
            name = column if self.feature_names is None else self.feature_names[column]
            value = rows[row, column]
            problem = "is too large" if np.isfinite(value) else "must be finite"
            reason = f"row {row}, column {name!r} is {value}, but {problem}"
            raise RequestError(422, reason, row=row, column=name)
        return np.ascontiguousarray(rows, dtype=np.float64)

    def table(self, answer: dict[str, Any]) -> dict[str, np.ndarray]:
        """Return an answer as columns of equal length."""
        axes = zip(self.map_names, answer["coordinates"].T, strict=True)
        names = [name for name in (*self.numbers, "accepted") if name in answer]
        return {**dict(axes), **{name: answer[name] for name in names}}

    def explain(self, rows: np.ndarray) -> list[Any]:
        """Explain why rows (q, D) are unusual; empty if the model has no explanations."""
        return list(self.core.explain(rows)) if hasattr(self.core, "explain") else []

    def neighbors(self, row: np.ndarray) -> list[dict[str, Any]]:
        """Return the nearest training rows of a row (D,), nearest first, with their columns."""
        n_neighbors = min(N_NEIGHBORS_SHOWN, self.description["n_points"])
        near = self.core.kneighbors(row[None], n_neighbors=n_neighbors)
        neighbors = []
        for at, distance in zip(near.indices[0].tolist(), near.distances[0].tolist(), strict=True):
            columns = {name: column[at] for name, column in self.columns.items()}
            neighbor = {"row": at, "distance": distance}
            neighbors.append({**neighbor, "columns": columns} if columns else neighbor)
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
    description = {name: getattr(info, name) for name in DESCRIBED} | {
        "name": os.path.basename(path).removesuffix(".outsample"), "digest": identity(copy),
        "map_names": info.map_names or [f"map_{axis + 1}" for axis in range(info.n_coordinates)],
    }  # fmt: skip
    return ServedModel(model, description, read_columns(copy))
