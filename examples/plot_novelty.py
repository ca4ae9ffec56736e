"""Contours of the p-value of a novelty detector.

The training points form a dense group, a sparse group and a curve. The contours of the p-value
adapt to the density of each group without any parameter.
"""

# %%
# Training points without labels.
import matplotlib.pyplot as plt
import numpy as np

from outsample import NoveltyDetector

rng = np.random.default_rng(0)
angle = rng.uniform(0.2, np.pi - 0.2, 300)
curve = np.column_stack([6 * np.cos(angle), 6 * np.sin(angle)]) + 0.12 * rng.normal(size=(300, 2))
X = np.concatenate(
    [
        0.15 * rng.normal(size=(300, 2)) + [-2, 1],
        0.9 * rng.normal(size=(300, 2)) + [2, 0.5],
        curve,
    ]
)
detector = NoveltyDetector(alpha=0.01).fit(X)

# %%
# p-values on a grid. 10 % of normal points are outside the contour of 0.1, and 1 % outside that
# of 0.01.
x, y = np.meshgrid(np.linspace(-8, 8, 160), np.linspace(-3, 8, 120))
p = detector.p_values(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)

new = np.array([[-2.0, 2.6], [2.0, 2.6], [0.0, 6.0], [0.0, 4.4]])
print("p-values of the four crosses:", detector.p_values(new).round(3))
print(detector.explain(new[:1])[0])

# %%
# The two crosses at y = 2.6 are 1.6 and 2.1 away from the centres of their groups. The first is
# far outside the dense group, the second is normal for the sparse group.
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
axes.set(aspect="equal", title="Orange: contour of p = 0.01", xticks=[], yticks=[])
plt.show()
