"""Files that are no models, are damaged, newer or hostile: one kind of error that says what to do.

`model_file_fuzz.py` makes thousands more, in a process of its own, since nothing must crash.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import model_file_fuzz
import outsample
from laws.subjects import sparse_stays
from outsample import ModelFileError, NoveltyDetector, PCAExtension, StreamingExtension
from outsample.files import model_file
from outsample.files.model_file import describe, read_columns

MUTANTS = int(os.environ.get("OUTSAMPLE_FILE_FUZZ", "500"))
TEXTS = (
    "", "null", "[1]", '{"a": []}', '[["id", "array", "nothing"]]', "[[1]]",
    '[["id", "words", "embedding_"]]', '[["id", "array", "embedding_"]]',
)  # fmt: skip
READERS = [outsample.load, describe, read_columns]


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    X = np.random.default_rng(0).normal(size=(30, 3))
    fitted = PCAExtension(weighting="local_tangent", n_neighbors=5, order=0, loss="squared").fit(
        X, X[:, :2]
    )
    path = tmp_path_factory.mktemp("good") / "model.outsample"
    outsample.save(fitted, path, columns={"id": np.arange(30)})
    return path.read_bytes()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.outsample"


def opened(data):
    """Header, texts and arrays of a file."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    texts = header.pop("__metadata__")
    return header, texts, data[8 + length :]


def sealed(header, texts, body):
    """A file with right checksums of whatever is in it."""
    texts = {key: text for key, text in texts.items() if key != "header_sha256"}
    return model_file_fuzz.sealed(header, texts, [np.frombuffer(body, np.uint8)])


def arrays_of(data):
    header, texts, body = opened(data)
    found = {}
    for name, told in header.items():
        start, stop = told["data_offsets"]
        kind = model_file_fuzz.layout.DTYPES[told["dtype"]]
        found[name] = np.frombuffer(body[start:stop], kind).reshape(told["shape"]).copy()
    return texts, found


def refused(path, data, says, readers=READERS):
    path.write_bytes(data)
    for read in readers:
        with pytest.raises(ModelFileError, match=says) as caught:
            read(path)
        assert str(path) in str(caught.value)


# Other files.


@pytest.mark.parametrize(
    "data",
    [
        b"", b"1234567", b"\x80\x04\x95" + b"x" * 200, b"PK\x03\x04" + b"x" * 200,
        b"\x93NUMPY\x01\x00" + b"x" * 200, b"a,b\n1,2\n3,4\n" * 20, bytes(500), b"\xff" * 500,
    ],
    ids=["empty", "short", "pickle", "zip", "npy", "csv", "zeros", "ones"],
)  # fmt: skip
def test_other_files_are_no_models(data, path):
    refused(path, data, "is no model of outsample's")


def test_what_is_no_file_at_all(tmp_path):
    for read in READERS:
        with pytest.raises(ModelFileError, match="is a folder"):
            read(tmp_path)
        with pytest.raises(ModelFileError, match="no such file"):
            read(tmp_path / "nothing.outsample")
        with pytest.raises(ModelFileError, match="no plain file"):
            read(os.devnull)
        with pytest.raises(ModelFileError, match="cannot be read"):
            read("nul\0")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="no plain file"):
        outsample.load(tmp_path / "pipe")


def test_arrays_of_somebody_else(path):
    safetensors = pytest.importorskip("safetensors.numpy")
    safetensors.save_file({"x": np.zeros(9)}, path, metadata={"format": "pt"})
    refused(path, path.read_bytes(), "holds arrays, but is no model")
    safetensors.save_file({"x": np.zeros(9)}, path)
    refused(path, path.read_bytes(), "is no model")


# Damage.


def test_every_flipped_bit_of_the_header_is_noticed(good, path):
    length = int.from_bytes(good[:8], "little")
    rng = np.random.default_rng(0)
    for at in [*range(8), *rng.choice(8 + length, 150, replace=False)]:
        data = bytearray(good)
        data[at] ^= 1 << int(rng.integers(8))
        refused(path, data, None, [outsample.load])


def test_every_cut_is_noticed(good, path):
    for stop in np.random.default_rng(0).choice(len(good), 60, replace=False):
        refused(path, good[:stop], None, [outsample.load])
    refused(path, good + b"\0", "its arrays end at")


def test_a_flipped_bit_in_an_array_is_named(good, path):
    header, _, body = opened(good)
    at = len(good) - len(body) + header["embedding_"]["data_offsets"][0] + 5
    data = bytearray(good)
    data[at] ^= 4
    refused(path, data, "array 'embedding_' is not what was written. Take it from a backup",
            [outsample.load])  # fmt: skip
    assert describe(path).class_name == "PCAExtension"  # which does not read the arrays
    assert read_columns(path)["id"].tolist() == list(range(30))


def test_a_newer_format_asks_for_a_newer_package(good, path):
    header, texts, body = opened(good)
    texts |= {"format_version": "2", "package_version": "9.8"}
    refused(path, sealed(header, texts, body),
            r"newer outsample, version 9.8 \(format 2\).*Install the newer version")  # fmt: skip
    for version in ("", "-1", "0", "1.0", "٣", "1" * 30):
        refused(path, sealed(header, texts | {"format_version": version}, body), "version")


# Hostile headers: the checksums are right.


def changed(**change):
    def make(header):
        header["embedding_"] |= change
        return header

    return make


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (changed(shape=[-30, 2]), "no shape or place"),
        (changed(shape=[2**40, 2**40]), "does not fit its place"),
        (changed(shape=[10**30, 0]), "no shape or place"),
        (changed(shape=[30, 2.0]), "no shape or place"),
        (changed(shape=[30, True]), "no shape or place"),
        (changed(shape=[1] * 40), "no shape or place"),
        (changed(dtype="F128"), "unknown type"),
        (changed(dtype=["F64"]), "unknown type"),
        (changed(data_offsets=[0, 2**60]), "no shape or place"),
        (changed(data_offsets=[480, 0]), "does not fit its place"),
        (changed(data_offsets=[64, 544]), "does not begin where|bytes, but its arrays end"),
        (lambda header: {**header, "again": header["embedding_"]}, "does not begin where"),
        (lambda header: {**header, "embedding_": 3}, "is not described"),
        (lambda header: {name: header[name] for name in list(header)[:-1]}, "arrays end at"),
        (lambda header: {}, "arrays end at"),
        (lambda header: {f"a{at}": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
                         for at in range(10_001)}, "at most 10,000"),
    ],
)  # fmt: skip
def test_hostile_headers(good, change, says, path):
    header, texts, body = opened(good)
    refused(path, sealed(change(header), texts, body), says)


def test_names_that_occur_twice_nan_and_depth(good, path):
    length = int.from_bytes(good[:8], "little")
    raw, body = good[8 : 8 + length].rstrip(), good[8 + length :]

    def file(raw):
        raw += b" " * (-(len(raw) + 8) % 64)
        return len(raw).to_bytes(8, "little") + raw + body

    refused(path, file(raw[:-1] + b',"embedding_":{}}'), "a name occurs twice")
    refused(path, file(raw[:-1] + b',"more":NaN}'), "NaN is no number")
    refused(path, file(b"[" * 200_000), "damaged")
    refused(path, file(b'{"a":' * 100_000), "damaged")
    refused(path, file(b"[]"), "damaged")
    refused(path, file(b"1" * 10_000), "damaged")
    refused(path, (2**20 + 64).to_bytes(8, "little") + bytes(2**21), "at most 1,048,576 bytes")


def test_streams_from_before_neighbours_waited_go_on_without_waiting(path):
    """Older files lack a parameter and a number; nothing waits in them."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    ways = PCAExtension(weighting="distance", n_neighbors=5, order=0, loss="squared")
    detector = NoveltyDetector(ways).fit(X[:30], X[:30, :2])
    stream = StreamingExtension(detector, window=20, guard=0.01, delay=0)
    stream.learn(X[30:45])
    outsample.save(stream, path)
    header, texts, body = opened(path.read_bytes())
    objects, held = json.loads(texts["parameters"])
    assert held.pop("delay") == 0
    texts["parameters"] = json.dumps([objects, held])
    objects, held = json.loads(texts["learnt"])
    assert [parts.pop("n_waiting") for name, parts in objects if name == "Memory"] == [0]
    texts["learnt"] = json.dumps([objects, held])
    path.write_bytes(sealed(header, texts, body))
    again = outsample.load(path)
    assert again.get_params()["delay"] == 0
    placed = (each.learn(X[45:]).placement for each in (again, stream))
    for one, other in zip(*placed, strict=True):
        np.testing.assert_array_equal(one, other)
    assert again.n_learned_ == stream.n_learned_ > 0


def test_wrong_texts(good, path):
    header, texts, body = opened(good)
    for name in ("class", "learnt", "parameters"):
        for value in ("", "[", "null", "[]", "[[], []]", "[[], {}]", "[" * 5000, '{"a":1,"a":2}'):
            hostile = sealed(header, texts | {name: value}, body)
            refused(path, hostile, "damaged", [outsample.load])
        without = {key: text for key, text in texts.items() if key != name}
        refused(path, sealed(header, without, body), name, [outsample.load])
    for name, read in (("summary", describe), ("columns", read_columns), ("columns", describe)):
        for value in TEXTS:
            path.write_bytes(sealed(header, texts | {name: value}, body))
            try:
                read(path)
            except ModelFileError as error:
                assert str(path) in str(error)
    refused(path, sealed(header, texts | {"sha256": "{}"}, body), "checksums")
    refused(path, sealed(header, texts | {"sha256": "3"}, body), "checksums")


def test_no_class_outside_the_table_is_built(good, path):
    header, texts, body = opened(good)
    for name in ("os.system", "KNeighborsRegressor", "NeighborIndex", "Distinct", "compare"):
        refused(path, sealed(header, texts | {"class": name}, body), name, [outsample.load])
    learnt = texts["learnt"]
    assert '["Distinct"' in learnt
    for name in ("subprocess.Popen", "FunctionOfDistance", "PCAExtension", "csr_matrix", "Judge"):
        hostile = texts | {"learnt": learnt.replace('["Distinct"', f'["{name}"')}
        refused(path, sealed(header, hostile, body), "damaged", [outsample.load])


# Hostile arrays: an index that is out of range must not reach a kernel.


def shortened(array):
    return array[:-1]


def put(value):
    def make(array):
        array.reshape(-1)[3] = value
        return array

    return make


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("distinct_.rows", put(10**9)),
        ("distinct_.rows", put(-1)),
        ("distinct_.groups", put(30)),
        ("distinct_.counts", put(2**60)),
        ("distinct_.counts", put(0)),
        ("distinct_.rows", lambda array: array.astype(np.float64)),
        ("left_out_.rows", put(30)),
        ("left_out_.rows", put(-2)),
        ("embedding_", shortened),
        ("embedding_", put(np.nan)),
        ("embedding_", lambda array: array.astype(np.float32)),
        ("model_.search.index.X", shortened),
        ("model_.search.index.X", put(np.inf)),
        ("model_.search.index.X", put(np.nan)),
        ("model_.search.index.X", lambda array: array[:, :2]),
        ("model_.fitted.weighting.frames.axes", shortened),
        ("model_.fitted.weighting.frames.axes", lambda array: array[:, :1]),
        ("model_.fitted.weighting.frames.spread", put(-1.0)),
    ],
)  # fmt: skip
def test_hostile_arrays(good, name, change, path):
    texts, arrays = arrays_of(good)
    arrays[name] = change(arrays[name])
    refused(path, model_file_fuzz.written(texts, arrays), "damaged or was tampered with: PCAExt",
            [outsample.load])  # fmt: skip


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """Bytes of files of many models, by name."""
    files = model_file_fuzz.write_all(tmp_path_factory.mktemp("several"))
    return {file.stem: file.read_bytes() for file in files}


def replaced(name, **parts):
    """Change the parts of the first object of a class."""

    def make(objects, arrays):
        next(told for cls, told in objects if cls == name).update(parts)

    return make


def cut(name, change=shortened):
    def make(objects, arrays):
        arrays[name] = np.ascontiguousarray(change(arrays[name]))

    return make


BARS = "model_.judge.error_bars"
FIELD = "model_.fitted.field"


@pytest.mark.parametrize(
    ("model", "change", "says"),
    [
        ("gaussian", cut(f"{BARS}.scale.values", lambda v: v[:, 1:]), "do not fit the cuts"),
        ("gaussian", cut(f"{BARS}.scale.cuts", lambda v: v[:, ::-1]), "cuts fall"),
        ("gaussian", cut(f"{BARS}.knots"), "knots do not fit"),
        ("gaussian", replaced("LocalPlacer", weighting={"object": 1}), "weighting is"),
        ("blend", replaced("Blend", shares={"tuple": [0.5, 0.3, 0.3]}), "shares do not fit"),
        ("blend", replaced("FittedDiffusion", placer=None), "placer is None"),
        ("repulsion field", cut(f"{FIELD}.coefficients", np.ravel), "with 2 sides"),
        ("repulsion field", cut(f"{FIELD}.coefficients", lambda v: v * np.nan), "outside their"),
        ("repulsion field", cut(f"{FIELD}.corner"), "has a side of 1"),
        ("repulsion field", replaced("RepulsionField", step=0.0), "must be a float in its range"),
        ("fixed walk", replaced("FixedWalk", k=24), "k does not fit"),
        ("fixed walk", replaced("FixedWalk", k=None), "k does not fit"),
        ("fixed walk", cut("walk_.reach"), "reach does not fit"),
        ("fixed walk", cut("eigenvalues_", lambda v: v * 1e-13), "too small to be extended"),
        ("pyramids", cut("errors_"), "do not fit the scales"),
        ("multiscale", cut("errors_"), "do not fit the scales"),
        ("multiscale", cut("sampled_.0"), "do not fit the sampled rows"),
        ("sparse", replaced("NeighborIndex", kind="kd_tree"), "does not take sparse points"),
        ("sparse", replaced("LocalPlacer", order=1), "does not take sparse points"),
        ("detector", cut("scores_", lambda v: v[::-1]), "scores_ falls"),
        ("detector", cut("scores_", lambda v: v[:0]), "scores_ are missing"),
        ("detector", replaced("NoveltyModel", model=None), "not that of its extension"),
        ("walk", replaced("Distinct", rows={"array": "eigenvalues_"}), "distinct.rows"),
        ("local tangent", replaced("LocalPlacer", loss="cubic"), "must be one of"),
        ("local tangent", replaced("Search", radius=-1.0), "must be a float in its range"),
        ("local tangent", replaced("Search", least_framed=True), "whole number"),
        ("local tangent", replaced("MapModel", n_jobs=0), "n_jobs is 0"),
        ("local tangent", replaced("MapModel", n_jobs=10**6), "n_jobs"),
        ("extended", replaced("NotKept", words=3), "must be a text"),
        ("split detector", replaced("Tail", spread={"float": "nan"}), "spread"),
        ("split detector", replaced("TrainingScores", tails=[]), "must be a pair"),
    ],
)
def test_hostile_parts(several, model, change, says, path):
    texts, arrays = arrays_of(several[model])
    objects, held = json.loads(texts["learnt"])
    change(objects, arrays)
    texts["learnt"] = json.dumps([objects, held])
    refused(path, model_file_fuzz.written(texts, arrays), says, [outsample.load])


@pytest.mark.parametrize("part", ["indices", "indptr", "data"])
def test_hostile_sparse_points(part, path):
    X = sparse.random(30, 6, 0.5, "csr", random_state=0)
    fitted = PCAExtension(weighting="distance", n_neighbors=4, order=0, loss="squared")
    with sparse_stays():
        outsample.save(fitted.fit(X, X[:, :2].toarray()), path)
    texts, arrays = arrays_of(path.read_bytes())
    name = next(name for name in arrays if name.endswith(f"X.{part}"))
    for value in (-1, 6, 2**30) if part != "data" else (np.nan, 1e301):
        held = arrays | {name: put(value)(arrays[name].copy())}
        refused(path, model_file_fuzz.written(texts, held), "damaged", [outsample.load])
    for held in (arrays[name][:-1], arrays[name][::-1], arrays[name].astype(np.float32)):
        hostile = model_file_fuzz.written(texts, arrays | {name: held.copy()})
        if part != "data" or len(held) != len(arrays[name]) or held.dtype != np.float64:
            refused(path, hostile, "damaged", [outsample.load])


def test_a_model_that_names_itself_a_thousand_times(good, path):
    """Parts that hold parts many times over are looked at once."""
    header, texts, body = opened(good)
    objects, held = json.loads(texts["learnt"])
    placer = {"weighting": {"object": 0}, "n_neighbors": 5, "order": 0, "loss": "squared"}
    shares = {"parts": {"tuple": [{"object": 1}] * 50}, "shares": {"tuple": [0.02] * 50}}
    trial = {"placer": {"object": 2}, "error": 0.1, "seconds": 0.1, "n_rows": 9}
    first = [["Tangent", {}], ["LocalPlacer", placer | {"tangent_dim": 1}], ["Blend", shares]]
    first += [["Trial", trial]] * 4000

    def moved(told):
        text = json.dumps(told)
        return json.loads(
            re.sub(r'"object": (\d+)', lambda at: f'"object": {int(at[1]) + len(first)}', text)
        )

    held = moved(held) | {"selection_": [{"object": 3 + at} for at in range(4000)]}
    learnt = [first + moved(objects), held]
    path.write_bytes(sealed(header, texts | {"learnt": json.dumps(learnt)}, body))
    assert len(outsample.load(path).selection_) == 4000
    held["selection_"] *= 2
    refused(path, sealed(header, texts | {"learnt": json.dumps(learnt)}, body),
            "selection_", [outsample.load])  # fmt: skip


# The fuzz.


def test_mutants_that_are_only_loaded(tmp_path):
    """Without answers nothing can crash: these run here, where coverage sees what refuses them."""
    files = model_file_fuzz.write_all(tmp_path)
    refusals = []
    for number in range(600):
        (tmp_path / "mutant").write_bytes(model_file_fuzz.mutant(number, files)[1])
        try:
            outsample.load(tmp_path / "mutant")
        except ModelFileError as error:
            refusals.append(str(error))
    assert 300 < len(refusals) < 600
    assert all(" " in text and text.endswith(".") for text in refusals)
    assert max(map(len, refusals)) < 500 + len(str(tmp_path))


def test_mutants_are_refused_or_answer(tmp_path):
    files = model_file_fuzz.write_all(tmp_path)
    command = [sys.executable, model_file_fuzz.__file__, str(tmp_path), "0", str(MUTANTS)]
    found = {"PYTHONPATH": os.pathsep.join([*sys.path, os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, env=os.environ | found, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"{lines[-1:]} {done.stderr[-2000:]}"
    assert not [line for line in lines if line.startswith("escape")]
    assert lines[-2] == f"at {MUTANTS - 1}" and len(files) > 15
    assert int(lines[-1].removeprefix("memory ")) < model_file_fuzz.MAX_BYTES
    print(f"{MUTANTS} mutants, no escape, {lines[-1]} bytes")


def test_a_folder_of_old_versions_still_loads():
    """Fixtures of every format version stay, with the answers of the outsample that wrote them."""
    folder = Path(__file__).parents[1] / "data"
    files = sorted(folder.glob("model-v*.outsample"))
    assert [int(file.stem.rpartition("v")[2]) for file in files] == list(
        range(1, model_file.VERSION + 1)
    )
    import recording

    for file in files:
        expected = np.load(file.with_suffix(".npz"))
        model = outsample.load(file)
        found = model.place(expected["Q"])._asdict() | {"p_values": model.p_values(expected["Q"])}
        exact = str(expected["machine"]) == recording.machine()
        for name, values in found.items():
            if exact:
                np.testing.assert_array_equal(values, expected[name], err_msg=name)
            else:
                np.testing.assert_allclose(values, expected[name], 1e-6, 1e-9, err_msg=name)
        assert read_columns(file)["name"].tolist() == [f"row {at}" for at in range(60)]
        assert describe(file).map_names == ["east", "north"]
