"""`outsample replay`: recorded rows sent to a running service at their pace."""

from __future__ import annotations

import os
from typing import Any

import click

from outsample.cli import options
from outsample.cli.exit_codes import BAD_USE, Failure, plain_errors, reading
from outsample.cli.lab_commands import HOW_TO_GET_IT, lab_object
from outsample.cli.showing import row_progress, show_json


@click.command(
    short_help="Send recorded rows to a running service.",
    epilog=options.example(
        "outsample replay --day 1998-07-22 --speed 600",
        "outsample replay sensors.csv --time taken_at --speed 60",
    ),
)
@click.argument("file", required=False, type=options.InputFile())
@click.option("--url", default="http://127.0.0.1:8000", show_default=True, help="The service.")
@click.option("--time", "time_column", metavar="COLUMN", help="Column of FILE with the times.")
@click.option(
    "--day", default="1998-07-22", show_default=True,
    help="Day of network traffic to replay without FILE.",
)  # fmt: skip
@click.option(
    "--speed", default=60.0, show_default=True, type=click.FloatRange(0),
    help="Factor on the recorded pace; 0 sends as fast as the service answers.",
)  # fmt: skip
@click.option("--no-learn", is_flag=True, help="Only place the rows; do not learn them.")
@options.data_option("darpa98/")
@options.as_json("Print one JSON document about the run.")
def replay(file: str | None, time_column: str | None, **settings: Any) -> None:
    """Send the rows of FILE, or a day of network traffic, to a service at their recorded pace.

    The service must be running (outsample serve). FILE has a column of times, as dates and times
    or seconds, and the model's features by name. Without recordings of traffic, a simulated day is
    replayed. The token of the service is read from OUTSAMPLE_TOKEN.
    """
    with plain_errors():
        if (file is None) != (time_column is None):
            raise Failure("FILE and --time COLUMN go together", BAD_USE)
        from outsample.replay.feeding import Client, ServiceError, feed
        from outsample.replay.recordings import table_recording

        try:
            client = Client(settings["url"], os.environ.get("OUTSAMPLE_TOKEN"))
            about = client.get("/model")
            with reading():
                if file is not None and time_column is not None:
                    recording = table_recording(file, time_column, about)
                else:
                    recording = _traffic_recording(settings["data"], settings["day"])
            path = "/place" if settings["no_learn"] else "/learn"
            with row_progress(len(recording.X), silent=settings["as_json"]) as show:
                speed = settings["speed"]
                fed = feed(client, recording, speed, path, lambda rows: show(rows, rows))
        except ServiceError as error:
            raise Failure(str(error)) from error
        if settings["as_json"]:
            show_json(fed._asdict())
        else:
            click.echo(
                f"Sent {fed.n_rows:,} rows in {fed.seconds:.1f} s; {fed.n_unusual} are unusual."
            )


def _traffic_recording(folder: str | None, day: str) -> Any:
    """Return a day of network traffic from the lab."""
    traffic_recording = lab_object("recordings", "traffic")
    if traffic_recording is None:
        raise Failure(f"the network traffic of --day {HOW_TO_GET_IT}", BAD_USE)
    return traffic_recording(folder, day)
