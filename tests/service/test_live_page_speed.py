"""Cost of the live page: ``pytest -m long -s tests/service/test_live_page_speed.py``."""

from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the service needs outsample[serve]")

from browser import browser
from outsample import PCAExtension, save
from outsample.service.arrivals import PLACED
from outsample.service.service import Service
from outsample.service.settings import Settings
from service_tools import Running

DOCS = Path(__file__).parents[2] / "docs" / "service.md"
START, END = "<!-- written by tests/service/test_live_page_speed.py -->", "<!-- until here -->"
N_POINTS, RATE, SECONDS = 100_000, 50, 8
NUMBERS = ["error_bar", "abnormality", "p_value"]
WATCHED = """
const done = arguments[1], end = performance.now() + 1000 * arguments[0];
const frames = [], costs = [], live = livePage, refresh = live.refresh.bind(live);
let last = 0;
live.refresh = () => { refresh(); costs.push(live.cost + live.drawing); };
function next(now) {
  if (last) frames.push(now - last);
  last = now;
  if (now < end) return requestAnimationFrame(next);
  delete live.refresh;
  done([frames, costs, live.arrivals.n]);
}
requestAnimationFrame(next);
"""
# A map that is moved is drawn wholly.
MOVED = """
const { view } = livePage, times = [];
for (let turn = 0; turn < 9; turn++) {
  view.move(turn % 2 ? 5 : -5, 0);
  const begun = performance.now();
  view.draw();
  times.push(performance.now() - begun);
}
return times;
"""


def served(folder):
    """A map of groups; its arrivals are made up here, for it is the page that is measured."""
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(12, 2))[rng.integers(0, 12, N_POINTS)] * 20 + rng.normal(
        size=(N_POINTS, 2)
    )
    extension = PCAExtension(n_neighbors=5, weighting="distance", order=0, loss="squared")
    save(extension.fit(Y, Y), folder / "large.outsample")
    service = Service(Settings(model=str(folder / "large.outsample")))
    service.model.numbers = NUMBERS
    return service, Y, rng


def arrive(service, Y, rng, n):
    rows = Y[rng.integers(0, len(Y), n)] + rng.normal(size=(n, 2))
    told = {"coordinates": rows, "error_bar": rng.gamma(2, 1, n), "abnormality": rng.normal(size=n)}
    service.ring.add(PLACED, rows, told | {"p_value": np.ceil(rng.random(n) * 2001) / 2001})


def busy(chrome):
    """Seconds that the page's main thread has worked."""
    found = chrome.command("Performance.getMetrics", {})["metrics"]
    return next(one["value"] for one in found if one["name"] == "TaskDuration")


def watched(chrome, feed):
    """Frames, refreshes, share of a core, and drawing of a moved map, while rows arrive."""
    ended = threading.Event()

    def feeding():
        while not ended.wait(0.1):
            feed(RATE // 10)

    thread = threading.Thread(target=feeding, daemon=True)
    thread.start()
    begin, before = time.perf_counter(), busy(chrome)
    frames, costs, n = chrome.driver.execute_async_script(WATCHED, SECONDS)
    share = (busy(chrome) - before) / (time.perf_counter() - begin)
    moved = np.median(chrome.run(MOVED))
    ended.set()
    thread.join()
    return n, np.median(frames), np.percentile(frames, 95), np.median(costs), moved, share


@pytest.mark.long
def test_what_watching_costs(tmp_path):
    """Prints a table; with OUTSAMPLE_WRITE_FIGURES=1 it goes into docs/service.md."""
    service, Y, rng = served(tmp_path)
    running, rows = Running(service), []
    with browser(tmp_path) as chrome:
        chrome.driver.set_script_timeout(60)
        chrome.command("Performance.enable", {})
        chrome.open(running.url)
        for n_before in (1_000, 20_000, 180_000):
            have = int(chrome.run("return livePage.arrivals.total"))
            for _ in range(-(-(n_before - have) // 1000)):
                arrive(service, Y, rng, 1000)
            chrome.wait("return livePage.arrivals.total >= arguments[0]", n_before)
            chrome.settle()
            rows.append(watched(chrome, lambda n: arrive(service, Y, rng, n)))
        heap = chrome.command("Performance.getMetrics", {})["metrics"]
        chrome.driver.get("about:blank")
    running.end()
    heap = next(one["value"] for one in heap if one["name"] == "JSHeapUsedSize") / 1e6
    head = ("arrivals kept", "frame, ms", "19 of 20 within, ms", "a refresh, ms", "a move, ms",
            "of a core, %")  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    for n, frame, late, cost, moved, share in rows:
        cells = f"{frame:.0f} | {late:.0f} | {cost:.0f} | {moved:.0f} | {100 * share:.0f}"
        lines.append(f"| {n:,} | {cells} |")
    print("", *lines, f"heap: {heap:.0f} MB", sep="\n")
    if os.environ.get("OUTSAMPLE_WRITE_FIGURES"):
        table = "\n".join(["", "", *lines, "", ""])
        text = re.sub(f"(?s)({START}).*({END})", rf"\1{table}\2", DOCS.read_text("utf-8"))
        DOCS.write_text(text, "utf-8")
    assert rows[0][0] < rows[1][0] < rows[2][0] <= 225_000
    assert heap < 300
