"""A service under load, for minutes: no errors below its capacity, refusals above, then recovery.

Bounded in number and time, and only on this machine. ``LOAD_SECONDS`` sets the length of each
part. The times are printed, and `outsample bench service` has them; what is asserted does not
depend on them.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the service needs outsample[serve]")

from outsample import save
from outsample_lab.serving import measures
from outsample_lab.serving.service_process import ServiceProcess
from outsample_lab.serving.unruly_clients import UnrulyClients

SECONDS = float(os.environ.get("LOAD_SECONDS", "30"))
ROW = np.random.default_rng(1).normal(size=(1, 14))


@pytest.mark.long
def test_load_below_and_far_above_capacity_and_among_unruly_clients(tmp_path):
    model = measures.fitted(measures.FULL)
    save(model, tmp_path / "model.outsample")
    with ServiceProcess(tmp_path / "model.outsample", "--no-learn") as service:
        ground = measures.Ground(service, model, ROW, ROW)
        most = measures.capacity(ground, 2.0)
        print(f"\ncapacity {most:.0f} requests a second")
        for name, share in (("80 %", 0.8), ("300 %", 3.0), ("30 %", 0.3)):
            outcome = ground.load.at_rate(share * most, SECONDS if share == 0.8 else 5.0)
            print(measures.load_row(name, share * most, outcome, service.megabytes))
            assert set(outcome.status) <= {200, 429, 503} and outcome.count(200)
            assert not outcome.faults
        with UnrulyClients(service.port, 60.0, 14):
            outcome = ground.load.at_rate(0.3 * most, 10.0)
        print(measures.load_row("unruly", 0.3 * most, outcome, service.megabytes))
        assert set(outcome.status) <= {200, 429, 503} and not outcome.faults
        assert ground.load.at_rate(10, 1.0).count(200) == 10
