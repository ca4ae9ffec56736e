"""Maps that `outsample fit --embed` computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from outsample.cli.exit_codes import BAD_USE, Failure


def embed(name: str, X: np.ndarray, n_components: int, seed: int) -> np.ndarray:
    """Return a map (n, n_components) of points (n, D)."""
    return np.asarray(EMBEDDINGS[name](X, n_components, seed), dtype=np.float64)


def _tsne(X: np.ndarray, n_components: int, seed: int) -> Any:
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (len(X) - 1) / 3)
    # The tree method supports two or three coordinates.
    method = "barnes_hut" if n_components <= 3 else "exact"
    init = "pca" if n_components <= min(X.shape) else "random"
    model = TSNE(n_components, perplexity=perplexity, init=init, method=method, random_state=seed)
    return model.fit_transform(X)


def _umap(X: np.ndarray, n_components: int, seed: int) -> Any:
    try:
        from umap import UMAP
    except ImportError:
        message = '--embed umap needs umap-learn: pip install "outsample[umap]"'
        raise Failure(message, BAD_USE) from None
    neighbors = min(15, len(X) - 1)
    model = UMAP(n_components=n_components, n_neighbors=neighbors, random_state=seed, n_jobs=1)
    return model.fit_transform(X)


def _diffusion(X: np.ndarray, n_components: int, seed: int) -> Any:
    from outsample import DiffusionMaps

    return DiffusionMaps(n_components=n_components).fit_transform(X)


def _isomap(X: np.ndarray, n_components: int, seed: int) -> Any:
    from sklearn.manifold import Isomap

    neighbors = min(15, len(X) - 1)
    return Isomap(n_components=n_components, n_neighbors=neighbors).fit_transform(X)


EMBEDDINGS: dict[str, Callable[[np.ndarray, int, int], Any]] = {
    "tsne": _tsne,
    "umap": _umap,
    "diffusion": _diffusion,
    "isomap": _isomap,
}
