"""Doors for those who watch: the map, what arrives on it, and one arrival looked at closely."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.responses import StreamingResponse

from outsample.service.arrivals import Arrivals
from outsample.service.events import events, last_seen
from outsample.service.json_rows import to_json
from outsample.service.refusal import Refusal
from outsample.service.service import Service


def add_watching(app: FastAPI, service: Service) -> None:
    """Add ``/events``, ``/map`` and ``/point/{id}``."""

    @app.get("/events")
    async def stream(request: Request) -> Response:
        """Send arrivals as they come, as server-sent events."""
        header = request.headers.get("last-event-id")
        last = last_seen(header, request.query_params.get("after"))
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(
            events(service, last), media_type="text/event-stream", headers=headers
        )

    made: dict[str, bytes] = {}

    @app.get("/map")
    async def points() -> Response:
        """Send the points of the map, packed."""
        if not made:
            made["map"] = await asyncio.to_thread(_packed_map, service)
        return Response(made["map"], media_type="application/octet-stream")

    @app.get("/point/{number}")
    async def point(request: Request, number: str) -> Response:
        """Tell all about one arrival: its numbers, why it is strange or not, its neighbours."""
        request.scope["outsample.path"] = "/point/{number}"
        given = last_seen(number, None)
        found = None if given is None else service.ring.one(given)
        if found is None:
            kept = f"those from {service.ring.first_id} to {service.ring.next_id - 1} are kept"
            raise Refusal(404, f"there is no arrival {number[:20]!r}; {kept}")
        told = await asyncio.to_thread(_about, service, found)
        return Response(to_json(told), media_type="application/json")


def _packed_map(service: Service) -> bytes:
    from outsample.report.map_data import collect
    from outsample.report.map_packing import packed

    model = service.model
    try:
        data = collect(model.core, model.map_names, model.columns, None)
    except (TypeError, ValueError) as error:
        raise Refusal(404, f"this model's map cannot be drawn: {error}") from None
    return packed(data, {"level": data.level})


def _about(service: Service, found: Arrivals) -> dict[str, Any]:
    model, row = service.model, found.rows[0]
    names = model.feature_names or [str(at) for at in range(len(row))]
    told = {
        "id": found.first,
        "time": found.time,
        "kind": found.kind,
        **{name: values[0] for name, values in found.answer.items()},
        "values": dict(zip(names, row.tolist(), strict=True)),
        "neighbors": model.neighbors(row),
    }
    reasons = model.reasons(found.rows)
    if reasons is None:
        return told
    each = {name: reason._asdict() for name, reason in reasons[0].reasons.items()}
    return {**told, "main_reason": reasons[0].main_reason, "reasons": each}
