"""Does a point belong? Level lines of a p-value.

Three groups of points, one dense, one sparse, one a curve. A p-value says how often a normal
point is at least so strange; its level lines follow each group at its own density, without a
parameter.
"""

# %%
# Normal points: nothing is labelled, nothing tuned.
import matplotlib.pyplot as plt
import numpy as np

from outsample import NoveltyDetector

rng = np.random.default_rng(0)
angle = rng.uniform(0.2, np.pi - 0.2, 300)
curve = np.column_stack([6 * np.cos(angle), 6 * np.sin(angle)]) + 0.12 * rng.normal(size=(300, 2))
X = np.concatenate([
    0.15 * rng.normal(size=(300, 2)) + [-2, 1],
    0.9 * rng.normal(size=(300, 2)) + [2, 0.5],
    curve,
])
detector = NoveltyDetector(alpha=0.01).fit(X)

# %%
# The p-value of every place of a grid. A tenth of normal points is outside the line of 0.1, a
# hundredth outside that of 0.01.
x, y = np.meshgrid(np.linspace(-8, 8, 160), np.linspace(-3, 8, 120))
p = detector.p_values(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)

new = np.array([[-2.0, 2.6], [2.0, 2.6], [0.0, 6.0], [0.0, 4.4]])
print("p-values of the four crosses:", detector.p_values(new).round(3))
print(detector.explain(new[:1])[0])

# %%
# The two crosses at the same height, 1.6 and 2.1 from the middle of their groups: one is far
# outside the dense group, the other ordinary for the sparse one.
figure, axes = plt.subplots(figsize=(8.5, 5.6), layout="constrained")
filled = axes.contourf(
    x, y, p, levels=[0, 0.01, 0.05, 0.1, 0.3, 1], cmap="Blues", alpha=0.75, vmin=-0.1, vmax=0.8
)
axes.contour(x, y, p, levels=[0.01, 0.1], colors=["#D55E00", "#5b6672"], linewidths=1.2)
axes.scatter(*X.T, s=6, color="#1f2933", linewidths=0)
axes.scatter(*new.T, s=90, marker="X", color="#D55E00", edgecolors="white")
for (at_x, at_y), value in zip(new, detector.p_values(new), strict=True):
    axes.annotate(f"p = {value:.3f}", (at_x, at_y), (8, 6), textcoords="offset points")
figure.colorbar(filled, label="p-value")
axes.set(aspect="equal", title="Orange: the line of p = 0.01", xticks=[], yticks=[])
plt.show()
