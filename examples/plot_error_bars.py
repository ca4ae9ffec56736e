"""Coverage of error bars.

The true position of every new point is known in this example, so the coverage of the error bars can
be measured: overall, and by deciles of isolation.
"""

# %%
# Normally distributed points under a smooth map.
import matplotlib.pyplot as plt
import numpy as np

from outsample import PCAExtension

rng = np.random.default_rng(0)


def true_map(X):
    return np.column_stack([X[:, 0] + 0.5 * np.sin(2 * X[:, 1]), X[:, 1] + 0.3 * X[:, 0] ** 2])


X, X_new = rng.normal(size=(300, 2)), rng.normal(size=(2000, 2))
extension = PCAExtension(weighting="tangent", order=0, loss="squared").fit(X, true_map(X))
placed = extension.place(X_new)
error = np.linalg.norm(placed.coordinates - true_map(X_new), axis=1)
is_covered = error <= placed.error_bar
print(f"coverage: {is_covered.mean():.1%}, mean bar {placed.error_bar.mean():.3f}")
print(f"within bound: {(error <= placed.bound).mean():.1%}, mean {placed.bound.mean():.3f}")

# %%
# Left: 60 new points with their error bars, which are narrow in dense and wide in sparse regions.
# Right: coverage by deciles, from the points with the nearest neighbours to the most isolated.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
left.scatter(*true_map(X).T, s=6, color="#c9ced6", linewidths=0)
for row in range(60):
    colour = "#0072B2" if is_covered[row] else "#D55E00"
    circle = plt.Circle(placed.coordinates[row], placed.error_bar[row], fill=False, color=colour)
    left.add_patch(circle)
left.scatter(*true_map(X_new)[:60].T, s=9, color="#1f2933", zorder=3)
left.set(title="Bars and true positions", xticks=[], yticks=[], xlim=(-3.2, 3.2), ylim=(-2.4, 3.6))

deciles = np.array_split(np.argsort(placed.isolation), 10)
right.bar(range(1, 11), [100 * is_covered[rows].mean() for rows in deciles], color="#56B4E9")
right.axhline(90, color="#D55E00", linewidth=1.2)
right.set(title="Coverage by isolation", xlabel="decile", ylabel="per cent", xticks=range(1, 11))
plt.show()
