"""The Open Inference Protocol, version 2, over HTTP, for clients of other servers.

One input, the rows, as a tensor of shape (q, D); the outputs are the columns of an answer. Tensors
are JSON or binary: then the JSON comes first, and a header has its length.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field, field_validator

import outsample
from outsample.service import row_tables
from outsample.service.access import READ
from outsample.service.errors import RequestError
from outsample.service.schemas import Numbers, write_json
from outsample.service.served_model import ServedModel
from outsample.service.service import Service
from outsample.service.settings import MAX_JSON_BYTES

JSON_LENGTH = "inference-header-content-length"
BINARY = "application/octet-stream"
DTYPES = {
    "FP16": "<f2", "FP32": "<f4", "FP64": "<f8", "INT8": "i1", "INT16": "<i2", "INT32": "<i4",
    "INT64": "<i8", "UINT8": "u1", "UINT16": "<u2", "UINT32": "<u4", "UINT64": "<u8",
}  # fmt: skip
Side = Annotated[int, Field(strict=True, gt=0, lt=2**31)]


class Tensor(BaseModel):
    """The input; ``data`` is flat or one list per row, and missing if the tensor is binary."""

    name: str
    shape: tuple[Side, Side]
    datatype: Literal[*DTYPES]  # type: ignore[valid-type]
    data: Numbers = []
    parameters: dict[str, Any] = {}

    @field_validator("data", mode="before")
    @classmethod
    def flatten(cls, data: Any) -> Any:
        """Return the numbers of all rows in one list."""
        if isinstance(data, list) and all(isinstance(row, list) for row in data):
            return [value for row in data for value in row]
        return data


class RequestedOutput(BaseModel):
    """An output that is asked for."""

    name: str
    parameters: dict[str, Any] = {}


class InferenceRequest(BaseModel):
    """A request with one input, the rows."""

    id: str | None = None
    inputs: tuple[Tensor]
    outputs: list[RequestedOutput] | None = None
    parameters: dict[str, Any] = {}


router, models = APIRouter(prefix="/v2"), APIRouter(dependencies=READ)


async def _served_model(request: Request, name: str, version: str = "1") -> ServedModel:
    """Return the model, if the path names it."""
    model: ServedModel = request.app.state.service.model
    if name != model.name or version != "1":
        reason = f"there is no model {name[:60]!r}, version {version[:20]!r}"
        raise RequestError(404, f"{reason}; there is {model.name!r}, version '1'")
    return model


Served = Annotated[ServedModel, Depends(_served_model)]


@router.get("", dependencies=READ)
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
    service: Service = request.app.state.service
    is_ready = service.is_ready and not service.is_ending
    response.status_code = 200 if is_ready else 503
    return {"ready": is_ready}


@models.get("")
async def metadata(model: Served) -> dict[str, Any]:
    """Return the model's input and outputs."""
    shapes = {"coordinates": [-1, len(model.map_names)], **{key: [-1] for key in model.numbers}}
    return {
        "name": model.name, "versions": ["1"], "platform": "outsample",
        "inputs": [{"name": "rows", "datatype": "FP64", "shape": [-1, model.n_features]}],
        "outputs": [
            {"name": name, "datatype": _datatype(name), "shape": shape}
            for name, shape in shapes.items()
        ],
    }  # fmt: skip


@models.get("/ready")
async def model_ready(request: Request, response: Response, model: Served) -> dict[str, Any]:
    """Return whether the model takes requests."""
    return {"name": model.name, **await ready(request, response)}


@models.post("/infer")
async def infer(request: Request, model: Served) -> Response:
    """Place rows; the outputs are the columns of the answer."""
    service: Service = request.app.state.service
    length, kind = request.headers.get(JSON_LENGTH), row_tables.content_type(request)
    # A page of another site cannot set the header of binary tensors, as Triton's client does.
    if kind != row_tables.JSON and not (length is not None and kind in ("", BINARY)):
        raise RequestError(415, f"send {row_tables.JSON}, or binary tensors with {JSON_LENGTH}")
    max_bytes = service.settings.max_bytes
    max_json_bytes = min(MAX_JSON_BYTES, max_bytes)
    body = await row_tables.read_body(request, max_json_bytes if length is None else max_bytes)
    n_json = len(body) if length is None else int(length) if length.isdigit() else -1
    if not 0 <= n_json <= min(len(body), max_json_bytes):
        raise RequestError(422, f"{JSON_LENGTH} is not the length of the JSON in the body")
    is_large = len(body) > row_tables.LARGE_BODY_BYTES
    asked = await row_tables.in_thread(
        is_large, row_tables.parse_json, InferenceRequest, body[:n_json]
    )
    arguments = asked.inputs[0], body[n_json:], model
    rows = await row_tables.parse_rows(request, len(body), _read_tensor, *arguments)
    outputs = _outputs(asked, ["coordinates", *model.numbers])
    model, answer = await service.place(rows)
    head = {"id": asked.id} if asked.id is not None else {}
    head |= {"model_name": model.name, "model_version": "1"}
    is_large = len(rows) > row_tables.MANY_ROWS
    text, binary = await row_tables.in_thread(is_large, _write, head, outputs, answer)
    headers = {JSON_LENGTH: str(len(text))} if binary else {}
    headers["X-Model-Digest"] = answer["digest"]
    return Response(
        text + binary, headers=headers, media_type=BINARY if binary else row_tables.JSON
    )


for prefix in ("/models/{name}", "/models/{name}/versions/{version}"):
    router.include_router(models, prefix=prefix)


def _read_tensor(tensor: Tensor, binary: bytes, model: ServedModel) -> np.ndarray:
    """Return the rows (q, D) of a tensor."""
    values, dtype = np.array(tensor.data), np.dtype(DTYPES[tensor.datatype])
    if not tensor.data:
        if tensor.parameters.get("binary_data_size") != len(binary) or len(binary) % dtype.itemsize:
            raise RequestError(422, "send the tensor as 'data', or as binary data of its size")
        values = np.frombuffer(binary, dtype)
    if len(values) != tensor.shape[0] * tensor.shape[1]:
        reason = f"the data has {len(values)} numbers, the shape is {list(tensor.shape)}"
        raise RequestError(422, reason)
    model.column_order(None, tensor.shape[1])  # raises if the number of columns is wrong
    return values.astype(np.float64).reshape(tensor.shape)


def _outputs(asked: InferenceRequest, names: list[str]) -> dict[str, bool]:
    """Return the outputs that are asked for, all by default, and whether each is binary."""
    is_binary = asked.parameters.get("binary_data_output") is True
    for output in asked.outputs or ():
        if output.name not in names:
            raise RequestError(422, f"there is no output {output.name[:60]!r}; there are {names}")
    return {
        output.name: output.parameters.get("binary_data", is_binary) is True
        for output in asked.outputs or [RequestedOutput(name=name) for name in names]
    }


def _write(
    head: dict[str, Any], outputs: dict[str, bool], answer: dict[str, Any]
) -> tuple[bytes, bytes]:
    """Return the JSON of an answer, and the binary tensors that follow it."""
    tensors, binary = [], b""
    for name, is_binary in outputs.items():
        values = np.ascontiguousarray(answer[name], DTYPES[_datatype(name)])
        content: dict[str, Any] = {"data": values.ravel()}
        if is_binary:
            content = {"parameters": {"binary_data_size": values.nbytes}}
            binary += values.tobytes()
        tensors.append(
            {"name": name, "datatype": _datatype(name), "shape": values.shape, **content}
        )
    return write_json({**head, "outputs": tensors}), binary


def _datatype(name: str) -> str:
    return "INT64" if name == "n_neighbors" else "FP64"
