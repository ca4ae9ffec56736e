"""New digits on a t-SNE map.

A t-SNE map of 600 handwritten digits is computed once, and 200 new digits are placed into it. Wide
error bars mark digits whose position is uncertain.
"""

# %%
# The map. Any method works, and so do coordinates from a file.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE

from outsample import PCAExtension

X, labels = load_digits(return_X_y=True)
train, new = slice(0, 600), slice(600, 800)
Y = TSNE(random_state=0).fit_transform(X[train])

# %%
# The extension needs the points and their coordinates, and selects a model by leave-one-out error.
# On a t-SNE map this is mostly `NeighborLoss`, which minimises the t-SNE loss of the new point.
extension = PCAExtension().fit(X[train], Y)
placed = extension.place(X[new])
print("selected:", extension.weighting_)
print(f"leave-one-out error: {extension.loo_error_:.3f} of the size of the map")

# %%
# Pale dots are training points, solid dots new digits. A black rim marks the 10 % with the widest
# error bars: digits between two groups, or with unusual handwriting.
colours = plt.get_cmap("tab10")
figure, axes = plt.subplots(figsize=(7, 6.4), layout="constrained")
axes.scatter(*Y.T, c=labels[train], cmap=colours, s=12, alpha=0.25, linewidths=0)
rims = np.where(placed.error_bar > np.quantile(placed.error_bar, 0.9), "black", "white")
axes.scatter(
    *placed.coordinates.T, c=labels[new], cmap=colours, s=36, edgecolors=rims, linewidths=1.1
)
for digit in range(10):
    x, y = np.median(Y[labels[train] == digit], axis=0)
    axes.text(x, y, str(digit), fontsize=17, fontweight="bold", ha="center", va="center")
axes.set_aspect("equal")
axes.set_axis_off()
axes.set_title("200 new digits on a t-SNE map of 600")
plt.show()
