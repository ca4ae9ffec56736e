"""A day of network traffic as a recording that `outsample replay` can send."""

from pathlib import Path

from outsample.replay.feeding import Recording
from outsample_lab.environment import data_folder
from outsample_lab.traffic.days import Traffic, log_features, simulate_traffic
from outsample_lab.traffic.features import FEATURES
from outsample_lab.traffic.recorded import load_traffic

TRAINING_DAY, REPLAYED_DAY = "1998-07-20", "1998-07-22"
SIMULATED = {TRAINING_DAY: "simulated-2", REPLAYED_DAY: "simulated-3"}


def traffic_day(folder: Path | None, day: str) -> Traffic:
    """Return the minutes with traffic of a day, simulated if there is no recording."""
    traffic = simulate_traffic() if folder is None else load_traffic(folder)
    if traffic.simulated:
        day = SIMULATED.get(day, day)
    minutes = traffic.day(day)
    return minutes.rows(minutes.X[:, 0] > 0)


def replayed_traffic(data: str | None, day: str) -> Recording:
    """Return a day of traffic from the data folder; the entry point of `replay --day`."""
    return traffic_recording(data_folder(data), day)


def traffic_recording(folder: Path | None, day: str) -> Recording:
    """Return a day of traffic as log(1 + x) of its counts, one row per minute.

    >>> recording = traffic_recording(None, "1998-07-22")
    >>> recording.X.shape, float(recording.seconds[-1])
    ((1320, 14), 79140.0)
    """
    minutes = traffic_day(folder, day)
    seconds = 60.0 * (minutes.minutes - minutes.minutes[0])
    return Recording(list(FEATURES), log_features(minutes.X), seconds)
