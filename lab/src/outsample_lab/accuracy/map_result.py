"""Results of the benchmark: of an extension on a map, of a map, of a run."""

from collections.abc import Sequence
from typing import NamedTuple

from outsample.comparison.coverage import Coverage
from outsample.comparison.holdout import ComparisonRow
from outsample_lab.accuracy.peers import OURS, PEER


class MapRow(NamedTuple):
    """One extension on one map."""

    result: ComparisonRow
    family: str  # `peers.OURS`, `PAPER`, `KERNEL` or `PEER`
    parameters: str  # Settings and limits, for people


class MapResult(NamedTuple):
    """One map with its rows in order of error, or the reason for skipping it."""

    name: str
    title: str
    kind: str
    stated_target: float | None = None  # Mean error to reach; None: that of the best peer
    rows: Sequence[MapRow] = ()
    n_points: int = 0
    n_columns: int = 0
    n_components: int = 0
    map_seconds: float = 0.0
    coverage: float | None = None  # Of our error bars on held-out points; the target is 90 %
    tenths: Coverage | None = None  # Coverage by deciles
    chosen: tuple[str, ...] = ()  # Models that PCAExtension() selected, by split
    skipped: str = ""

    @property
    def ours(self) -> ComparisonRow | None:
        """The row of PCAExtension() with all defaults."""
        return next((row.result for row in self.rows if row.family == OURS), None)

    @property
    def best_peer(self) -> ComparisonRow | None:
        """The best row of another library."""
        peers = (row.result for row in self.rows if row.family == PEER)
        return next((row for row in peers if not row.failure), None)

    @property
    def target(self) -> float | None:
        """The target error: the stated one, otherwise that of the best peer."""
        if self.stated_target is not None:
            return self.stated_target
        return None if self.best_peer is None else self.best_peer.error

    @property
    def met(self) -> bool:
        """True if our row reaches the target."""
        if self.ours is None or self.target is None:
            return False
        return bool(self.ours.error <= self.target)  # False for NaN


class AccuracyRun(NamedTuple):
    """The contents of the results file."""

    protocol: str  # How it was measured, for people
    seeds: tuple[int, ...]
    versions: dict[str, str]
    seconds: float
    maps: Sequence[MapResult]
