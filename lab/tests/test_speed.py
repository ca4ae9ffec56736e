"""The speed benchmark: tiny sizes, stand-ins for what may not be there; nothing is timed here."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

from outsample.cli import main
from outsample.plots import canvas
from outsample_lab.plots.targets import target_chart
from outsample_lab.power_law import late_slope
from outsample_lab.speed import (
    approximate_search,
    errands,
    exact_search,
    fits,
    made_up,
    many_machines,
    more_points,
    other_transforms,
    parts,
    sizes,
    speed_bench,
    speed_page,
    stopwatch,
    sweep,
)
from outsample_lab.speed.made_up import TRAFFIC, Cloud, Shape
from outsample_lab.speed.sizes import Ground, Sizes
from outsample_lab.speed.speed_result import PartResult, SpeedRun, Target, Timing

TINY = Sizes(
    repeats=2, budget=0.0, batch=20, exact=200, sweep=(60, 120), single=100, single_rows=5,
    peers=80, peer_rows=10, spectral=80, approximate=(100, 200), fit=150, umap_fits=(60,),
    growth=80, k=(5, 8), d=(1, 2), novelty=150, wide=(60, 60), map_columns=(2, 3),
    columns=(5, 9), errors=(60, 120), held_out=20, stream=(40, 80), stream_chunk=20,
    many=40, cold=60, umap=False,
)  # fmt: skip
GROUND = Ground(TINY, None, lambda share, what: None)
SHORT = ("exact", "row", "approximate")


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(sizes, "QUICK", TINY)
    monkeypatch.setattr(speed_bench, "_load", lambda: 0.0)
    monkeypatch.setattr(many_machines, "TRAINING", 60)


@pytest.fixture
def here(monkeypatch):
    """Run errands in this process."""

    def done(errand, **options):
        return json.loads(json.dumps(errands.ERRANDS[errand](**options)))

    for module in (sweep, more_points, many_machines):
        monkeypatch.setattr(module, "in_fresh_process", done)


def invoke(*words, code=0):
    result = CliRunner().invoke(main, ["bench", "speed", *map(str, words)])
    assert result.exit_code == code, result.output
    return result


def named(*names):
    return [word for name in names for word in ("--parts", name)]


def test_the_command_from_end_to_end(tmp_path, monkeypatch):
    folder = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(approximate_search, "why_unavailable", lambda: "there is none")
        patch.setattr(speed_bench, "_load", lambda: 3.0)
        result = invoke("--quick", "--data", tmp_path, "--out", folder, *named(*SHORT))
    record = json.loads((folder / "speed.json").read_text())
    assert [part["name"] for part in record["parts"]] == ["exact", "approximate", "row"]
    exact, near, row = record["parts"]
    assert len(exact["targets"]) == 7 and all(target["found"] > 0 for target in exact["targets"])
    assert {target["repeats"] for target in exact["timings"]} <= {1, 2}
    assert any("MNIST was skipped: no file" in words for words in exact["words"])
    assert near["skipped"] == "there is none" and len(near["targets"]) == 7
    assert not any(target["met"] for target in near["targets"])
    assert row["timings"][0]["p99"] >= row["timings"][0]["seconds"]
    assert record["quick"] and record["versions"]["scikit-learn"] and record["load"] == 3.0
    assert "/" not in json.dumps(record["versions"])
    assert result.stdout.startswith("Warning: The machine was not idle when it began: load 3.00")
    assert "Skipped: there is none." in result.stdout and "Targets" in result.stdout
    assert result.stderr.splitlines()[-1].startswith("[100%] done")
    html = (folder / "speed.html").read_text()
    assert "A quick run with small sizes" in html and "not measured here" in html
    # From the file of results alone, and with nothing measured: the same page and picture.
    monkeypatch.setattr(parts, "PARTS", ())
    again = invoke("--from", folder / "speed.json", "--out", folder / "again")
    for name in ("speed.html", "speed.png"):
        assert (folder / "again" / name).read_bytes() == (folder / name).read_bytes()
    assert again.stdout.split("\n", 1)[1].rsplit("\n", 4)[0] in result.stdout
    assert speed_bench.run_record(speed_bench.restored_run(record)) == record


def test_unknown_parts_are_bad_use_and_other_files_bad_data(tmp_path):
    result = invoke("--parts", "x", "--out", tmp_path, code=2)
    assert result.stderr.startswith("Error: there is no part 'x'; the parts are: exact, ")
    for text in ("{}", "[1]", "no JSON", '{"parts": [{"name": 3}]}'):
        (tmp_path / "x.json").write_text(text)
        result = invoke("--from", tmp_path / "x.json", "--out", tmp_path, code=3)
        assert "does not hold results of this benchmark" in result.stderr


def test_a_short_run_leaves_out_slow_parts_unless_they_are_named():
    assert len(parts.select([], quick=False)) == len(parts.PARTS)
    short = [part.name for part in parts.select([], quick=True)]
    assert "exact" in short and "errors" not in short
    assert [part.name for part in parts.select(["err"], quick=True)] == ["errors"]


def test_a_part_that_fails_does_not_end_the_others(tmp_path, monkeypatch):
    def fails(ground):
        raise RuntimeError("no\nluck")

    listed = (parts.Part("bad", "Bad", fails, 1), parts.Part("row", "One row", sweep.one_row, 1))
    monkeypatch.setattr(parts, "PARTS", listed)
    monkeypatch.setattr(canvas, "find_spec", lambda name: None)
    result = invoke("--quick", "--out", tmp_path)
    assert "Bad (bad, 0 s): failed, RuntimeError: no luck" in result.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["speed.html", "speed.json"]
    assert "Skipped: failed, RuntimeError: no luck." in (tmp_path / "speed.html").read_text()


@pytest.mark.parametrize("name", ["regressors", "fits", "novelty", "sizes", "growth", "wide"])
def test_parts_that_need_nothing_else(name):
    (part,) = parts.select([name], quick=False)
    result = part.run(GROUND)
    assert (result.name, result.title) == (part.name, part.title) and not result.skipped
    assert all(part.found > 0 and not part.skipped for part in result.targets)
    assert all(part.seconds > 0 for part in result.timings)
    assert all(len(curve.sizes) == len(curve.figures) > 0 for curve in result.curves)
    run = SpeedRun("", False, 2, 0.0, {}, 1.0, [result])
    assert speed_page.speed_page(run, None).count("<img ") == len(
        {curve.chart for curve in result.curves}
    )


def test_memory_and_cold_starts(here):
    memory, cold = sweep.peak_memory(GROUND), many_machines.cold_start(GROUND)
    assert len(memory.curves) == 4 and all(len(curve.sizes) == 2 for curve in memory.curves)
    steps = [timing.work for timing in cold.timings]
    assert steps == ["import", "load", "first row", "import, load and first row", "first fit",
                     "second fit"]  # fmt: skip


def test_more_points_without_data(here):
    result = more_points.more_points(GROUND)
    assert "synthetic, because there is no file" in result.words[0]
    assert [target.unit for target in result.targets] == ["times", "times", "s", "MB", "times"]
    assert len(result.curves) == 6 and all(target.found >= 0 for target in result.targets)
    errors = {1000: 0.3, 2000: 0.2, 4000: 0.25}
    assert more_points._largest_step(errors, [1000, 2000, 4000]) == pytest.approx(1.25)


def test_an_errand_runs_in_its_own_process():
    result = errands.in_fresh_process(
        "fit_and_place", who="KNeighborsRegressor", shape=[4, 1, 2], n=20_000, rows=5
    )
    assert 0 <= result["peak"] < 500
    with pytest.raises(RuntimeError, match="no_such failed in its own process: KeyError"):
        errands.in_fresh_process("no_such")


def test_peak_memory_is_of_the_block():
    with errands.PeakMemory() as memory:
        kept = np.ones(8_000_000)
    assert 40 < memory.extra < 500 and kept[0]


def test_missing_libraries_are_skipped_and_reported(monkeypatch):
    for module in (other_transforms, fits, many_machines):
        monkeypatch.setattr(
            module, "absent", lambda *names: "" if "sklearn" in names else f"no {names[0]}"
        )
    result = other_transforms.transforms(GROUND)
    assert [target.skipped for target in result.targets] == ["no umap", "no openTSNE"]
    assert "UMAP.transform was skipped: no umap." in result.words
    assert len(result.timings) == 4  # Isomap and LLE come with scikit-learn
    (target,) = fits.default_fits(GROUND).targets
    assert target.skipped == "no umap" and not target.met
    (target,) = many_machines.by_dask(GROUND).targets
    assert target.skipped and target.at_least and target.asked == 1.7
    assert sizes.absent("numpy") == "" and sizes.absent("faiss_none", "numpy") == (
        "faiss_none is not installed"
    )


def test_approximate_search_with_a_stand_in(monkeypatch):
    """Exact search in its place finds everything, at the same places."""
    monkeypatch.setattr(
        approximate_search, "_fitted", lambda data: exact_search.fitted("distance", data)
    )
    result = approximate_search.approximate(GROUND)
    targets_by_work = {target.work: target for target in result.targets}
    assert targets_by_work["approximate, D = 14: recall"].found == 1.0
    assert targets_by_work["approximate, D = 50: error over exact"].found == 1.0
    assert math.isfinite(result.targets[-1].found) and result.targets[-1].unit == "exponent"


def test_targets_are_reached_from_their_side():
    assert Target("", 2.0, 2.0).met and not Target("", 2.0, 2.1).met
    assert Target("", 1.7, 1.8, at_least=True).met and not Target("", 1.7, 1.6, at_least=True).met
    assert not Target("", 1.7, skipped="gone").met and not Target("", 1.0, 0.0, at_least=True).met
    table = speed_page.target_table(
        [Target("a", 2.0, 2.5, 2.4, 2.6), Target("b", 300.0, unit="MB", skipped="gone")]
    )
    assert table.rows[0] == ["a", "≤ 2", "2.50", "no", "2.40–2.60"] and table.highlight == {0}
    assert table.rows[1] == ["b", "≤ 300 MB", "skipped", "–", ""]


def test_works_take_turns_after_one_that_is_not_counted():
    order = []
    works = {name: lambda name=name: order.append(name) for name in "ab"}
    times = stopwatch.take_turns("", works, 3, 60.0)
    assert "".join(order) == "abababab" and len(times.seconds["a"]) == 3
    order.clear()
    times = stopwatch.take_turns("", works, 3, 0.0, warm_up=False)
    assert "".join(order) == "ab" and math.isnan(times.target("", 1.0, "a", "b").low)


def test_made_up_points_have_their_dimension():
    data = made_up.cloud(Shape(9, 2, 3), 400, 50)
    assert data.X.shape == (400, 9) and data.truth.shape == (50, 2)
    assert data.error(data.truth) == 0.0
    same = made_up.cloud(TRAFFIC, 30, 3)
    assert (same.X == made_up.cloud(TRAFFIC, 30, 3).X).all()
    near = np.argsort(np.linalg.norm(data.X - data.X[0], axis=1))[:25]
    spread = np.linalg.svd(data.X[near] - data.X[near].mean(axis=0))[1]
    assert spread[3] < 0.35 * spread[2]  # flat beyond three
    torn = made_up.torn_map(data.X)
    assert torn.shape == (400, 2)
    assert isinstance(data, Cloud)


def test_exponents_are_of_the_larger_half():
    assert late_slope([1, 2, 4, 8], [9, 9, 16, 32]) == pytest.approx(1.0)
    assert late_slope([2, 4], [1, 4]) == pytest.approx(2.0)


def test_the_picture_shows_figures_beyond_its_edge():
    drawn = target_chart(["a" * 200, "b", "c"], [0.001, 1.0, 99.0], ["x", "y", "z"])
    assert drawn[:4] == b"\x89PNG" and drawn == target_chart(
        ["a" * 200, "b", "c"], [0.001, 1.0, 99.0], ["x", "y", "z"]
    )


def test_a_run_without_figures_to_reach_has_a_page():
    cold = PartResult("cold", "Cold", ["Words."], [], [Timing("x", "y", 1.0, 1.0, 1.0, 1)], [])
    run = SpeedRun("", False, 2, 0.9, {"outsample": "0"}, 1.0, [cold])
    assert speed_page.summary_tables(run) == [] and speed_page.target_picture(run) is None
    assert "1.00 s" in speed_page.speed_page(run, None)
    assert speed_page.part_report(cold)[1].header == ["Task", "Median", "Setting", "Repeats"]
