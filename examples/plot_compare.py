"""Which method should I use on my map?

`compare` holds out a fifth of the points, places them with each method and reports the errors. It
accepts extensions and any scikit-learn regressor.
"""

# %%
# Two maps of the same digits: t-SNE has discontinuities, Isomap is noisy but connected.
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE, Isomap
from sklearn.neighbors import KNeighborsRegressor

from outsample import LaplacianPyramids, NystroemExtension, PCAExtension, compare

X = load_digits().data[:500]
maps = {
    "t-SNE": TSNE(random_state=0).fit_transform(X),
    "Isomap": Isomap(n_neighbors=10).fit_transform(X),
}
methods = [
    PCAExtension(),
    PCAExtension(weighting="tangent", order=0, loss="squared"),
    NystroemExtension(),
    LaplacianPyramids(),
    KNeighborsRegressor(5, weights="distance"),
]
results = {name: compare(X, Y, methods, n_splits=2) for name, Y in maps.items()}
for name, rows in results.items():
    print(f"{name}\n{rows}\n")

# %%
# A dot is the mean error relative to the size of the map. The bar extends from the median to the
# 90 % quantile.
short = {
    "PCAExtension(loss='squared', order=0, weighting='tangent')": "the paper's weights",
    "KNeighborsRegressor(weights='distance')": "5-NN",
}
figure, panels = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained", sharex=True)
for axes, (name, rows) in zip(panels, results.items(), strict=True):
    for line, row in enumerate(rows):
        colour = "#0072B2" if line == 0 else "#5b6672"
        axes.plot([row.median, row.quantile_90], [line, line], color="#c9ced6", linewidth=6)
        axes.plot(row.error, line, "o", color=colour, markersize=8)
    axes.set_yticks(range(len(rows)), [short.get(row.name, row.name) for row in rows])
    axes.set(xscale="log", title=name, xlabel="error relative to the size of the map")
    axes.set_xticks([0.01, 0.02, 0.05, 0.1, 0.2], ["1 %", "2 %", "5 %", "10 %", "20 %"])
    axes.minorticks_off()
    axes.invert_yaxis()
plt.show()
