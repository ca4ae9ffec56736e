"""The description of the service is true, and clients of other servers work."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the service needs outsample[serve]")

from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

from service_tools import AUTHORISED, TOKEN, Client, Running, fitted, make_service, rows


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    service = make_service(tmp_path_factory.mktemp("protocols"), learns=True)
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
                answer = getattr(client, method)(at, json=example["value"])
                assert answer.status_code == 200, answer.text
                tried += 1
    assert tried >= 2
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
    placed = client.service.model.model.place(X)
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
    ("body", "reason"),
    [
        ([], "object"),
        ({}, "inputs"),
        ({"inputs": []}, "inputs"),
        ({"inputs": [3]}, "inputs.0"),
        (tensor(rows(1), datatype="BYTES"), "datatype"),
        (tensor(rows(1), datatype=["FP64"]), "datatype"),
        (tensor(rows(1), datatype={}), "datatype"),
        (tensor(rows(1), shape=[3]), "shape"),
        (tensor(rows(1), shape=[1, True]), "shape"),
        (tensor(rows(1), shape=[2, 3]), "3 numbers"),
        (tensor(rows(1), shape=[3, 1]), "columns for the model's 3"),
        (tensor(rows(1), data="x"), "data"),
        (tensor(rows(1), data=None), "data"),
        (tensor(rows(1), data=[1, "2", 3]), "data.1"),
        (tensor(rows(1), data=[[1, 2, None]]), "data.2"),
        (tensor(rows(1)) | {"id": 3}, "id"),
        (tensor(rows(1)) | {"outputs": 3}, "outputs"),
        (tensor(rows(1)) | {"outputs": [{"name": "y"}]}, "no output 'y'"),
        (tensor(rows(1)) | {"outputs": [{"name": []}]}, "outputs.0.name"),
    ],
)
def test_bad_tensors_are_rejected(client, body, reason):
    answer = client.post("/v2/models/small/infer", json=body)
    assert answer.status_code == 422 and reason in answer.json()["error"]


def test_tritons_own_client_works_with_its_defaults(client, tmp_path):
    """Its tensors are binary, and its paths have versions."""
    triton = pytest.importorskip("tritonclient.http")
    running, X = Running(make_service(tmp_path)), rows(6)
    remote = triton.InferenceServerClient(f"127.0.0.1:{running.port}")
    headers = {"Authorization": f"Bearer {TOKEN}"}  # the client adds its own to them
    assert remote.is_server_live() and remote.is_server_ready()
    for version in ("", "1"):
        assert remote.is_model_ready("small", version, headers=headers)
        about = remote.get_model_metadata("small", version, headers=headers)
        assert about["versions"] == ["1"]
        for values, datatype in ((X, "FP64"), (X.astype(np.float32), "FP32")):
            rows_in = triton.InferInput("rows", list(values.shape), datatype)
            rows_in.set_data_from_numpy(values)
            answer = remote.infer("small", [rows_in], version, headers=headers, request_id="7")
            placed = fitted().place(values.astype(float))
            np.testing.assert_array_equal(answer.as_numpy("coordinates"), placed.coordinates)
            np.testing.assert_array_equal(answer.as_numpy("n_neighbors"), placed.n_neighbors)
            assert answer.get_response()["id"] == "7"
    rows_in.set_data_from_numpy(X.astype(np.float32), binary_data=False)
    asked = [triton.InferRequestedOutput("p_value", binary_data=False)]
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    answer = remote.infer("small", [rows_in], outputs=asked, headers=headers)
    assert answer.as_numpy("p_value").shape == (6,) and answer.as_numpy("error_bar") is None
    with pytest.raises(triton.InferenceServerException, match="version '2'"):
        remote.infer("small", [rows_in], "2", headers=headers)
    remote.close()
    running.end()


@pytest.mark.parametrize("length", ["x", "-1", "99999", "1"])
def test_a_wrong_length_of_binary_tensors_is_rejected(client, length):
    headers = {"Inference-Header-Content-Length": length}
    answer = client.post("/v2/models/small/infer", content=b"{}12345678", headers=headers)
    assert answer.status_code == 422


def test_metrics_are_read_by_prometheus_parser_and_lose_no_digits(client):
    from prometheus_client.parser import text_string_to_metric_families

    def samples():
        families = text_string_to_metric_families(client.get("/metrics").text)
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in families for sample in family.samples
        }  # fmt: skip

    rows_placed = client.service.metrics.rows.labels("placed")
    rows_placed.inc(2_000_001 - samples().get(("outsample_rows_total", "placed"), 0))
    assert samples()["outsample_rows_total", "placed"] == 2_000_001
    client.send("/place", rows(1))
    found = samples()
    assert found["outsample_rows_total", "placed"] == 2_000_002
    assert found["outsample_requests_total", "/place", "200"] >= 1
    assert found["outsample_request_seconds_count", "/place"] >= 1
    assert found[("outsample_ready",)] == 1 and ("outsample_needs_refit",) in found


def test_a_map_that_is_out_of_date_is_in_the_metrics_at_once(tmp_path):
    """It was 0 until somebody opened /model."""
    service = make_service(tmp_path, learns=True)
    client = Client(service)
    far = np.repeat([[9.0, 9.0, 9.0], [-12.0, 3.0, 1.0]], 60, axis=0) + rows(120)
    client.send("/learn", far)
    assert service.learner.stream.needs_refit_
    assert "outsample_needs_refit 1.0" in client.get("/metrics").text
    service.end()


def test_other_models_and_types_are_rejected(client):
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
                answer = asyncio.run(client.request(case.method, case.formatted_path, **sent))
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
