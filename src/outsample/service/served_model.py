"""The model that a service answers with: columns, digest, explanations."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from outsample._validation import LARGEST_VALUE
from outsample.files.matching import ColumnError
from outsample.files.model_file import ModelInfo, describe, identity, load, read_columns
from outsample.opened_model import OpenedModel
from outsample.placed_frame import PLACED_NUMBERS
from outsample.service.errors import RequestError

DESCRIBED = ("class_name", "package_version", "n_points", "n_features", "feature_names")
N_NEIGHBORS_SHOWN = 10


@dataclass
class RequestTable:
    """The columns of a table in a request, as `OpenedModel.match` takes them."""

    names: list[str]
    has_names: bool
    path: str = "the table"

    @property
    def feature_columns(self) -> range:
        """All columns."""
        return range(len(self.names))


class ServedModel(OpenedModel):
    """An opened model with its name and digest, and what requests ask of it."""

    def __init__(
        self, model: Any, info: ModelInfo, columns: Mapping[str, Any], name: str, digest: str
    ) -> None:
        super().__init__(model, info, columns)
        self.info, self.name, self.digest = info, name, digest
        # Columns are matched here. A stream is asked itself: a copy would not see what it learns.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        # Compiles what is not compiled yet, and verifies a large file.
        self.answer(np.eye(2, self.n_features))

    def with_model(self, model: Any) -> ServedModel:
        """Return the same description around another state of the model."""
        served = copy(self)
        served.model = model
        served.answer(np.eye(2, self.n_features))
        return served

    @property
    def description(self) -> dict[str, Any]:
        """What clients may know of the file."""
        names = {"name": self.name, "digest": self.digest, "map_names": self.map_names}
        return {field: getattr(self.info, field) for field in DESCRIBED} | names

    @property
    def interface(self) -> tuple[Any, ...]:
        """What clients depend on; a model with another interface cannot replace this one."""
        return self.n_features, self.feature_names, self.map_names, self.numbers

    @property
    def core(self) -> Any:
        """The detector or extension inside a stream."""
        return self.model.extension if hasattr(self.model, "learn") else self.model

    def answer(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return coordinates and numbers of rows (q, D), by name."""
        return placement_columns(self.model.place(rows))

    def column_order(self, names: Sequence[str] | None, width: int) -> list[int]:
        """Return where the model's columns are in a table, which has no others."""
        table = RequestTable(list(names or [""] * width), names is not None)
        try:
            matched = self.match(table)
        except ColumnError as error:
            raise RequestError(422, str(error)) from None
        for at in matched.unused:
            name = table.names[at]
            reason = f"column {name[:60]!r} is not one of the model's columns"
            raise RequestError(422, reason, column=name)
        return matched.features

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
        n_neighbors = min(N_NEIGHBORS_SHOWN, self.info.n_points)
        near = self.core.kneighbors(row[None], n_neighbors=n_neighbors)
        neighbors = []
        for at, distance in zip(near.indices[0].tolist(), near.distances[0].tolist(), strict=True):
            columns = {name: column[at] for name, column in self.training_columns.items()}
            neighbor = {"row": at, "distance": distance}
            neighbors.append({**neighbor, "columns": columns} if columns else neighbor)
        return neighbors


def placement_columns(placed: Any) -> dict[str, np.ndarray]:
    """Return a placement as arrays by name, without those that the model does not have."""
    values = {name: getattr(placed, name, None) for name in PLACED_NUMBERS}
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
        file = Path(folder, "model.outsample")
        shutil.copyfile(path, file)
        try:
            digest = identity(file)
            if copies is not None:
                shared = Path(copies, f"{digest}.outsample")
                file = shared if shared.exists() else file.replace(shared)
            info = describe(file)
            model = None if info.n_coordinates is None else load(file)
            if not hasattr(model, "place"):
                raise ValueError(
                    f"{path}: contains a {info.class_name} that cannot place points: serve a "
                    "PCAExtension, an Extended, or a NoveltyDetector with a map."
                )
            name = os.path.basename(path).removesuffix(".outsample")
            return ServedModel(model, info, read_columns(file), name, digest)
        except ValueError as error:  # names the file that the user knows
            raise type(error)(str(error).replace(str(file), str(path))) from None
