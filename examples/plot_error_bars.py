"""Error bars that mean what they say.

The true image of every new point is known here, so one can count how many are within their bars:
nine of ten in the mean, and not only in the mean but among the isolated points too.
"""

# %%
# Points dense in the middle and sparse outside, under a smooth map.
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
held = error <= placed.error_bar
print(f"held: {held.mean():.1%}, mean bar {placed.error_bar.mean():.3f}")
print(f"bound held: {(error <= placed.bound).mean():.1%}, mean bound {placed.bound.mean():.3f}")

# %%
# Left, some of the new points with their bars: narrow among neighbours, wide where there are few.
# Right, the share that is held, from the tenth with the nearest neighbours to the most isolated
# one.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
left.scatter(*true_map(X).T, s=6, color="#c9ced6", linewidths=0)
for row in range(60):
    colour = "#0072B2" if held[row] else "#D55E00"
    circle = plt.Circle(placed.coordinates[row], placed.error_bar[row], fill=False, color=colour)
    left.add_patch(circle)
left.scatter(*true_map(X_new)[:60].T, s=9, color="#1f2933", zorder=3)
left.set(title="Bars and true images", xticks=[], yticks=[], xlim=(-3.2, 3.2), ylim=(-2.4, 3.6))

tenths = np.array_split(np.argsort(placed.isolation), 10)
right.bar(range(1, 11), [100 * held[rows].mean() for rows in tenths], color="#56B4E9")
right.axhline(90, color="#D55E00", linewidth=1.2)
right.set(title="Held, by isolation", xlabel="tenth", ylabel="per cent", xticks=range(1, 11))
plt.show()
