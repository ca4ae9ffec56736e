"""Strange minutes of network traffic.

A quiet day becomes a diffusion map, one point a minute; a day with attacks is placed on it. The
days are simulated, so that this runs everywhere; `outsample reproduce` uses the recordings of
DARPA 1998.
"""

# %%
# A minute is 14 counts. They have heavy tails and different units: logarithms, then the same
# scale, learnt from the quiet day alone.
import matplotlib.pyplot as plt
from sklearn.preprocessing import StandardScaler

from outsample import DiffusionMaps, NoveltyDetector
from outsample_lab.traffic.days import log_features, simulate_traffic

quiet, day = simulate_traffic("simulated-1"), simulate_traffic("simulated-3")
scale = StandardScaler().fit(log_features(quiet.X))
X, X_new = (scale.transform(log_features(each.X)) for each in (quiet, day))

# %%
# The map, a horseshoe from busy hours to the night, and a detector that places points on it too.
Y = DiffusionMaps(n_components=2).fit_transform(X)
detector = NoveltyDetector().fit(X, Y)
placed = detector.place(X_new)

alarm = placed.p_value <= 0.01
print(f"minutes without an attack that raise an alarm: {alarm[~day.is_attack].mean():.1%}")
print(f"minutes with an attack that do: {alarm[day.is_attack].mean():.1%}")
print(detector.explain(X_new[300:301])[0])

# %%
# Left, where the minutes go: attacks are drawn to the busy end, as they look most like it, and
# nothing there shows that they do not belong. Right, the score does.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
left.scatter(*Y.T, s=8, color="#c9ced6", label="the quiet day")
left.scatter(*placed.coordinates[~alarm].T, s=8, color="#56B4E9", label="new day, p > 0.01")
left.scatter(*placed.coordinates[alarm].T, s=26, color="#D55E00", label="new day, p ≤ 0.01")
left.set(title="A day placed on the map of another", xticks=[], yticks=[])
left.legend(frameon=False)

hours = 8 + day.minutes / 60
for mask, colour, words in (
    (~day.is_attack, "#56B4E9", "no attack"),
    (day.is_attack, "#D55E00", "attack"),
):
    right.scatter(hours[mask], placed.abnormality[mask], s=9, color=colour, label=words)
right.set(title="Abnormality, minute by minute", xlabel="hour", ylabel="abnormality")
right.legend(frameon=False)
plt.show()
