"""Absolute loss on maps with discontinuities.

t-SNE and UMAP can map the neighbours of a point to distant parts of the map. The squared loss gives
their mean, which lies between the parts. The absolute loss gives their geometric median, which
mostly lies on one of the parts.
"""

# %%
# A map with a discontinuity along a wavy line: points to the right of it are moved away.
import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.distance import cdist

from outsample import PCAExtension

rng = np.random.default_rng(0)


def torn_map(X):
    right = X[:, 0] > 0.15 * np.sin(12 * X[:, 1])
    return X + np.column_stack([2.0 * right, 0.8 * right])


X, X_new = rng.uniform(-1, 1, (800, 2)), rng.uniform(-1, 1, (400, 2))
fixed = {"weighting": "distance", "order": 0, "n_neighbors": 10}
models = {
    "squared loss: mean": PCAExtension(loss="squared", **fixed),
    "absolute loss: median": PCAExtension(loss="absolute", **fixed),
    "model selection": PCAExtension(),
}
placed = {name: model.fit(X, torn_map(X)).transform(X_new) for name, model in models.items()}
is_between = {}
for name, coordinates in placed.items():
    error = np.linalg.norm(coordinates - torn_map(X_new), axis=1)
    is_between[name] = cdist(coordinates, torn_map(X)).min(axis=1) > 0.15
    share = is_between[name].mean()
    print(f"{name}: median error {np.median(error):.3f}, between the parts {share:.1%}")

# %%
# Grey: training points. Blue: new points on the map. Orange: new points between its parts.
figure, panels = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for axes, (name, coordinates) in zip(panels, placed.items(), strict=True):
    off = is_between[name]
    axes.scatter(*torn_map(X).T, s=5, color="#9aa3ad", linewidths=0)
    axes.scatter(*coordinates[~off].T, s=9, color="#0072B2", linewidths=0)
    axes.scatter(*coordinates[off].T, s=16, color="#D55E00", linewidths=0)
    axes.set(title=name, aspect="equal", xticks=[], yticks=[])
plt.show()
