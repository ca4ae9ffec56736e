"""CONTRIBUTING is correct: its example works, the names in it exist, a fit searches once."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import outsample
from outsample import Correlated, NoveltyDetector, PCAExtension
from outsample.placers import candidates

TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
SOURCES = Path(outsample.__file__).parent


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """Run the example of CONTRIBUTING as the module it would be."""
    code = next(block for block in re.findall(r"```python\n(.*?)```", TEXT, re.S))
    assert len(code.splitlines()) <= 40
    folder = tmp_path_factory.mktemp("placers")
    (folder / "exponential.py").write_text(code)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        import exponential

        yield exponential


@pytest.fixture
def curve():
    angle = np.random.default_rng(0).uniform(0, 6, 200)
    X = np.column_stack([np.cos(angle), np.sin(angle), angle])
    return X, np.column_stack([angle, angle**2])


def test_the_example_is_a_weighting(example, curve):
    X, Y = curve
    weighting = example.ExponentialDistance(0.5)
    extension = PCAExtension(weighting=weighting, n_neighbors=8, order=0, loss="squared").fit(X, Y)
    near = extension.index_.nearest(X[:5] + 0.01, 8)
    length = extension.model_.fitted.weighting.length
    weights = np.exp(-near.distances.reshape(5, 8) / length)
    images = Y[extension.distinct_.rows][near.indices].reshape(5, 8, 2)
    means = (weights[..., None] * images).sum(axis=1)
    expected = means / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(extension.transform(X[:5] + 0.01), expected, rtol=1e-9)
    for order, loss in ((1, "squared"), (0, "absolute")):
        placed = PCAExtension(weighting=weighting, order=order, loss=loss).fit(X, Y).place(X[:3])
        assert np.isfinite(np.column_stack(placed)).all()
    again = pickle.loads(pickle.dumps(extension))
    np.testing.assert_array_equal(again.transform(X[:5]), extension.transform(X[:5]))
    with pytest.raises(ValueError, match=r"weighting.length is -1"):
        PCAExtension(weighting=example.ExponentialDistance(-1)).fit(X, Y)


def test_one_line_lets_auto_consider_it(example, curve, monkeypatch):
    line = (example.ExponentialDistance(0.5), (5, 10, 20), "squared")
    monkeypatch.setattr(candidates, "CONSTANTS", [*candidates.CONSTANTS, line])
    tried = {trial.placer.weighting for trial in PCAExtension().fit(*curve).selection_}
    assert example.ExponentialDistance(0.5) in tried


def test_names_in_the_walk_exist():
    """Each `package.Name` is a class or function there, each `package/module` a file."""
    walk = TEXT[TEXT.index("| Where is") : TEXT.index("## Names")]
    packages = "|".join(path.name.removesuffix(".py") for path in SOURCES.iterdir())
    names = set(re.findall(rf"`({packages})\.(\w+)", walk))
    assert len(names) > 20
    for package, name in names:
        paths = [*SOURCES.glob(f"{package}.py"), *(SOURCES / package).rglob("*.py")]
        code = "".join(path.read_text() for path in paths)
        assert re.search(rf"^(class|def|async def) {name}\b", code, re.M), f"{package}.{name}"
    for module in re.findall(rf"`((?:{packages})/\w+)", walk):
        assert (SOURCES / f"{module}.py").exists(), module


def test_the_listing_has_every_package():
    listing = TEXT[TEXT.index("\ncli  ") : TEXT.index("`lab/` is")]
    modules = {path.name.removesuffix(".py") for path in SOURCES.iterdir()}
    listed = {name for line in re.findall(r"^\w+(?: \| \w+)*", listing, re.M)
              for name in line.split(" | ")}  # fmt: skip
    assert listed == modules - {"__init__", "__pycache__", "py.typed"}


def test_no_code_asks_what_class_a_placer_or_a_weighting_is():
    kinds = r"\w*(?:Correlated|Diffusion|Distance|Weighting|Tangent|Placer|Blend|Local|Kriging)"
    kinds += r"|\w*(?:Process|NeighborLoss|TwoLevels|FromOriginals)"
    for path in SOURCES.rglob("*.py"):
        checks = re.findall(rf"isinstance\([^)]*\b(?:{kinds})\b", path.read_text())
        assert not checks, f"{path.name}: {checks}"


def test_no_two_files_share_a_name_but_a_kernel_and_its_maths():
    maths = [path for path in SOURCES.rglob("*.py") if path.parent.name != "_compiled"]
    names = [path.name for path in maths if path.name != "__init__.py"]
    assert sorted(names) == sorted(set(names))


def test_no_file_is_long():
    for path in SOURCES.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 300, path


@pytest.mark.parametrize("n_neighbors", [10, "auto"])
def test_per_point_tangents_search_the_training_set_once(n_neighbors):
    rng = np.random.default_rng(0)
    X = np.tanh(rng.normal(size=(10_000, 3)) @ rng.normal(size=(3, 14)))
    extension = PCAExtension(
        weighting="local_tangent", n_neighbors=n_neighbors, order=0, loss="squared"
    ).fit(X, X[:, :2])
    # Every row once, and samples of at most 150, 500, 2000 and 1000 rows.
    assert len(X) <= extension.index_.rows_searched <= len(X) + 4000


def test_the_detector_shares_the_index_of_its_map_and_searches_once(curve):
    X, Y = curve
    for extension in (
        PCAExtension(n_neighbors=5, weighting="tangent", order=0, loss="squared"),
        PCAExtension(n_neighbors=60, weighting="distance", order=0, loss="squared"),
        PCAExtension(radius=0.3, weighting="distance", order=0, loss="squared"),
        PCAExtension(weighting=Correlated(), n_neighbors=200),
    ):
        detector = NoveltyDetector(extension).fit(X, Y)
        index = detector.extension_.index_
        assert detector.model_.index is index
        before = index.rows_searched
        placed = detector.place(X[:7] + 0.01)
        assert index.rows_searched == before + 7
        np.testing.assert_array_equal(placed.abnormality, detector.abnormality(X[:7] + 0.01))
        plain = detector.extension_.place(X[:7] + 0.01)
        for name in plain._fields:
            np.testing.assert_array_equal(getattr(placed, name), getattr(plain, name))
