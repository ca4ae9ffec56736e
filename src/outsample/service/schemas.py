"""Bodies and answers as pydantic models, from which the OpenAPI description follows."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, FailFast, Field

# A number of JSON: no text, no true or false, no NaN or infinity.
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Numbers = Annotated[list[Number], FailFast()]
Column = list[float | None]


class Rows(BaseModel):
    """Rows as lists in the model's order of columns, or in the order of ``columns``."""

    model_config = ConfigDict(extra="forbid")
    rows: Annotated[list[Numbers], FailFast(), Field(min_length=1)]
    columns: list[str] | None = None


class Records(BaseModel):
    """Rows as objects with a value for each column name."""

    model_config = ConfigDict(extra="forbid")
    rows: Annotated[list[dict[str, Number]], FailFast(), Field(min_length=1)]


class Placed(BaseModel):
    """Positions on the map with their quality, one entry per row."""

    first_id: int
    n_rows: int
    digest: str = Field(description="Digest of the model that answered.")
    coordinates: list[Column]
    error_bar: Column | None = None
    abnormality: Column | None = None
    p_value: Column | None = None
    bound: Column | None = None
    n_neighbors: list[int] | None = None


class Learned(Placed):
    """Positions as before the rows were learned, and what became of the rows."""

    n_learned: int
    accepted: list[bool] | None = None
    repeated: bool = Field(False, description="True if the Idempotency-Key was used before.")


class Problem(BaseModel):
    """Why a request was rejected."""

    reason: str
    row: int | None = None
    column: int | str | None = None


class ModelDescription(BaseModel):
    """What is served, and what has been learned since the model was fitted."""

    name: str
    digest: str
    class_name: str
    package_version: str
    n_points: int
    n_features: int
    feature_names: list[str] | None
    map_names: list[str]
    alpha: float
    numbers: list[str]
    limits: dict[str, int]
    first_id: int
    next_id: int
    started: float
    learning: bool
    n_seen: int | None = None
    n_learned: int | None = None
    drift: str | None = None
    needs_refit: bool | None = None
    refit_reason: str | None = None


def write_json(payload: Any) -> bytes:
    """Return an answer as JSON; values that are not finite become null."""
    return orjson.dumps(payload, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)
