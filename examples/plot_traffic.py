"""Anomalous minutes of network traffic.

A quiet day becomes a diffusion map with one point per minute, and a day with attacks is placed on
it. The days are simulated; `outsample reproduce` uses the recordings of DARPA 1998.
"""

# %%
# Each minute has 14 features with heavy tails and different units. Take logarithms and standardise
# by the quiet day alone.
import matplotlib.pyplot as plt
from sklearn.preprocessing import StandardScaler

from outsample import DiffusionMaps, NoveltyDetector
from outsample_lab.traffic.days import log_features, simulate_traffic

quiet, day = simulate_traffic("simulated-1"), simulate_traffic("simulated-3")
scale = StandardScaler().fit(log_features(quiet.X))
X, X_new = (scale.transform(log_features(traffic.X)) for traffic in (quiet, day))

# %%
# The map, a horseshoe from the busy hours to the night, and a detector that also places points.
Y = DiffusionMaps(n_components=2).fit_transform(X)
detector = NoveltyDetector().fit(X, Y)
placed = detector.place(X_new)

alarm = placed.p_value <= 0.01
print(f"false-alarm rate: {alarm[~day.is_attack].mean():.1%}")
print(f"detection rate: {alarm[day.is_attack].mean():.1%}")
print(detector.explain(X_new[300:301])[0])

# %%
# Left: attacks are placed at the busy end, which they resemble most, and are not recognisable by
# their position. Right: the abnormality score separates them.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
left.scatter(*Y.T, s=8, color="#c9ced6", label="quiet day")
left.scatter(*placed.coordinates[~alarm].T, s=8, color="#56B4E9", label="new day, p > 0.01")
left.scatter(*placed.coordinates[alarm].T, s=26, color="#D55E00", label="new day, p ≤ 0.01")
left.set(title="New day on the map of the quiet day", xticks=[], yticks=[])
left.legend(frameon=False)

hours = 8 + day.minutes / 60
for mask, colour, label in (
    (~day.is_attack, "#56B4E9", "no attack"),
    (day.is_attack, "#D55E00", "attack"),
):
    right.scatter(hours[mask], placed.abnormality[mask], s=9, color=colour, label=label)
right.set(title="Abnormality per minute", xlabel="hour", ylabel="abnormality")
right.legend(frameon=False)
plt.show()
