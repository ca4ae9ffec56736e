"""The model that a service answers for: its names, its numbers, the reasons it can give."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

from outsample.files.model_file import describe, identity, load, read_columns

# Numbers beside the coordinates, in the order of the columns of an answer.
NUMBERS = ("error_bar", "abnormality", "p_value", "bound", "n_neighbors")
NEAREST = 10


class ServedModel:
    """A fitted model with what its file says of it.

    Parameters
    ----------
    model : estimator
        Anything with ``place`` that has a map.
    about : dict
        What the file says: ``name``, ``digest``, ``feature_names``, ``map_names``, and so on.
    columns : dict
        What is carried about the training rows, by name.
    alpha : float
        A row with a p-value up to this is called strange.
    """

    def __init__(
        self, model: Any, about: dict[str, Any], columns: dict[str, Any], alpha: float
    ) -> None:
        self.model, self.about, self.columns, self.alpha = model, about, columns, alpha
        self.n_features = int(model.n_features_in_)
        self.feature_names: list[str] | None = about["feature_names"]
        self.map_names: list[str] = about["map_names"]
        # Columns are matched by name before; the model is given plain arrays.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        placed = self.place(np.eye(2, self.n_features))  # compiles what is to be compiled
        self.numbers = [name for name in NUMBERS if hasattr(placed, name)]

    def place(self, rows: np.ndarray) -> Any:
        """Place rows (q, D)."""
        return self.model.place(rows)

    def judged(self, placed: Any) -> dict[str, Any]:
        """Return a placement as it is answered: coordinates and numbers by name."""
        told = {"coordinates": np.ascontiguousarray(placed.coordinates)}
        return told | {name: getattr(placed, name) for name in self.numbers}

    def table(self, placed: dict[str, Any]) -> dict[str, np.ndarray]:
        """Return an answer as columns of one length."""
        axes = zip(self.map_names, placed["coordinates"].T, strict=True)
        return {**dict(axes), **{name: placed[name] for name in self.numbers}}

    @property
    def core(self) -> Any:
        """The detector, or the extension where there is none."""
        return self.model.extension if hasattr(self.model, "learn") else self.model

    def reasons(self, rows: np.ndarray) -> list[Any] | None:
        """Explain rows (q, D); None if the model gives no reasons."""
        explain = getattr(self.core, "explain", None)
        return None if explain is None else list(explain(rows))

    def neighbors(self, row: np.ndarray) -> list[dict[str, Any]]:
        """Nearest training rows of one row (D,), nearest first, with what is carried about them."""
        n = len(self.core._known().rows)
        found = self.core.kneighbors(row[None], n_neighbors=min(NEAREST, n))
        pairs = zip(found.indices[0].tolist(), found.distances[0].tolist(), strict=True)
        return [{"row": at, "distance": distance, **self.carried(at)} for at, distance in pairs]

    def carried(self, row: int) -> dict[str, Any]:
        """Return what is carried about a training row, under ``columns``."""
        found = {name: _plain(values[row]) for name, values in self.columns.items()}
        return {"columns": found} if found else {}


def open_served(path: str | os.PathLike[str], alpha: float) -> ServedModel:
    """Open a model file to serve it."""
    info = describe(path)
    model = load(path)
    if not hasattr(model, "place") or info.n_coordinates is None:
        raise ValueError(
            f"{path}: holds a {info.class_name} that cannot place points: serve a PCAExtension, an "
            "Extended, or a NoveltyDetector with a map."
        )
    counted = [f"map_{at + 1}" for at in range(info.n_coordinates)]
    about = {
        "name": os.path.basename(path).removesuffix(".outsample"),
        "digest": identity(path),
        "class_name": info.class_name,
        "package_version": info.package_version,
        "n_points": info.n_points,
        "n_features": info.n_features,
        "feature_names": info.feature_names,
        "map_names": info.map_names or counted,
    }
    return ServedModel(model, about, read_columns(path), alpha)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
