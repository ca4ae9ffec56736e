"""The Open Inference Protocol, version 2, over HTTP: so that clients of other servers work.

One input, the rows: a tensor of shape (q, D), flat or nested. Outputs are the columns of an
answer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from fastapi import FastAPI, Request, Response

import outsample
from outsample.service.bodies import JSON, read_body
from outsample.service.json_rows import read_json, to_json
from outsample.service.named_columns import matched
from outsample.service.refusal import Refusal
from outsample.service.service import Service

NUMBERS = {f"{kind}{bits}" for kind in ("INT", "UINT") for bits in (8, 16, 32, 64)} | {
    "FP16", "FP32", "FP64",
}  # fmt: skip


def add_inference_protocol(app: FastAPI, service: Service) -> None:
    """Add the paths under ``/v2``."""
    model = service.model

    def check_name(request: Request, name: str, path: str) -> None:
        request.scope["outsample.path"] = path
        if name != model.about["name"]:
            known = model.about["name"]
            raise Refusal(404, f"there is no model {name[:60]!r}; this service has {known!r}")

    @app.get("/v2")
    async def server() -> Response:
        """Tell what serves."""
        return _json({"name": "outsample", "version": outsample.__version__, "extensions": []})

    @app.get("/v2/health/live")
    async def live() -> Response:
        """Tell that the service lives."""
        return _json({"live": True})

    @app.get("/v2/health/ready")
    async def all_ready() -> Response:
        """Tell whether the service takes requests."""
        return _json({"ready": not service.is_ending}, 503 if service.is_ending else 200)

    @app.get("/v2/models/{name}")
    async def metadata(request: Request, name: str) -> Response:
        """Tell the model's input and outputs."""
        check_name(request, name, "/v2/models/{name}")
        return _json(_metadata(service))

    @app.get("/v2/models/{name}/ready")
    async def ready(request: Request, name: str) -> Response:
        """Tell whether the model takes requests."""
        check_name(request, name, "/v2/models/{name}/ready")
        status = 503 if service.is_ending else 200
        return _json({"name": name, "ready": not service.is_ending}, status)

    @app.post("/v2/models/{name}/infer")
    async def infer(request: Request, name: str) -> Response:
        """Place rows; the outputs are the columns of the answer."""
        check_name(request, name, "/v2/models/{name}/infer")
        kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        if kind != JSON:
            raise Refusal(415, f"send {JSON}, not {kind[:60]!r}")
        body = await read_body(request, service.limits)
        told, tensor = _input(body)
        most = service.limits.rows
        rows = matched(tensor, None, model.feature_names, model.n_features, most)
        asked = _asked(told, ["coordinates", *model.numbers])
        request.scope["outsample.told"] = {"rows": len(rows)}
        placed = await service.place(rows)
        answer = {"model_name": name, "model_version": "1"}
        if "id" in told:
            answer["id"] = told["id"]
        outputs = [_output(one, placed[one]) for one in asked]
        return _json({**answer, "outputs": outputs})


def _metadata(service: Service) -> dict[str, Any]:
    model = service.model
    rows = {"name": "rows", "datatype": "FP64", "shape": [-1, model.n_features]}
    axes = {"name": "coordinates", "datatype": "FP64", "shape": [-1, len(model.map_names)]}
    others = [
        {"name": name, "datatype": _datatype(name), "shape": [-1]} for name in model.numbers
    ]
    about = {"name": model.about["name"], "versions": ["1"], "platform": "outsample"}
    return {**about, "inputs": [rows], "outputs": [axes, *others]}


def _input(body: bytes) -> tuple[dict[str, Any], np.ndarray]:
    told = read_json(body)
    inputs = told.get("inputs") if isinstance(told, dict) else None
    if not isinstance(inputs, list) or len(inputs) != 1 or not isinstance(inputs[0], dict):
        raise Refusal(422, '"inputs" must be a list of one tensor, the rows')
    if not isinstance(told.get("id", ""), str):
        raise Refusal(422, '"id" must be a text')
    tensor = inputs[0]
    shape, data = tensor.get("shape"), tensor.get("data")
    if tensor.get("datatype") not in NUMBERS:
        raise Refusal(422, f'"datatype" must be one of {", ".join(sorted(NUMBERS))}')
    if not (
        isinstance(shape, list)
        and len(shape) == 2
        and all(type(side) is int and 0 < side < 2**31 for side in shape)
    ):
        raise Refusal(422, '"shape" must be two whole numbers: rows and columns')
    if not isinstance(data, list):
        raise Refusal(422, '"data" must be a list of numbers, flat or a list a row')
    flat = [value for row in data for value in row] if _is_nested(data) else data
    for at, value in enumerate(flat):
        if type(value) not in (int, float):
            where = {"row": at // shape[1], "column": at % shape[1]}
            raise Refusal(422, f"entry {at} of the data is no number", **where)
    if len(flat) != shape[0] * shape[1]:
        raise Refusal(422, f"the data has {len(flat)} numbers, but the shape is {shape}")
    return told, np.array(flat, dtype=np.float64).reshape(shape)


def _is_nested(data: list[Any]) -> bool:
    return bool(data) and all(isinstance(row, list) for row in data)


def _asked(told: dict[str, Any], known: list[str]) -> list[str]:
    """Return the names of outputs: those asked for, or all."""
    outputs = told.get("outputs")
    if outputs is None:
        return known
    if not isinstance(outputs, list) or not all(isinstance(one, dict) for one in outputs):
        raise Refusal(422, '"outputs" must be a list of objects with a "name"')
    names = [one.get("name") for one in outputs]
    for name in names:
        if name not in known:
            raise Refusal(422, f"there is no output {str(name)[:60]!r}; there are {known}")
    return names or known


def _output(name: str, values: np.ndarray) -> dict[str, Any]:
    about = {"name": name, "datatype": _datatype(name), "shape": list(values.shape)}
    return {**about, "data": np.ascontiguousarray(values).ravel()}


def _datatype(name: str) -> str:
    return "INT64" if name == "n_neighbors" else "FP64"


def _json(told: Any, status: int = 200) -> Response:
    return Response(to_json(told), status_code=status, media_type=JSON)
