"""Measure the behaviour of libraries that place new points, for docs/comparison.md.

``python -m outsample_lab.figures.peer_manners`` writes ``docs/figures/manners.json``, from
which ``make figures`` writes a table. Needs the extra ``outsample-lab[bench]``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsRegressor, NearestNeighbors

from outsample import NoveltyDetector, PCAExtension

N, N_NEW = 1000, 200
PACKAGES = ("outsample", "umap-learn", "openTSNE", "scikit-learn")


class Contender(NamedTuple):
    """A library with a map, and a function that places points on it."""

    name: str
    place: Callable[[np.ndarray], np.ndarray]
    Y: np.ndarray
    any_map: str
    alarm_rate: Callable[[np.ndarray], float] | None = None


def contenders(X: np.ndarray) -> list[Contender]:
    """Return each library with its own map, or with one by UMAP."""
    from openTSNE import TSNE
    from umap import UMAP

    umap = UMAP(random_state=0, n_jobs=1).fit(X)
    tsne = TSNE(random_state=0).fit(X)
    # openTSNE's transform shifts the map in place, so the map is copied first.
    frozen = np.asarray(tsne, dtype=np.float64).copy()
    knn = KNeighborsRegressor(5, weights="distance").fit(X, umap.embedding_)
    ours = PCAExtension().fit(X, umap.embedding_)
    detector = NoveltyDetector().fit(X)
    shift = [0.0]

    def place_tsne(rows: np.ndarray) -> np.ndarray:
        placed = np.asarray(tsne.transform(rows))
        shift[0] = np.asarray(tsne).mean(axis=0) - frozen.mean(axis=0)
        return placed - shift[0]

    def alarm_rate(rows: np.ndarray) -> float:
        return float((detector.p_values(rows) <= 0.01).mean())

    return [
        Contender("outsample", ours.transform, umap.embedding_, "yes", alarm_rate),
        Contender("umap-learn", umap.transform, umap.embedding_, "no"),
        Contender("openTSNE", place_tsne, frozen, "with recomputed affinities"),
        Contender("5-NN (scikit-learn)", knn.predict, umap.embedding_, "yes"),
    ]


def manners(
    contender: Contender, X: np.ndarray, new: np.ndarray, junk: np.ndarray
) -> dict[str, Any]:
    """Return the table row of a contender."""
    size = np.sqrt(((contender.Y - contender.Y.mean(axis=0)) ** 2).sum(axis=1).mean())
    batch = contender.place(new)
    alone = np.concatenate([contender.place(row[None]) for row in new[:20]])
    training = contender.place(X[:200])
    search = NearestNeighbors().fit(contender.Y)
    usual = np.quantile(search.kneighbors(n_neighbors=1)[0], 0.9)
    hidden = search.kneighbors(contender.place(junk), n_neighbors=1)[0] <= usual
    return {
        "name": contender.name,
        "alone": float(np.linalg.norm(batch[:20] - alone, axis=1).max() / size),
        "known": float(np.linalg.norm(training - contender.Y[:200], axis=1).mean() / size),
        "hidden": float(hidden.mean()),
        "detected": None if contender.alarm_rate is None else contender.alarm_rate(junk),
        "any_map": contender.any_map,
    }


def main() -> None:
    """Measure all contenders and write the results."""
    images = load_digits().data
    X, new = images[:N], images[N : N + N_NEW]
    junk = np.random.default_rng(0).uniform(0, 16, (N_NEW, images.shape[1]))
    rows = [manners(contender, X, new, junk) for contender in contenders(X)]
    results = {"versions": {name: version(name) for name in PACKAGES}, "rows": rows}
    path = Path(__file__).parents[4] / "docs" / "figures" / "manners.json"
    path.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
