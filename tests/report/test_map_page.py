"""The report page in a real browser: what it draws, and what hands and keys do with it."""

from __future__ import annotations

import csv
import io
import json
import re
import time
import zlib
from importlib.resources import files

import numpy as np
import pytest

import outsample
from browser import browser
from outsample import Extended, NoveltyDetector, PCAExtension
from outsample.report import map_data
from outsample.report.map_page import write_map_page

HOSTILE = "</script><img src=x onerror=\"document.title='taken'\"><!-- '`${x}"
NAMES = ["one", "two"]


def simple_extension() -> PCAExtension:
    return PCAExtension(n_neighbors=5, weighting="distance", order=0, loss="squared")


@pytest.fixture(scope="module")
def groups():
    """Three groups in five dimensions, their map, and a detector that knows them."""
    rng = np.random.default_rng(0)
    labels = np.repeat(["ant", "bee", "cat"], 80)
    X = rng.normal(size=(240, 5)) + 9 * np.repeat(np.eye(5)[:3], 80, axis=0)
    return X, labels, NoveltyDetector(simple_extension()).fit(X, X[:, :2])


@pytest.fixture(scope="module")
def placed(groups):
    """Forty ordinary points and two far away, one with a hostile id, as `place` writes them."""
    X, labels, detector = groups
    Q = np.vstack([X[::6] + 0.1, X[:2] + 40])
    found, told = detector.place(Q), detector.explain(Q)
    ids = [f"new-{i:02d}" for i in range(40)] + [HOSTILE, "=1+1|" + 12000 * "x" + "\u202e"]
    return {
        "id": ids, "one": found.coordinates[:, 0], "two": found.coordinates[:, 1],
        "error_bar": found.error_bar, "abnormality": found.abnormality, "p_value": found.p_value,
        "bound": found.bound, "n_neighbors": found.n_neighbors,
        "main_reason": [one.main_reason for one in told],
        "neighbors": [one.neighbors for one in told],
        "neighbor_distances": [one.distances for one in told],
        "kind": [*labels[::6], "dog", None], "weight": [*np.linspace(1, 2, 41), np.nan],
    }  # fmt: skip


@pytest.fixture(scope="module")
def page(groups, placed, tmp_path_factory):
    columns = {"name": [f"old-{i:03d}" for i in range(240)], "kind": groups[1]}
    path = tmp_path_factory.mktemp("page") / "with space & é.html"
    return write_map_page(
        path, groups[2], map_names=NAMES, columns=columns, placed=placed, title=f"Ants {HOSTILE}"
    )


@pytest.fixture(scope="module")
def chrome(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def shown(chrome, page):
    """Open the page anew; afterwards there were no complaints, and no request but for the file."""
    chrome.media()
    chrome.open(page)
    yield chrome
    complaints, requests = chrome.drain()
    assert complaints == []
    assert [one for one in requests if not one.startswith(("file:", "blob:"))] == []
    assert len([one for one in requests if one.startswith("file:")]) == 1


def screen(chrome, row, layer="placed"):
    """Where a point is in the window."""
    return chrome.run(
        "const { view, data } = mapPage, box = view.top.getBoundingClientRect(),"
        "[x, y] = view.toScreen(data[arguments[0]], arguments[1]); return [x + box.x, y + box.y]",
        layer, row,
    )  # fmt: skip


def pixel(chrome, row, layer="placed"):
    """Colour of the map where a point is."""
    return chrome.run(
        "const { view, data } = mapPage, { pixels, stride, margin } = view.raster,"
        "[x, y] = view.toScreen(data[arguments[0]], arguments[1]).map((v) =>"
        "Math.round(v * view.dense) + margin), p = pixels[y * stride + x];"
        "return [p & 255, (p >> 8) & 255, (p >> 16) & 255]",
        layer, row,
    )  # fmt: skip


def states(chrome, layer="placed"):
    return chrome.run("return [...mapPage.data[arguments[0]].states]", layer)


def press(chrome, key):
    told = {"key": key, "text": key if len(key) == 1 else ""}
    chrome.command("Input.dispatchKeyEvent", {"type": "keyDown"} | told)
    chrome.command("Input.dispatchKeyEvent", {"type": "keyUp", "key": key})
    chrome.settle()


def search(chrome, words, expected):
    """Type into the search box and wait for its answer."""
    chrome.change("#find", words)
    for _ in range(100):
        if chrome.text("#found-count") == expected:
            return
        time.sleep(0.05)
    assert chrome.text("#found-count") == expected


def test_draws_the_points_in_their_colours(shown, placed):
    assert shown.run("return document.title").startswith("Ants </script>")
    ground, strange = [255, 255, 255], [122, 2, 24]
    assert pixel(shown, 40) == strange  # the scale's last colour
    assert pixel(shown, int(np.argmax(placed["p_value"]))) not in (ground, strange)
    assert "2 are unusual (p ≤ 0.01); about 0.4 would be by chance." in shown.text(".lead")
    counted = shown.run(
        "const { pen, wide, high } = mapPage.view.raster, all = pen.getImageData(0, 0, wide, high);"
        "return new Uint32Array(all.data.buffer).filter((p) => p !== 0xffffffff).length"
    )
    assert counted > 240 * 5  # on the screen, not only in our array


def test_hover_tells_of_the_point_with_its_circle_and_neighbours(shown, placed):
    shown.mouse("mouseMoved", *screen(shown, 3))
    shown.settle()
    told = shown.text(".card")
    assert "new-03" in told and "p-value" in told and re.search(r"old-018 · ant at 0\.\d+", told)
    assert "New point new-03. p-value" in shown.text("#said")
    near = shown.run("const { view, data } = mapPage; return view.neighborsOf(data.placed, 3)")
    assert near["known"] and [one["row"] for one in near["found"]] == list(placed["neighbors"][3])
    on_the_circle = (
        "const { view, data } = mapPage, d = view.dense, [x, y] = view.toScreen(data.placed, 3);"
        "const r = arguments[0] / view.unit[0] * view.perUnit, size = 4 * d;"
        "return view.pen.getImageData((x + r) * d - size / 2, y * d - size / 2, size, size)"
        ".data.filter((v, i) => i % 4 === 3 && v > 200).length"
    )
    assert shown.run(on_the_circle, float(placed["error_bar"][3])) >= 8
    shown.mouse("mouseMoved", 5, 5)
    shown.settle()
    assert shown.run("return document.querySelector('.card').hidden")
    shown.mouse("mouseMoved", *screen(shown, 41))
    shown.settle()
    assert len(shown.text(".card-name bdi")) <= 200


def test_keys_move_zoom_and_go_through_the_strangest(shown):
    shown.run("mapPage.view.top.focus()")
    before = screen(shown, 3)
    press(shown, "ArrowRight")
    assert screen(shown, 3)[0] == pytest.approx(before[0] - 60, abs=0.1)
    press(shown, "+")
    assert shown.run("return mapPage.view.zoom") == pytest.approx(1.25)
    press(shown, "n")
    assert shown.run("return mapPage.view.under.i") in (40, 41)
    press(shown, "0")
    assert screen(shown, 3) == pytest.approx(before, abs=0.1)
    press(shown, "Escape")
    assert shown.run("return mapPage.view.under") is None
    press(shown, "v")
    assert "Selected in view: 42 new" in shown.text("#chosen")
    press(shown, "Escape")
    assert "Nothing is selected" in shown.text("#chosen")


def test_dragging_moves_and_the_wheel_zooms(shown):
    before = screen(shown, 3)
    x, y = before[0] + 30, before[1] + 60
    shown.drag([(x, y), (x + 20, y + 10), (x + 50, y + 25)])
    assert screen(shown, 3) == pytest.approx([before[0] + 50, before[1] + 25], abs=0.1)
    shown.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200)
    shown.settle()
    assert shown.run("return mapPage.view.zoom") == pytest.approx(np.exp(0.3))
    shown.click("#closer")
    shown.click("#whole")
    assert shown.run("return mapPage.view.zoom") == 1


def test_filter_by_p_value(shown, placed):
    p = np.asarray(placed["p_value"])
    shown.change("#p-most", "0.05")
    kept = (p <= 0.05).sum()
    assert np.array_equal(states(shown), (p <= 0.05).astype(int))
    assert f"{kept} of 42 new points shown" in shown.text("#p-shown")
    shown.click("#p-all")
    assert sum(states(shown)) == 42
    shown.click("#bars button:nth-child(3)")  # from 0.1 to 0.15
    assert np.array_equal(states(shown), ((p > 0.1) & (p <= 0.15)).astype(int))
    pressed = shown.run(
        "return [...document.querySelectorAll('#bars button')]"
        ".map((bar) => bar.getAttribute('aria-pressed'))"
    )
    assert pressed.count("true") == 1 and pressed[2] == "true"
    shown.click("#bars button:nth-child(3)")
    assert sum(states(shown)) == 42
    shown.change("#p-slide", "-1")
    assert np.array_equal(states(shown), (p <= 0.1).astype(int))


def test_search_finds_shows_and_selects(shown):
    search(shown, "NEW-1", "10 found")
    shown.click("#found button")
    assert "new-10" in shown.text(".card")
    shown.click("#found .all")
    assert states(shown).count(1) == 10 and set(states(shown, "training")) == {2}
    search(shown, "bee", "93 found")
    search(shown, "onerror", "1 found")
    search(shown, "nowhere", "Nothing found")


def test_lasso_keeps_the_context_and_is_exported(shown, placed):
    x, y = screen(shown, 40)
    ring = [(x - 30, y - 30), (x + 30, y - 30), (x + 30, y + 30), (x - 30, y + 30)]
    before = pixel(shown, 20)
    shown.drag([*ring, ring[0]], modifiers=8)  # Shift
    inside = [i for i, state in enumerate(states(shown)) if state == 1]
    near = [i for i in range(42) if np.abs(np.subtract(screen(shown, i), (x, y))).max() < 29]
    assert set(near) <= set(inside) and 40 in inside and len(inside) < 42
    faded = pixel(shown, 20)
    assert faded != before and min(faded) > 200 and faded != [255, 255, 255]
    assert f"{len(inside)} new" in shown.text("#chosen")
    shown.click("#export")
    for _ in range(100):
        saved = list(shown.downloads.glob("*.csv"))
        if saved:
            break
        time.sleep(0.05)
    rows = list(csv.DictReader(io.StringIO(saved[0].read_text(encoding="utf-8-sig"))))
    new = [row for row in rows if row["set"] == "new"]
    assert [int(row["row"]) for row in new] == inside
    hostile = next(row for row in new if row["row"] == "40")
    assert hostile["id"] == HOSTILE and hostile["kind"] == "dog"
    for name in ("one", "two", "p_value", "error_bar", "weight"):
        assert float(hostile[name]) == pytest.approx(placed[name][40], rel=1e-5, abs=1e-5)
    formula = shown.run("mapPage.choice.drop(); return mapPage.choice.csv()")
    last = next(row for row in csv.DictReader(io.StringIO(formula)) if row["row"] == "41")
    assert last["id"].startswith("'=1+1") and last["kind"] == "" and last["weight"] == ""
    shown.click("#lasso")
    shown.drag([*ring, ring[0]])
    assert states(shown).count(1) == len(inside)


def test_colours_switch_and_words_have_one_colour(shown):
    shown.change("#by-new", "kind")
    shown.change("#by-training", "kind")
    assert pixel(shown, 2) == pixel(shown, 20, "training")
    assert pixel(shown, 2) != pixel(shown, 30)
    names = shown.text("#legend-new")
    assert "dog" in names and "missing: 1" in names
    shown.click("#legend-training button")  # ant
    assert states(shown, "training").count(1) == 80
    shown.change("#by-new", "weight")
    assert "missing: 1" in shown.text("#legend-new")
    shown.change("#by-training", "left_out_error")
    assert shown.run("return document.querySelector('#legend-training .scale') !== null")
    shown.click("#show-training")
    assert set(states(shown, "training")) == {0} and set(states(shown)) == {2}
    shown.click("#show-new")
    assert set(states(shown)) == {0}


def test_rows_of_the_table_lead_to_the_map(shown):
    first = "tr[data-row] button"
    assert shown.run("return document.querySelectorAll('tr[data-row]').length") == 42
    shown.run("document.querySelector(arguments[0]).focus()", first)
    press(shown, "Enter")
    shown.click(first)
    assert shown.run("return mapPage.view.under.i") in (40, 41)
    assert "far from all training points" in shown.text(".unusual")
    assert shown.run("return document.querySelectorAll('tr[data-row]:not([hidden])').length") == 15
    shown.click("#more-rows")
    assert shown.run("return document.querySelectorAll('tr[data-row]:not([hidden])').length") == 42


def test_dark_ground(shown):
    shown.media(prefers_color_scheme="dark")
    assert pixel(shown, 40) == [255, 243, 163]
    assert shown.run("return mapPage.view.ground") == [27, 32, 39]


def test_on_a_phone_by_touch(chrome, page):
    chrome.open(page, 390, 844, phone=True)
    assert chrome.run("return document.documentElement.scrollWidth") <= 390
    assert chrome.run("return document.getElementById('stage').getBoundingClientRect().top") < 420
    x, y = screen(chrome, 3)
    touch = {"touchPoints": [{"x": x, "y": y}]}
    chrome.command("Input.dispatchTouchEvent", {"type": "touchStart"} | touch)
    chrome.command("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    chrome.settle()
    assert "p-value" in chrome.text(".card")
    pinch = [[{"x": x - s, "y": y, "id": 0}, {"x": x + s, "y": y, "id": 1}] for s in (20, 30, 40)]
    for kind, points in zip(("touchStart", "touchMove", "touchMove"), pinch, strict=True):
        chrome.command("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    chrome.command("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    chrome.settle()
    assert chrome.run("return mapPage.view.zoom") == pytest.approx(2, rel=0.1)
    assert chrome.drain()[0] == []


def test_on_paper(shown):
    shown.media(media="print", prefers_color_scheme="dark")
    hidden = "return getComputedStyle(document.querySelector(arguments[0])).display"
    assert shown.run(hidden, ".bar") == "none"
    assert shown.run("return getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)"
    )
    printed = shown.pdf()
    pictures = re.findall(rb"/Subtype\s*/Image.*?stream\r?\n(.*?)endstream", printed, re.S)
    assert printed.startswith(b"%PDF") and pictures
    assert max(len(set(zlib.decompress(one)[:3_000_000])) for one in pictures) > 20


# What people see without one kind of cones (Machado, Oliveira, Fernandes 2009), in linear RGB.
VISION = {
    "all": np.eye(3),
    "no red": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no green": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "no blue": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def lab(colours, vision):
    """CIE L*a*b* of colours, as seen by somebody."""
    code = np.array([[int(one[at : at + 2], 16) for at in (1, 3, 5)] for one in colours]) / 255
    linear = np.where(code <= 0.04045, code / 12.92, ((code + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.transpose(VISION[vision]), 0, 1)
    to_xyz = [[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0177, 0.1095, 0.8728]]
    xyz = seen @ np.transpose(to_xyz)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    differences = 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])
    return np.column_stack([116 * f[:, 1] - 16, *differences])


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_tell_the_colours_apart(theme, vision):
    script = files("outsample.report").joinpath("viewer", "colours.js").read_text("utf-8")
    scale, names = (
        re.findall("#[0-9a-f]{6}", re.search(rf"{kind} = {{.*?{theme}: \[(.*?)\]", script, re.S)[1])
        for kind in ("COLD_TO_HOT", "NAMED")
    )
    steps = np.diff(lab(scale, vision)[:, 0]) * (1 if theme == "dark" else -1)
    assert steps.min() > 5
    seen = lab(names, vision)
    apart = np.linalg.norm(seen[:, None] - seen, axis=2) + 1000 * np.eye(len(names))
    assert apart.min() > 15


def test_nothing_is_loaded_or_run(page):
    html = page.read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    assert html.count("<script") == html.count("</script>") == 2
    assert "<img" not in html and "innerHTML" not in html and "http://" not in html


@pytest.mark.parametrize("d", [1, 3])
def test_maps_of_one_and_three_dimensions(chrome, tmp_path, d):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    extension = simple_extension().fit(X, X[:, :d] * [1, 1, 1e-3][:d])
    new = extension.place(X[:9] + 0.1)
    placed = {f"map_{k + 1}": new.coordinates[:, k] for k in range(d)}
    placed["error_bar"] = new.error_bar
    chrome.open(write_map_page(tmp_path / "m.html", extension, placed=placed))
    assert chrome.run("return document.getElementById('axes') !== null") is (d > 2)
    if d == 3:
        chrome.change("#axis-b", "2")
    shown = [screen(chrome, i) for i in range(9)]
    assert np.ptp(shown, axis=0).min() > 30  # each axis has its own scale if it must
    chrome.mouse("mouseMoved", *shown[0])
    chrome.settle()
    assert "nearest on the map" in chrome.text(".card") and "row 0" in chrome.text(".card")
    assert chrome.drain()[0] == []


def test_a_model_alone(chrome, groups, tmp_path):
    half = NoveltyDetector(simple_extension(), calibration="split").fit(groups[0], groups[0][:, :2])
    page = write_map_page(tmp_path / "m.html", half, columns={"kind": groups[1]})
    chrome.open(page)
    assert "120 training points" in chrome.text(".lead")
    assert chrome.run("return document.getElementById('by-training').value") == "kind"
    assert chrome.run("return document.getElementById('by-new')") is None
    kinds = chrome.run(
        "const { training } = mapPage.data;"
        "return [...training.states.keys()].map((i) => training.columns[0].raw(i))"
    )
    assert kinds == groups[1][half.training_rows_].tolist()
    assert chrome.drain()[0] == []


def test_columns_with_names_of_the_language_and_numbers_as_ids(chrome, groups, tmp_path):
    odd = ["constructor", "__proto__", "toString", HOSTILE, ""]
    places = {"map_1": [0.0, 1.0, 2.0], "map_2": [0.0, 1.0, 2.0]}
    placed = places | {"id": [900719, 5, 123456789]} | {name: ["a", "b", "a"] for name in odd}
    page = write_map_page(tmp_path / "m.html", groups[2], placed=placed, columns={"a": [1] * 240})
    chrome.open(page)
    for name in odd:
        chrome.change("#by-new", name)
        assert chrome.text("#legend-new").split() == ["a", "2", "b", "1"]
    search(chrome, "123456789", "1 found")
    chrome.click("#found button")
    told = chrome.text(".card")
    assert "123456789" in told and "native code" not in told and "constructor" in told
    assert chrome.drain()[0] == []


@pytest.mark.parametrize("size", [1e299, 1e-299, 0])
def test_maps_of_any_size(chrome, tmp_path, size):
    """Huge, tiny and constant maps; numbers that float32 cannot hold stay what they are."""
    X = np.random.default_rng(2).normal(size=(40, 3))
    extension = simple_extension().fit(X, X[:, :2] * size)
    new = extension.place(X[:4] + 0.1)
    given = {
        "map_1": new.coordinates[:, 0], "map_2": new.coordinates[:, 1],
        "error_bar": new.error_bar, "bound": [np.inf, np.nan, 1, -1e308],
        "when": 1.7e9 + np.arange(4) / 8, "count": [1, 2**40 + 1, 3, 4],
        "wide": [1e308, -1e308, 0, 5e-324], "none": [np.nan] * 4,
    }  # fmt: skip
    chrome.open(write_map_page(tmp_path / "m.html", extension, placed=given))
    assert np.isfinite([screen(chrome, i) for i in range(4)]).all()
    for name in ("bound", "wide", "when", "none", "error_bar", ""):
        chrome.change("#by-new", name)
    rows = list(csv.DictReader(io.StringIO(chrome.run("return mapPage.choice.csv()"))))[:4]
    assert [float(row["when"]) for row in rows] == given["when"].tolist()
    assert [float(row["count"]) for row in rows] == given["count"]
    assert rows[3]["bound"] and not rows[1]["bound"] and float(rows[0]["wide"]) == 1e308
    assert float(rows[2]["map_1"]) == pytest.approx(given["map_1"][2], rel=1e-5, abs=1e-310)
    assert chrome.drain()[0] == []


def test_left_out_errors_are_those_of_the_model(groups):
    core = groups[2].extension_
    errors = map_data.left_out_errors(core, 240)
    known = errors[np.isfinite(errors)]
    assert len(known) == len(core.left_out_.rows)
    size = map_data.collect(core, None, None, None).size
    assert known.mean() / size == pytest.approx(core.loo_error_)


def test_a_saved_model_gives_the_same_page(groups, placed, page, tmp_path):
    outsample.save(groups[2], tmp_path / "m.outsample")
    loaded = outsample.load(tmp_path / "m.outsample")
    columns = {"name": [f"old-{i:03d}" for i in range(240)], "kind": groups[1]}
    again = write_map_page(
        tmp_path / "m.html", loaded, map_names=NAMES, columns=columns, placed=placed,
        title=f"Ants {HOSTILE}",
    )  # fmt: skip
    assert again.read_bytes() == page.read_bytes()


def test_any_embedding_extended(groups, tmp_path):
    class First:
        def fit_transform(self, X):
            return X[:, :2]

    extended = Extended(First(), simple_extension()).fit(groups[0])
    assert write_map_page(tmp_path / "a" / "m.html", extended).exists()


@pytest.mark.parametrize(("change", "said"), [
    ({"two": None}, "placed has no column 'two'; it needs the coordinates"),
    ({"two": [np.nan] * 42}, r"placed\['two'\] is nan in row 0, but coordinates must be finite"),
    ({"p_value": ["x"] * 42}, r"placed\['p_value'\] is 'x' in row 0, but must be a number"),
    ({"kind": ["a"] * 41}, r"placed\['kind'\] has shape \(41,\), but must be \(42,\)"),
    ({"neighbors": [[240]] * 42}, "is 240 in row 0, but training rows of this model go from 0"),
    ({"neighbors": [[1]] * 3}, "has 3 entries, but must have 42: one per row"),
])  # fmt: skip
def test_bad_columns_are_named(groups, placed, tmp_path, change, said):
    given = {name: values for name, values in (placed | change).items() if values is not None}
    with pytest.raises(ValueError, match=said):
        write_map_page(tmp_path / "m.html", groups[2], map_names=NAMES, placed=given)
    assert list(tmp_path.iterdir()) == []


def test_bad_models_and_names(groups, tmp_path):
    with pytest.raises(ValueError, match="fitted without a map"):
        write_map_page(tmp_path / "m.html", NoveltyDetector().fit(groups[0]))
    with pytest.raises(TypeError, match="must be a fitted NoveltyDetector with a map"):
        write_map_page(tmp_path / "m.html", PCAExtension())
    with pytest.raises(ValueError, match="1 names for the 2 coordinates"):
        write_map_page(tmp_path / "m.html", groups[2], map_names=["one"])
    with pytest.raises(ValueError, match=r"columns\['kind'\] has shape"):
        write_map_page(tmp_path / "m.html", groups[2], columns={"kind": groups[1][:5]})
    empty = {"map_1": [], "map_2": []}
    with pytest.raises(ValueError, match="placed has no rows"):
        write_map_page(tmp_path / "m.html", groups[2], placed=empty)


def test_columns_as_files_hold_them(groups, tmp_path):
    """Text, bytes, times, truth values, mixed and missing ones: everything becomes words."""
    given = {
        "map_1": ["0.5", "1"], "map_2": [1, 2], "p_value": ["0.5", ""], "seen": [True, False],
        "when": np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"), "raw": [b"a", b"\xff"],
        "mixed": ["a", 1.5], "some": [None, 2], "neighbors": ["[1, 2]", None],
        "neighbor_distances": ["0.5 0.75", ""],
    }  # fmt: skip
    found = map_data.collect(groups[2], None, None, given).placed
    assert found.columns["seen"].tolist() == ["yes", "no"]
    assert found.columns["mixed"].tolist() == ["a", "1.5"]
    assert found.columns["when"].tolist() == ["2020-01-01", ""]
    assert np.isnan(found.columns["p_value"][1]) and np.isnan(found.columns["some"][0])
    assert found.neighbors.tolist() == [[1, 2], [-1, -1]] and found.distances[0, 1] == 0.75
    assert write_map_page(tmp_path / "m.html", groups[2], placed=given).exists()
    both = {"ids": [7, 3], "distances": [0.5, 0.75]}
    for cells in ([both, None], [json.dumps(both), ""]):
        again = map_data.collect(groups[2], None, None, given | {"neighbors": cells}).placed
        assert again.neighbors.tolist() == [[7, 3], [-1, -1]] and again.distances[0, 1] == 0.75
