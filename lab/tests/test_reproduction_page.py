"""The page of `outsample reproduce`: what it holds, that it needs nothing else, and its viewer."""

import copy
import json
import re
import shutil
import subprocess
from html import unescape
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from outsample.plots import canvas
from outsample.report import page as report
from outsample_lab.json_records import restored
from outsample_lab.paper.page.report_page import write_report
from outsample_lab.paper.reproduction_results import Results
from outsample_lab.plots.curves import STYLES, Curve, curve_chart, spaced
from outsample_lab.plots.scenes import Layer, Scene, scene_data, scene_picture
from outsample_lab.plots.traces import Kind, Trace, trace_chart
from outsample_lab.wording import ABSENT, measured, number

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure
from PIL import Image

HOSTILE = "</script><script>alert('x')</script><b>&\"'\u2028"
PAPER = {"distance": 0.0104, "tangent": 0.00808, "local_tangent": 0.00614}
COLORS = {"distance": "yellow", "tangent": "red", "local_tangent": "black"}


def sphere() -> dict:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(6, 3))
    placements = [
        {"method": name, "title": f"weights {name}", "color": COLORS.get(name),
         "placed": (truth + 0.01).tolist(), "errors": [0.017] * 6, "bound": [0.1] * 6}
        for name in (*PAPER, "defaults")
    ]  # fmt: skip
    table = [
        {"method": name, "title": f"weights {name}", "n_points": n, "error": 0.9 * paper,
         "spread": 0.0002, "paper": paper}
        for n in (900, 2500)
        for name, paper in PAPER.items()
    ]  # fmt: skip
    table.append({"method": "own", "title": "own", "n_points": 900, "error": 5.68e-5,
                  "spread": 3.3e-6, "paper": None})  # fmt: skip
    orders = [
        {"order": order, "title": f"order {order}", "errors": [0.1, 0.02], "spread": [0.01, 0.001],
         "largest": [0.2, 0.04], "slope": order + 1.25, "fine_slope": order + 1.125,
         "claimed": order + 1, "certificate": [0.3, 0.1], "held": 1.0}
        for order in (0, 1, 2)
    ]  # fmt: skip
    return {
        "table": table,
        "met": [6, 6],
        "figure": {"training": rng.normal(size=(9, 3)).tolist(), "truth": truth.tolist(),
                   "placements": placements},
        "convergence": {"n_per_axis": [10, 20], "steps": [0.3, 0.15], "orders": orders,
                        "theorem": [2.0, 1.0], "corrected": [0.8, 0.4]},
        "seconds": 1.5,
    }  # fmt: skip


def curve() -> dict:
    names = {"tangent": True, "auto": False, "nystroem": True}
    return {
        "n_points": 80, "n_distinct": 71, "n_hidden": 5, "n_repeats": 3, "sizes": [10, 40],
        "curves": [
            {"method": name, "title": f"method {name}", "in_paper": in_paper,
             "errors": [0.1 + at, 0.01 + at], "spread": [0.01, 0.001],
             "medians": [0.1 + at, 0.01 + at], "seconds": [0.1, 0.2]}
            for at, (name, in_paper) in enumerate(names.items())
        ],
        "winners": [{"size": 10, "method": "auto", "error": 0.1},
                    {"size": 40, "method": "nystroem", "error": 0.0123}],
        "auto_not_lowest": [{"size": 40, "auto": 0.0456, "method": "nystroem", "error": 0.0123,
                             "wins": 1}],
        "chosen": [{"Diffusion": 3}, {"Diffusion": 2, "Local": 1}],
        "seconds": 2.5,
    }  # fmt: skip


def score(name: str, values: list, is_m: bool) -> dict:
    minute = {"row": 3, "time": "1998-07-22T08:03", "attack": "smurf:134", "loud": True,
              "value": values[3], "ratio": 137.25 if is_m else None}  # fmt: skip
    plain = {"row": 5, "time": "1998-07-22T08:05", "attack": "", "loud": False,
             "value": values[5], "ratio": None}  # fmt: skip
    return {
        "name": name, "title": f"{name}, title", "values": values, "mean": float(np.mean(values)),
        "auc": 0.6875, "auc_loud": 0.96875, "top": [minute, plain], "labelled": [minute],
        "best_ratio": 137.25 if is_m else None, "best_squared_ratio": 324.5 if is_m else None,
        "paper_labelled": 2.72e-7 if is_m else None, "paper_mean": 6.21e-10 if is_m else None,
        "paper_ratio": 438.0 if is_m else None,
    }  # fmt: skip


def traffic() -> dict:
    rng = np.random.default_rng(1)
    times = [f"1998-07-22T08:{at:02d}" for at in range(8)]
    attacks = ["", "", "nmap:1", "smurf:134", "", "", "", ""]
    trial = {
        "name": "new day", "title": "new on old", "trained_on": "old, normal minutes",
        "n_training": 7, "n_neighbors": 4, "day": "1998-07-22", "times": times,
        "attacks": attacks, "n_attack": [0, 0, 1, 134, 0, 0, 0, 0],
        "loud": [attack == "smurf:134" for attack in attacks],
        "nystroem": rng.normal(size=(8, 5)).tolist(), "pca": rng.normal(size=(8, 5)).tolist(),
        "scores": [
            score("residual", [3.0, 0.0, 4.0, 1.0, 2.0, 5.0, 3.0, 3.0], True),
            score("dispersion", [0.1, 0.0, 0.2, 30.0, 0.1, 0.1, 1e-12, 0.1], True),
            score("abnormality", [-1.0, 0.0, 0.5, 4.0, 1.0, 2.0, 0.0, 0.0], False),
            score("p_value", [0.5, 1.0, 0.2, 0.001, 0.3, 0.1, 0.9, 0.8], False),
        ],
    }  # fmt: skip
    return {
        "simulated": False, "loud_connections": 100,
        "map": {"day": "1998-07-20", "times": times, "attacks": attacks,
                "coordinates": rng.normal(size=(8, 5)).tolist()},
        "trials": [trial, copy.deepcopy(trial) | {"name": "same day", "title": "kept back"}],
        "seconds": 3.5,
    }  # fmt: skip


def results() -> dict:
    growth = {
        "step": "place", "letter": "k", "values": [5, 20, 80], "seconds": [1e-6, 3e-6, 1e-5],
        "exponent": 0.8125, "paper": "O(k²)", "paper_exponent": 2.0, "ours": "O(k)",
    }  # fmt: skip
    free = growth | {"step": "fit", "letter": "D", "paper": None, "paper_exponent": None}
    return {
        "paper": "A. Author, A paper", "size": "quick", "seconds": 61.25,
        "parameters": {"n_new": 100, "nothing": None, "scales": {"n": [1, 2]}},
        "seeds": {"sphere": [0, 1]}, "versions": {"numpy": "9.8.7"},
        "data": {"simulated": False, "notice": None, "not_public": "Features are not public.",
                 "source": "DARPA 1998", "map_day": "1998-07-20", "new_day": "1998-07-22",
                 "features": {"names": ["n_conn", "n_src"], "built_from": "connections",
                              "n_minutes": 46119, "max_difference": 5e-5, "labels_agree": True,
                              "seconds": 1.0}},
        "sphere": sphere(), "extension_curve": curve(), "traffic_day": traffic(),
        "complexity": {"statement": "All is O(1).", "base": {"n": 4000, "k": 15},
                       "latent_dimension": 2, "n_queries": 500, "repeats": 2,
                       "growths": [growth, free], "seconds": 4.5,
                       "placing": {"setting": {"D": 14},
                                   "seconds": {"transform": 2e-5, "place": 3e-5}}},
    }  # fmt: skip


def test_the_cost_of_place_is_reported(html):
    assert "D = 14, place takes 30 µs per point" in html and "a ratio of 1.50" in html


def write(folder: Path, payload: dict) -> Path:
    """Write the page of a results.json."""
    return write_report(folder, restored(Results, payload))


@pytest.fixture(scope="module")
def html(tmp_path_factory) -> str:
    written = write(tmp_path_factory.mktemp("out"), results())
    assert written.name == "report.html"
    return written.read_text("utf-8")


def scenes(html: str) -> dict:
    (text,) = re.findall(r'<script type="application/json" id="scenes">(.*?)</script>', html)
    return json.loads(text)


def words(html: str) -> str:
    """Return what a reader sees: no scripts, styles, pictures or tags."""
    bare = re.sub(r"<(script|style)\b.*?</\1>", " ", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", bare)).split())


def test_the_page_needs_nothing_else(html):
    assert not re.findall(r"<script[^>]*\bsrc\b|<link|@import|url\(", html)
    assert all(source.startswith("data:") for source in re.findall(r'src="([^"]*)"', html))
    assert not re.findall(r"(?:src|href)\s*=\s*[\"']?\s*(?:https?:)?//", html)


def test_every_number_is_there(html):
    text = words(html)
    for shown in (
        "6 of 6", "0.0104", "0.00808", "0.00614", "0.00936 ± 0.00020", "(5.68 ± 0.33)·10⁻⁵",
        "1.25", "3.12", "100 %", "1 of 2", "0.0123", "0.0456", "1 of 3", "at most 270.7 %",
        "Diffusion 5 times",
        "0.969", "0.688", "137", "324", "438", "2.72·10⁻⁷", "6.21·10⁻¹⁰", "#3 08:03 smurf:134",
        "#5 08:05 no label", "0.81", "O(k²)", "O(k)", "46119", "5.00·10⁻⁵", "n_conn", "9.8.7",
        "scales: n", "61 s", "quick run", "A. Author", "Features are not public.",
    ):  # fmt: skip
        assert shown in text, shown
    assert text.count("Features are not public.") == 1
    assert "imulated" not in text


def test_each_figure_says_what_the_paper_shows(html):
    text = words(html)
    for figure in ("Figures 7.1 and 7.2", "Figure 7.3", "Figure 7.4", "Figure 7.5", "Figure 7.6"):
        assert figure in text
    assert text.count("In the paper:") >= 7 and text.count("Reading") >= 8


def draw_nothing(figure, stream, format, **_):
    """Save an empty picture: the titles of pictures do not need their pixels."""
    Image.new("RGB", (1, 1)).save(stream, "png") if format == "png" else stream.write(b"<svg/>")


def test_simulated_traffic_is_labelled_on_every_picture(tmp_path, monkeypatch):
    monkeypatch.setattr(Figure, "savefig", draw_nothing)
    payload = results()
    payload["data"] |= {"simulated": True, "notice": "Simulated: made up.", "source": "simulated"}
    html = write(tmp_path, payload).read_text("utf-8")
    text = words(html)
    assert text.count("Simulated: made up.") == 2
    for heading in re.findall(r"<h2>(Example II.*?)</h2>", html):
        assert "(simulated traffic)" in heading
    titles = [scene["title"] for scene in scenes(html).values() if "7.1" not in scene["title"]]
    assert sum("(simulated traffic)" in title for title in titles) == len(titles) - 1  # and 7.2


def test_absent_numbers_do_not_stop_it(tmp_path):
    payload = results()
    payload["data"]["features"] |= {"max_difference": None, "labels_agree": None}
    for trial in payload["traffic_day"]["trials"]:
        trial["nystroem"][0] = [None] * 5
        for score in trial["scores"]:
            score |= dict.fromkeys(("auc", "auc_loud", "best_ratio", "best_squared_ratio"))
            score |= {"labelled": [], "top": [], "paper_ratio": None}
            score["values"][0] = None
        trial["loud"] = [False] * 8
    payload["traffic_day"]["map"]["attacks"] = [""] * 8
    payload["extension_curve"]["curves"][0]["errors"][0] = None
    for row in payload["sphere"]["table"]:
        row["paper"] = None
    payload["sphere"]["met"] = [0, 0]
    text = words(write(tmp_path, payload).read_text("utf-8"))
    assert "no new minute is loud" in text and ABSENT in text
    assert "None" not in text and "nan" not in text


def test_hostile_text_is_escaped(tmp_path):
    payload = results()
    payload["paper"] = payload["data"]["not_public"] = payload["complexity"]["statement"] = HOSTILE
    payload["parameters"][HOSTILE] = HOSTILE
    payload["sphere"]["table"][0]["title"] = HOSTILE
    payload["extension_curve"]["curves"][0]["title"] = HOSTILE
    payload["sphere"]["figure"]["placements"][0]["title"] = HOSTILE
    trial = payload["traffic_day"]["trials"][0]
    trial["day"] = trial["attacks"][2] = r"$\oops$"
    trial["attacks"][3] = trial["title"] = payload["traffic_day"]["map"]["day"] = HOSTILE
    html = write(tmp_path, payload).read_text("utf-8")
    assert html.count("<script") == 2 and "<b>" not in html
    keyed = scenes(html)
    alts = {unescape(alt) for alt in re.findall(r'alt="([^"]*)"', html)}
    assert len(keyed) == 7 and set(keyed) <= alts
    assert any(HOSTILE in alt for alt in keyed)


def test_pictures_that_turn_have_a_still_one(html):
    keyed = scenes(html)
    alts = [unescape(alt) for alt in re.findall(r'alt="([^"]*)"', html)]
    assert len(set(alts)) == len(alts) and set(keyed) <= set(alts)
    assert sorted(scene["title"][:10] for scene in keyed.values()) == [
        "Figure 7.1", "Figure 7.2", "Figure 7.4", *["Figure 7.5"] * 4
    ]  # fmt: skip
    pairs = [scene for scene in keyed.values() if "7.5" in scene["title"]][:2]
    assert pairs[0]["group"] == pairs[1]["group"] and pairs[0]["half"] == pairs[1]["half"]
    style = re.sub(r"\s+", " ", html)
    assert "@media print { .scene { display: none; } img.still { display: block" in style


def test_a_failed_run_leaves_the_old_page(tmp_path, monkeypatch):
    monkeypatch.setattr(canvas, "find_spec", lambda name: None)  # pictures take seconds
    written = write(tmp_path, results())
    before = written.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(report.os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write(tmp_path, results() | {"paper": "another"})
    assert written.read_bytes() == before and list(tmp_path.iterdir()) == [written]


def test_without_matplotlib_there_are_words(tmp_path, monkeypatch):
    monkeypatch.setattr(canvas, "find_spec", lambda name: None)
    html = write(tmp_path, results()).read_text("utf-8")
    assert "<img" not in html and scenes(html) == {}
    assert "outsample[plots]" in html and "0.00808" in html


def test_numbers_keep_their_digits():
    assert number(1234567.0) == "1.23·10⁶" and number(-0.5) == "-0.500"
    assert measured(None, None) == ABSENT and measured(0.0, 0.1) == "0"


def test_points_that_are_not_finite_are_left_out():
    points = [[0, 0, 0], [np.nan, 0, 0], [1, 2, 3]]
    layer = Layer("a", points, "#000000", labels=["x", "y", "z"], named=[1, 2])
    data = scene_data(Scene("t", [layer]))
    assert data["layers"][0]["points"] == [[0, 0, 0], [1, 2, 3]]
    assert data["layers"][0]["labels"] == ["x", "z"] and data["layers"][0]["named"] == [1]
    assert data["middle"] == [0.5, 1.0, 1.5]
    assert scene_picture(Scene("nothing", [])).startswith(b"\x89PNG")


def test_charts_accept_values_that_a_log_scale_cannot_show():
    nothing = Curve("zero", [1, 2], [0.0, np.nan], STYLES[0])
    curve = Curve("some", [1, 2, 3], [1e-7, 0.0, 2.0], STYLES[1], [0.1, 0.1, 5.0])
    assert b"<svg" in curve_chart([nothing, curve])
    assert b"<svg" in curve_chart([nothing])
    traces = [Trace("zeros", [0.0, 0.0]), Trace("gap", [np.nan, 1.0], log=False)]
    assert trace_chart(traces, [Kind("all", [0, 1], "#000000")], named=[(0, "#0")])


def test_names_keep_their_order_and_distance():
    heights = spaced([0.1, 0.2, 0.21, 0.22, 0.9], 0.1)
    assert (np.diff(heights) >= 0.1 - 1e-12).all() and heights[-1] == 0.9
    assert np.mean(heights[:4]) == pytest.approx(np.mean([0.1, 0.2, 0.21, 0.22]))


STAGE = """
const { readFileSync } = require("node:fs");
const [, , script, scenes_file] = process.argv;
const calls = { fillText: [], fill: 0 };
const pen = () => new Proxy({ measureText: (t) => ({ width: 6 * t.length }),
  fillText: (t) => calls.fillText.push(t), fill: () => { calls.fill += 1; } },
  { get: (own, key) => (key in own ? own[key] : () => {}), set: () => true });
const all = [];
function element(name) {
  const listeners = {}, context = pen();
  const made = { name, listeners, children: [], classList: { add() {} }, clientWidth: 400,
    clientHeight: 330, append(x) { this.children.push(x); }, prepend() {}, after() {},
    setAttribute() {}, setPointerCapture() {}, getContext: () => context,
    addEventListener: (kind, f) => { listeners[kind] = f; } };
  all.push(made);
  return made;
}
const scenes = JSON.parse(readFileSync(scenes_file, "utf8"));
const images = Object.keys(scenes).map((alt) => Object.assign(element("img"), { alt }));
let queue = [];
Object.assign(globalThis, {
  document: { getElementById: () => ({ textContent: JSON.stringify(scenes) }),
    querySelectorAll: () => images, createElement: element, activeElement: null },
  window: { devicePixelRatio: 2 }, matchMedia: () => ({ matches: false }),
  requestAnimationFrame: (f) => queue.push(f),
  ResizeObserver: class { observe() {} } });
const flush = () => { const due = queue; queue = []; due.forEach((f) => f()); return due.length; };
(0, eval)(readFileSync(script, "utf8"));
const first = flush();
const marks = calls.fill;
const canvas = all.find((one) => one.name === "canvas" && one.listeners.pointermove);
const at = (x, y) => ({ pointerId: 1, pointerType: "mouse", offsetX: x, offsetY: y });
canvas.listeners.pointerdown(at(0, 0));
canvas.listeners.pointermove(at(30, 10));
const turned = flush();
canvas.listeners.pointerup(at(30, 10));
canvas.listeners.keydown({ key: "ArrowLeft", preventDefault() {} });
canvas.listeners.dblclick();
all.filter((one) => one.name === "button").forEach((one) => one.listeners.click());
flush();
console.log(JSON.stringify({ first, turned, marks, texts: calls.fillText }));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node to run the viewer")
def test_the_viewer_draws_every_point_and_turns(html, tmp_path):
    scene_records = scenes(html)
    script = Path(str(files("outsample_lab.paper.page"))) / "scene.js"
    (tmp_path / "stage.js").write_text(STAGE)
    (tmp_path / "scenes.json").write_text(json.dumps(scene_records))
    command = ["node", str(tmp_path / "stage.js"), str(script), str(tmp_path / "scenes.json")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    counts = json.loads(run.stdout)
    layers = [layer for scene in scene_records.values() for layer in scene["layers"]]
    assert counts["first"] == len(scene_records)
    assert counts["marks"] == sum(len(layer["points"]) for layer in layers) + len(layers)
    assert counts["turned"] == 2  # the picture that was dragged, and its companion
    assert "coordinate 3" in counts["texts"] and "#3 08:03 smurf:134" in counts["texts"]
