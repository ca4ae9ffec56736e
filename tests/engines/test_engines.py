"""Batches of every kind, saved models in other processes, shards: the same places everywhere."""

from __future__ import annotations

import os
import pickle
import sys
import time

import numpy as np
import pytest

import outsample
from outsample import (
    BatchPlacer,
    Correlated,
    DiffusionMaps,
    Extended,
    GeometricHarmonics,
    ModelFileError,
    NoveltyDetector,
    PCAExtension,
    place_batches,
)
from outsample.engines import batch_placer
from outsample.engines.sharded import ShardedPlacer
from outsample.opened_model import OpenedModel

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

FIXED = {"n_neighbors": 4, "weighting": "tangent", "order": 0, "loss": "squared"}
RNG = np.random.default_rng(0)
X = RNG.random((80, 3))
Y = np.column_stack([X[:, 0], X[:, 1] ** 2])
FRAME = pd.DataFrame(RNG.random((50, 3)), columns=list("abc"), index=np.arange(50) * 2)
FRAME.insert(1, "id", [f"row {at}" for at in range(50)])
DETECTOR = NoveltyDetector(PCAExtension(**FIXED)).fit(pd.DataFrame(X, columns=list("cab")), Y)
KNOWN = DETECTOR.place(FRAME[list("cab")])
NAMES = ["u", "v", "error_bar", "abnormality", "p_value", "bound", "n_neighbors"]

KINDS = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.from_pandas(frame),
    "table": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "batch": lambda frame: pa.RecordBatch.from_pandas(frame, preserve_index=False),
    "dict": lambda frame: {name: frame[name].to_numpy() for name in frame},
}


@pytest.fixture
def path(tmp_path):
    outsample.save(DETECTOR, tmp_path / "model.outsample", map_names=["u", "v"])
    return tmp_path / "model.outsample"


def columns_of(batch):
    """Return the columns of a batch of any kind as arrays."""
    names = batch.schema.names if hasattr(batch, "num_rows") else getattr(batch, "columns", batch)
    return {name: np.asarray(batch[name]) for name in names}


def are_known(batch, rows=slice(None), kept=()):
    found = columns_of(batch)
    assert list(found) == [*kept, *NAMES]
    np.testing.assert_array_equal(np.column_stack([found["u"], found["v"]]), KNOWN[0][rows])
    for name in NAMES[2:]:
        np.testing.assert_array_equal(found[name], getattr(KNOWN, name)[rows])


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_answered_by_its_like(kind, path):
    batch = KINDS[kind](FRAME)
    placed = BatchPlacer(path, keep=["id"])(batch)
    assert type(placed) is type(batch)
    are_known(placed, kept=["id"])
    assert list(columns_of(placed)["id"]) == list(FRAME.id)
    empty = BatchPlacer(path)(KINDS[kind](FRAME.iloc[:0]))
    assert all(len(column) == 0 for column in columns_of(empty).values())
    assert list(columns_of(empty)) == NAMES
    if kind == "pandas":
        assert (placed.index == FRAME.index).all()


@pytest.mark.parametrize("kind", KINDS)
def test_batches_one_after_another(kind, path):
    parts = [slice(0, 20), slice(20, 20), slice(20, 50)]
    for model in (path, str(path)):
        batches = (KINDS[kind](FRAME.iloc[part]) for part in parts)
        for placed, part in zip(place_batches(model, batches), parts, strict=True):
            are_known(placed, part)
    batches = iter([KINDS[kind](FRAME.iloc[part]) for part in parts])
    for placed, part in zip(BatchPlacer(path)(batches), parts, strict=True):
        are_known(placed, part)


def test_arrays_and_models_without_a_place():
    new = FRAME[list("cab")].to_numpy()
    found = list(place_batches(DETECTOR, [new[:20], new[20:]]))
    for field, known in zip(zip(*found, strict=True), KNOWN, strict=True):
        np.testing.assert_array_equal(np.concatenate(field), known)
    kernel = GeometricHarmonics(bandwidth=0.5).fit(X, Y)
    (placed,) = place_batches(kernel, [new])
    np.testing.assert_array_equal(placed, kernel.transform(new))
    (placed,) = place_batches(kernel, [pd.DataFrame(new)])
    assert list(placed) == ["map_1", "map_2"]
    (placed,) = place_batches(NoveltyDetector().fit(X), [{"data": new}])
    assert list(placed) == ["abnormality", "p_value"]


def test_only_one_batch_is_held():
    taken = []

    def batches():
        for at in range(5):
            taken.append(at)
            yield X[:3]

    stream = place_batches(DETECTOR, batches())
    assert taken == []
    next(stream)
    assert taken == [0]


def test_the_model_is_not_sent_and_opened_once(path, monkeypatch):
    placer = BatchPlacer(path)
    sent = pickle.dumps(placer)
    assert len(sent) < 1000
    opened = []
    monkeypatch.setattr(batch_placer, "_OPEN", {})
    real = OpenedModel.open
    monkeypatch.setattr(OpenedModel, "open", lambda path: opened.append(path) or real(path))
    for _ in range(3):
        are_known(pickle.loads(sent)(FRAME))
    assert len(opened) == 1


def test_what_it_tells_engines(path):
    placer = BatchPlacer(path)
    assert placer.schema.names == NAMES == list(placer.meta)
    assert placer.meta.dtypes.equals(placer(FRAME).dtypes)
    assert placer.schema == placer(KINDS["batch"](FRAME)).schema
    assert placer.ddl.endswith("bound double, n_neighbors long")
    assert repr(path.name)[1:-1] in repr(placer)


def test_a_replaced_file_is_refused_and_the_same_again_is_not(path):
    placer = BatchPlacer(path)
    outsample.save(DETECTOR, path, map_names=["u", "v"])
    are_known(placer(FRAME))
    outsample.save(PCAExtension(**FIXED).fit(X, Y), path)
    with pytest.raises(ModelFileError, match="the model was replaced by another one"):
        placer(FRAME)
    assert list(BatchPlacer(path, keep=["id"])(FRAME))[:3] == ["id", "map_1", "map_2"]
    os.remove(path)
    with pytest.raises(ModelFileError, match="no such file"):
        placer(FRAME)


def test_what_is_wrong_is_named(path, tmp_path):
    placer = BatchPlacer(path)
    with pytest.raises(ValueError, match=r"Partition 3: lacks 1 of the model's 3 features: 'c'"):
        placer(FRAME.drop(columns="c"), partition_info={"number": 3})
    with pytest.raises(ValueError, match="Batch 1: row 2, column 'b' is missing or infinite"):
        list(place_batches(path, [FRAME, FRAME.assign(b=[0, 1, np.nan] + [0] * 47)]))
    with pytest.raises(ValueError, match="row 0, column 'c' is missing"):
        placer(pa.table({"a": [1.0], "b": [1], "c": pa.array([None], pa.int64())}))
    for batch in KINDS.values():
        words = batch(FRAME.assign(a="1.5"))
        with pytest.raises(ValueError, match=r"column 'a' contains .*, not numbers"):
            placer(words)
    with pytest.raises(ValueError, match="'u' cannot be carried"):
        BatchPlacer(path, keep=["u"])
    with pytest.raises(ValueError, match="Batch 0: has 2 columns for the model's 3 features; list"):
        list(place_batches(PCAExtension(**FIXED).fit(X, Y), [FRAME[["a", "b"]]]))
    with pytest.raises(TypeError, match="a batch is a list, but must be"):
        placer([1, 2])
    with pytest.raises(TypeError, match="is one batch, but must be an iterable"):
        place_batches(DETECTOR, FRAME)
    with pytest.raises(TypeError, match="must be a fitted estimator or a path"):
        place_batches(3, [FRAME])
    with pytest.raises(ValueError, match="not fitted yet"):
        place_batches(PCAExtension(), [X])
    with pytest.raises(ModelFileError, match="no such file"):
        BatchPlacer(tmp_path / "nothing")
    (tmp_path / "text").write_text("a,b,c\n1,2,3\n" * 100)
    with pytest.raises(ModelFileError, match="not a model of outsample"):
        BatchPlacer(tmp_path / "text")


def test_a_scan_of_pyarrow(path, tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset")
    table = KINDS["table"](FRAME)
    dataset.write_dataset(table, tmp_path / "new", format="parquet", max_rows_per_file=20,
                          max_rows_per_group=20)  # fmt: skip
    scanned = dataset.dataset(tmp_path / "new").to_batches(batch_size=7)
    placed = pa.Table.from_batches(place_batches(path, scanned))
    are_known(placed)


class DiesOnce:
    """A placer in whose first partition of a kind the worker's process ends."""

    def __init__(self, placer, mark):
        self.placer, self.mark = placer, mark

    def __call__(self, frame, partition_info=None):
        if len(frame) and frame.id.iloc[0] == "row 26":
            try:
                os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                os._exit(1)
        return self.placer(frame, partition_info)


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


def test_a_worker_killed_in_the_middle_changes_nothing(path, tmp_path, client):
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(FRAME, npartitions=4)
    placer = BatchPlacer(path, keep=["id"])
    meta = placer(frame._meta)
    are_known(frame.map_partitions(placer, meta=meta).compute(), kept=["id"])
    dying = DiesOnce(placer, str(tmp_path / "died"))
    are_known(frame.map_partitions(dying, meta=meta).compute(), kept=["id"])
    assert (tmp_path / "died").exists()
    until = time.monotonic() + 30
    while len(client.scheduler_info()["workers"]) < 2 and time.monotonic() < until:
        time.sleep(0.1)


def test_shards_on_workers_and_models_in_the_graph(tmp_path, client):
    da = pytest.importorskip("dask.array")
    model, new = PCAExtension(**FIXED).fit(X, Y), RNG.random((30, 3))
    outsample.save(model, tmp_path / "map")
    known = model.place(new)
    for found in (
        ShardedPlacer(tmp_path / "map", 3).place(new),
        client.compute(model.place(da.from_array(new, chunks=(10, 3)))),
    ):
        for one, other in zip(client.gather(found), known, strict=True):
            np.testing.assert_array_equal(one, other)


GRID = np.stack(np.meshgrid(*[np.arange(5.0)] * 3), axis=-1).reshape(-1, 3)
LOCAL = {
    "distance": PCAExtension(**FIXED | {"weighting": "distance"}),
    "local tangent": PCAExtension(**FIXED | {"weighting": "local_tangent"}),
    "order 1": PCAExtension(**FIXED | {"n_neighbors": 9, "order": 1}),
    "absolute": PCAExtension(**FIXED | {"n_neighbors": 6, "loss": "absolute"}),
    "correlated": PCAExtension(**FIXED | {"n_neighbors": 12, "weighting": Correlated("linear")}),
    "radius": PCAExtension(**FIXED | {"n_neighbors": 2}, radius=1.01, tangent_radius=1.5),
    "cosine": PCAExtension(**FIXED, metric="cosine"),
}


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize("points", [X, GRID], ids=["drawn", "grid"])
def test_shards_answer_as_the_whole(name, points, tmp_path):
    dask = pytest.importorskip("dask")
    images = np.column_stack([points[:, 0], points[:, 1] ** 2])
    model = LOCAL[name].fit(points, images)
    outsample.save(model, tmp_path / "map")
    new = np.concatenate([points[::7], points[:20] + 0.5, RNG.random((20, 3)) * 5])
    with dask.config.set(scheduler="synchronous"):
        sharded = ShardedPlacer(tmp_path / "map", 4)
        for found, known in zip(sharded.place(new), model.place(new), strict=True):
            np.testing.assert_array_equal(found, known)
        np.testing.assert_array_equal(sharded.transform(new), model.transform(new))


def test_what_cannot_be_sharded(tmp_path):
    pytest.importorskip("dask")
    outsample.save(DETECTOR, tmp_path / "detector")
    with pytest.raises(TypeError, match="contains a NoveltyDetector, but ShardedPlacer needs"):
        ShardedPlacer(tmp_path / "detector", 2)
    outsample.save(PCAExtension(weighting="diffusion").fit(X, Y), tmp_path / "all")
    with pytest.raises(TypeError, match="the model uses all training points for each query"):
        ShardedPlacer(tmp_path / "all", 2)
    extended = Extended(DiffusionMaps(), PCAExtension(**FIXED)).fit(X)
    outsample.save(extended, tmp_path / "extended")
    with pytest.raises(ValueError, match="n_shards is 0"):
        ShardedPlacer(tmp_path / "extended", 0)
    found = ShardedPlacer(tmp_path / "extended", 2).transform(X[:9] + 0.01)
    np.testing.assert_array_equal(found, extended.transform(X[:9] + 0.01))


def test_spark(path, monkeypatch):
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # else workers take the system's
    from pyspark.sql import SparkSession

    placer = BatchPlacer(path, keep=["id"])
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", False).getOrCreate()
    try:
        rows = spark.createDataFrame(FRAME.reset_index(drop=True)).coalesce(1)
        schema = f"id string, {placer.ddl}"
        are_known(rows.mapInArrow(placer, schema).toPandas(), kept=["id"])
        are_known(rows.mapInPandas(placer, schema).toPandas(), kept=["id"])
    finally:
        spark.stop()


def test_ray(path):
    ray = pytest.importorskip("ray", reason="ray is not installed")
    pytest.importorskip("ray.data")
    ray.init(num_cpus=1, include_dashboard=False)
    try:
        rows = ray.data.from_pandas(FRAME.reset_index(drop=True))
        for form in ("numpy", "pandas", "pyarrow"):
            placed = rows.map_batches(BatchPlacer(path), batch_format=form)
            are_known(placed.to_pandas())
    finally:
        ray.shutdown()
