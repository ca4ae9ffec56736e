"""Parameter search by cross-validation.

`GridSearchCV` can search over the parameters of an extension, which is a scikit-learn estimator.
Its `score` is minus the error relative to the size of the map.
"""

# %%
# A noisy map of the digits: search over the loss and the number of neighbours.
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.manifold import Isomap
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from outsample import PCAExtension

X = load_digits().data[:400]
Y = Isomap(n_neighbors=10).fit_transform(X)
folds = KFold(3, shuffle=True, random_state=0)
neighbors = [2, 3, 5, 8, 12, 20, 40]
search = GridSearchCV(
    PCAExtension(weighting="distance", order=0, loss="squared"),
    {"loss": ["squared", "absolute"], "n_neighbors": neighbors},
    cv=folds,
).fit(X, Y)
print("best:", search.best_params_, f"error {-search.best_score_:.3f}")

# %%
# With default parameters, `fit` selects among more models by leave-one-out error. Its error is
# measured on the same folds.
default = -cross_val_score(PCAExtension(), X, Y, cv=folds).mean()
print(f"default parameters: error {default:.3f}")

# %%
# Few neighbours reproduce the noise of the map, many blur it. The line is the error of the
# default parameters.
figure, axes = plt.subplots(figsize=(7.5, 4.6), layout="constrained")
errors = -search.cv_results_["mean_test_score"].reshape(2, -1)
for loss, values, colour in (("squared", errors[0], "#0072B2"), ("absolute", errors[1], "#E69F00")):
    axes.plot(neighbors, values, "o-", color=colour, label=f"{loss} loss")
axes.axhline(default, color="#D55E00", label="PCAExtension(), default parameters")
axes.set(xscale="log", xlabel="neighbours", ylabel="error relative to the size of the map")
axes.set_xticks(neighbors, [str(n) for n in neighbors])
axes.minorticks_off()
axes.set_title("Isomap map of the digits, three folds")
axes.legend(frameon=False)
plt.show()
