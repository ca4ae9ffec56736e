"""What the doors take and answer, in the words of OpenAPI, with examples that work."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from outsample._validation import LARGEST_VALUE
from outsample.service.arrow_rows import ARROW
from outsample.service.bodies import JSON
from outsample.service.service import Service

REFUSED = {
    "401": "The token is missing or wrong.",
    "403": "The service has no token, or does not learn.",
    "408": "The body did not come in time.",
    "413": "The body is too large.",
    "415": "The body is of another type.",
    "422": "The body is no table for this model; row and column say where.",
    "429": "Too many requests wait; Retry-After says when to come back.",
    "500": "A fault of the service.",
    "503": "Too much to do, no answer in time, or the service is ending.",
    "507": "The disk is full: nothing was learned.",
}
FOR_ROWS = ("408", "413", "415", "422", "429")
OTHER_TYPES = {"/metrics": "text/plain", "/events": "text/event-stream"}


def described(app: FastAPI, service: Service) -> None:
    """Give the application a description made for its model; bodies are parsed by hand."""
    made: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not made:
            made.update(_document(app, service))
        return made

    app.openapi = openapi  # type: ignore[method-assign]


def _document(app: FastAPI, service: Service) -> dict[str, Any]:
    document = get_openapi(
        title=app.title, version=app.version, summary=app.summary, routes=app.routes
    )
    for path, methods in document["paths"].items():
        for operation in methods.values():
            _describe(path, operation)
    rows, tensor = _rows(service), _tensor(service)
    answer = _object({"first_id": {"type": "integer"}, "n_rows": {"type": "integer"}})
    answer["properties"] |= _columns(service)
    for path in ("/place", "/learn"):
        _body(document, path, {JSON: rows, ARROW: {"schema": {}}})
        _answer(document, path, {JSON: {"schema": answer}, ARROW: {"schema": {}}})
    infer = "/v2/models/{name}/infer"
    _body(document, infer, {JSON: tensor})
    name = {"type": "string", "enum": [service.model.about["name"]]}
    for path, methods in document["paths"].items():
        if "{name}" in path:
            for operation in methods.values():
                operation["parameters"][0]["schema"] = name
    document["components"] = {
        "schemas": {"Refusal": _object({"reason": {"type": "string"}})},
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
    }
    document["security"] = [{}, {"token": []}]
    document["paths"]["/learn"]["post"]["security"] = [{"token": []}]
    document["paths"]["/events"]["get"]["parameters"] = [
        {"name": "after", "in": "query", "schema": {"type": "integer", "minimum": 0}},
        {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}},
    ]
    return document


def _describe(path: str, operation: dict[str, Any]) -> None:
    """Tell the refusals of an operation, and the type of its answer."""
    refused = ["401", "403", "500", "503"]
    if path.endswith(("/place", "/learn", "/infer")):
        refused += FOR_ROWS
    if path == "/learn":
        refused.append("507")
    found = {"200": {"description": "Done."}}
    found |= {code: _refused(REFUSED[code]) for code in sorted(refused)}
    if path == "/map" or "{" in path:
        found["404"] = _refused("There is no such thing.")
    kind = OTHER_TYPES.get(path, "application/octet-stream" if path == "/map" else JSON)
    found["200"] |= {"content": {kind: {"schema": {}}}}  # type: ignore[dict-item]
    operation["responses"] = found


def _refused(words: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Refusal"}
    return {"description": words, "content": {JSON: {"schema": schema}}}


def _body(document: dict[str, Any], path: str, content: dict[str, Any]) -> None:
    document["paths"][path]["post"]["requestBody"] = {"required": True, "content": content}


def _answer(document: dict[str, Any], path: str, content: dict[str, Any]) -> None:
    document["paths"][path]["post"]["responses"]["200"]["content"] = content


def _rows(service: Service) -> dict[str, Any]:
    """Rows of JSON, as this model takes them, with an example."""
    model, D = service.model, service.model.n_features
    number = {"type": "number", "minimum": -LARGEST_VALUE, "maximum": LARGEST_VALUE}
    row = {"type": "array", "items": number, "minItems": D, "maxItems": D}
    name: dict[str, Any] = {"type": "string"}
    columns: dict[str, Any] = {"type": "array", "items": name, "minItems": D, "maxItems": D}
    example: dict[str, Any] = {"rows": [_example(service)]}
    if model.feature_names is not None:
        name["enum"], columns["uniqueItems"] = model.feature_names, True
        example["columns"] = model.feature_names
    rows = {"type": "array", "items": row, "minItems": 1, "maxItems": service.limits.rows}
    schema = _object({"rows": rows}) | {"additionalProperties": False}
    schema["properties"]["columns"] = columns
    return {"schema": schema, "examples": {"one row": {"value": example}}}


def _tensor(service: Service) -> dict[str, Any]:
    D = service.model.n_features
    shape = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
    data = {"type": "array", "items": {"type": "number"}}
    kind = {"type": "string", "enum": ["FP64", "FP32", "INT64", "INT32"]}
    one = _object({"name": {"type": "string"}, "shape": shape, "datatype": kind, "data": data})
    inputs = {"type": "array", "items": one, "minItems": 1, "maxItems": 1}
    example = {"name": "rows", "shape": [1, D], "datatype": "FP64", "data": _example(service)}
    examples = {"one row": {"value": {"inputs": [example]}}}
    return {"schema": _object({"inputs": inputs}), "examples": examples}


def _columns(service: Service) -> dict[str, Any]:
    numbers = {"type": "array", "items": {"type": ["number", "null"]}}
    found: dict[str, Any] = {"coordinates": {"type": "array", "items": numbers}}
    return found | dict.fromkeys(service.model.numbers, numbers)


def _example(service: Service) -> list[float]:
    return [round(0.1 * at, 1) for at in range(service.model.n_features)]


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}
