"""The service as one process, or as several that share a port."""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import sys
import tempfile
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from outsample.service.app import create_app
from outsample.service.connection import Connection
from outsample.service.monitoring import METRICS_FOLDER_VARIABLE, log_event, start_log, stop_log
from outsample.service.service import Service
from outsample.service.settings import KEEP_ALIVE_SECONDS, MAX_CONNECTIONS, Settings

SETTINGS_VARIABLE = "OUTSAMPLE_SERVICE_SETTINGS"
WORKER_APP = "outsample.service.server:create_worker_app"
# A thread that computes in Python hands over to the web server after this time, not after 5 ms.
SWITCH_SECONDS = 1e-4
MAX_FILES = 8192
GARBAGE_THRESHOLD = 5000
WORKER_START_SECONDS = 60


class ListenError(RuntimeError):
    """The address is in use, or does not belong to this machine."""


def run(settings: Settings, host: str, port: int) -> None:
    """Serve until a signal ends the process."""
    service = Service(settings)
    listening = _listen(host, port)
    start_log()
    try:
        host, port = listening.getsockname()[:2]
        log_event(listening=f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
        if settings.workers > 1:
            service.end()  # it was opened to find out that it can be
            _run_workers(settings, listening)
        else:
            _tune_process()
            server = uvicorn.Server(_config(create_app(service), settings))
            service.on_failure = lambda: setattr(server, "should_exit", True)
            server.run(sockets=[listening])
    finally:
        stop_log()
    if service.failure is not None:
        raise service.failure


def create_worker_app() -> Any:
    """Return the application of a worker; its settings are in the environment."""
    settings = Settings.model_validate_json(os.environ[SETTINGS_VARIABLE])
    start_log()
    app = create_app(Service(settings))
    _tune_process()
    return app


def _run_workers(settings: Settings, listening: socket.socket) -> None:
    """Serve from several processes, which map one copy of the model; SIGHUP replaces them."""
    with tempfile.TemporaryDirectory(prefix="outsample-") as folder:
        os.environ[METRICS_FOLDER_VARIABLE] = folder
        shared = settings.model_copy(update={"copies": folder})
        os.environ[SETTINGS_VARIABLE] = shared.model_dump_json()
        config = _config(WORKER_APP, settings, factory=True, workers=settings.workers)
        Multiprocess(config, sockets=[listening]).run()


def _config(app: Any, settings: Settings, **options: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app, http=Connection, ws="none", log_config=None, access_log=False, server_header=False,
        lifespan="on", timeout_keep_alive=KEEP_ALIVE_SECONDS, limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=int(settings.timeout) + 5,
        timeout_worker_healthcheck=WORKER_START_SECONDS, **options,
    )  # fmt: skip


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        reason = error.strerror or error
        raise ListenError(f"cannot listen at {host}:{port}: {reason}") from None


def _tune_process() -> None:
    """Allow many connections, and keep pauses short.

    Garbage is looked for among what requests leave, not among the million objects that were
    imported, which takes a tenth of a second.
    """
    with contextlib.suppress(ImportError, OSError, ValueError):  # Windows, or not allowed
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, MAX_FILES), hard))
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD, 10, 10)
    sys.setswitchinterval(SWITCH_SECONDS)
