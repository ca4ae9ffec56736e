"""`outsample serve`: a model as a web service."""

from __future__ import annotations

import os
from typing import Any

import click

from outsample.cli import options
from outsample.cli.exit_codes import BAD_USE, Failure, existing_file, plain_errors, reading


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
    help="Rows with at most this p-value are reported as unusual.",
)  # fmt: skip
@click.option(
    "--max-rows", default=100_000, show_default=True, type=click.IntRange(1),
    help="Maximum number of rows per request.",
)  # fmt: skip
@click.option(
    "--max-bytes", default=2**25, show_default=True, type=click.IntRange(1),
    help="Maximum size of a request; JSON may have at most 4 MB of it.",
)  # fmt: skip
@click.option(
    "--max-waiting", default=64, show_default=True, type=click.IntRange(1),
    help="Requests that may wait for the model; the next one is answered 429.",
)  # fmt: skip
@click.option(
    "--timeout", default=30.0, show_default=True, type=click.FloatRange(0, min_open=True),
    help="Seconds to send a body, to compute an answer, or to read it.",
)  # fmt: skip
@click.option(
    "--workers", default=1, show_default=True, type=click.IntRange(1, 256),
    help="Processes that place rows; more than one needs --no-learn.",
)  # fmt: skip
@click.option(
    "--learned", type=click.Path(dir_okay=False),
    help="File of learned rows, from which a restarted service recovers; default MODEL.learned.",
)  # fmt: skip
@click.option("--no-learn", is_flag=True, help="Only place rows, by MODEL as it is.")
@click.option(
    "--window", type=click.IntRange(20), metavar="INTEGER",
    help="Number of learned points that are kept, and of arrivals that p-values refer to; "
    "default 10000, or that of the file of learned rows.",
)  # fmt: skip
@click.option(
    "--guard", type=click.FloatRange(0, 1), metavar="NUMBER",
    help="P-value above which a learned row becomes a neighbour; default 0.1, or that of the file "
    "of learned rows.",
)  # fmt: skip
@click.option("--log-rows", is_flag=True, help="Include the values of the rows in the log.")
def serve(model: str, host: str, port: int, no_learn: bool, **options: Any) -> None:
    """Serve MODEL at http://HOST:PORT: POST /place answers rows of JSON or Arrow.

    POST /learn places rows and learns them. If OUTSAMPLE_TOKEN is set, every request needs the
    token in it; a token in OUTSAMPLE_READ_TOKEN does not allow learning. The log has one JSON
    object per line, on the standard error. SIGHUP loads MODEL again; SIGTERM and Ctrl-C end the
    service when the requests under way are answered.
    """
    with plain_errors():
        _check_installed()
        from outsample.service.access import READ_VARIABLE, TOKEN_VARIABLE, is_loopback, read_tokens
        from outsample.service.server import ListenError, run
        from outsample.service.settings import Settings

        try:
            tokens, readers = read_tokens(TOKEN_VARIABLE), read_tokens(READ_VARIABLE)
        except ValueError as error:
            raise Failure(str(error), BAD_USE) from None
        if not tokens and (readers or not is_loopback(host)):
            reason = f"--host {host} can be reached by others" if not readers else READ_VARIABLE
            advice = f"set {TOKEN_VARIABLE} to a long random text, which clients have to send"
            raise Failure(f"{reason}: {advice}", BAD_USE)
        if options["workers"] > 1 and not no_learn:
            raise Failure("--workers needs --no-learn: only one process can learn", BAD_USE)
        existing_file(model)
        learned = options.pop("learned")
        settings = Settings(model=model, tokens=tokens, read_tokens=readers, **options)
        if not no_learn:
            settings.learned = _learned_file(model, learned, settings)
        try:
            with reading():
                run(settings, host, port)
        except ListenError as error:
            raise Failure(str(error)) from error


def _learned_file(model: str, learned: str | None, settings: Any) -> str | None:
    """Return the file of learned rows; None for a model that cannot learn, or may not."""
    from outsample.files.model_file import describe
    from outsample.service.learning import STREAMED_CLASSES

    path = learned or f"{model}.learned"
    with reading():
        class_name = describe(model).class_name
    if class_name not in STREAMED_CLASSES:
        return None
    if settings.tokens or os.path.exists(path):
        return path
    for name, value in {
        "learned": learned, "window": settings.window, "guard": settings.guard
    }.items():  # fmt: skip
        if value is not None:
            reason = f"--{name} is about learning, which needs a token: set OUTSAMPLE_TOKEN to a "
            raise Failure(reason + "long random text, which clients have to send", BAD_USE)
    return None


def _check_installed() -> None:
    try:
        import fastapi  # noqa: F401
        import orjson  # noqa: F401
        import prometheus_client  # noqa: F401
        import sse_starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        reason = f"a service needs {error.name}: pip install 'outsample[serve]'"
        raise Failure(reason, BAD_USE) from error
