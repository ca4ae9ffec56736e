"""`outsample reproduce`: every experiment in small, and the files it writes."""

import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from outsample import cli
from outsample_lab.environment import data_folder
from outsample_lab.json_records import plain, restored
from outsample_lab.methods import WEIGHTINGS
from outsample_lab.paper import (
    complexity,
    extension_curve,
    reproduction,
    sphere_orders,
    traffic_day,
)
from outsample_lab.paper import sphere_table as sphere
from outsample_lab.paper.reproduction import Size, draw_again, run_reproduction
from outsample_lab.paper.reproduction_summary import summary_tables

TINY = Size(
    name="tiny",
    table_grids=(10, 30),
    grids=(10, 16, 24),
    n_new=20,
    n_seeds=2,
    n_map_points=150,
    curve_sizes=(40, 100),
    n_hidden=20,
    n_repeats=2,
    n_minutes=520,
    scales=complexity.Scales((100, 200), (5, 10), (1, 3), (2, 5), n_queries=20, repeats=1),
)


@pytest.fixture(scope="module")
def reports():
    """Return the list that receives the progress reports of `whole`."""
    return []


@pytest.fixture(scope="module")
def whole(tmp_path_factory, reports):
    """Everything in small, on simulated traffic."""
    folder = tmp_path_factory.mktemp("reproduction")
    return run_reproduction(folder, size=TINY, progress=lambda *step: reports.append(step))


def numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, float):
        yield value


def without_times(value):
    """Return results without measured times."""
    if isinstance(value, dict):
        clock = {"seconds", "exponent"}
        return {key: without_times(item) for key, item in value.items() if key not in clock}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def test_both_files_are_written_and_the_numbers_are_finite(whole):
    names = [path.name for path in whole.files]
    assert names == ["results.json", "report.html"] and all(p.is_file() for p in whole.files)
    read = json.loads(whole.files[0].read_text())
    assert read == plain(whole.results)
    values = list(numbers(read))
    assert len(values) > 10_000 and all(math.isfinite(number) for number in values)


def test_the_paper_s_numbers_stand_beside_ours(whole):
    table = whole.results.sphere.table
    rows = {row.method: row.paper for row in table if row.n_points == 900}
    assert whole.results.sphere.met[1] == 3
    for method in WEIGHTINGS:
        assert rows[method] == sphere.PAPER[method, 900]
    assert rows["order 2"] is None
    m = whole.results.traffic_day.trials[0].scores[0]
    assert (m.paper_labelled, m.paper_mean) == (2.72e-7, 6.21e-10)
    assert m.paper_ratio == pytest.approx(438, abs=0.1)
    papers = [growth.paper_exponent for growth in whole.results.complexity.growths]
    assert papers.count(2.0) == 4


def test_progress_goes_from_none_to_all_and_never_back(whole, reports):
    shares = [share for share, _ in reports]
    assert shares[0] == 0 and shares[-1] == 1 and shares == sorted(shares)


def test_simulated_traffic_is_called_so(whole):
    data = whole.results.data
    assert data.simulated and "imulated" in data.notice
    assert data.map_day.startswith("simulated") and data.new_day.startswith("simulated")
    assert "not public" in data.not_public
    titles = [title for title, _ in summary_tables(whole.results)]
    assert ["simulated" in title for title in titles] == [False, True, True, True, True]


def test_slopes_are_those_of_the_order():
    result = sphere_orders.convergence((16, 24, 36), n_new=100, n_seeds=2)
    for curve in result.orders:
        # Never slower than claimed; a constant gains a little from neighbours on all sides.
        assert curve.claimed - 0.15 < curve.slope < curve.claimed + 0.5
        assert curve.held == 1.0  # K is known here, so certificates are guarantees
        assert (curve.largest < curve.certificate * 10).all()
    assert (result.orders[0].largest <= result.corrected).all()
    assert result.corrected * 3 == pytest.approx(result.theorem)


def test_the_figure_places_every_method_of_the_paper():
    drawn = sphere_orders.figure(n_per_axis=12, n_new=15)
    colors = {placement.method: placement.color for placement in drawn.placements}
    assert [colors[name] for name in WEIGHTINGS] == ["yellow", "red", "black"]
    assert colors["order 2"] is None
    for placement in drawn.placements:
        assert placement.placed.shape == drawn.truth.shape == (15, 3)
        assert (placement.errors <= placement.bound * (1 + 1e-9)).all()


def line(n=90):
    """A map that every method can extend: a bent line."""
    t = np.linspace(0, 1, n)
    return extension_curve.TrafficMap(np.column_stack([t, t**2]), np.column_stack([t, np.sin(t)]))


def test_curves_name_the_lowest_and_where_the_defaults_are_not():
    result = extension_curve.run(line(), (30, 60), n_repeats=2, n_hidden=10, n_workers=2)
    for at, winner in enumerate(result.winners):
        assert winner.error == min(curve.errors[at] for curve in result.curves)
        short = [shortfall for shortfall in result.auto_not_lowest if shortfall.size == winner.size]
        assert bool(short) == (winner.method != extension_curve.AUTO)
        assert all(shortfall.auto >= shortfall.error for shortfall in short)
    assert sum(result.chosen[0].values()) == 2
    assert [c.method for c in result.curves if c.in_paper] == list(extension_curve.IN_PAPER)


def test_workers_change_nothing():
    single, parallel = (
        extension_curve.run(line(), (30,), n_repeats=3, n_hidden=10, n_workers=n) for n in (1, 2)
    )
    for mine, other in zip(single.curves, parallel.curves, strict=True):
        assert np.array_equal(mine.errors, other.errors)


def test_a_shortfall_counts_the_repetitions_that_were_won():
    winners = [extension_curve.Winner(10, "mse", 1.0)]
    errors = np.array([[[2.0, 1.0]], [[0.5, 1.0]], [[3.0, 1.0]]])
    (short,) = extension_curve._shortfalls(winners, ["auto", "mse"], errors)
    assert short.wins == 1 and short.method == "mse"


def test_loud_minutes_stand_out_in_the_second_reading(whole):
    trial = whole.results.traffic_day.trials[1]
    scores = {score.name: score for score in trial.scores}
    assert {"pod:", "portsweep:", "teardrop:"} == {
        minute.attack.rstrip("0123456789") for minute in scores["dispersion"].labelled
    }
    assert scores["dispersion"].auc_loud > 0.9 and scores["abnormality"].auc_loud > 0.8
    assert scores["dispersion"].best_ratio > 2
    assert scores["p_value"].best_ratio is None
    assert len(scores["residual"].values) == len(trial.times) == len(trial.pca)


def test_an_area_needs_both_kinds():
    scores = np.array([1.0, 2.0, 3.0])
    assert traffic_day._area(np.array([False, False, True]), scores) == 1.0
    assert traffic_day._area(np.zeros(3, dtype=bool), scores) is None


def test_the_trial_of_the_paper_learns_the_attacks_too(whole):
    new, same, everything = whole.results.traffic_day.trials
    assert new.trained_on.endswith("normal minutes") and same.day != new.day
    assert everything.trained_on.endswith("all minutes")
    assert everything.n_training == TINY.n_minutes > new.n_training


def test_cost_is_reported_for_every_parameter(whole):
    growths = whole.results.complexity.growths
    steps = {(growth.step, growth.letter) for growth in growths}
    assert steps == {(s, letter) for s in ("fit", "place", "search") for letter in "nkdD"}
    assert all(len(g.seconds) == len(g.values) and min(g.seconds) > 0 for g in growths)
    placing = whole.results.complexity.placing
    assert placing.setting["D"] == 14 and min(placing.seconds.values()) > 0


def test_plain_values_round_and_drop_what_json_cannot_say():
    record = complexity.Scales(n=(1,))
    assert plain(record)["n"] == [1]
    assert plain({1: np.float32(0.5), "b": math.nan}) == {"1": 0.5, "b": None}
    assert plain(np.bool_(True)) is True


def test_the_command_shows_a_summary_and_finds_the_same_numbers_again(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(reproduction, "QUICK", TINY)
    monkeypatch.setattr(reproduction, "write_report", lambda *_: "no page")
    monkeypatch.setenv("OUTSAMPLE_DATA", str(tmp_path))
    result = CliRunner().invoke(cli.main, ["reproduce", "--quick", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    for words in ("Table 7.1", "Fig. 7.3", "Fig. 7.6", "Simulated", "results.json"):
        assert words in result.output
    again = json.loads((tmp_path / "out" / "results.json").read_text())
    assert without_times(again) == without_times(plain(whole.results))


def test_a_page_is_drawn_again_from_its_file_of_results_alone(whole, tmp_path, monkeypatch):
    file, page = whole.files
    monkeypatch.setattr(reproduction, "_run", None)  # nothing is computed
    out = tmp_path / "command"
    result = CliRunner().invoke(cli.main, ["reproduce", "--from", str(file), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "Table 7.1" in result.output and "Simulated" in result.output
    assert (out / "report.html").read_bytes() == page.read_bytes()
    monkeypatch.setattr(reproduction, "write_report", lambda *_: page)
    again = draw_again(file, tmp_path / "again")
    assert again.files == [page] and plain(again.results) == json.loads(file.read_text())


def damage(payload, *path, value):
    """Return the text of results with one value changed."""
    payload = json.loads(json.dumps(payload))
    inner = payload
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return json.dumps(payload)


def test_a_damaged_or_foreign_file_is_rejected_in_one_line(whole, tmp_path):
    payload, file = plain(whole.results), tmp_path / "results.json"
    lost = {key: value for key, value in payload.items() if key != "sphere"}
    texts = {
        json.dumps(payload)[:5000]: "Unterminated|Expecting",
        "[1, 2]": "expected dict, got list",
        '{"maps": [], "seconds": 1.0}': "missing or unknown in Results: complexity, data",
        json.dumps(lost): "missing or unknown in Results: sphere",
        damage(payload, "size", value=3): "Results.size: expected str, got int",
        damage(payload, "sphere", "met", value=[1]): "Results.sphere: SphereOrders.met: ",
        damage(payload, "complexity", "growths", 0, "seconds", value=["a"]): "Growth.seconds: ",
        damage(payload, "sphere", "table", 0, "error", value="0.1"): "expected number, got str",
        damage(payload, "versions", value="none"): "Results.versions: expected dict, got str",
        damage(payload, "extension_curve", "sizes", value="123"): "sizes: expected list, got str",
    }
    for text, fault in texts.items():
        file.write_text(text)
        with pytest.raises(ValueError, match=f"json does not hold the results.*{fault}") as raised:
            draw_again(file, tmp_path / "out")
        assert "\n" not in str(raised.value)
    file.write_bytes(b"\x89PNG\r\n\xff")
    result = CliRunner().invoke(cli.main, ["reproduce", "--from", str(file)])
    assert result.exit_code == 3 and "does not hold the results expected" in result.output
    assert not (tmp_path / "out").exists()


class Kept(NamedTuple):
    """One field of each kind."""

    name: str
    share: float
    flags: NDArray[np.bool_]
    rows: NDArray[np.float64]
    pair: tuple[int, str]
    grids: Sequence[int]
    maybe: float | None
    inner: "list[Kept]"
    many: tuple[float, ...] = ()
    free: Any = None


def test_records_are_restored():
    leaf = Kept("a", math.inf, np.array([True]), np.eye(2), (1, "x"), (3, 4), None, [])
    record = leaf._replace(inner=[leaf], maybe=0.5, many=(1.0, 2.0), free={"b": [1]})
    back = restored(Kept, json.loads(json.dumps(plain(record))))
    assert plain(back) == plain(record)
    assert back.flags.dtype == np.bool_ and back.rows.shape == (2, 2) and math.isnan(back.share)
    assert (back.pair, back.grids, back.maybe) == ((1, "x"), [3, 4], 0.5)
    assert back.many == (1.0, 2.0) and back.free == {"b": [1]} and back.inner[0].maybe is None
    payload = plain(leaf) | {"rows": [[1.0, None]]}
    del payload["many"], payload["free"]  # they have defaults
    back = restored(Kept, payload)
    assert back.many == () and np.isnan(back.rows[0, 1])


def test_a_folder_that_cannot_be_written_fails_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        run_reproduction(tmp_path / "file", size=TINY)


def test_features_from_real_connections_agree_with_the_ready_table():
    folder = data_folder()
    if folder is None or not (folder / "darpa98" / "connections_minute.csv.gz").is_file():
        pytest.skip("needs darpa98/connections_minute.csv.gz; set OUTSAMPLE_DATA")
    source = traffic_day.load_days(folder)
    assert source.features.built_from == "connections" and source.features.labels_agree
    assert source.features.max_difference < 1e-4  # entropies are written with six digits
    assert source.day.X.shape == (1320, 14) and not source.day.simulated
