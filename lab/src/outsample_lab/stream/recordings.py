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
    """Minutes with traffic of a day; where there are no recordings, of one made up instead."""
    traffic = simulate_traffic() if folder is None else load_traffic(folder)
    if traffic.simulated:
        day = SIMULATED.get(day, day)
    found = traffic.day(day)
    return found.rows(found.X[:, 0] > 0)


def replayed_traffic(data: str | None, day: str) -> Recording:
    """Return a day of traffic from the usual folder of data; the entry point of `replay --day`."""
    return traffic_recording(data_folder(data), day)


def traffic_recording(folder: Path | None, day: str) -> Recording:
    """Return a day of traffic as log(1 + x) of its counts, a row a minute.

    >>> recording = traffic_recording(None, "1998-07-22")
    >>> recording.X.shape, float(recording.seconds[-1])
    ((1320, 14), 79140.0)
    """
    found = traffic_day(folder, day)
    seconds = 60.0 * (found.minutes - found.minutes[0])
    return Recording(list(FEATURES), log_features(found.X), seconds)
