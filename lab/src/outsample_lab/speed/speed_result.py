"""Results of the benchmark: targets, times, curves, parts, a run."""

import math
from typing import NamedTuple

MISSING = math.nan


class Target(NamedTuple):
    """A target and its measured value, or the reason for skipping it."""

    work: str
    asked: float
    found: float = MISSING
    low: float = MISSING  # Quartiles of the repeats, where there are several
    high: float = MISSING
    unit: str = "times"
    at_least: bool = False  # Else at most
    note: str = ""
    skipped: str = ""

    @property
    def met(self) -> bool:
        """True if the target was measured and reached."""
        return bool(self.share <= 1.0)

    @property
    def share(self) -> float:
        """Measured value over target; up to 1 the target is reached."""
        if not self.at_least:
            return self.found / self.asked
        return self.asked / self.found if self.found else math.inf


class Timing(NamedTuple):
    """The time of one task: median and quartiles of the repeats, in seconds."""

    work: str
    setting: str  # Sizes, for people
    seconds: float
    low: float
    high: float
    repeats: int
    p99: float = MISSING  # Of single rows


class Curve(NamedTuple):
    """Measured values against a size."""

    chart: str  # The curves of one chart have one title
    x: str
    y: str
    name: str
    sizes: list[float]
    figures: list[float]
    exponent: float = MISSING  # Of the larger sizes, where growth is the question
    note: str = ""


class PartResult(NamedTuple):
    """One part of the benchmark."""

    name: str
    title: str
    words: list[str]  # What was done, and what was left out, for people
    targets: list[Target]
    timings: list[Timing]
    curves: list[Curve]
    seconds: float = 0.0
    skipped: str = ""  # Why the whole part is missing


class SpeedRun(NamedTuple):
    """The contents of the results file."""

    protocol: str  # How it was measured, for people
    quick: bool
    cores: int
    load: float  # Mean number of running processes, over a minute, when it began
    versions: dict[str, str]
    seconds: float
    parts: list[PartResult]

    @property
    def busy(self) -> bool:
        """True if other processes were running when the run began."""
        return self.load > BUSY


BUSY = 0.5
