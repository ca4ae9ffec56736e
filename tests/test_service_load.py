"""A service under load, for minutes: no errors below its capacity, refusals above, then recovery.

Bounded in number and time, and only on this machine. ``LOAD_SECONDS`` sets the length of each
part. The times are printed; what is asserted does not depend on them.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from pathlib import Path

import httpx
import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the service needs outsample[serve]")

from outsample import NoveltyDetector, PCAExtension, save
from outsample.service.json_rows import to_json
from test_service_process import Process, request

SECONDS = float(os.environ.get("LOAD_SECONDS", "30"))
N, D = 10_000, 14
ROW = np.random.default_rng(1).normal(size=(1, D))
BODY = request(to_json({"rows": ROW.tolist()}))
CLIENTS = 100


class Load:
    """Requests at a rate, over a bounded number of connections; their times by status."""

    def __init__(self, port):
        self.port, self.free = port, []
        self.times, self.errors = {}, Counter()

    async def one(self, due):
        if not self.free:
            self.errors["no connection is free"] += 1
            return
        reader, writer = self.free.pop()
        try:
            head = await self.answered(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):  # it was idle too long, and closed
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            head = await self.answered(reader, writer)
        self.free.append((reader, writer))
        self.times.setdefault(int(head.split()[1]), []).append(time.perf_counter() - due)

    async def answered(self, reader, writer):
        writer.write(BODY)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        await reader.readexactly(length)
        return head

    async def at_rate(self, rate, seconds):
        opened = [asyncio.open_connection("127.0.0.1", self.port) for _ in range(CLIENTS)]
        self.free = await asyncio.gather(*opened)
        begin, tasks = time.perf_counter(), []
        for number in range(int(rate * seconds)):
            due = begin + number / rate
            if due > (now := time.perf_counter()):
                await asyncio.sleep(due - now)
            tasks.append(asyncio.create_task(self.one(time.perf_counter())))
        await asyncio.gather(*tasks)
        for _, writer in self.free:
            writer.close()
        return self

    def told(self, name):
        for status, times in sorted(self.times.items()):
            p50, p99 = np.quantile(times, [0.5, 0.99]) * 1e3
            print(f"{name}: {len(times)} x {status}, p50 {p50:.1f} ms, p99 {p99:.1f} ms")
        print(f"{name}: {dict(self.errors)}")


def fitted():
    """A detector with a map of 10,000 points."""
    X = np.random.default_rng(0).normal(size=(N, D))
    plain = PCAExtension(n_neighbors=15, weighting="distance", order=0, loss="squared")
    return NoveltyDetector(plain).fit(X, X[:, :2])


def load_model(folder):
    save(fitted(), folder / "model.outsample")
    return folder / "model.outsample"


def median_ms(act, times=400):
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        act()
        found.append(time.perf_counter() - begin)
    return 1e3 * float(np.median(found))


def resident(process):
    text = Path(f"/proc/{process.pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


def capacity(service):
    """Requests a second that are answered when a few clients ask without a pause."""
    load = Load(service.port)

    async def asking():
        load.free = [await asyncio.open_connection("127.0.0.1", service.port) for _ in range(16)]

        async def client():
            for _ in range(60):
                await load.one(time.perf_counter())

        begin = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(16)))
        return 16 * 60 / (time.perf_counter() - begin)

    asyncio.run(asking())
    return asyncio.run(asking())


@pytest.mark.long
def test_load_below_and_far_above_capacity(tmp_path):
    service = Process(load_model(tmp_path), "--no-learn")
    most = capacity(service)
    print(f"\ncapacity {most:.0f} requests a second")
    below = asyncio.run(Load(service.port).at_rate(0.8 * most, SECONDS / 2))
    before = resident(service.process)
    below = asyncio.run(Load(service.port).at_rate(0.8 * most, SECONDS))
    after = resident(service.process)
    below.told("80 %")
    print(f"memory {before:.0f} MB, then {after:.0f} MB")
    assert set(below.times) <= {200, 429, 503}
    above = asyncio.run(Load(service.port).at_rate(3 * most, min(SECONDS, 20)))
    above.told("300 %")
    assert set(above.times) <= {200, 429, 503} and 200 in above.times
    recovered = asyncio.run(Load(service.port).at_rate(0.3 * most, 2))
    recovered.told("after")
    assert service.place(ROW).status_code == 200
    assert service.end() in (0, -15)


@pytest.mark.long
def test_one_row_and_many_rows_beside_the_library(tmp_path):
    """What the service adds to one row, and its share of the library's rows a second."""
    detector, many = fitted(), np.random.default_rng(2).normal(size=(10_000, D))
    save(detector, tmp_path / "model.outsample")
    service = Process(tmp_path / "model.outsample", "--no-learn")
    with httpx.Client() as client:
        body = {"content": to_json({"rows": ROW.tolist()})}
        kind = {"headers": {"Content-Type": "application/json"}}
        inside = median_ms(lambda: detector.place(ROW))
        outside = median_ms(lambda: client.post(f"{service.url}/place", **body, **kind))
        print(f"\none row: in process {inside:.2f} ms, by httpx {outside:.2f} ms")
        with service.connect() as plain:
            outside = median_ms(lambda: (plain.sendall(BODY), plain.recv(2**16)))
        print(f"through a plain socket {outside:.2f} ms")
        stream = {"Content-Type": "application/vnd.apache.arrow.stream"}
        sent = {"content": arrow_body(many), "headers": stream}
        inside = median_ms(lambda: detector.place(many), 7)
        outside = median_ms(lambda: client.post(f"{service.url}/place", **sent, timeout=60), 7)
        print(f"10,000 rows by Arrow: {inside:.0f} ms, {outside:.0f} ms: {inside / outside:.2f}")
    assert service.end() in (0, -15)


def arrow_body(X):
    import pyarrow as pa

    batch = pa.record_batch({str(at): X[:, at] for at in range(D)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()
