"""The Open Inference Protocol, version 2, over HTTP, for clients of other servers.

One input, the rows, as a tensor of shape (q, D); the outputs are the columns of an answer. Tensors
are JSON or binary: then the JSON comes first, and a header has its length.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Request, Response
from pydantic import FailFast, TypeAdapter, ValidationError

import outsample
from outsample.service.access import READER
from outsample.service.bodies import LARGE_BODY_BYTES, content_type, in_thread, log_rows, read_body
from outsample.service.errors import RequestError
from outsample.service.row_formats import JSON, check_values, column_order, parse_json, write_json
from outsample.service.schemas import InferenceRequest, Number
from outsample.service.served_model import ServedModel
from outsample.service.service import MANY_ROWS, Service
from outsample.service.settings import MAX_JSON_BYTES

JSON_LENGTH = "inference-header-content-length"
DTYPES = {
    "FP16": "<f2", "FP32": "<f4", "FP64": "<f8", "INT8": "i1", "INT16": "<i2", "INT32": "<i4",
    "INT64": "<i8", "UINT8": "u1", "UINT16": "<u2", "UINT32": "<u4", "UINT64": "<u8",
}  # fmt: skip
NUMBERS = TypeAdapter(Annotated[list[Number], FailFast()])
BINARY = "application/octet-stream"
router, models = APIRouter(prefix="/v2"), APIRouter(dependencies=[Depends(READER)])


def _served_model(request: Request, name: str, version: str = "1") -> ServedModel:
    """Return the model, if the path names it."""
    model: ServedModel = request.scope["state"]["service"].model
    if name != model.description["name"] or version != "1":
        known = model.description["name"]
        reason = f"there is no model {name[:60]!r}, version {version[:20]!r}; there is {known!r}"
        raise RequestError(404, f"{reason}, version '1'")
    return model


Served = Annotated[ServedModel, Depends(_served_model)]


@router.get("", dependencies=[Depends(READER)])
async def server() -> dict[str, Any]:
    """Return the name of the server."""
    version = outsample.__version__
    return {"name": "outsample", "version": version, "extensions": ["binary_tensor_data"]}


@router.get("/health/live")
async def live() -> dict[str, bool]:
    """Return whether the service is alive."""
    return {"live": True}


@router.get("/health/ready")
async def ready(request: Request, response: Response) -> dict[str, bool]:
    """Return whether the service takes requests."""
    service: Service = request.scope["state"]["service"]
    is_ready = service.is_ready and not service.is_ending
    response.status_code = 200 if is_ready else 503
    return {"ready": is_ready}


@models.get("")
async def metadata(model: Served) -> dict[str, Any]:
    """Return the model's input and outputs."""
    rows = {"name": "rows", "datatype": "FP64", "shape": [-1, model.n_features]}
    axes = {"name": "coordinates", "datatype": "FP64", "shape": [-1, len(model.map_names)]}
    outputs = [{"name": name, "datatype": _datatype(name), "shape": [-1]} for name in model.numbers]
    about = {"name": model.description["name"], "versions": ["1"], "platform": "outsample"}
    return {**about, "inputs": [rows], "outputs": [axes, *outputs]}


@models.get("/ready")
async def model_ready(request: Request, response: Response, model: Served) -> dict[str, Any]:
    """Return whether the model takes requests."""
    return {"name": model.description["name"], **await ready(request, response)}


@models.post("/infer")
async def infer(request: Request, model: Served) -> Response:
    """Place rows; the outputs are the columns of the answer."""
    service: Service = request.scope["state"]["service"]
    service.check_ready()
    length, kind = request.headers.get(JSON_LENGTH), content_type(request)
    # A page of another site cannot set the header of binary tensors, as Triton's client does.
    if kind != JSON and not (length is not None and kind in ("", BINARY)):
        raise RequestError(415, f"send {JSON}, or binary tensors with {JSON_LENGTH}")
    settings = service.settings
    max_json_bytes = min(MAX_JSON_BYTES, settings.max_bytes)
    max_bytes = max_json_bytes if length is None else settings.max_bytes
    body = await read_body(request, service, max_bytes)
    size = len(body) if length is None else int(length) if length.isdigit() else -1
    if not 0 <= size <= min(len(body), max_json_bytes):
        raise RequestError(422, f"{JSON_LENGTH} is not the length of the JSON in the body")
    is_large = len(body) > LARGE_BODY_BYTES
    asked, rows = await in_thread(
        is_large, _read, body[:size], body[size:], model, settings.max_rows
    )
    log_rows(request, rows)
    outputs = _requested(asked, ["coordinates", *model.numbers])
    model, answer = await service.place(rows)
    about = {"model_name": model.description["name"], "model_version": "1"}
    if asked.id is not None:
        about["id"] = asked.id
    body, headers = await in_thread(len(rows) > MANY_ROWS, _write, about, outputs, answer)
    headers["X-Model-Digest"] = answer["digest"]
    return Response(body, media_type=BINARY if JSON_LENGTH in headers else JSON, headers=headers)


for prefix in ("/models/{name}", "/models/{name}/versions/{version}"):
    router.include_router(models, prefix=prefix)


def _read(
    text: bytes, binary: bytes, model: ServedModel, max_rows: int
) -> tuple[InferenceRequest, np.ndarray]:
    """Return a request and its rows (q, D)."""
    asked: InferenceRequest = parse_json(InferenceRequest, text)
    tensor = asked.inputs[0]
    if tensor.datatype not in DTYPES:
        raise RequestError(422, f"'datatype' must be one of {', '.join(DTYPES)}")
    values = _binary_values(tensor, binary) if tensor.data is None else _values(tensor)
    if len(values) != tensor.shape[0] * tensor.shape[1]:
        raise RequestError(422, f"the data has {len(values)} numbers, the shape is {tensor.shape}")
    rows = values.astype(np.float64).reshape(tensor.shape)
    column_order(None, rows.shape[1], model)
    return asked, check_values(rows, model, max_rows)


def _values(tensor: Any) -> np.ndarray:
    """Return the numbers of a tensor in JSON, flat or one list per row."""
    data = tensor.data
    if data and all(isinstance(row, list) for row in data):
        data = [value for row in data for value in row]
    try:
        return np.array(NUMBERS.validate_python(data), dtype=np.float64)
    except ValidationError as error:
        at = error.errors(include_url=False, include_input=False)[0]["loc"][0]
    location = {"row": int(at) // tensor.shape[1], "column": int(at) % tensor.shape[1]}
    raise RequestError(422, f"entry {at} of the data is not a finite number", **location)


def _binary_values(tensor: Any, binary: bytes) -> np.ndarray:
    size, dtype = tensor.parameters.get("binary_data_size"), np.dtype(DTYPES[tensor.datatype])
    if type(size) is not int or size != len(binary) or size % dtype.itemsize:
        raise RequestError(422, "send the tensor as 'data', or as binary data of the right size")
    return np.frombuffer(binary, dtype)


def _requested(asked: InferenceRequest, names: list[str]) -> dict[str, bool]:
    """Return the outputs that are asked for, all by default, and whether each is binary."""
    is_binary = asked.parameters.get("binary_data_output") is True
    if not asked.outputs:
        return dict.fromkeys(names, is_binary)
    for output in asked.outputs:
        if output.name not in names:
            raise RequestError(422, f"there is no output {output.name[:60]!r}; there are {names}")
    return {
        output.name: output.parameters.get("binary_data", is_binary) is True
        for output in asked.outputs
    }


def _write(
    about: dict[str, Any], outputs: dict[str, bool], answer: dict[str, Any]
) -> tuple[bytes, dict[str, str]]:
    """Return the body of an answer and its headers."""
    tensors, parts = [], []
    for name, is_binary in outputs.items():
        values = np.ascontiguousarray(answer[name], DTYPES[_datatype(name)])
        tensor: dict[str, Any] = {
            "name": name, "datatype": _datatype(name), "shape": list(values.shape)
        }  # fmt: skip
        if is_binary:
            parts.append(values.tobytes())
            tensor["parameters"] = {"binary_data_size": len(parts[-1])}
        else:
            tensor["data"] = values.ravel()
        tensors.append(tensor)
    text = write_json({**about, "outputs": tensors})
    return b"".join([text, *parts]), {JSON_LENGTH: str(len(text))} if parts else {}


def _datatype(name: str) -> str:
    return "INT64" if name == "n_neighbors" else "FP64"
