"""Who is let in: queues that stand, slow clients, requests refused before they are read."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("fastapi", reason="the service needs outsample[serve]")

import numpy as np

from outsample.service.admission import LEAST, TARGET, WINDOW, Admission
from outsample.service.app import create_app
from outsample.service.early_refusal import EarlyRefusal
from outsample.service.gate import ABORT
from outsample.service.json_pieces import in_pieces, many_to_json
from outsample.service.json_rows import rows_of_json, to_json
from outsample.service.limits import Limits
from outsample.service.refusal import Refusal
from outsample.service.transfers import LITTLE, PATIENCE, Transfers
from service_tools import made, rows


class Clock:
    """Time that passes when it is told to."""

    now = 100.0

    def __call__(self):
        return self.now


def served(admission, clock, waits):
    """Let requests in and out, one every millisecond, that waited so long."""
    for waited in waits:
        admission.enter()
        clock.now += 0.001
        admission.leave(waited)


def standing(admission, clock, waited, n):
    """Let requests in and out of a queue that is full."""
    for _ in range(n):
        admission.inside = int(admission.limit) - 1
        served(admission, clock, [waited])


def test_a_burst_may_wait_up_to_the_limit_and_no_more():
    admission = Admission("placing", 20, clock=Clock())
    for _ in range(20):
        admission.enter()
    with pytest.raises(Refusal, match="requests wait for placing") as refused:
        admission.enter()
    assert refused.value.status == 429 and refused.value.headers == {"Retry-After": "1"}
    assert admission.inside == 20
    with pytest.raises(Refusal) as again:
        admission.enter()
    assert again.value is not refused.value  # one that is kept would keep every request it met


def test_bursts_that_are_worked_off_change_nothing():
    clock = Clock()
    admission = Admission("placing", 100, clock=clock)
    burst = [30 * TARGET] * 50 + [0.0] * 60  # long waits, then somebody who waits for nothing
    served(admission, clock, burst * 20)
    assert admission.limit == 100


def test_a_queue_that_stands_is_cut_in_proportion_and_comes_back():
    clock = Clock()
    admission = Admission("placing", 100, clock=clock)
    standing(admission, clock, 1.5 * TARGET, 102)
    assert admission.limit == pytest.approx(100 / 1.5)
    admission.limit, admission.smallest = 100, 50 * TARGET
    standing(admission, clock, 50 * TARGET, 101)
    assert admission.limit == pytest.approx(25)  # no more than that at once
    standing(admission, clock, 50 * TARGET, 2000)
    assert admission.limit == LEAST
    admission.inside, begin_limit = 0, admission.limit
    served(admission, clock, [0.0] * 101)
    assert admission.limit > begin_limit
    begin = clock.now
    while admission.limit < 100:
        served(admission, clock, [0.0])
    assert clock.now - begin < 1.5


def test_an_overload_settles_where_waits_are_short():
    """A server of 1 ms a request, asked three times as often; refusals cost nothing."""
    clock = Clock()
    admission = Admission("placing", 512, clock=clock)
    queue, waits = [], []
    for step in range(60_000):  # thirds of a millisecond
        clock.now += 0.001 / 3
        try:
            admission.enter()
            queue.append(clock.now)
        except Refusal:
            pass
        if step % 3 == 0 and queue:
            waits.append(clock.now - queue.pop(0))
            admission.leave(waits[-1])
    assert len(waits) > 19_000  # never idle
    assert np.quantile(waits[5000:], 0.99) < 2 * max(TARGET, LEAST * 0.001)


def test_a_limit_that_nobody_reaches_is_no_beginning():
    clock = Clock()
    admission = Admission("placing", 1000, clock=clock)
    admission.inside = 39
    admission.enter()
    clock.now += 2 * WINDOW
    admission.leave(4 * TARGET)
    assert admission.limit == pytest.approx(10)  # a quarter of those who were there
    admission.limit = 1000.0
    clock.now += 2 * WINDOW
    admission.leave(1.25 * TARGET)
    assert admission.limit == pytest.approx(800)


def test_an_idle_service_lets_many_in_at_once():
    clock = Clock()
    admission = Admission("placing", 100, clock=clock)
    admission.limit = LEAST
    clock.now += 20 * WINDOW
    served(admission, clock, [0.0])
    assert admission.limit == 100
    assert Admission("placing", 3).least == 3


def transfers(most=3, most_bytes=1000 * LITTLE):
    clock, gone = Clock(), []
    kept = Transfers(most, most_bytes, clock)
    return kept, clock, gone, lambda name: kept.begin(lambda: gone.append(name))


def test_the_slowest_goes_when_others_come():
    kept, clock, gone, begin = transfers()
    for name, sent in (("slow", 1), ("fast", 500), ("medium", 50), ("new", 10)):
        kept.came(begin(name), sent)
    assert not gone and len(kept.moving) == 4  # nobody can be called slow yet
    clock.now += PATIENCE
    begin("newer")
    assert gone == ["slow"] and len(kept.moving) == 4 and kept.n_bytes == 560


def test_bytes_are_held_until_the_end_and_bounded():
    kept, clock, gone, begin = transfers(10)
    first, second = begin("first"), begin("second")
    kept.came(first, 600 * LITTLE)
    kept.rest(first)  # its body is there: it is not slow any more
    clock.now += PATIENCE
    kept.came(second, 300 * LITTLE)
    third = begin("third")
    kept.came(third, 300 * LITTLE)
    assert gone == ["second"] and kept.n_bytes == 900 * LITTLE
    with pytest.raises(Refusal, match="try again") as refused:  # nobody else can be called slow
        kept.came(third, 300 * LITTLE)
    assert refused.value.status == 503
    kept.came(third, 100 * LITTLE)
    little = begin("little")
    kept.came(little, LITTLE)  # always fits
    kept.end(little)
    kept.end(third)
    kept.answer(first, 200)
    kept.end(first)
    kept.end(first)
    assert kept.n_bytes == 0
    kept.came(begin("alone"), 5000 * LITTLE)  # one body always fits: its own limit is another


def test_answers_that_nobody_takes_are_not_kept_for_ever(tmp_path):
    """The client never makes room for the rest of a large answer."""
    service = made(tmp_path, limits=Limits(seconds=1.0))
    gate, hung_up, sent = create_app(service), [], []
    told = {ABORT: {"now": lambda: hung_up.append(len(gate.transfers.moving)), "is_stuck": bool}}
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    scope = {
        "type": "http", "method": "POST", "path": "/place", "headers": headers,
        "client": ("127.0.0.1", 1), "extensions": told,
    }  # fmt: skip

    async def receive():
        return {"type": "http.request", "body": to_json({"rows": rows(2000).tolist()})}

    async def send(message):
        sent.append(message)
        if message.get("body") == b"":
            await asyncio.Event().wait()

    asyncio.run(gate(scope, receive, send))
    assert [message.get("more_body") for message in sent] == [None, True, None]
    assert hung_up == [1] and not gate.transfers.moving and gate.transfers.n_bytes == 0
    assert gate.under_way == 0 and service.placing.admission.inside == 0
    service.end()


BODY = b'{"rows": [[1, 2, 3]]}'
HEAD = b"POST /place HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: "
WHOLE = HEAD + b"21\r\n\r\n" + BODY


def test_only_whole_plain_requests_are_refused_unparsed(tmp_path):
    service = made(tmp_path)
    early = EarlyRefusal(service)
    assert early.answer(WHOLE) is None
    service.placing.admission.limit = 0
    answer = early.answer(WHOLE)
    assert answer.startswith(b"HTTP/1.1 429 ") and b"\r\nretry-after: 1\r\n" in answer
    head, _, body = answer.partition(b"\r\n\r\n")
    assert f"content-length: {len(body)}".encode() in head and b"nosniff" in head
    for other in (
        WHOLE[:-1], WHOLE + b"x", WHOLE[:40], b"GET /model HTTP/1.1\r\n\r\n",
        HEAD + b"x\r\n\r\n", WHOLE.replace(b"1.1", b"1.0"),
        WHOLE.replace(b"Host: 127.0.0.1", b"Connection: close"),
        WHOLE.replace(b"Content-Length: 21", b"Transfer-Encoding: chunked"),
    ):  # fmt: skip
        assert early.answer(other) is None
    assert 'requests_total{path="/place",status="429"} 1' in service.metrics.text()
    service.end()


def test_pieces_are_what_the_whole_is():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 14))
    for told in (
        {"rows": X.tolist()},
        {"columns": [f'"rows": [[{at}]]' for at in range(14)], "rows": X.tolist()},
        {"rows": X.tolist(), "columns": ["]],[["] * 14},
        {"rows": np.arange(30_000).reshape(-1, 1).tolist()},
    ):
        for body in (to_json(told), repr(told).replace("'", '"').encode()):
            try:
                expected, columns = rows_of_json(body)
            except Refusal:  # names with quotes are no JSON that way
                continue
            found, rest = in_pieces(body, 10**6)
            np.testing.assert_array_equal(found, expected)
            assert rest.get("columns") == columns
    p = X[:, 0].copy()
    answer = {"first_id": 7, "n_rows": 3000, "coordinates": X, "p_value": p, "accepted": p > 0}
    assert many_to_json(answer) == to_json(answer)


FAULTS = {
    b'[1, "2"]': "row 2500, column 1 is a text",
    b"[1, null]": "row 2500, column 1 is null",
    b"[1, NaN]": "row 2500, column 1 is nan",
    b"[1, 2, 3]": "row 2500 has 3 numbers",
    b"[1, 2": "no JSON",
    b"": "comma",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_in_a_piece_are_told_by_their_row(fault):
    rows = b", ".join([b"[0.1234567890123, 0.1234567890123]"] * 2500)
    body = b'{"rows": [' + rows + b", " + fault + b"]}"
    try:
        found = in_pieces(body, 10**6)
    except Refusal as refused:
        said = refused.reason
    else:
        assert found is None
        with pytest.raises(Refusal) as whole:
            rows_of_json(body)
        said = whole.value.reason
    assert FAULTS[fault] in said


def test_too_many_rows_are_refused_when_they_are_met():
    body = to_json({"rows": np.zeros((20_000, 3)).tolist()})
    with pytest.raises(Refusal, match="at most 5000 rows"):
        in_pieces(body, 5000)
    assert in_pieces(b'{"rows": 3}', 10) is None
    assert in_pieces(b'{"rows": [[1]], "rows": [[2]]}', 10) is None
    with pytest.raises(Refusal, match="no comma after row 0"):
        in_pieces(b'{"rows": [' + b"[1" + b" " * 40_000 + b"] [2]]}", 10)
