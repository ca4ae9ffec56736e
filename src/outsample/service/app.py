"""The doors of the service: paths, what they take and what they answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

import outsample
from outsample.service.bodies import answered, read_rows
from outsample.service.gate import FAULT, Direct, Gate
from outsample.service.inference_protocol import add_inference_protocol
from outsample.service.json_rows import to_json
from outsample.service.openapi import described
from outsample.service.page_files import page_files
from outsample.service.refusal import Refusal
from outsample.service.service import Service
from outsample.service.watching import add_watching


def create_app(service: Service) -> Any:
    """Return the ASGI application of a service."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.ring.loop = asyncio.get_running_loop()
        yield
        await asyncio.to_thread(service.end)

    app = FastAPI(
        title="outsample", version=outsample.__version__, docs_url=None, redoc_url=None,
        summary="Places rows on a map, and says how far to trust it.", lifespan=lifespan,
    )  # fmt: skip
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(HTTPException, _not_served)
    app.add_exception_handler(Exception, _fault)  # it is raised again, for the gate to log
    files = page_files()
    direct = _add_data(app, service)
    _add_state(app, service)
    add_watching(app, service)
    add_inference_protocol(app, service)
    for path, (body, kind) in files.items():
        _add_file(app, path, body, kind)
    described(app, service)
    return Gate(app, service, files, [route.path for route in app.routes], direct)  # type: ignore[attr-defined]


def _add_data(app: FastAPI, service: Service) -> Direct:
    async def rows_of(request: Request) -> np.ndarray:
        rows = await read_rows(request, service.model, service.limits)
        told = request.scope["outsample.told"] = {"rows": len(rows)}
        if service.log_rows:
            told["values"] = rows.tolist()
        return rows

    @app.post("/place")
    async def place(request: Request) -> Response:
        """Place rows on the map: coordinates, and numbers that say how far to trust them."""
        return await answered(request, service.model, await service.place(await rows_of(request)))

    @app.post("/learn")
    async def learn(request: Request) -> Response:
        """Place rows, and let the model learn them: the answer comes when they are on the disk."""
        return await answered(request, service.model, await service.learn(await rows_of(request)))

    return {"/place": place, "/learn": learn}


def _add_state(app: FastAPI, service: Service) -> None:
    @app.get("/model")
    async def model() -> Response:
        """Tell what is served: names, sizes, how it has changed since the start."""
        return _json({**_about(service), **await service.status()})

    @app.get("/health")
    async def health() -> Response:
        """Tell that the service lives."""
        return _json({"status": "alive"})

    @app.get("/ready")
    async def ready() -> Response:
        """Tell that the service takes requests; 503 when it is ending."""
        if service.is_ending:
            raise Refusal(503, "the service is ending", retry_after=5)
        return _json({"status": "ready"})

    @app.get("/metrics")
    async def metrics() -> Response:
        """Tell counts and times, for Prometheus."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")


def _add_file(app: FastAPI, path: str, body: bytes, kind: str) -> None:
    @app.get(path, include_in_schema=False)
    async def file() -> Response:
        return Response(body, media_type=kind, headers={"Cache-Control": "no-cache"})


def _about(service: Service) -> dict[str, Any]:
    model = service.model
    told = {**model.about, "alpha": model.alpha, "numbers": model.numbers}
    limits = {name: getattr(service.limits, name) for name in ("body_bytes", "rows", "waiting")}
    return {**told, "limits": limits}


def _json(told: Any, status: int = 200) -> Response:
    return Response(to_json(told), status_code=status, media_type="application/json")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    told = error.told()
    if request.url.path.startswith("/v2"):
        told["error"] = error.reason  # as the protocol calls it
    answer = _json(told, error.status)
    answer.headers.update(error.headers)
    return answer


async def _not_served(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    reasons = {404: "there is nothing at this path", 405: "this path takes another method"}
    answer = _json({"reason": reasons.get(error.status_code, str(error.detail))}, error.status_code)
    answer.headers.update(error.headers or {})
    return answer


async def _fault(request: Request, error: Exception) -> Response:
    return _json(FAULT.told(), FAULT.status)
