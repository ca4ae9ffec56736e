"""Model files: the same results, notes on what is not saved, one copy for many processes."""

from __future__ import annotations

import copy
import json
import os
import pickle
import pkgutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsRegressor
from sklearn.utils.validation import check_is_fitted

import model_file_fuzz
import outsample
from laws.subjects import sparse_stays
from outsample import (
    Blend,
    DiffusionMaps,
    Extended,
    GaussianDistance,
    InverseDistance,
    ModelFileError,
    MultiscaleExtension,
    NeighborLoss,
    NoveltyDetector,
    NystroemExtension,
    PCAExtension,
    _compiled,
)
from outsample.files import model_file
from outsample.files.estimator_schema import ESTIMATORS
from outsample.files.model_file import describe, read_columns
from outsample.files.schema import CLASSES, SCHEMAS
from outsample.files.transformer_schema import TRANSFORMERS
from outsample.neighbors import brute_force
from outsample.neighbors.index import NeighborIndex
from outsample.placers.local import LocalPlacer

FIXED = {"n_neighbors": 5, "order": 0, "loss": "squared"}
STREAMS = ["stream", "bare stream", "sparse stream"]


@pytest.fixture(scope="module")
def models():
    return model_file_fuzz.models()


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).normal(size=(40, 3))
    return X, np.column_stack([X[:, 0] ** 2, X[:, 1]])


@pytest.fixture
def extension(data):
    return PCAExtension(weighting="tangent", **FIXED).fit(*data)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.outsample"


def again(model, path, **options):
    outsample.save(model, path, **options)
    return outsample.load(path)


def same(results, expected):
    assert set(results) == set(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(results[name], values, err_msg=name, strict=True)


# Saved and loaded.


@pytest.mark.parametrize(
    "name", [*STREAMS, "auto", "walk", "fixed walk", "extended", "neighbor loss"]
)
def test_results_are_the_same_after_loading(models, name, path):
    same(model_file_fuzz.answers(again(models[name], path)), model_file_fuzz.answers(models[name]))


def test_every_field_of_a_registered_class_has_a_kind():
    for cls in set(SCHEMAS) - {*ESTIMATORS, *TRANSFORMERS, NeighborIndex}:
        own = cls._fields if issubclass(cls, tuple) else [field.name for field in fields(cls)]
        assert set(SCHEMAS[cls].fields) == set(own), cls
    assert set(CLASSES.values()) == set(SCHEMAS)


def test_every_estimator_of_the_library_can_be_saved():
    public = {getattr(outsample, name) for name in outsample.__all__}
    estimators = {value for value in public if hasattr(value, "get_params")}
    assert estimators == set(ESTIMATORS)
    assert {cls for cls in estimators if not hasattr(cls, "fit")} == {outsample.StreamingExtension}


def test_column_names_and_output_settings_are_kept(data, path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data[0], columns=["a", "b", "ü"])
    fitted = PCAExtension(**FIXED).fit(frame, data[1]).set_output(transform="pandas")
    loaded = again(fitted, path)
    assert loaded.transform(frame).equals(fitted.transform(frame))
    assert loaded.feature_names_in_.tolist() == ["a", "b", "ü"]
    assert loaded.feature_names_in_.dtype == object
    assert describe(path).feature_names == ["a", "b", "ü"]
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(frame[["b", "a", "ü"]])


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_neighbors": np.int64(5), "radius": np.float32(0.5), "weighting": "distance"},
        {"weighting": InverseDistance(6), "n_neighbors": 5, "lipschitz": 2},
        {"weighting": GaussianDistance(np.float32(0.35)), "level": np.float64(0.8)},
        {"weighting": NeighborLoss(2), "n_jobs": 2},
        {
            "weighting": Blend(
                (
                    LocalPlacer(InverseDistance(4), 3, 0, "squared", 1),
                    LocalPlacer(InverseDistance(2), 9, 0, "absolute", 1),
                ),
                (0.75, 0.25),
            )
        },
    ],
)
def test_parameters_keep_their_types(data, parameters, path):
    fitted = PCAExtension(**parameters).fit(*data)
    loaded = again(fitted, path)
    assert repr(loaded.get_params()) == repr(fitted.get_params())
    assert loaded.weighting_ == fitted.weighting_
    assert repr(loaded.selection_) == repr(fitted.selection_)
    same(loaded.place(data[0][:9] + 0.1)._asdict(), fitted.place(data[0][:9] + 0.1)._asdict())
    refitted = clone(loaded).fit(*data)
    np.testing.assert_array_equal(refitted.transform(data[0]), fitted.transform(data[0]))


def test_the_fitted_state_is_saved_not_later_parameters(data, path):
    X, Y = data
    detector = NoveltyDetector(PCAExtension(**FIXED), calibration="split").fit(X, Y)
    placed = detector.place(X)
    detector.extension_.set_params(metric="cosine", n_jobs=2)
    detector.set_params(calibration="leave-one-out", alpha=0.5)
    loaded = again(detector, path)
    for before, after in zip(placed, loaded.place(X), strict=True):
        np.testing.assert_array_equal(before, after)
    assert vars(loaded.training_) == vars(detector.training_)
    np.testing.assert_array_equal(loaded.predict(X), detector.predict(X))


def test_sparse_points_are_kept(data, path):
    X = sparse.csr_matrix(np.round(data[0]))
    with sparse_stays():
        fitted = PCAExtension(weighting="distance", **FIXED).fit(X, data[1])
    assert fitted.training_.is_sparse
    loaded = again(fitted, path)
    for Q in (X[:5], X[:5].toarray()):
        np.testing.assert_array_equal(loaded.transform(Q), fitted.transform(Q))


def test_additional_columns_and_names_are_saved(extension, path):
    rows = {
        "id": np.arange(40), "label": [f"ä{at}" for at in range(40)], "0" * 64: np.ones(40, "f4"),
        "flag": np.arange(40) % 2 == 0, "words": np.array(["a", "b"] * 20, dtype=object),
    }  # fmt: skip
    loaded = again(extension, path, columns=rows, map_names=["east", "north"])
    assert loaded.n_neighbors_ == 5
    columns = read_columns(path)
    assert list(columns) == list(rows)
    for name, values in rows.items():
        assert columns[name].tolist() == np.asarray(values).tolist()
    assert columns["0" * 64].dtype == np.float32 and columns["id"].dtype == np.int64
    info = describe(path)
    assert info.columns == list(rows) and info.map_names == ["east", "north"]
    assert (info.class_name, info.n_points, info.n_features) == ("PCAExtension", 40, 3)
    assert info.n_coordinates == 2 and info.package_version == outsample.__version__
    assert info.parameters["weighting"] == "'tangent'" and not info.notes
    assert info.file_bytes == path.stat().st_size


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"columns": {"id": np.arange(39)}}, r"columns\['id'\] has 39 rows, but 40"),
        ({"columns": {"id": np.zeros((40, 2))}}, r"columns\['id'\] is not a column"),
        ({"columns": {"id": [None] * 40}}, r"columns\['id'\] contains objects"),
        ({"columns": {"when": np.zeros(40, "M8[s]")}}, r"columns\['when'\] is not a column"),
        ({"map_names": ["x"]}, "map_names"),
        ({"map_names": [1, 2]}, "map_names"),
    ],
)
def test_columns_that_are_not_valid_are_rejected(extension, options, error, path):
    with pytest.raises(ValueError, match=error):
        outsample.save(extension, path, **options)
    assert not path.exists()


def test_columns_of_a_split_detector_are_those_of_all_rows(data, path):
    detector = NoveltyDetector(calibration="split").fit(data[0])
    outsample.save(detector, path, columns={"id": np.arange(40)})
    assert len(read_columns(path)["id"]) == 40


# What is not saved.


def test_the_embedding_of_an_extended_is_not_saved_and_notes_say_so(data, path):
    X = data[0]
    fitted = Extended(model_file_fuzz.Identity(), PCAExtension(**FIXED)).fit(X)
    loaded = again(fitted, path)
    np.testing.assert_array_equal(loaded.transform(X + 0.1), fitted.transform(X + 0.1))
    same(loaded.place(X[:3])._asdict(), fitted.place(X[:3])._asdict())
    assert "not kept" in repr(loaded) and "Identity" in repr(loaded)
    assert any("Identity" in note for note in describe(path).notes)
    with pytest.raises(TypeError, match=r"set_params\(embedding=...\)"):
        loaded.fit(X)
    loaded.set_params(embedding=model_file_fuzz.Identity()).fit(X)
    np.testing.assert_array_equal(loaded.transform(X + 0.1), fitted.transform(X + 0.1))
    assert repr(again(outsample.load(path), path)) == repr(outsample.load(path))


def test_parameters_of_diffusion_maps_inside_extended_are_saved(data, path):
    fitted = Extended(DiffusionMaps(n_neighbors=6)).fit(data[0])
    loaded = again(fitted, path)
    assert repr(loaded) == repr(fitted)
    np.testing.assert_array_equal(loaded.fit_transform(data[0]), fitted.fit_transform(data[0]))


def test_a_detector_with_an_extended_inside(data, path):
    fitted = NoveltyDetector(Extended(model_file_fuzz.Identity())).fit(data[0])
    loaded = again(fitted, path)
    same(loaded.place(data[0][:4])._asdict(), fitted.place(data[0][:4])._asdict())
    assert loaded.model_.index is loaded.extension_.extension_.index_


def test_random_generators_are_not_saved(data, path):
    fitted = MultiscaleExtension(random_state=np.random.default_rng(0)).fit(*data)
    loaded = again(fitted, path)
    np.testing.assert_array_equal(loaded.transform(data[0]), fitted.transform(data[0]))
    with pytest.raises(ValueError, match="random_state"):
        loaded.fit(*data)
    loaded.set_params(random_state=0).fit(*data)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda X, Y: PCAExtension(weighting=steep, **FIXED).fit(X, Y), TypeError,
         "function steep, and a model file contains no code; use .*InverseDistance"),
        (lambda X, Y: NoveltyDetector(PCAExtension(weighting=np.exp, **FIXED)).fit(X, Y),
         TypeError, "function exp"),
        (lambda X, Y: Extended(model_file_fuzz.Identity(), KNeighborsRegressor()).fit(X),
         TypeError, "KNeighborsRegressor"),
        (lambda X, Y: KNeighborsRegressor().fit(X, Y), TypeError, "must be one of PCAExtension"),
        (lambda X, Y: Own(**FIXED).fit(X, Y), TypeError, "model is a Own"),
        (lambda X, Y: PCAExtension(), NotFittedError, "not fitted"),
        (lambda X, Y: X, TypeError, "model is a ndarray"),
    ],
)  # fmt: skip
def test_what_a_file_cannot_contain_is_named(data, make, error, message, path):
    with pytest.raises(error, match=message):
        outsample.save(make(*data), path)
    assert not path.exists()


def steep(r):
    return 1 / np.maximum(r, 1e-9) ** 3


class Own(PCAExtension):
    pass


# The file.


def test_the_safetensors_package_reads_the_file(extension, path):
    safetensors = pytest.importorskip("safetensors.numpy")
    outsample.save(extension, path, columns={"id": np.arange(40), "name": ["a"] * 40})
    arrays = safetensors.load_file(path)
    assert len(arrays) == len(describe(path).arrays)
    np.testing.assert_array_equal(arrays["embedding_"], extension.embedding_)
    np.testing.assert_array_equal(arrays["columns.0"], np.arange(40))


def test_arrays_are_aligned_and_stored_once(data, path):
    X = data[0]
    fitted = NoveltyDetector(PCAExtension(weighting="distance", **FIXED)).fit(X, data[1])
    outsample.save(fitted, path)
    arrays = describe(path).arrays
    shapes = [shape for _, _, shape, _ in arrays]
    assert shapes.count((40, 3)) == 1  # search, placer and quality estimator share the points
    loaded = outsample.load(path)
    model = loaded.extension_.model_
    assert model.search.index.X is model.quality.X is model.fitted.X
    X = model.search.index.X
    assert X.flags.writeable and X.flags.aligned and not X.flags.owndata
    before = path.read_bytes()
    X[:] = 0  # does not change the file
    assert path.read_bytes() == before
    outsample.save(fitted, path)
    assert path.read_bytes() == before


def test_a_large_model_is_little_more_than_its_arrays(path):
    X = np.random.default_rng(0).random((20_000, 10))
    fitted = PCAExtension(weighting="distance", n_neighbors=5, order=0, loss="squared").fit(
        X, X[:, :2]
    )
    outsample.save(fitted, path)
    # Points once, images of rows and of points, and which point a row is.
    arrays = X.nbytes + 2 * 20_000 * 2 * 8 + 3 * 20_000 * 8 + fitted.left_out_.rows.nbytes * 3
    assert path.stat().st_size < 1.01 * arrays


def test_a_header_that_is_too_large_is_rejected(extension, path):
    with pytest.raises(ValueError, match="fewer columns"):
        outsample.save(extension, path, columns={"x" * 2**20: np.zeros(40)})
    assert not path.exists()


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_loading_compiles_nothing_new(models, tmp_path):
    for name, model in models.items():
        model_file_fuzz.answers(model)
        outsample.save(model, tmp_path / name)
    before = compiled()
    for name in models:
        model_file_fuzz.answers(outsample.load(tmp_path / name))
    assert compiled() == before


def compiled():
    """Return how often kernels have been compiled."""
    count = 0
    for module in pkgutil.iter_modules(_compiled.__path__):
        values = vars(import_module(f"outsample._compiled.{module.name}")).values()
        count += sum(len(value.signatures) for value in values if hasattr(value, "signatures"))
    return count


def test_the_search_is_built_once_by_many_threads(data, path, monkeypatch):
    loaded = again(PCAExtension(index="brute", **FIXED).fit(*data), path)
    index, built = loaded.index_, []
    assert index._built is None
    make = brute_force.Products
    slow = lambda *args: (time.sleep(0.05), built.append(1), make(*args))[-1]  # noqa: E731
    monkeypatch.setattr(brute_force, "Products", slow)
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(loaded.transform, [data[0]] * 8))
    assert len(built) == 1
    for part in parts:
        np.testing.assert_array_equal(part, parts[0])


# Saving.


def test_an_interrupted_save_leaves_the_old_file_and_nothing_else(extension, path, monkeypatch):
    outsample.save(extension, path)
    before = path.read_bytes()
    for error in (KeyboardInterrupt, OSError(28, "No space left on device")):

        def fail(*_, error=error):
            raise error

        for step in ("fsync", "replace"):
            with monkeypatch.context() as patch:
                patch.setattr(os, step, fail)
                with pytest.raises((KeyboardInterrupt, OSError)):
                    outsample.save(extension, path)
            assert path.read_bytes() == before
            assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_path_that_cannot_be_written_raises_an_os_error(extension, tmp_path):
    with pytest.raises(FileNotFoundError):
        outsample.save(extension, tmp_path / "nowhere" / "model.outsample")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        outsample.save(extension, tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(OSError, match="not a regular file"):
            outsample.save(extension, tmp_path / "pipe")
        assert not (tmp_path / "pipe").is_file()


@pytest.mark.skipif(os.name != "posix", reason="kills a process")
def test_a_process_killed_while_saving_leaves_the_old_file(extension, path):
    outsample.save(extension, path)
    before = path.read_bytes()
    program = f"""
import os, signal, sys
import numpy as np, outsample
from outsample.files import layout
model = outsample.load({str(path)!r})
# The first chunk of the arrays is written, and nothing after it.
layout.CHUNK_BYTES = 64
written = []
real = layout.atomic_write
class Dying:
    def __init__(self, stream): self.stream = stream
    def write(self, data):
        self.stream.write(data); self.stream.flush(); written.append(1)
        if len(written) == 5: os.kill(os.getpid(), signal.SIGKILL)
from contextlib import contextmanager
@contextmanager
def dying(path):
    with real(path) as stream: yield Dying(stream)
layout.atomic_write = dying
outsample.save(model, {str(path)!r})
"""
    done = subprocess.run([sys.executable, "-c", program], env=os.environ, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert path.read_bytes() == before
    assert outsample.load(path).n_neighbors_ == 5
    assert len(list(path.parent.glob(".model*.tmp"))) == 1  # left by the kill, and not a model
    outsample.save(extension, path)  # and the next save removes it
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.skipif(os.name != "posix", reason="links and permissions are posix")
def test_a_link_stays_and_others_may_read(extension, tmp_path):
    link = tmp_path / "link.outsample"
    link.symlink_to(tmp_path / "model.outsample")
    outsample.save(extension, link)
    assert link.is_symlink() and (tmp_path / "model.outsample").is_file()
    (tmp_path / "plain").touch()
    plain = (tmp_path / "plain").stat().st_mode
    assert (tmp_path / "model.outsample").stat().st_mode == plain


# Large files are verified at first use.


@pytest.fixture
def unread(extension, path, monkeypatch):
    outsample.save(extension, path)
    monkeypatch.setattr(model_file, "MAX_EAGER_BYTES", 0)
    return outsample.load(path)


USES = {
    "transform": lambda model, X: model.transform(X),
    "place": lambda model, X: model.place(X),
    "score": lambda model, X: model.score(X, X[:, :2]),
    "attribute": lambda model, X: model.embedding_,
    "property": lambda model, X: model.lipschitz_,
    "hasattr": lambda model, X: hasattr(model, "model_"),
    "copy": lambda model, X: copy.deepcopy(model),
    "clone": lambda model, X: clone(model),
    "fit": lambda model, X: model.fit(X, X),
    "names": lambda model, X: model.get_feature_names_out(),
    "save": lambda model, X: outsample.save(model, "never-written.outsample"),
}


def test_a_large_model_is_read_when_it_is_used(unread, extension, data):
    assert isinstance(unread, PCAExtension) and type(unread).__name__ == "PCAExtension"
    assert repr(unread) == repr(extension) and unread.get_params() == extension.get_params()
    check_is_fitted(unread)
    assert unread.n_features_in_ == 3 and not hasattr(unread, "feature_names_in_")
    unread.set_params(level=0.9)
    assert "model_" not in vars(unread)
    np.testing.assert_array_equal(unread.transform(data[0]), extension.transform(data[0]))
    assert type(unread) is PCAExtension and set(vars(unread)) == set(vars(extension))


@pytest.mark.parametrize("use", [name for name in USES if name != "save"])
def test_every_use_reads_it_first(unread, extension, data, use):
    USES[use](unread, data[0])
    assert type(unread) is PCAExtension
    if use != "fit":
        np.testing.assert_array_equal(unread.transform(data[0]), extension.transform(data[0]))
    else:
        assert unread.embedding_.shape == (40, 3)


@pytest.mark.parametrize("use", USES)
def test_damage_shows_before_any_answer(extension, path, data, use, monkeypatch):
    outsample.save(extension, path)
    damaged = bytearray(path.read_bytes())
    damaged[-3] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(ModelFileError, match=r"array .* does not agree with its checksum"):
        outsample.load(path)
    monkeypatch.setattr(model_file, "MAX_EAGER_BYTES", 0)
    loaded = outsample.load(path)
    for _ in range(2):
        with pytest.raises(ModelFileError, match=f"{path.name}.* does not agree with its checksum"):
            USES[use](loaded, data[0])


def test_many_threads_read_it_once(unread, extension, data):
    with ThreadPoolExecutor(8) as pool:
        for part in pool.map(unread.transform, [data[0]] * 8):
            np.testing.assert_array_equal(part, extension.transform(data[0]))


def test_an_unread_model_is_pickled_as_its_own_class(unread, extension, data):
    loaded = pickle.loads(pickle.dumps(unread))
    assert type(loaded) is PCAExtension
    np.testing.assert_array_equal(loaded.transform(data[0]), extension.transform(data[0]))


def test_a_detector_that_is_large(data, path, monkeypatch):
    fitted = NoveltyDetector(PCAExtension(**FIXED)).fit(*data)
    monkeypatch.setattr(model_file, "MAX_EAGER_BYTES", 0)
    loaded = again(fitted, path)
    np.testing.assert_array_equal(loaded.p_values(data[0]), fitted.p_values(data[0]))
    loaded = outsample.load(path)
    assert loaded.extension_.n_neighbors_ == 5


# One copy for many processes.


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux' /proc")
def test_a_large_model_is_not_read_by_loading_and_is_shared(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((400_000, 40))
    fitted = PCAExtension(weighting="distance", index="brute", **FIXED).fit(X, X[:, :2])
    path = tmp_path / "large.outsample"
    outsample.save(fitted, path)
    size = path.stat().st_size
    program = """
import sys
import numpy as np, outsample
import outsample.files.contents

def memory(name, file=""):
    is_counted, total = not file, 0
    for line in open("/proc/self/smaps" if file else "/proc/self/smaps_rollup"):
        if file and not line.split()[0].endswith(":"):
            is_counted = line.rstrip().endswith(file)
        elif is_counted and line.startswith(name):
            total += 1024 * int(line.split()[1])
    return total

before = memory("Rss:")
model = outsample.load(sys.argv[1])
print(memory("Rss:") - before, flush=True)
placed = model.place(np.full((1, 40), 0.5))
print("placed", flush=True)
sys.stdin.read(1)
names = "Rss:", "Pss:", "Private_Dirty:"
print(*(memory(name, sys.argv[1]) for name in names), flush=True)
sys.stdin.read(1)
"""
    command = [sys.executable, "-c", program, str(path)]
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **options) for _ in range(4)]
    grown = [int(process.stdout.readline()) for process in processes]
    assert all(process.stdout.readline() == "placed\n" for process in processes)
    for process in processes:
        process.stdin.write("x")
        process.stdin.flush()
    used = np.array([process.stdout.readline().split() for process in processes], dtype=float)
    for process in processes:
        process.communicate("x")
    assert max(grown) < 5e7  # `load` reads no array
    resident, share, own = used.T
    print(f"{size / 1e6:.0f} MB:", grown, resident, share, own)
    assert (resident > 0.95 * size).all()  # all of it was verified
    assert share.sum() < 1.05 * size and own.sum() == 0  # and there is one copy


def test_describing_a_file_imports_neither_numba_nor_scikit_learn(extension, path):
    outsample.save(extension, path, columns={"id": np.arange(40)})
    program = f"""
import sys
from outsample.files.model_file import describe, read_columns
assert describe({str(path)!r}).n_points == len(read_columns({str(path)!r})["id"])
assert not {{"numba", "sklearn", "scipy"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_header_is_strict_json(extension, path):
    outsample.save(extension, path)
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    assert (8 + length) % 64 == 0
    header = json.loads(data[8 : 8 + length])
    texts = header["__metadata__"]
    assert texts["format"] == "outsample model" and texts["format_version"] == "1"
    assert set(json.loads(texts["sha256"])) == set(header) - {"__metadata__"}


def test_a_map_without_neighbours_is_saved(data, path):
    fitted = NystroemExtension().fit(*data)
    np.testing.assert_array_equal(again(fitted, path).transform(data[0]), fitted.transform(data[0]))
