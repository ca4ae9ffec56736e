"""On a torn map a median, not a mean.

t-SNE and UMAP tear neighbours apart: of the points around a new one, some have their images here
and some there. A weighted mean lies between the shreds, where nothing is. The absolute loss takes
a median, which lies on one of them.
"""

# %%
# A strip of points, torn along a ragged line: what is left of it stays, what is right of it is
# moved away.
import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.distance import cdist

from outsample import PCAExtension

rng = np.random.default_rng(0)


def torn(X):
    right = X[:, 0] > 0.15 * np.sin(12 * X[:, 1])
    return X + np.column_stack([2.0 * right, 0.8 * right])


X, X_new = rng.uniform(-1, 1, (800, 2)), rng.uniform(-1, 1, (400, 2))
fixed = {"weighting": "distance", "order": 0, "n_neighbors": 10}
placed = {
    "squared loss: a mean": PCAExtension(loss="squared", **fixed),
    "absolute loss: a median": PCAExtension(loss="absolute", **fixed),
    "chosen by leave-one-out": PCAExtension(),
}
placed = {name: model.fit(X, torn(X)).transform(X_new) for name, model in placed.items()}
between = {}
for name, images in placed.items():
    error = np.linalg.norm(images - torn(X_new), axis=1)
    between[name] = cdist(images, torn(X)).min(axis=1) > 0.15  # far from every known image
    lost = between[name].mean()
    print(f"{name}: median error {np.median(error):.3f}, between the shreds {lost:.1%}")

# %%
# Grey is the map, coloured are the new points, orange where there is no map at all.
figure, panels = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for axes, (name, images) in zip(panels, placed.items(), strict=True):
    off = between[name]
    axes.scatter(*torn(X).T, s=5, color="#9aa3ad", linewidths=0)
    axes.scatter(*images[~off].T, s=9, color="#0072B2", linewidths=0)
    axes.scatter(*images[off].T, s=16, color="#D55E00", linewidths=0)
    axes.set(title=name, aspect="equal", xticks=[], yticks=[])
plt.show()
