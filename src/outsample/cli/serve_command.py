"""`outsample serve`: a model as a web service."""

from __future__ import annotations

import os
from typing import Any

import click

from outsample.cli import options
from outsample.cli.exit_codes import BAD_USE, Failure, plain_errors, reading


@click.command(
    short_help="Serve a model on the web.",
    epilog=options.example("outsample serve model.outsample --port 8000"),
)
@click.argument("model", type=options.InputFile())
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65535),
    help="Port to listen at; 0 takes a free one.",
)  # fmt: skip
@click.option(
    "--alpha", default=0.01, show_default=True, type=click.FloatRange(0, 0.5, min_open=True),
    help="Rows with a p-value up to this are called strange.",
)  # fmt: skip
@click.option(
    "--max-rows", default=100_000, show_default=True, type=click.IntRange(1),
    help="Rows of a request at most.",
)  # fmt: skip
@click.option(
    "--max-bytes", default=2**25, show_default=True, type=click.IntRange(1),
    help="Bytes of a request at most.",
)  # fmt: skip
@click.option(
    "--max-waiting", default=512, show_default=True, type=click.IntRange(1),
    help="Requests that may wait for the model; more are told to come back.",
)  # fmt: skip
@click.option(
    "--timeout", default=30.0, show_default=True, type=click.FloatRange(0, min_open=True),
    help="Seconds for a body to come, an answer to be made, or a client to take it.",
)  # fmt: skip
@click.option(
    "--learned", type=click.Path(dir_okay=False),
    help="File for rows that are learned, from which they are learned again after a restart; "
    "else MODEL.learned.",
)  # fmt: skip
@click.option("--no-learn", is_flag=True, help="Place only, by MODEL as it is.")
@click.option(
    "--window", type=click.IntRange(20), metavar="INTEGER",
    help="Learned points that are kept, and arrivals that p-values look back on; else 10000.",
)  # fmt: skip
@click.option(
    "--guard", type=click.FloatRange(0, 1), metavar="NUMBER",
    help="P-value above which a learned row becomes a neighbour; else 0.1.",
)  # fmt: skip
@click.option("--log-rows", is_flag=True, help="Write the numbers of the rows into the log too.")
def serve(model: str, host: str, port: int, **given: Any) -> None:
    """Serve MODEL at http://HOST:PORT: POST /place answers rows of JSON or Arrow.

    POST /learn places rows and learns them. It needs the token that is in OUTSAMPLE_TOKEN, and
    so does all that comes from another machine. The log is one JSON line a request, on the
    standard error. SIGTERM and Ctrl-C end it when what is under way is finished.
    """
    with plain_errors():
        _check_installed()
        from outsample.cli.models import check_there
        from outsample.service.limits import Limits
        from outsample.service.request_log import RequestLog
        from outsample.service.running import ListenError, run
        from outsample.service.served_model import open_served
        from outsample.service.service import Service
        from outsample.service.tokens import VARIABLE, is_loopback

        token = os.environ.get(VARIABLE)
        if not is_loopback(host) and not token:
            raise Failure(
                f"--host {host} can be reached by others: set {VARIABLE} to a long random text, "
                "which they have to send",
                BAD_USE,
            )
        check_there(model)
        with reading():
            served = open_served(model, given["alpha"])
        limits = Limits(
            body_bytes=given["max_bytes"], rows=given["max_rows"], waiting=given["max_waiting"],
            seconds=given["timeout"],
        )  # fmt: skip
        log = RequestLog()
        learning = _open_learning(model, served, token, log, given)
        service = Service(
            served, limits, token=token, log=log, log_rows=given["log_rows"], learning=learning
        )
        try:
            run(service, host, port)
        except ListenError as error:
            raise Failure(str(error)) from error


def _open_learning(
    path: str, served: Any, token: str | None, log: Any, given: dict[str, Any]
) -> Any:
    """Let the model learn, if it can and may; None if it does not."""
    from outsample.service.learning import can_learn, open_learning
    from outsample.service.tokens import VARIABLE

    kept = given["learned"] or f"{path}.learned"
    if given["no_learn"] or not can_learn(served.model):
        return None
    if not token and not os.path.exists(kept):
        for name in ("learned", "window", "guard"):
            if given[name] is not None:
                said = f"--{name} is about learning, which needs a token: set {VARIABLE} to a long "
                raise Failure(said + "random text, which those who send rows have to send", BAD_USE)
        return None
    settings = {name: given[name] for name in ("window", "guard") if given[name] is not None}
    learning = open_learning(served.model, kept, served.about["digest"], settings)
    served.model = learning.stream
    log.add(
        learned_file=kept, learned_again=learning.n_replayed, skipped=learning.n_skipped,
        unfinished_bytes_dropped=learning.log.n_dropped,
    )  # fmt: skip
    return learning


def _check_installed() -> None:
    try:
        import fastapi  # noqa: F401
        import orjson  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        said = f"a service needs {error.name}: pip install 'outsample[serve]'"
        raise Failure(said, BAD_USE) from error
