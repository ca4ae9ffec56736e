"""A program that uses every public name, written for a strict type checker.

``make types`` checks it with ``mypy --strict``; a test runs it. `assert_type` states the types that
users can rely on; only types of scikit-learn are Any.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, assert_type

import numpy as np
from numpy.typing import NDArray

import outsample
from outsample import (
    BatchPlacer,
    Blend,
    Correlated,
    Diffusion,
    DiffusionMaps,
    Extended,
    GaussianDistance,
    GeometricHarmonics,
    InverseDistance,
    LaplacianPyramids,
    ModelFileError,
    MultiscaleExtension,
    NeighborLoss,
    NoveltyDetector,
    NystroemExtension,
    OnlineDiscoveries,
    PCAExtension,
    Placement,
    PreparedModel,
    StreamingExtension,
    compare,
    load,
    place_batches,
    save,
)
from outsample.placers.local import LocalPlacer

if TYPE_CHECKING:  # an unknown name must be an error, otherwise --strict reports an unused ignore
    from outsample import PCAExtention  # type: ignore[attr-defined]  # noqa: F401

Array = NDArray[np.float64]
Reals = NDArray[np.floating[Any]]
Counts = NDArray[np.integer[Any]]


def points() -> tuple[Array, Array, Array]:
    """Return points, their images and new points."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(80, 2))
    return X, np.column_stack([X, (X**2).sum(axis=1)]), rng.uniform(size=(5, 2))


def place(X: Array, Y: Array, new: Array) -> Placement:
    """Place points with every weighting."""
    extension = PCAExtension(weighting="distance", order=0, loss="squared", n_neighbors=8)
    assert_type(extension.fit(X, Y), PCAExtension)
    placed = extension.place(new)
    assert_type(placed, Placement)
    assert_type(placed.coordinates, Reals)
    assert_type(placed.error_bar, Reals)
    assert_type(placed.n_neighbors, Counts)
    assert_type(extension.transform(new), Reals)
    assert_type(extension.score(X, Y), float)
    weightings = (InverseDistance(3.0), GaussianDistance(1.0), Correlated("linear", 4.0, 1e-3))
    for weighting in weightings:
        PCAExtension(weighting=weighting, n_neighbors=8, order=0, loss="squared").fit(X, Y)
    for all_points in (Diffusion(1.0, 1e-6), NeighborLoss(10.0, 0.3)):
        PCAExtension(weighting=all_points).fit(X, Y[:, :2])
    narrow = LocalPlacer(InverseDistance(4.0), 3, order=0, loss="squared", tangent_dim=1)
    wide = LocalPlacer(InverseDistance(2.0), 9, order=0, loss="squared", tangent_dim=1)
    PCAExtension(weighting=Blend((narrow, wide), (0.75, 0.25))).fit(X, Y)
    return placed


def methods(X: Array, Y: Array, new: Array) -> None:
    """Use the other extensions, a map of our own, and the comparison."""
    assert_type(NystroemExtension().fit(X, Y), NystroemExtension)
    assert_type(GeometricHarmonics().fit(X, Y), GeometricHarmonics)
    assert_type(LaplacianPyramids().fit(X, Y), LaplacianPyramids)
    assert_type(MultiscaleExtension().fit(X, Y), MultiscaleExtension)
    maps = DiffusionMaps(n_components=2)
    assert_type(maps.fit(X), DiffusionMaps)
    assert_type(maps.transform(new), Reals)
    assert_type(maps.fit_transform(X), Reals)
    extended = Extended(maps, PCAExtension(n_neighbors=8, order=0, loss="squared"))
    assert_type(extended.fit(X), Extended)
    assert_type(extended.place(new), Placement)
    rows = compare(X, Y, [PCAExtension(n_neighbors=5, order=0, loss="squared")], n_splits=1)
    for row in rows:
        assert_type(row.name, str)
        assert_type(row.error, float)


def judge(X: Array, Y: Array, new: Array) -> float:
    """Test whether points belong."""
    detector = NoveltyDetector(PCAExtension(n_neighbors=8, order=0, loss="squared"), alpha=0.05)
    assert_type(detector.fit(X, Y), NoveltyDetector)
    assert_type(detector.discoveries(new, fdr=0.1), NDArray[np.bool_])
    assert_type(detector.predict(new), Counts)
    assert_type(detector.abnormality(new), Reals)
    assert_type(detector.score_samples(new), Reals)
    assert_type(detector.explain(new)[0].main_reason, str)
    assert_type(detector.explain(new)[0].neighbors, Counts)
    judged = detector.place(new)
    assert_type(judged.p_value, Reals)
    return float(judged.p_value.min()) + float(detector.p_values(new).min())


def follow(X: Array, Y: Array, new: Array) -> bool:
    """Learn from arrivals."""
    detector = NoveltyDetector(PCAExtension(n_neighbors=8, order=0, loss="squared")).fit(X, Y)
    stream = StreamingExtension(detector, window=100, guard=0.05)
    learned = stream.learn(new)
    assert_type(learned.accepted, NDArray[np.bool_])
    assert_type(stream.n_seen_, int)
    assert_type(stream.n_learned_, int)
    assert_type(stream.drift_.reason, str)
    online = OnlineDiscoveries(fdr=0.1)
    assert_type(online.test(stream.place(new).p_value), NDArray[np.bool_])
    return assert_type(stream.needs_refit_, bool)


def prepare(X: Array, Y: Array) -> None:
    """Place rows of a table."""
    table = {"size": X[:, 0], "kind": np.where(X[:, 1] > 0.5, "a", "b")}
    model = PreparedModel(NoveltyDetector(), prepare="auto", folds=10)
    assert_type(model.fit(table, Y[:, :2]), PreparedModel)
    assert_type(model.p_values(table), Reals)
    assert_type(model.abnormality(table), Reals)
    assert_type(model.columns_[0].kind, str)
    assert_type(model.selection_[0].preparation, str)
    assert len(model.place(table).coordinates) == len(X)


def keep(X: Array, Y: Array, new: Array, folder: Path) -> None:
    """Write a model to a file and read it again."""
    model = PCAExtension(n_neighbors=8, order=0, loss="squared").fit(X, Y)
    path = folder / "model.outsample"
    save(model, path, columns={"id": np.arange(len(X))}, map_names=["x", "y", "z"])
    again = load(path)
    assert isinstance(again, PCAExtension)
    assert (again.transform(new) == model.transform(new)).all()
    placer = BatchPlacer(path, columns=["a", "b"])
    assert_type(placer.ddl, str)
    batch = {"a": new[:, 0], "b": new[:, 1]}
    for placed in place_batches(path, [batch, new]):
        assert placed is not None
    assert list(placer(batch))[:3] == ["x", "y", "z"]
    (folder / "broken.outsample").write_bytes(path.read_bytes()[:100])
    try:
        load(folder / "broken.outsample")
    except ModelFileError as error:
        assert_type(str(error), str)


def main() -> None:
    """Run everything."""
    X, Y, new = points()
    place(X, Y, new)
    methods(X, Y, new)
    assert judge(X, Y, new) > 0
    assert not follow(X, Y, new)
    prepare(X, Y)
    with TemporaryDirectory() as folder:
        keep(X, Y, new, Path(folder))
    assert_type(outsample.__version__, str)


if __name__ == "__main__":
    main()
