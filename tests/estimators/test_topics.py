"""Extensions instead of UMAP in a topic model: the calls of BERTopic, and the package itself."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.manifold import SpectralEmbedding

from outsample import Extended, PCAExtension

PLAIN = {"weighting": "distance", "order": 0, "loss": "squared", "n_neighbors": 6}
X, LABELS = load_digits(return_X_y=True)
X, NEW, LABELS = X[:200].astype(np.float32), X[200:230].astype(np.float32), LABELS[:200]
WORDS = "zero one two three four five six seven eight nine".split()
DOCUMENTS = [f"{WORDS[label]} {WORDS[label]} number" for label in LABELS]


def reduced(umap_model, embeddings, y=None):
    """Return coordinates by the calls of BERTopic 0.17 in `_reduce_dimensionality`."""
    y = np.array(y) if y is not None else None
    if hasattr(umap_model, "fit_transform"):
        return np.nan_to_num(umap_model.fit_transform(embeddings, y=y))
    umap_model.fit(embeddings, y=y)
    return np.nan_to_num(umap_model.transform(embeddings))


def extended():
    return Extended(SpectralEmbedding(5, random_state=0), PCAExtension(**PLAIN))


@pytest.fixture(scope="module")
def frozen():
    """Return an extension of an existing map."""
    Y = SpectralEmbedding(5, random_state=0).fit_transform(X)
    return PCAExtension(**PLAIN).fit(X, Y)


@pytest.mark.parametrize("y", [None, LABELS])
def test_an_extended_embedding_supports_the_calls_of_bertopic(y):
    umap_model = extended()
    coordinates = reduced(umap_model, X, y)
    np.testing.assert_array_equal(coordinates, umap_model.transform(X))
    batch = umap_model.transform(NEW)
    alone = np.vstack([umap_model.transform(row[None]) for row in NEW])
    np.testing.assert_array_equal(batch, alone)


@pytest.mark.parametrize("y", [None, LABELS])
def test_a_frozen_extension_keeps_its_map(frozen, y):
    before = frozen.transform(NEW)
    umap_model = FrozenEstimator(frozen)
    coordinates = reduced(umap_model, X[50:], y)
    np.testing.assert_array_equal(coordinates, frozen.embedding_[50:].astype(np.float32))
    np.testing.assert_array_equal(reduced(umap_model, NEW), before)
    np.testing.assert_array_equal(umap_model.transform(NEW), before)
    assert clone(umap_model) is umap_model


def test_a_plain_extension_cannot_compute_a_map():
    with pytest.raises(TypeError, match="'y'"):
        reduced(PCAExtension(**PLAIN), X)


@pytest.fixture(scope="module")
def bertopic():
    return pytest.importorskip("bertopic", reason="bertopic is not installed")


class TestBERTopic:
    """BERTopic with precomputed embeddings instead of language models."""

    def fitted(self, bertopic, umap_model):
        from sklearn.feature_extraction.text import CountVectorizer

        topics = bertopic.BERTopic(
            embedding_model=bertopic.backend.BaseEmbedder(),
            umap_model=umap_model,
            hdbscan_model=KMeans(10, random_state=0, n_init=1),
            vectorizer_model=CountVectorizer(),
        )
        assigned_topics, _ = topics.fit_transform(DOCUMENTS, X)
        return topics, np.array(assigned_topics)

    def test_one_document_has_the_topic_of_its_batch(self, bertopic):
        topics, assigned_topics = self.fitted(bertopic, extended())
        purity = sum(
            np.bincount(LABELS[assigned_topics == topic]).max() for topic in set(assigned_topics)
        ) / len(assigned_topics)
        assert purity > 0.7
        batch, _ = topics.transform(["some number"] * len(NEW), NEW)
        alone = [topics.transform(["some number"], row[None])[0][0] for row in NEW]
        assert list(batch) == alone

    def test_a_frozen_map_is_not_recomputed(self, bertopic, frozen):
        topics, _ = self.fitted(bertopic, FrozenEstimator(frozen))
        assert topics.umap_model.estimator is frozen
        centers = topics.hdbscan_model.cluster_centers_
        wanted = KMeans(10, random_state=0, n_init=1).fit(frozen.transform(X)).cluster_centers_
        np.testing.assert_allclose(np.sort(centers, axis=0), np.sort(wanted, axis=0), atol=1e-5)
