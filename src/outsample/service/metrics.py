"""Counts and times, as Prometheus reads them."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable

PREFIX = "outsample_"
BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
HELP = {
    "requests_total": ("counter", "Requests by path and status."),
    "rows_total": ("counter", "Rows placed, learned (accepted as neighbours) or strange."),
    "rounds_total": ("counter", "Calls of the model."),
    "joined_requests_total": ("counter", "Requests in calls of the model."),
    "request_seconds": ("histogram", "Time from the first byte of a request to its answer."),
}
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counters and one histogram; gauges are asked when the text is written."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.counts: Counter[tuple[str, Labels]] = Counter()
        self.times: dict[str, list[float]] = {}
        self.gauges: dict[str, tuple[str, Callable[[], float]]] = {}

    def count(self, name: str, by: float = 1, **labels: str) -> None:
        """Add to a counter."""
        with self.lock:
            self.counts[name, tuple(labels.items())] += by  # type: ignore[assignment]

    def count_one(self, counter: tuple[str, Labels]) -> None:
        """Add one to a counter that is known by its name and labels: in the shortest time."""
        with self.lock:
            self.counts[counter] += 1

    def time(self, path: str, seconds: float) -> None:
        """Add a time to the histogram of a path."""
        with self.lock:
            row = self.times.setdefault(path, [0.0] * (len(BUCKETS) + 2))
            row[bisect_left(BUCKETS, seconds)] += 1
            row[-1] += seconds

    def gauge(self, name: str, words: str, ask: Callable[[], float]) -> None:
        """Tell a number whenever the text is written."""
        self.gauges[name] = (words, ask)

    def text(self) -> str:
        """Return all, in Prometheus' text format."""
        with self.lock:
            counts, times = dict(self.counts), {path: list(row) for path, row in self.times.items()}
        lines = []
        for name, (kind, words) in HELP.items():
            lines += [f"# HELP {PREFIX}{name} {words}", f"# TYPE {PREFIX}{name} {kind}"]
            for (counted, labels), value in counts.items():
                if counted == name:
                    lines.append(f"{PREFIX}{name}{_braces(labels)} {value:g}")
        for path, row in times.items():
            name, total = f"{PREFIX}request_seconds", 0.0
            for bound, number in zip([*map(str, BUCKETS), "+Inf"], row, strict=False):
                total += number
                within = _braces((("path", path), ("le", bound)))
                lines.append(f"{name}_bucket{within} {total:g}")
            of_path = _braces((("path", path),))
            lines += [f"{name}_sum{of_path} {row[-1]:.6f}", f"{name}_count{of_path} {total:g}"]
        for name, (words, ask) in self.gauges.items():
            lines += [f"# HELP {PREFIX}{name} {words}", f"# TYPE {PREFIX}{name} gauge"]
            lines.append(f"{PREFIX}{name} {ask():g}")
        return "\n".join(lines) + "\n"


def _braces(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
