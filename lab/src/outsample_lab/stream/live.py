"""A live demonstration: a service, its page, and a day of traffic sent to it.

``make live`` runs this module.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import outsample
from outsample.replay.feeding import Client, ServiceError, feed
from outsample_lab.environment import data_folder
from outsample_lab.stream.recordings import (
    REPLAYED_DAY,
    TRAINING_DAY,
    traffic_day,
    traffic_recording,
)
from outsample_lab.traffic.days import log_features
from outsample_lab.traffic.features import FEATURES

PORT = 8000
RUN = "from outsample.cli import main; main()"
SPEED = 600.0  # ten minutes of traffic per second
MAX_START_SECONDS = 60.0


def make_model(path: Path, folder: Path | None) -> None:
    """Fit a detector to the diffusion map of one day of traffic."""
    import pandas

    X = pandas.DataFrame(log_features(traffic_day(folder, TRAINING_DAY).X), columns=list(FEATURES))
    Y = outsample.DiffusionMaps(n_components=2).fit_transform(X)
    outsample.save(outsample.NoveltyDetector(outsample.PCAExtension()).fit(X, Y), path)


def await_service(client: Client, process: "subprocess.Popen[bytes]") -> None:
    """Wait until the service is ready, or has failed."""
    end = time.monotonic() + MAX_START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            raise SystemExit(f"the service ended with {process.returncode}")
        try:
            client.get("/ready")
            return
        except ServiceError:
            time.sleep(0.2)
    raise SystemExit("the service did not start in time")


def main() -> None:
    """Start all parts, print the address, and run until interrupted."""
    out, folder = Path("build/live"), data_folder()
    out.mkdir(parents=True, exist_ok=True)
    model = out / "model.outsample"
    print("Fitting a model to a day of traffic ...", flush=True)
    make_model(model, folder)
    learned = out / "learned"
    for path in out.glob("learned*"):  # from an earlier run
        path.unlink()
    token = os.environ.setdefault("OUTSAMPLE_TOKEN", os.urandom(16).hex())
    url = f"http://127.0.0.1:{PORT}"
    arguments = [str(model), "--port", str(PORT), "--learned", str(learned)]
    command = [sys.executable, "-c", RUN, "serve", *arguments]
    with open(out / "service.log", "wb") as log:
        service = subprocess.Popen(command, stderr=log)
    try:
        client = Client(url, token)
        await_service(client, service)
        print(f"Open {url}/#token={token} in a browser. Ctrl-C ends it.", flush=True)
        recording = traffic_recording(folder, REPLAYED_DAY)
        fed = feed(client, recording, SPEED, "/learn", lambda rows: None)
        print(f"The day is over: {fed.n_rows} minutes, {fed.n_unusual} unusual.", flush=True)
        service.wait()
    except KeyboardInterrupt:
        pass
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(timeout=60)


if __name__ == "__main__":
    main()
