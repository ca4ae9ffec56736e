"""The traffic table: compared with a reference and the published table; the simulator."""

import csv
import gzip
import os
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from math import log2
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outsample_lab.traffic.days import log_features, simulate_traffic
from outsample_lab.traffic.features import FEATURES
from outsample_lab.traffic.loud import loud_by_any_attack, loud_by_flood_or_scan
from outsample_lab.traffic.recorded import COLUMNS, load_connections, load_minutes, load_traffic
from outsample_lab.traffic.simulator import SIMULATED_DAYS, simulated_connections

DATA = Path(os.environ.get("OUTSAMPLE_DATA") or Path(__file__).parents[3] / "shared" / "data")
READY = DATA / "darpa98" / "minutes14.csv.gz"
RAW = DATA / "darpa98" / "connections_minute.csv.gz"
needs_data = pytest.mark.skipif(
    not (READY.is_file() and RAW.is_file()), reason="the DARPA 1998 files are not here"
)
ENTROPIES = [FEATURES.index("src_entropy"), FEATURES.index("dst_entropy")]
COUNTS = [i for i in range(len(FEATURES)) if i not in ENTROPIES]

IN, OUT = "172.016.112.020", "192.168.001.010"
LINE = f"{IN},{OUT},06/01/1998-12:00,-\n"


def column(traffic, name):
    return traffic.X[:, FEATURES.index(name)]


def write(path, lines):
    path.write_text("".join(lines))
    return path


def write_minutes(path, traffic):
    """Write the ready table of some traffic."""
    with gzip.open(path, "wt", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for day, idx, time, x, attacks, n in zip(*traffic[:-1], strict=True):
            writer.writerow([day, idx, time, *x.tolist(), n, attacks])
    return path


# The reference: one minute at a time, directly from the definitions.


def entropy(counts):
    total = sum(counts.values())
    return -sum(n / total * log2(n / total) for n in counts.values())


def minute_features(connections):
    """The 14 features of the (source, destination, label) of one minute."""
    if not connections:
        return [0.0] * 14
    sources = Counter(s for s, _, _ in connections)
    destinations = Counter(d for _, d, _ in connections)
    pairs = Counter((s, d) for s, d, _ in connections)

    def inside(address):
        return address.startswith("172.016.")

    return [
        len(connections),
        len(sources),
        len(destinations),
        len(pairs),
        max(sources.values()),
        max(destinations.values()),
        max(pairs.values()),
        max(Counter(s for s, _ in pairs).values()),
        max(Counter(d for _, d in pairs).values()),
        entropy(sources),
        entropy(destinations),
        sum(inside(d) and not inside(s) for s, d, _ in connections),
        sum(inside(s) and not inside(d) for s, d, _ in connections),
        sum(inside(d) for d in destinations),
    ]


def minute_attacks(connections):
    counts = Counter(label for _, _, label in connections if label != "-")
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ";".join(f"{name}:{n}" for name, n in ordered)


def plain_table(connections):
    """Rows (day, idx, time, features, attacks, n_attack) of (source, destination, time, label)."""
    by_minute, spans = defaultdict(list), defaultdict(list)
    for source, destination, time, label in connections:
        by_minute[time].append((source, destination, label))
        spans[(time - timedelta(hours=7)).date()].append(time)
    rows = []
    for day in sorted(spans):
        first, last = min(spans[day]), max(spans[day])
        for idx in range((last - first) // timedelta(minutes=1) + 1):
            time = first + timedelta(minutes=idx)
            connections_of_minute = by_minute.get(time, [])
            n_attack = sum(label != "-" for _, _, label in connections_of_minute)
            when = time.isoformat(timespec="minutes")
            text = minute_attacks(connections_of_minute)
            features = minute_features(connections_of_minute)
            rows.append((day.isoformat(), idx, when, features, text, n_attack))
    return rows


addresses = st.sampled_from(
    [IN, "172.016.114.050", "172.016.112.20", OUT, "010.020.030.040", "172.017.001.001"]
)
# Few minutes, so that they hold several connections; some on either side of a day's end.
times = st.sampled_from([0, 1, 2, 5, 59, 60, 61, 1440 + 59, 1440 + 60, 4000]).map(
    lambda m: datetime(1998, 6, 1, 6, 0) + timedelta(minutes=m)
)
connection_lists = st.lists(
    st.tuples(addresses, addresses, times, st.sampled_from(["-", "-", "pod", "nmap", "smurf"])),
    min_size=1,
    max_size=60,
)


@given(connection_lists)
def test_every_column_equals_the_reference(tmp_path_factory, connections):
    path = tmp_path_factory.mktemp("reference") / "connections.csv"
    write(path, [f"{s},{d},{t:%m/%d/%Y-%H:%M},{label}\n" for s, d, t, label in connections])
    traffic = load_connections(path)
    days, idx, when, X, attacks, n_attack = zip(*plain_table(connections), strict=True)
    assert traffic.days.tolist() == list(days)
    assert traffic.minutes.tolist() == list(idx)
    assert traffic.times.tolist() == list(when)
    assert traffic.attacks.tolist() == list(attacks)
    assert traffic.n_attack.tolist() == list(n_attack)
    np.testing.assert_array_equal(traffic.is_attack, np.array(n_attack) > 0)
    np.testing.assert_array_equal(traffic.X[:, COUNTS], np.array(X)[:, COUNTS])
    np.testing.assert_allclose(traffic.X[:, ENTROPIES], np.array(X)[:, ENTROPIES], atol=1e-12)


def test_a_capture_day_ends_before_seven(tmp_path):
    stamps = ["06/01/1998-23:58", "06/02/1998-06:59", "06/02/1998-07:00"]
    path = write(tmp_path / "connections.csv", [f"{IN},{OUT},{stamp},-\n" for stamp in stamps])
    traffic = load_connections(path)
    assert traffic.days[-2:].tolist() == ["1998-06-01", "1998-06-02"]
    assert traffic.minutes[[0, -2, -1]].tolist() == [0, 421, 0]
    assert traffic.times[-2:].tolist() == ["1998-06-02T06:59", "1998-06-02T07:00"]
    assert column(traffic, "n_conn").sum() == 3


def test_the_date_that_does_not_exist_is_the_next_day(tmp_path):
    path = write(tmp_path / "connections.csv", [LINE.replace("06/01/1998", "07/32/1998")])
    assert load_connections(path).times.tolist() == ["1998-08-01T12:00"]


def test_plain_gzipped_and_windows_lines_read_alike(tmp_path):
    lines = [LINE, LINE, LINE.replace(",-", ",pod").rstrip("\n")]
    plain = load_connections(write(tmp_path / "connections.csv", lines))
    (tmp_path / "again.csv.gz").write_bytes(
        gzip.compress("".join(lines).replace("\n", "\r\n").encode())
    )
    again = load_connections(tmp_path / "again.csv.gz")
    assert column(again, "n_conn").tolist() == [3.0] and again.attacks.tolist() == ["pod:1"]
    np.testing.assert_array_equal(plain.X, again.X)


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (f"{IN},{OUT},06/01/1998-12:00\n", "expected source,destination,MM/DD/YYYY-HH:MM,label"),
        (f"{IN},{OUT},06/01/1998-12:00,-,x\n", "expected source,destination"),
        (f"{IN},{OUT},1998-06-01T12:00,-\n", "expected source,destination"),
        (f"{IN},,06/01/1998-12:00,-\n", "expected source,destination"),
        (f"{IN},{OUT},06/01/1998-12:00,\n", "expected source,destination"),
        ("\n", "expected source,destination"),
        ("källa,mål,06/01/1998-12:00,-\n", "expected source,destination"),
        (f"{IN},{OUT},06/31/1998-12:00,-\n", "expected a date and time that exist, got .*06/31"),
        (f"{IN},{OUT},06/01/1998-25:00,-\n", "expected a date and time that exist"),
    ],
)
def test_a_bad_line_is_rejected_with_its_number(tmp_path, bad, expected):
    path = write(tmp_path / "connections.csv", [LINE, LINE, bad, LINE, bad])
    with pytest.raises(ValueError, match=rf"connections\.csv, line 3: {expected}"):
        load_connections(path)


@pytest.mark.parametrize("cut", [30, -8])
def test_a_truncated_archive_is_rejected_by_name(tmp_path, cut):
    path = tmp_path / "connections.csv.gz"
    lines = [LINE.replace("001.010", f"001.{i:03d}") for i in range(200)]
    path.write_bytes(gzip.compress("".join(lines).encode())[:cut])
    with pytest.raises(ValueError, match=r"connections\.csv\.gz: not a whole gzip file"):
        load_connections(path)


def test_days_are_kept_and_missing_days_are_named(tmp_path):
    lines = [LINE, LINE.replace("06/01", "06/02"), LINE.replace("06/01", "06/03")]
    path = write(tmp_path / "connections.csv", lines)
    everything = load_connections(path)
    ready = write_minutes(tmp_path / "minutes.csv.gz", everything)
    for load, file in [(load_connections, path), (load_minutes, ready)]:
        assert load(file, "1998-06-02").days.tolist() == ["1998-06-02"]
        assert load(file, ["1998-06-03", "1998-06-01"]).days.tolist() == [
            "1998-06-01",
            "1998-06-03",
        ]
        with pytest.raises(ValueError, match=r"no traffic on 1998-06-04$"):
            load(file, ["1998-06-02", "1998-06-04"])
        with pytest.raises(ValueError, match="no traffic on any day"):
            load(file, [])
    with pytest.raises(ValueError, match="written like 1998-07-20, got '06/02/1998'"):
        load_connections(path, "06/02/1998")
    with pytest.raises(ValueError, match="no traffic on any day"):
        load_connections(write(tmp_path / "empty.csv", []))
    assert everything.day("1998-06-02").times.tolist() == ["1998-06-02T12:00"]
    with pytest.raises(ValueError, match="no traffic on 1998-06-04"):
        everything.day("1998-06-04")


def test_bad_lines_of_the_ready_table(tmp_path):
    header = ",".join(COLUMNS) + "\n"
    row = "1998-06-01,0,1998-06-01T07:55,2,1,1,1,2,2,2,1,1,0,0,0,2,0,0,\n"
    path = tmp_path / "minutes.csv"
    with pytest.raises(ValueError, match=r"minutes\.csv, line 1: expected the columns day,idx"):
        load_minutes(write(path, [row]))
    with pytest.raises(ValueError, match="line 1: expected the columns"):
        load_minutes(write(path, []))
    with pytest.raises(ValueError, match="line 3: expected 19 columns, got 2"):
        load_minutes(write(path, [header, row, "1998-06-01,1\n"]))
    with pytest.raises(ValueError, match=r"line 2: expected numbers, .*'two'"):
        load_minutes(write(path, [header, row.replace(",2,", ",two,")]))


def test_the_ready_table_is_taken_first_and_then_the_list(tmp_path):
    folder = tmp_path / "darpa98"
    assert load_traffic(tmp_path).simulated and load_traffic(None).simulated
    folder.mkdir()
    (folder / "connections_minute.csv.gz").write_bytes(gzip.compress(LINE.encode()))
    built = load_traffic(tmp_path)
    assert not built.simulated and built.times.tolist() == ["1998-06-01T12:00"]
    changed = built._replace(attacks=np.array(["ready:1"]))
    write_minutes(folder / "minutes14.csv.gz", changed)
    assert load_traffic(str(tmp_path), "1998-06-01").attacks.tolist() == ["ready:1"]


def test_the_two_rules_of_loud_minutes_differ_at_a_hundred_and_in_the_attacks():
    assert loud_by_any_attack(np.array([99, 100, 101])).tolist() == [False, True, True]
    words = ["pod:100", "pod:60;smurf:41", "portsweep:5000", "teardrop:101;ps:1", ""]
    assert loud_by_flood_or_scan(words).tolist() == [False, True, False, True, False]


def test_log_features():
    np.testing.assert_allclose(log_features([[0, np.e - 1]]), [[0.0, 1.0]])


@needs_data
def test_the_list_of_all_days_gives_the_ready_table():
    built, ready = load_connections(RAW), load_minutes(READY)
    assert len(set(ready.days.tolist())) == 38 and built.X.shape == (46119, 14)
    for name in ("days", "minutes", "times", "attacks", "n_attack"):
        np.testing.assert_array_equal(getattr(built, name), getattr(ready, name), err_msg=name)
    np.testing.assert_array_equal(built.X[:, COUNTS], ready.X[:, COUNTS])
    # Entropies were rounded to six places and then written with six digits.
    written = [float(f"{value:.6g}") for value in built.X[:, ENTROPIES].round(6).ravel()]
    np.testing.assert_array_equal(written, ready.X[:, ENTROPIES].ravel())


@needs_data
def test_the_day_most_like_the_papers():
    day = load_traffic(DATA, "1998-07-20")
    assert day.X.shape == (1320, 14) and not day.simulated
    assert np.flatnonzero(day.is_attack).tolist() == [79, 171, 409, 488, 526, 552, 553]


# The simulator.


@pytest.fixture(scope="module")
def simulated():
    return simulate_traffic()


def test_a_simulated_day_depends_on_the_seed_only(simulated):
    again, other = simulate_traffic(), simulate_traffic(seed=1)
    for mine, its in zip(simulated, again, strict=True):
        np.testing.assert_array_equal(mine, its)
    assert not np.array_equal(simulated.X, other.X)
    alone = simulate_traffic("simulated-3")
    np.testing.assert_array_equal(alone.X, simulated.day("simulated-3").X)
    assert not np.array_equal(simulated.day("simulated-1").X, simulated.day("simulated-2").X)


def test_simulated_days_are_full_and_cannot_be_taken_for_real_ones(simulated):
    assert simulated.simulated
    assert simulated.X.shape == (3 * 1320, 14)
    assert sorted(set(simulated.days.tolist())) == list(SIMULATED_DAYS)
    assert not any(day[:2] == "19" for day in SIMULATED_DAYS)
    day = simulated.day("simulated-2")
    assert day.times[[0, -1]].tolist() == ["simulated-2T08:00", "simulated-2T05:59"]
    assert day.minutes.tolist() == list(range(1320))


@pytest.mark.parametrize("seed", range(3))
def test_attacks_are_planted(seed):
    quiet, test, flooded = (simulate_traffic(seed=seed).day(day) for day in SIMULATED_DAYS)
    assert not quiet.is_attack.any() and set(quiet.attacks.tolist()) == {""}
    assert np.flatnonzero(test.is_attack).tolist() == [79, 171, 409, 488, 526, 552, 553]
    names = {text.split(":")[0] for text in flooded.attacks.tolist()} - {""}
    assert names == {"smurf", "neptune", "portsweep", "ipsweep", "satan", "pod", "teardrop", "ps"}


def test_attacks_have_their_shapes(simulated):
    flooded = simulated.day("simulated-3")

    def peak(name, attack):
        return column(flooded, name)[np.char.startswith(flooded.attacks, attack)].max()

    assert peak("max_fanin", "smurf") > 6000
    assert 2600 <= peak("max_conn_per_pair", "neptune") < 6100
    assert peak("max_fanin", "neptune") < 20
    assert peak("max_fanout", "ipsweep") == 250 and peak("n_dst_inside", "ipsweep") >= 250
    assert peak("max_conn_per_src", "satan") > 1800 and peak("max_fanout", "satan") < 20
    assert 400 <= peak("max_conn_per_pair", "pod") < 460
    assert peak("max_conn_per_pair", "teardrop") >= 200
    quiet_peak = column(simulated.day("simulated-1"), "max_fanin").max()
    assert peak("max_fanin", "ps") <= quiet_peak  # a break-in does not show


@pytest.mark.parametrize("day", SIMULATED_DAYS)
def test_simulated_features_are_those_of_the_connections(simulated, day):
    connections = simulated_connections(day)
    minutes = defaultdict(list)
    for (source, destination, minute, label), n in connections.items():
        assert n > 0 and 0 <= minute < 1320
        minutes[minute] += [(source, destination, label)] * n
    X = simulated.day(day).X
    for minute in [0, 40, 171, 240, 300, 700, 1319]:
        np.testing.assert_allclose(X[minute], minute_features(minutes[minute]), atol=1e-12)


def assert_coherent(traffic):
    x = {name: column(traffic, name) for name in FEATURES}
    assert np.all(x["n_pair"] >= np.maximum(x["n_src"], x["n_dst"]))
    assert np.all(x["n_pair"] <= np.minimum(x["n_conn"], x["n_src"] * x["n_dst"]))
    assert np.all(x["max_conn_per_pair"] <= x["max_conn_per_src"])
    assert np.all(x["max_conn_per_pair"] <= x["max_conn_per_dst"])
    assert np.all(x["max_fanout"] <= x["n_dst"]) and np.all(x["max_fanin"] <= x["n_src"])
    assert np.all(x["n_inbound"] + x["n_outbound"] <= x["n_conn"])
    assert np.all(x["n_dst_inside"] <= x["n_dst"])
    assert np.all(x["src_entropy"] <= np.log2(np.maximum(x["n_src"], 1)) + 1e-4)
    assert np.all(x["dst_entropy"] <= np.log2(np.maximum(x["n_dst"], 1)) + 1e-4)
    assert np.all(traffic.n_attack <= x["n_conn"])


def test_simulated_features_are_coherent(simulated):
    assert_coherent(simulated)


@needs_data
def test_real_features_are_coherent():
    assert_coherent(load_minutes(READY))


@needs_data
@pytest.mark.parametrize("seed", range(3))
def test_a_simulated_day_is_like_the_real_one(seed):
    real, made = load_minutes(READY, "1998-07-20"), simulate_traffic("simulated-2", seed)
    for q in (0.5, 0.95):
        gap = np.quantile(log_features(made.X), q, 0) - np.quantile(log_features(real.X), q, 0)
        assert np.abs(gap).max() < 0.6, dict(zip(FEATURES, gap.round(2), strict=True))

    def memory(X):
        return np.array([np.corrcoef(x[1:], x[:-1])[0, 1] for x in log_features(X).T])

    assert np.abs(memory(made.X) - memory(real.X)).max() < 0.3


def test_an_unknown_simulated_day_is_rejected():
    with pytest.raises(ValueError, match=r"day must be one of .*, got '1998-07-20'"):
        simulate_traffic("1998-07-20")
