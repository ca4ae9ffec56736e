"""The live page in a real browser: what arrives is shown, and what hands, keys and faults do."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the service needs outsample[serve]")

from browser import browser
from outsample import NoveltyDetector, PCAExtension, save
from outsample.service.connection import SECURITY_HEADERS
from outsample.service.service import Service
from outsample.service.settings import Settings
from service_tools import TOKEN, Running, make_service, rows

FAR = np.array([[9.0, 9.0, 9.0], [-12.0, 3.0, 1.0]])


def made(folder, **options):
    return make_service(folder, tokens=[], **options)


def learner(folder):
    return make_service(folder, learns=True)


SHOWN = "return livePage.data.placed.n === arguments[0]"
TOTAL = "return livePage.arrivals.total === arguments[0]"


@pytest.fixture(scope="module")
def chrome(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened
        opened.driver.get("about:blank")


@pytest.fixture
def serve(chrome):
    """Serves until the test is over; there were no complaints then, nor requests to others."""
    running = []

    def begin(service, port=0, opened=True):
        running.append(Running(service, port))
        if opened:
            chrome.media()
            token = f"/#token={TOKEN}" if service.settings.tokens else ""
            chrome.open(running[-1].url + token)
        return running[-1]

    yield begin
    complaints, requests = chrome.drain()
    chrome.driver.get("about:blank")
    for one in running:
        if one.thread.is_alive():
            one.end()
    assert complaints == []
    hosts = tuple(f"http://{host}:{running[0].port}/" for host in ("127.0.0.1", "watch.localhost"))
    assert [one for one in requests if not one.startswith((*hosts, "about:"))] == []


@pytest.fixture
def at(monkeypatch):
    """Sets the clock by which arrivals are dated."""
    clock = SimpleNamespace(now=1.8e9)
    fake = SimpleNamespace(time=lambda: clock.now, monotonic=time.monotonic)
    monkeypatch.setattr("outsample.service.arrivals.time", fake)

    def turn(minutes):
        clock.now = 1.8e9 + 60 * minutes

    return turn


def press(chrome, key):
    """A key of the keyboard, on the map."""
    chrome.run("livePage.view.top.focus()")
    told = {"key": key, "text": key if len(key) == 1 else ""}
    chrome.command("Input.dispatchKeyEvent", {"type": "keyDown"} | told)
    chrome.settle()


def looked_at(chrome):
    return chrome.run("const { under } = livePage.view; return under && under.layer.ids[under.i]")


def drawn(chrome, selector, box):
    """Share of a box of a canvas (in its pixels) that is not empty."""
    return chrome.run(
        "const [x, y, w, h] = arguments[1], copy = new OffscreenCanvas(w, h).getContext('2d');"
        "copy.drawImage(document.querySelector(arguments[0]), -x, -y);"
        "const { data } = copy.getImageData(0, 0, w, h); let n = 0;"
        "for (let i = 3; i < data.length; i += 4) n += data[i] > 0; return 4 * n / data.length",
        selector, box,
    )  # fmt: skip


def test_arrivals_appear_and_unusual_ones_are_listed(chrome, serve, tmp_path, at):
    running = serve(made(tmp_path))
    running.place(rows(30))
    at(5)
    running.place(FAR)
    chrome.wait(SHOWN, 32)
    assert chrome.text("#name") == "small"
    assert chrome.text("#lead") == "32 arrivals, 32 of them on the map."
    listed = chrome.run(
        "return [...document.querySelectorAll('#unusual li')].map((e) => e.innerText)"
    )
    assert len(listed) >= 2 and all("p 0.005" in one for one in listed[:2])
    assert "far" in listed[0] or "off the surface" in listed[0]
    assert chrome.run("return livePage.data.placed.rings.slice(0, 2)") == [31, 30]
    assert chrome.text("#said").startswith("Unusual: ")
    assert "of the last 32 arrivals; 5 % is nominal" in chrome.text("#rate-words")
    # The strip has marks above and below the level, and the level is named.
    level = chrome.run("return livePage.strip.height(0.05)")
    assert drawn(chrome, "#strip canvas", [800, 0, 109, int(level) - 2]) > 0
    assert drawn(chrome, "#strip canvas", [0, int(level) + 3, 5, 90]) > 0
    assert drawn(chrome, "#strip canvas", [6, int(level) - 15, 45, 10]) > 0.1
    legend = chrome.text("#legend")
    assert legend.split()[:2] == ["1", "0.1"] and "unusual" in legend


def test_an_arrival_is_looked_at_by_list_mouse_and_keys(chrome, serve, tmp_path):
    running = serve(made(tmp_path))
    running.place(np.vstack([rows(10), FAR]))
    chrome.wait(SHOWN, 12)
    latest, other = chrome.run("return livePage.list.ids(12)")[:2]
    assert (latest, other) == (12, 11)
    chrome.click("#unusual button")
    chrome.wait("return livePage.view.neighborsById.has(12)")
    chrome.wait("return !document.querySelector('#about').hidden")
    assert looked_at(chrome) == 12
    card = chrome.text(".card")
    assert card.startswith("arrival 12") and "p-value" in card and "nearest" not in card
    about = chrome.text("#details")
    assert "Why" in about and "weigh most" in about and "residual" not in about
    near = chrome.run("return livePage.view.neighborsOf(livePage.data.placed, 11)")
    assert near["known"] and len(near["found"]) == 10 and about.count("point ") >= 10
    running.place(rows(5))  # it stays looked at while others come
    chrome.wait(SHOWN, 17)
    assert looked_at(chrome) == 12 and chrome.text(".card") == card
    unusual = chrome.run("return livePage.list.ids(17)")
    press(chrome, "n")
    assert looked_at(chrome) == unusual[(unusual.index(12) + 1) % len(unusual)]
    press(chrome, "p")
    assert looked_at(chrome) == 12
    press(chrome, "Escape")
    assert looked_at(chrome) is None
    assert chrome.run("return document.querySelector('#about').hidden")
    x, y = chrome.run(
        "const { view, data } = livePage, box = view.top.getBoundingClientRect(),"
        "[x, y] = view.toScreen(data.placed, 3); return [x + box.x, y + box.y]"
    )
    chrome.drag([(x, y), (x, y)])
    chrome.wait("return livePage.view.under && livePage.view.under.kept")
    assert looked_at(chrome) == 4


def test_time_is_held_brushed_and_replayed(chrome, serve, tmp_path, at):
    running = serve(made(tmp_path))
    for minute in (-90, *range(0, 61, 5)):
        at(minute)
        running.place(rows(4))
    chrome.wait(TOTAL, 56)
    chrome.wait(SHOWN, 52)  # the last hour
    press(chrome, " ")
    at(61)
    running.place(np.vstack([rows(2), FAR]))
    chrome.wait("return document.querySelector('#lead').innerText.includes('4 arrived since')")
    assert chrome.run(SHOWN, 52)
    assert chrome.run("return document.querySelector('#pause').ariaPressed") == "true"
    held = chrome.run("return document.querySelectorAll('#unusual li').length")
    press(chrome, " ")
    chrome.wait(SHOWN, 52)  # what came at first is an hour ago now
    chrome.wait("return document.querySelectorAll('#unusual li').length >= arguments[0]", held + 2)

    box = chrome.run("return document.querySelector('#strip').getBoundingClientRect().toJSON()")
    y = box["y"] + box["height"] / 2
    chrome.drag([(box["x"] + box["width"] * share, y) for share in (0.25, 0.5, 0.75)])
    inside = chrome.wait(
        "const { n, first } = livePage.data.placed; return n < 40 && livePage.playing.brush && n"
    )
    assert inside == 24  # from minute 16 to 46
    at(62)
    running.place(rows(3))
    chrome.wait(TOTAL, 63)
    assert chrome.run(SHOWN, 24)  # time stands still under a brush
    chrome.change("#from", "500")
    chrome.wait(SHOWN, 12)
    begin = chrome.text("#range").split(" – ")[0]
    assert chrome.run("return document.querySelector('#from').ariaValueText") == begin
    chrome.click("#now")
    chrome.wait("return livePage.playing.isNow && livePage.data.placed.n > 40")

    chrome.click("#replay")
    chrome.wait("return livePage.playing.replaying && livePage.data.placed.n < 10")
    chrome.run("livePage.playing.replaying.share = 0.5")
    chrome.wait("return Math.abs(livePage.data.placed.n - 26) < 6")
    press(chrome, " ")
    share = chrome.wait(
        "return livePage.playing.paused !== null && livePage.playing.replaying.share"
    )
    chrome.wait("return document.querySelector('#pause').ariaPressed === 'true'")
    assert chrome.run("livePage.refresh(); return livePage.playing.replaying.share") == share
    press(chrome, " ")
    chrome.run("livePage.playing.replaying.share = 1")
    chrome.wait("return livePage.playing.isNow && livePage.data.placed.n > 40")
    assert chrome.run("return document.querySelector('#replay').ariaPressed") == "false"
    press(chrome, "r")
    press(chrome, "Escape")
    chrome.wait("return livePage.playing.isNow && livePage.data.placed.n > 40")


def test_colours_go_by_what_is_chosen(chrome, serve, tmp_path):
    running = serve(made(tmp_path))
    running.place(rows(50))
    chrome.wait(SHOWN, 50)
    names = chrome.run("return [...document.querySelector('#by').options].map((o) => o.value)")
    assert names == ["p_value", "abnormality", "error_bar", "arrival"]
    codes, legends = [], []
    for name in names:
        chrome.change("#by", name)
        chrome.wait("return livePage.data.placed.paint.column.name === arguments[0]", name)
        codes.append(chrome.run("return [...livePage.data.placed.paint.codes]"))
        legends.append(chrome.text("#legend"))
    assert len({str(one) for one in codes}) == len(set(legends)) == 4
    assert np.all(np.diff(codes[3]) >= 0)  # arrivals in their order


def test_it_goes_on_where_it_stopped_and_anew_with_a_new_service(chrome, serve, tmp_path):
    running = serve(make_service(tmp_path))
    running.place(rows(5))
    chrome.wait(TOTAL, 5)
    for connection in list(running.server.server_state.connections):
        connection.transport.abort()
    chrome.wait("return document.querySelector('#lead').innerText.startsWith('Connection lost')")
    running.place(rows(4))
    chrome.wait("return !document.querySelector('#lead').innerText.startsWith('Connection lost')")
    chrome.wait(TOTAL, 9)
    assert chrome.run("return [...livePage.data.placed.ids]") == list(range(1, 10))
    running.end()
    again = serve(make_service(tmp_path), running.port, opened=False)
    again.place(np.vstack([rows(2), FAR]))
    chrome.wait(TOTAL, 4)
    chrome.wait(SHOWN, 4)
    assert chrome.run("return [...livePage.data.placed.ids]") == [1, 2, 3, 4]
    again.place(rows(1))
    chrome.wait(TOTAL, 5)
    assert len(again.service.ring.watchers) == 1
    again.end()
    serve(learner(tmp_path), running.port, opened=False)  # a page that knows of learning is loaded
    chrome.wait("return globalThis.livePage && livePage.arrivals.learns")
    complaints, _ = chrome.drain()
    assert all("/events" in one for one in complaints)


def test_learning_is_shown_with_its_light(chrome, serve, tmp_path):
    running = serve(learner(tmp_path))
    chrome.wait("return document.querySelector('#drift').dataset.state === 'off'")
    assert "Nothing has been learned yet" in chrome.text("#drift-words")
    running.learn(rows(40))
    chrome.wait("return document.querySelector('#drift').dataset.state === 'fine'")
    chrome.wait("return document.querySelector('#drift-words').innerText.includes('40 arrivals')")
    assert "learned" in chrome.text("#drift-words")
    running.place(rows(3))
    running.learn(FAR)
    chrome.wait(SHOWN, 45)
    chrome.change("#by", "learned")
    chrome.wait("return livePage.data.placed.paint.column.name === 'learned'")
    words = chrome.text("#legend").split("\n")
    assert words[0::2] == ["no", "placed only", "yes"] and words[3] == "3"
    assert int(words[1]) >= 2 and int(words[1]) + int(words[5]) == 42
    running.learn(np.repeat(FAR, 60, axis=0) + rows(120))
    chrome.wait("return document.querySelector('#drift').dataset.state === 'alarm'")
    assert chrome.text("#drift-words").startswith("The map is out of date")


def test_the_token_is_asked_for(chrome, serve, tmp_path):
    running = serve(make_service(tmp_path), opened=False)
    chrome.driver.get(f"http://watch.localhost:{running.port}/")
    for token, answer in (("wrong", "The token is wrong."), (TOKEN, "0 arrivals")):
        chrome.wait("return !document.querySelector('#ask').hidden")
        chrome.run("document.querySelector('#token').value = arguments[0]", token)
        chrome.click("#ask button")
        chrome.wait(
            "return document.querySelector('#lead').innerText.includes(arguments[0])", answer
        )
    chrome.wait("return document.documentElement.dataset.ready === 'yes'")
    running.place(rows(2))
    chrome.wait(TOTAL, 2)
    complaints, _ = chrome.drain()
    assert complaints and all("401" in one for one in complaints)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_maps_of_other_sizes_and_models_without_p_values(chrome, serve, tmp_path, d):
    X = np.random.default_rng(0).normal(size=(120, 3))
    model = PCAExtension(n_neighbors=8, weighting="distance", order=0, loss="squared")
    model = (model if d == 2 else NoveltyDetector(model)).fit(X, X[:, :d])
    save(model, tmp_path / "model.outsample")
    running = serve(Service(Settings(model=str(tmp_path / "model.outsample"), alpha=0.05)))
    running.place(rows(20))
    chrome.wait(SHOWN, 20)
    place = "const { view, data } = livePage; return view.toScreen(data.placed, 5)"
    before = chrome.run(place)
    assert chrome.run("return document.querySelector('#axes').hidden") == (d < 3)
    if d == 2:
        assert "no p-values" in chrome.text("#unusual-none")
        assert chrome.run("return document.querySelector('#alarms').hidden")
        assert drawn(chrome, "#strip canvas", [0, 0, 900, 60]) > 0
    elif d == 3:
        chrome.change("#axis-b", "2")
        after = chrome.run(place)
        assert after[1] != before[1]
    running.place(rows(1))
    chrome.wait(SHOWN, 21)
    if d == 1:  # the others stay where they are
        assert chrome.run(place) == before


def test_on_a_phone_in_the_dark(chrome, serve, tmp_path):
    running = serve(made(tmp_path))
    running.place(np.vstack([rows(10), FAR]))
    chrome.wait(SHOWN, 12)
    chrome.click("#unusual button")
    light = chrome.run(
        "return [livePage.view.groundPixel, document.querySelector('.scale').style.background]"
    )
    chrome.media(prefers_color_scheme="dark")
    chrome.resize(390, 844, phone=True)
    chrome.wait("return livePage.view.wide === 390 && document.querySelector('.docked')")
    chrome.wait(
        "return document.querySelector('.scale').style.background !== arguments[0]", light[1]
    )
    assert chrome.run("return livePage.view.groundPixel") != light[0]
    inside = chrome.run(
        "const card = document.querySelector('.card').getBoundingClientRect(),"
        "stage = document.querySelector('#stage').getBoundingClientRect();"
        "return [card.left - stage.left, stage.right - card.right, card.top - stage.top,"
        "stage.bottom - card.bottom]"
    )
    assert min(inside) >= 0
    assert chrome.run("return document.documentElement.scrollWidth") <= 390
    assert chrome.run("return document.querySelector('.bar').clientHeight") < 65  # one line
    chrome.run("document.querySelector('#panel').scrollIntoView()")
    chrome.click("#unusual li:last-child button")
    top = "return document.querySelector('#stage').getBoundingClientRect().top"
    assert chrome.run(top) >= 0  # the map comes into view


def test_all_that_is_used_has_a_name(chrome, serve, tmp_path):
    running = serve(made(tmp_path))
    running.place(FAR)
    chrome.wait(SHOWN, 2)
    nodes = chrome.command("Accessibility.getFullAXTree", {})["nodes"]
    used = [
        (node["role"]["value"], node["name"]["value"])
        for node in nodes
        if not node["ignored"]
        and node["role"]["value"] in ("button", "slider", "combobox", "checkbox", "application")
    ]
    assert len(used) >= 11 and all(name for _, name in used)
    assert ("slider", "Show arrivals from") in used
    assert chrome.run("return document.querySelector('#said').role") == "status"
    assert b"unsafe" not in dict(SECURITY_HEADERS)[b"content-security-policy"]


def test_memory_is_bounded(chrome, serve, tmp_path):
    serve(made(tmp_path))
    chrome.run(
        "const { arrivals } = livePage;"
        "for (let k = 0; k < 500; k++) livePage.handle('arrivals', { first_id: 1 + 1000 * k,"
        "n_rows: 1000, time: 1e9 + k, coordinates: Array(1000).fill([0, 0]),"
        "p_value: Array(1000).fill(0.5), reasons: { [1 + 1000 * k]: 'plane_distance' } })"
    )
    n, last, reasons = chrome.run(
        "const { n, ids, reasons } = livePage.arrivals; return [n, ids[n - 1], reasons.size]"
    )
    assert 180_000 <= n <= 225_000 and last == 500_000 and reasons <= 225
    assert chrome.run("return livePage.arrivals.from(499001)") == n - 1000
