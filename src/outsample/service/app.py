"""The routes of the service, as a FastAPI application."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources
from typing import Annotated, Any

import anyio
import numpy as np
from fastapi import FastAPI, Header, Request, Response
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import Field
from sse_starlette.sse import EventSourceResponse
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

import outsample
from outsample.report.page import STYLE
from outsample.service import inference, schemas
from outsample.service.access import READ, WRITE
from outsample.service.arrivals import watch
from outsample.service.connection import RequestMiddleware
from outsample.service.errors import RequestError, answer_error
from outsample.service.monitoring import log, stop_log
from outsample.service.row_tables import ARROW, JSON, answer_rows, read_rows
from outsample.service.served_model import ServedModel, open_model
from outsample.service.service import Service
from outsample.service.settings import MAX_LISTENERS

PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": schemas.Problem} for code in (401, 403, 408, 413, 415, 422, 429, 503, 507)
}
Id = Annotated[int, Field(ge=0, lt=2**53)]  # of an arrival
ARROW_TABLE: dict[str, Any] = {"content": {ARROW: {"schema": {}}}}


def create_app(service: Service) -> FastAPI:
    """Return the application of a service."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        service.ring.loop = asyncio.get_running_loop()
        _reload_on_hangup(service)
        threading.Thread(target=service.recover, name="recovery", daemon=True).start()
        yield {"service": service}
        await asyncio.to_thread(service.end)
        await asyncio.to_thread(stop_log)

    app = FastAPI(
        title="outsample", version=outsample.__version__, openapi_url=None,
        summary="Places rows on a map, with the quality of each position.", lifespan=lifespan,
    )  # fmt: skip
    app.state.service = service
    app.add_exception_handler(HTTPException, answer_error)
    app.add_exception_handler(RequestValidationError, answer_error)
    app.add_middleware(RequestMiddleware, service=service)
    _add_data_routes(app, service)
    _add_state_routes(app, service)
    _add_page(app, service)
    app.include_router(inference.router)
    return app


def _add_data_routes(app: FastAPI, service: Service) -> None:
    body = _describe_body(service.model)

    @app.post("/place", responses=PROBLEMS | {200: {"model": schemas.Placed, **ARROW_TABLE}},
              openapi_extra=body, dependencies=READ)  # fmt: skip
    async def place(request: Request) -> Response:
        """Place rows on the map."""
        model, answer = await service.place(await read_rows(request))
        return await answer_rows(request, model, answer)

    @app.post("/learn", responses=PROBLEMS | {200: {"model": schemas.Learned, **ARROW_TABLE}},
              openapi_extra=body, dependencies=WRITE)  # fmt: skip
    async def learn(
        request: Request,
        idempotency_key: Annotated[str | None, Header(min_length=1, max_length=200)] = None,
    ) -> Response:
        """Place rows and learn them; the answer is sent when they are on the disk."""
        model, answer = await service.learn(await read_rows(request), idempotency_key)
        return await answer_rows(request, model, answer)

    @app.post("/reload", dependencies=WRITE, responses=PROBLEMS)
    def reload() -> dict[str, str | bool]:
        """Serve the model file as it is now; a bad file is rejected, and the old model stays."""
        before = service.model.digest
        try:
            if service.settings.workers > 1:  # the parent replaces them one after the other
                digest = open_model(service.settings.model).digest
                os.kill(os.getppid(), signal.SIGHUP)
            else:
                service.reload()
                digest = service.model.digest
        except (OSError, ValueError) as error:
            raise RequestError(422, f"{error} The model that was served before stays.") from None
        return {"digest": digest, "changed": digest != before}


def _add_state_routes(app: FastAPI, service: Service) -> None:
    @app.get("/model", dependencies=READ, response_model=schemas.ModelDescription,
             response_model_exclude_unset=True)  # fmt: skip
    def model() -> Any:
        """Return what is served: names, sizes, what was learned."""
        return service.describe()

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Return that the service is alive."""
        return {"status": "alive"}

    @app.get("/ready", responses={503: {}})
    async def ready(response: Response) -> dict[str, str | int]:
        """Return whether the service takes requests, and how far it has come until then."""
        if service.is_ready and not service.is_ending:
            return {"status": "ready"}
        response.status_code = 503
        status = "ending" if service.is_ending else "starting"
        return {"status": status, **service.progress()}

    @app.get("/openapi.json", dependencies=READ, include_in_schema=False)
    def openapi() -> Any:
        return app.openapi()

    @app.get("/metrics", dependencies=READ, response_class=Response)
    def metrics() -> Response:
        """Return counts and times for Prometheus."""
        return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)


def _add_page(app: FastAPI, service: Service) -> None:
    """Add the live page and what it asks for."""
    page = resources.files("outsample.service").joinpath("page", "index.html").read_bytes()
    packed: dict[str, bytes] = {}  # the map by the digest of its model
    app.mount("/page", StaticFiles(packages=[("outsample.service", "page")]))
    app.mount("/viewer", StaticFiles(packages=[("outsample.report", "viewer")]))

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return Response(page, media_type="text/html")

    @app.get("/style.css", include_in_schema=False)
    async def style() -> Response:
        return Response(STYLE, media_type="text/css")

    @app.get("/events", dependencies=READ, response_class=EventSourceResponse)
    async def events(
        last_event_id: Annotated[Id | None, Header()] = None, after: Id | None = None
    ) -> EventSourceResponse:
        """Send arrivals as they come, as server-sent events."""
        if len(service.ring.watchers) >= MAX_LISTENERS:
            reason = f"{MAX_LISTENERS} event streams are open; try again"
            raise RequestError(503, reason, retry_after=10)
        end = anyio.Event()
        return EventSourceResponse(
            watch(service, after if last_event_id is None else last_event_id, end), sep="\n",
            send_timeout=service.settings.timeout, shutdown_event=end, shutdown_grace_period=5,
        )  # fmt: skip

    @app.get("/map", dependencies=READ, response_class=Response)
    def points() -> Response:
        """Return the points of the map, packed."""
        model = service.model
        if model.digest not in packed:
            packed.clear()
            packed[model.digest] = _pack_map(model)
        return Response(packed[model.digest], media_type="application/octet-stream")

    @app.get("/point/{number}", dependencies=READ, response_class=Response)
    def point(number: Id) -> Response:
        """Return everything about one arrival: numbers, reasons, neighbours."""
        arrivals = service.ring.arrival(number)
        if arrivals is None:
            kept = f"arrivals {service.ring.first_id} to {service.ring.next_id - 1} are kept"
            raise RequestError(404, f"there is no arrival {number}; {kept}")
        model, row = service.model, arrivals.rows[0]
        names = model.feature_names or [str(column) for column in range(len(row))]
        details: dict[str, Any] = {
            "id": arrivals.first, "time": arrivals.time, "kind": arrivals.kind,
            **{name: values[0] for name, values in arrivals.answer.items()},
            "values": dict(zip(names, row.tolist(), strict=True)),
            "neighbors": model.neighbors(row),
        }  # fmt: skip
        for explanation in model.explain(arrivals.rows):
            details["main_reason"] = explanation.main_reason
            reasons = explanation.reasons.items()
            details["reasons"] = {name: reason._asdict() for name, reason in reasons}
        return Response(schemas.write_json(details), media_type=JSON)


def _reload_on_hangup(service: Service) -> None:
    """Reload the model on SIGHUP, where there are signals and one process."""

    async def reload() -> None:
        try:
            if not await asyncio.to_thread(service.reload):
                log.info("the model file has not changed")
        except Exception as error:
            log.error("the model that was served before stays: %s", error)

    is_main = threading.current_thread() is threading.main_thread()
    if service.settings.workers == 1 and is_main and hasattr(signal, "SIGHUP"):
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, lambda: loop.create_task(reload()) and None)


def _pack_map(model: ServedModel) -> bytes:
    from outsample.report.map_data import collect
    from outsample.report.map_packing import packed

    try:
        data = collect(model.core, model.map_names, model.training_columns, None)
    except (TypeError, ValueError) as error:
        raise RequestError(404, f"this model's map cannot be drawn: {error}") from None
    return packed(data, {"level": data.level})


def _describe_body(model: ServedModel) -> dict[str, Any]:
    """Return the request body for OpenAPI, with an example that works."""
    row = np.round(0.1 * np.arange(model.n_features), 1).tolist()
    example: dict[str, Any] = {"rows": [row]}
    if model.feature_names is not None:
        example["columns"] = model.feature_names
    formats = [schemas.Rows.model_json_schema(), schemas.Records.model_json_schema()]
    content = {"schema": {"anyOf": formats}, "examples": {"one row": {"value": example}}}
    return {"requestBody": {"required": True, "content": {JSON: content, ARROW: {"schema": {}}}}}
