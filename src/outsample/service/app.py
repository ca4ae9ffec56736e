"""The routes of the service, as a FastAPI application."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import anyio
import numpy as np
from fastapi import Depends, FastAPI, Header, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST
from sse_starlette.sse import EventSourceResponse
from starlette.exceptions import HTTPException
from starlette.routing import Route

import outsample
from outsample.service import access, errors, inference, schemas
from outsample.service.bodies import answer_rows, read_rows
from outsample.service.errors import RequestError
from outsample.service.events import parse_id, watch
from outsample.service.logs import flush_log
from outsample.service.middleware import RequestMiddleware
from outsample.service.page_files import page_files
from outsample.service.row_formats import ARROW, JSON, write_json
from outsample.service.served_model import ServedModel, open_model
from outsample.service.service import Service
from outsample.service.settings import MAX_LISTENERS

log = logging.getLogger("outsample.service")
READER, WRITER = [Depends(access.READER)], [Depends(access.WRITER)]
PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": schemas.Problem} for code in (401, 403, 408, 413, 415, 422, 429, 503, 507)
}
ARROW_TABLE: dict[str, Any] = {"content": {ARROW: {"schema": {}}}}


def create_app(service: Service) -> FastAPI:
    """Return the application of a service."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        service.ring.loop = asyncio.get_running_loop()
        _reload_on_hangup(service)
        thread = threading.Thread(target=_recover, args=[service], name="recovery", daemon=True)
        thread.start()
        yield {"service": service}
        await asyncio.to_thread(service.end)
        await asyncio.to_thread(flush_log)

    app = FastAPI(
        title="outsample", version=outsample.__version__, openapi_url=None,
        summary="Places rows on a map, with the quality of each position.", lifespan=lifespan,
    )  # fmt: skip
    app.add_exception_handler(HTTPException, errors.handle_http_error)
    app.add_exception_handler(RequestValidationError, errors.handle_invalid_parameter)
    app.add_middleware(RequestMiddleware, service=service)
    _add_data_routes(app, service)
    _add_state_routes(app, service)
    _add_watching_routes(app, service)
    app.include_router(inference.router)
    for path, (body, kind) in page_files().items():
        file = Response(body, media_type=kind, headers={"Cache-Control": "no-cache"})
        app.router.routes.append(Route(path, file))
    return app


def _add_data_routes(app: FastAPI, service: Service) -> None:
    body = _describe_body(service.model)

    @app.post("/place", responses=PROBLEMS | {200: {"model": schemas.Placed, **ARROW_TABLE}},
              openapi_extra=body, dependencies=READER)  # fmt: skip
    async def place(request: Request) -> Response:
        """Place rows on the map."""
        model, answer = await service.place(await read_rows(request))
        return await answer_rows(request, model, answer)

    @app.post("/learn", responses=PROBLEMS | {200: {"model": schemas.Learned, **ARROW_TABLE}},
              openapi_extra=body, dependencies=WRITER)  # fmt: skip
    async def learn(
        request: Request,
        idempotency_key: Annotated[str | None, Header(min_length=1, max_length=200)] = None,
    ) -> Response:
        """Place rows and learn them; the answer is sent when they are on the disk."""
        model, answer = await service.learn(await read_rows(request), idempotency_key)
        return await answer_rows(request, model, answer)


def _add_state_routes(app: FastAPI, service: Service) -> None:
    @app.get("/model", dependencies=READER, response_model=schemas.ModelDescription,
             response_model_exclude_unset=True)  # fmt: skip
    def model() -> Any:
        """Return what is served: names, sizes, what was learned."""
        return service.describe()

    @app.get("/health")
    async def health() -> schemas.State:
        """Return that the service is alive."""
        return schemas.State(status="alive")

    @app.get("/ready", responses={503: {"model": schemas.State}}, response_model=schemas.State,
             response_model_exclude_none=True)  # fmt: skip
    async def ready(response: Response) -> Any:
        """Return whether the service takes requests, and how far it has come until then."""
        if service.is_ready and not service.is_ending:
            return {"status": "ready"}
        response.status_code = 503
        status = "ending" if service.is_ending else "starting"
        return {"status": status, **service.progress()}

    @app.get("/openapi.json", dependencies=READER, include_in_schema=False)
    def openapi() -> Any:
        return app.openapi()

    @app.get("/metrics", dependencies=READER, response_class=Response)
    def metrics() -> Response:
        """Return counts and times for Prometheus."""
        return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)

    @app.post("/reload", dependencies=WRITER, responses=PROBLEMS)
    def reload() -> schemas.Reloaded:
        """Serve the model file as it is now; a bad file is rejected, and the old model stays."""
        try:
            if service.settings.workers == 1:
                is_changed = service.reload()
                return schemas.Reloaded(digest=service.model.digest, changed=is_changed)
            # The parent replaces its workers one after the other.
            digest = open_model(service.settings.model).digest
            is_changed = digest != service.model.digest
            os.kill(os.getppid(), signal.SIGHUP)
            return schemas.Reloaded(digest=digest, changed=is_changed)
        except (OSError, ValueError) as error:
            raise RequestError(422, f"{error} The model that was served before stays.") from None


def _add_watching_routes(app: FastAPI, service: Service) -> None:
    @app.get("/events", dependencies=READER, response_class=EventSourceResponse)
    async def events(
        last_event_id: Annotated[str | None, Header()] = None,
        after: Annotated[str | None, Query()] = None,
    ) -> EventSourceResponse:
        """Send arrivals as they come, as server-sent events."""
        if service.n_listeners >= MAX_LISTENERS:
            reason = f"{MAX_LISTENERS} event streams are open; try again"
            raise RequestError(503, reason, retry_after=10)
        last = parse_id(last_event_id or after)
        end = anyio.Event()
        return EventSourceResponse(
            watch(service, last, end), sep="\n", send_timeout=service.settings.timeout,
            shutdown_event=end, shutdown_grace_period=5,
        )  # fmt: skip

    packed: dict[str, bytes] = {}

    @app.get("/map", dependencies=READER, response_class=Response)
    def points() -> Response:
        """Return the points of the map, packed."""
        model = service.model
        if model.digest not in packed:
            packed.clear()
            packed[model.digest] = _packed_map(model)
        return Response(packed[model.digest], media_type="application/octet-stream")

    @app.get("/point/{number}", dependencies=READER, response_class=Response)
    def point(number: str) -> Response:
        """Return everything about one arrival: numbers, reasons, neighbours."""
        at = parse_id(number)
        arrivals = None if at is None else service.ring.arrival(at)
        if arrivals is None:
            kept = f"arrivals {service.ring.first_id} to {service.ring.next_id - 1} are kept"
            raise RequestError(404, f"there is no arrival {number[:20]!r}; {kept}")
        model, row = service.model, arrivals.rows[0]
        names = model.feature_names or [str(column) for column in range(len(row))]
        details: dict[str, Any] = {
            "id": arrivals.first, "time": arrivals.time, "kind": arrivals.kind,
            **{name: values[0] for name, values in arrivals.answer.items()},
            "values": dict(zip(names, row.tolist(), strict=True)),
            "neighbors": model.neighbors(row),
        }  # fmt: skip
        explained = model.explain(arrivals.rows)
        if explained is not None:
            details["main_reason"] = explained[0].main_reason
            reasons = explained[0].reasons.items()
            details["reasons"] = {name: reason._asdict() for name, reason in reasons}
        return Response(write_json(details), media_type=JSON)


def _recover(service: Service) -> None:
    try:
        service.recover()
    except Exception:
        if service.on_failure is None:
            raise
        service.on_failure()


def _reload_on_hangup(service: Service) -> None:
    """Reload the model on SIGHUP, where there are signals and one process."""

    def reload() -> None:
        try:
            if not service.reload():
                log.info("the model file has not changed")
        except Exception as error:
            log.error("the model that was served before stays: %s", error)

    if service.settings.workers > 1 or threading.current_thread() is not threading.main_thread():
        return
    if hasattr(signal, "SIGHUP"):
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, lambda: loop.run_in_executor(None, reload) and None)


def _packed_map(model: ServedModel) -> bytes:
    from outsample.report.map_data import collect
    from outsample.report.map_packing import packed

    try:
        data = collect(model.core, model.map_names, model.columns, None)
    except (TypeError, ValueError) as error:
        raise RequestError(404, f"this model's map cannot be drawn: {error}") from None
    return packed(data, {"level": data.level})


def _describe_body(model: ServedModel) -> dict[str, Any]:
    """Return the request body for OpenAPI, with an example that works."""
    row = np.round(0.1 * np.arange(model.n_features), 1).tolist()
    example: dict[str, Any] = {"rows": [row]}
    if model.feature_names is not None:
        example["columns"] = model.feature_names
    kinds = [schemas.Rows.model_json_schema(), schemas.Records.model_json_schema()]
    content = {"schema": {"anyOf": kinds}, "examples": {"one row": {"value": example}}}
    return {"requestBody": {"required": True, "content": {JSON: content, ARROW: {"schema": {}}}}}
