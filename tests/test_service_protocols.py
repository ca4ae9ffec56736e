"""The description of the service is true, and clients of other servers work."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the service needs outsample[serve]")

from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

from service_tools import AUTHORISED, Client, learner, rows


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    service = learner(tmp_path_factory.mktemp("protocols"))
    yield Client(service)
    service.end()


def test_examples_of_the_description_work(client):
    document = client.get("/openapi.json").json()
    tried = 0
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {})
            for example in content.get("application/json", {}).get("examples", {}).values():
                at = path.replace("{name}", "small")
                answer = getattr(client, method)(at, json=example["value"], headers=AUTHORISED)
                assert answer.status_code == 200, answer.text
                tried += 1
    assert tried == 3
    assert {"/place", "/learn", "/model", "/events", "/map", "/metrics"} <= set(document["paths"])


def tensor(X, **more):
    told = {"name": "rows", "shape": list(X.shape), "datatype": "FP64", "data": X.ravel().tolist()}
    return {"inputs": [told | more]}


def test_the_inference_protocol_places(client):
    X = rows(4)
    about = client.get("/v2/models/small").json()
    assert about["inputs"] == [{"name": "rows", "datatype": "FP64", "shape": [-1, 3]}]
    told = tensor(X) | {"id": "mine"}
    answer = client.post("/v2/models/small/infer", json=told).json()
    assert answer["id"] == "mine" and answer["model_name"] == "small"
    assert [one["name"] for one in answer["outputs"]] == [one["name"] for one in about["outputs"]]
    outputs = {one["name"]: np.reshape(one["data"], one["shape"]) for one in answer["outputs"]}
    placed = client.service.model.place(X)
    np.testing.assert_array_equal(outputs["coordinates"], placed.coordinates)
    np.testing.assert_array_equal(outputs["n_neighbors"], placed.n_neighbors)
    asked = tensor(X, data=X.tolist()) | {"outputs": [{"name": "error_bar"}]}
    (only,) = client.post("/v2/models/small/infer", json=asked).json()["outputs"]
    np.testing.assert_array_equal(only["data"], placed.error_bar)
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}
    assert client.get("/v2/models/small/ready").json()["ready"]
    assert client.get("/v2").json()["name"] == "outsample"


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ([], "one tensor"),
        ({"inputs": []}, "one tensor"),
        ({"inputs": [3]}, "one tensor"),
        (tensor(rows(1), datatype="BYTES"), "datatype"),
        (tensor(rows(1), shape=[3]), "shape"),
        (tensor(rows(1), shape=[1, True]), "shape"),
        (tensor(rows(1), shape=[2, 3]), "3 numbers"),
        (tensor(rows(1), shape=[3, 1]), "columns, but the model takes 3"),
        (tensor(rows(1), data="x"), "data"),
        (tensor(rows(1), data=[1, "2", 3]), "entry 1"),
        (tensor(rows(1), data=[[1, 2, None]]), "entry 2"),
        (tensor(rows(1)) | {"id": 3}, "id"),
        (tensor(rows(1)) | {"outputs": 3}, "outputs"),
        (tensor(rows(1)) | {"outputs": [{"name": "y"}]}, "no output 'y'"),
        (tensor(rows(1)) | {"outputs": [{"name": []}]}, "no output"),
    ],
)
def test_bad_tensors_are_refused(client, told, reason):
    answer = client.post("/v2/models/small/infer", json=told)
    assert answer.status_code == 422 and reason in answer.json()["error"]


def test_other_models_and_types_are_refused(client):
    assert client.get("/v2/models/other").status_code == 404
    assert client.post("/v2/models/other/infer", json=tensor(rows(1))).status_code == 404
    text = {"Content-Type": "text/plain"}
    assert client.post("/v2/models/small/infer", content=b"", headers=text).status_code == 415


def tried_by_schemathesis(client, examples):
    """Requests made of the description, right and wrong ones: no server error."""
    schemathesis = pytest.importorskip("schemathesis")
    schema = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
    checked = settings(
        max_examples=examples, deadline=None, derandomize=examples < 50, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    n_tried = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path == "/events":  # it does not end
            continue
        strategies = [
            operation.as_strategy(generation_mode=mode) for mode in schemathesis.GenerationMode
        ]
        for strategy in strategies:
            @checked
            @given(case=strategy)
            def tried(case):
                nonlocal n_tried
                n_tried += 1
                case.headers = {**dict(case.headers or {}), **AUTHORISED}
                sent = case.as_transport_kwargs(base_url="http://127.0.0.1:8000")
                if isinstance(sent.get("data"), bytes | str):
                    sent["content"] = sent["data"]
                known = ("headers", "json", "content", "params")
                sent = {name: sent[name] for name in known if sent.get(name) is not None}
                answer = asyncio.run(client.asked(case.method, case.formatted_path, **sent))
                assert answer.status_code < 500, answer.text

            try:
                tried()
            except Unsatisfiable:  # there is nothing wrong to make of no parameters
                continue
    return n_tried


def test_no_server_errors_by_schemathesis(client):
    assert tried_by_schemathesis(client, 6) > 50


@pytest.mark.long
def test_no_server_errors_by_schemathesis_for_long(client):
    assert tried_by_schemathesis(client, 300) > 1000
