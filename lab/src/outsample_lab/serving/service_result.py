"""Results of the benchmark of a service: targets, loads, a run."""

from typing import NamedTuple

from outsample_lab.speed.speed_result import BUSY, Target


class LoadRow(NamedTuple):
    """Results of one load; times in milliseconds, of the requests with a response."""

    name: str
    per_second: float  # Requests that were due
    seconds: float
    answered: int
    refused: int  # 429 and 503
    errors: int  # Everything else
    p50: float
    p99: float
    late: float  # Within which 99 of 100 were sent, after they were due
    megabytes: float  # Of the service, afterwards


class ServiceRun(NamedTuple):
    """The contents of the results file."""

    protocol: list[str]
    quick: bool
    cores: int
    load: float  # Mean number of running processes, over a minute, when it began
    versions: dict[str, str]
    seconds: float
    capacity: float  # Requests a second
    targets: list[Target]
    loads: list[LoadRow]

    @property
    def busy(self) -> bool:
        """True if other processes were running when the run began."""
        return self.load > BUSY
