"""`outsample bench stream`: who watches days of traffic, how they are judged, what is written."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

from outsample.cli import main
from outsample_lab.stream import learners as watching
from outsample_lab.stream.arriving_days import arrivals, episodes
from outsample_lab.stream.learners import Entry, Judged, learners
from outsample_lab.stream.replaying import average_precision, chance, daily, replayed
from outsample_lab.stream.stream_bench import STREAM, restored_run, run_record, run_stream
from outsample_lab.stream.stream_result import DayResult, LearnerRow


class Seer:
    """Knows the minutes of attacks: those with most connections."""

    def start(self, X):
        self.level = np.quantile(X[:, 0], 0.999)

    def arrive(self, X):
        return Judged(np.where(X[:, 0] > self.level, 0.001, 0.5), X[:, 0])

    def night(self):
        return False


def test_a_learner_is_measured_by_its_scores_at_the_time():
    arriving, batches = arrivals(None), []
    row = replayed(Entry("seer", "peer", Seer, ""), arriving, batches.append)
    assert batches == ["simulated-2", "simulated-3"]
    loud = episodes(arriving.traffic)
    assert len(row.delays) == len([episode for episode in loud if episode.day != arriving.days[0]])
    assert all(day.n_normal == (~arriving.traffic.day(day.day).is_attack).sum() for day in row.days)
    assert row.loud_precision > row.precision


def test_rankings_are_of_the_days_before_and_chance_is_the_share_of_attacks():
    arriving = arrivals(None)
    row = replayed(Entry("seer", "peer", Seer, ""), arriving, lambda day: None)
    later = arriving.traffic.rows(~arriving.first)
    result = chance(arriving)
    assert result.precision == later.is_attack.mean() > result.loud_precision > 0
    shares = [later.day(day).is_attack.mean() for day in arriving.days[1:]]
    assert result.daily_precision == pytest.approx(np.mean(shares))
    scores = arriving.X[~arriving.first][:, 0]
    assert row.score_precision == average_precision(later.is_attack, scores)
    assert row.loud_score_precision > row.score_precision > result.precision
    days, wanted = np.array(["a", "a", "b", "b", "c"]), np.array([1, 0, 1, 0, 0], bool)
    assert daily(average_precision, days, wanted, np.array([2.0, 1, 1, 2, 9])) == 0.75
    assert math.isnan(daily(average_precision, days, ~wanted & wanted, np.zeros(5)))


def test_delays_and_rates_of_a_row():
    days = [
        DayResult("1998-06-02", 100, 1, (0.0, math.nan), False),
        DayResult("1998-07-24", 100, 90, (), False),  # where one attack covers all: not summed up
    ]
    row = LearnerRow("x", "ours", "", days, 0.5, 0.5, 1.0)
    assert row.median_rate == 0.01 and row.at_once == 0.5 and len(row.delays) == 2
    assert row.worst is None
    week = [days[0]._replace(day=f"1998-06-{at:02d}") for at in range(10, 15)]
    later = [days[0]._replace(day="1998-06-15", false_alarms=9, drifted=True),
             days[0]._replace(day="1998-06-16", false_alarms=3)]  # fmt: skip
    assert row._replace(days=[*week, *later]).worst == later[0]
    assert math.isnan(average_precision(np.zeros(3, bool), np.arange(3.0)))


def test_every_learner_finds_what_is_far_out_and_learns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    entries, missing = learners()
    assert entries[0].name == watching.METHOD
    assert len(entries) + len(missing) == 6
    for entry in entries:
        learner = entry.build()
        learner.start(X)
        judged = learner.arrive(np.vstack([rng.normal(size=(20, 4)), np.full((1, 4), 30.0)]))
        assert judged.p_values[-1] == judged.p_values.min() <= 0.05, entry.name
        assert judged.scores[-1] == judged.scores.max(), entry.name
        assert not learner.night()
        assert np.isfinite(learner.arrive(X[:3]).scores).all()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("stream")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "outsample_lab.stream.stream_bench.learners",
            lambda: ([Entry("StreamingExtension", "ours", Seer, "sees"),
                      Entry("other", "peer", Seer, "")], ["river is not there"]),
        )  # fmt: skip
        shown = []
        benchmark = run_stream(out, show=lambda *titled: shown.append(titled))
    assert len(shown) == 2
    return out, benchmark


def test_results_go_to_json_and_back_and_are_drawn_again(run, tmp_path):
    out, benchmark = run
    record = json.loads((out / "stream.json").read_text())
    assert record["rows"][0]["episodes"] == len(restored_run(record).rows[0].delays)
    assert run_record(restored_run(record)) == record
    again = STREAM.draw_again(tmp_path, out / "stream.json")
    assert [table for _, table in again.tables] == [table for _, table in benchmark.tables]
    for name in ("stream.html", "stream.png"):
        assert (tmp_path / name).read_bytes() == (out / name).read_bytes()
    page = (out / "stream.html").read_text()
    assert "river is not there" in page and "StreamingExtension" in page


def test_the_command_draws_again_and_rejects_other_results(run, tmp_path):
    out, _ = run
    call = CliRunner().invoke
    result = call(main, ["bench", "stream", "--from", f"{out}/stream.json", "--out", f"{tmp_path}"])
    assert result.exit_code == 0, result.output
    (tmp_path / "odd.json").write_text("{}")
    options = ["bench", "stream", "--from", f"{tmp_path}/odd.json", "--out", f"{tmp_path}"]
    result = call(main, options)
    assert result.exit_code == 3
