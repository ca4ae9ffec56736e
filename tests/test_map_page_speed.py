"""How fast and how large map pages are; ``pytest -m long -s tests/test_map_page_speed.py``."""

from __future__ import annotations

import time

import numpy as np
import pytest

from browser import browser
from outsample import PCAExtension
from outsample.report.map_page import write_map_page

FRAMES = """
const done = arguments[0], { view } = mapPage, times = [], pixels = [];
let turn = 0, last = 0;
function next(now) {
  if (turn > 5) times.push(now - last);
  last = now;
  if (turn++ > 45) return done([times, pixels]);
  const start = performance.now();
  if (turn % 2) view.zoomBy(turn < 24 ? 1.15 : 1 / 1.15); else view.move(9, 5);
  view.draw();
  pixels.push(performance.now() - start);
  requestAnimationFrame(next);
}
requestAnimationFrame(next);
"""


def page_of(path, n_new, n_training=10_000):
    """Points in groups, with the columns that `place --explain` writes."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(12, 2)) * 20
    group = rng.integers(0, 12, n_training)
    Y = centres[group] + rng.normal(size=(n_training, 2)) * 3
    extension = PCAExtension(n_neighbors=5, weighting="distance", order=0, loss="squared")
    extension.fit(Y[:2000] + 0.0, Y[:2000])
    extension.fit(Y, Y)
    kind = rng.integers(0, 12, n_new)
    placed = {
        "id": [f"point-{i:07d}" for i in range(n_new)],
        "map_1": centres[kind, 0] + rng.normal(size=n_new) * 3,
        "map_2": centres[kind, 1] + rng.normal(size=n_new) * 3,
        "error_bar": rng.gamma(2, 1, n_new), "abnormality": rng.normal(size=n_new),
        "p_value": np.ceil(rng.random(n_new) * 10_001) / 10_001, "bound": rng.gamma(4, 1, n_new),
        "n_neighbors": np.full(n_new, 5),
        "main_reason": rng.choice(["plane_distance", "nearest_distance"], n_new),
        "neighbors": rng.integers(0, n_training, (n_new, 5)),
        "label": [f"group {k}" for k in kind],
    }  # fmt: skip
    labels = [f"group {k}" for k in group]
    return write_map_page(path, extension, columns={"group": labels}, placed=placed)


@pytest.mark.long
@pytest.mark.parametrize(("n_new", "size", "first", "rate"), [
    (100_000, 6.0, 1.0, 20), (1_000_000, 60.0, 8.0, 4),
])  # fmt: skip
def test_speed_and_size(tmp_path, n_new, size, first, rate):
    begin = time.perf_counter()
    page = page_of(tmp_path / "map.html", n_new)
    written = time.perf_counter() - begin
    with browser(tmp_path) as chrome:
        chrome.open(page)
        chrome.open(page)
        ready = chrome.run("return mapPage.firstPicture") / 1000
        frames, drawing = chrome.driver.execute_async_script(FRAMES)
    megabytes = page.stat().st_size / 1e6
    per_second = 1000 / np.mean(frames)
    print(
        f"\n{n_new:,} new points: {megabytes:.2f} MB, written in {written:.1f} s; first picture "
        f"{ready:.2f} s; {per_second:.0f} frames a second (median {np.median(frames):.0f} ms, "
        f"slowest {max(frames):.0f} ms), of which drawing {np.median(drawing):.0f} ms"
    )
    assert megabytes <= size and ready <= first and per_second >= rate
