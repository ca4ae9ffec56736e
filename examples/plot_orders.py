"""Order of convergence.

A local polynomial instead of the paper's weighted mean increases the order of convergence by one
for each degree. Correlated errors (kriging) give the smallest errors. The map is the
paper's sphere.
"""

# %%
# Grids of increasing size, and 200 new points whose true position is known.
import matplotlib.pyplot as plt
import numpy as np

from outsample import PCAExtension
from outsample_lab.sphere import random_angles, sphere, sphere_map

new = random_angles(200)
truth = sphere_map(new)
methods = {
    "paper: tangent weights": {"weighting": "tangent", "order": 0, "loss": "squared"},
    "order 1": {"weighting": "distance", "order": 1, "loss": "squared", "n_neighbors": 16},
    "order 2": {"weighting": "distance", "order": 2, "loss": "squared", "n_neighbors": 16},
    "correlated errors": {"weighting": "correlated", "order": 0, "loss": "squared"},
}
sizes = [10, 14, 20, 28, 40]
errors = {name: [] for name in methods}
for size in sizes:
    grid = sphere(size)
    for name, parameters in methods.items():
        placed = PCAExtension(**parameters).fit(grid.X, grid.Y).transform(new)
        errors[name].append(np.linalg.norm(placed - truth, axis=1).mean())

# %%
# The slope on a log-log scale is the order of convergence.
figure, axes = plt.subplots(figsize=(7.5, 5), layout="constrained")
steps = [sphere(size).step for size in sizes]
colours = ["#5b6672", "#56B4E9", "#0072B2", "#D55E00"]
for (name, values), colour in zip(errors.items(), colours, strict=True):
    slope = np.polyfit(np.log(steps), np.log(values), 1)[0]
    print(f"{name}: error about step^{slope:.1f}, {values[-1]:.1e} at 1600 points")
    axes.loglog(steps, values, "o-", color=colour, label=f"{name} (slope {slope:.1f})")
axes.set(xlabel="grid step", ylabel="mean error", title="The paper's sphere")
axes.set_ylim(1e-9, 0.1)
axes.legend(frameon=False, loc="lower right")
plt.show()
