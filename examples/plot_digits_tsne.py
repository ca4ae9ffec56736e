"""New digits on a t-SNE map.

A map of 600 handwritten digits is made once; 200 digits that it has never seen are placed into it.
t-SNE itself has no `transform`. Those that the map cannot place well are known by their error bars.
"""

# %%
# The map. Any method would do, and so would a file with coordinates.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE

from outsample import PCAExtension

X, labels = load_digits(return_X_y=True)
known, new = slice(0, 600), slice(600, 800)
Y = TSNE(random_state=0).fit_transform(X[known])

# %%
# The extension needs the points and their coordinates, and chooses the rest itself: on a t-SNE
# map mostly `NeighborLoss`, the place where one more point adds least to the loss of t-SNE.
extension = PCAExtension().fit(X[known], Y)
placed = extension.place(X[new])
print("chosen:", extension.weighting_)
print(f"error left out: {extension.loo_error_:.3f} of the size of the map")

# %%
# Pale dots are the map, full ones the new digits. A black rim marks the tenth with the widest error
# bars: digits between two groups, or written as nobody in the map writes them.
colours = plt.get_cmap("tab10")
figure, axes = plt.subplots(figsize=(7, 6.4), layout="constrained")
axes.scatter(*Y.T, c=labels[known], cmap=colours, s=12, alpha=0.25, linewidths=0)
rims = np.where(placed.error_bar > np.quantile(placed.error_bar, 0.9), "black", "white")
axes.scatter(
    *placed.coordinates.T, c=labels[new], cmap=colours, s=36, edgecolors=rims, linewidths=1.1
)
for digit in range(10):
    x, y = np.median(Y[labels[known] == digit], axis=0)
    axes.text(x, y, str(digit), fontsize=17, fontweight="bold", ha="center", va="center")
axes.set_aspect("equal")
axes.set_axis_off()
axes.set_title("200 new digits on a t-SNE map of 600")
plt.show()
