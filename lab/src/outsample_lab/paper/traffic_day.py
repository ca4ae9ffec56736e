"""Fig. 7.4 to 7.6: the map of a day of network traffic, a new day placed on it, anomalies.

The map is computed from all minutes of 20 July 1998, as in the paper with its 1321 points. New
minutes are placed by the normal minutes of that day, because an attack among the training rows is
no longer unusual; a last trial uses all minutes, as the paper did. The new day is 22 July, the next
recorded day: the same users and machines, traffic in every minute, two loud attacks of one minute
each, and hundreds of minutes with one or two connections of a slow scan, which counts hardly show.
In a second trial, every other normal minute of 20 July is held out and shown with the attacks of
that day, which is closer to the paper's figure: one anomalous minute in an ordinary day.
"""

from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from outsample import NoveltyDetector, NystroemExtension
from outsample_lab.methods import paper_weights
from outsample_lab.novelty.splits import standardise
from outsample_lab.paper.traffic_map import traffic_map
from outsample_lab.progress import Progress
from outsample_lab.traffic.days import Traffic, log_features, simulate_traffic
from outsample_lab.traffic.features import FEATURES
from outsample_lab.traffic.loud import LOUD_CONNECTIONS, loud_by_any_attack
from outsample_lab.traffic.recorded import load_connections, load_minutes

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

MAP_DAY, NEW_DAY = "1998-07-20", "1998-07-22"
SIMULATED_MAP_DAY, SIMULATED_NEW_DAY = "simulated-2", "simulated-3"
N_NAMED = 5  # Number of most abnormal minutes that are listed
PAPER_LABELLED, PAPER_MEAN = 2.72e-7, 6.21e-10  # m(x) of its point #51, mean of the other new ones
TITLES = {
    "residual": "m(x), Eq. 2.9 as the minimised objective",
    "dispersion": "m(x), Eq. 2.9 with Eq. 2.4 to the letter",
    "abnormality": "Abnormality, NoveltyDetector",
    "p_value": "p-value, NoveltyDetector",
}


class FeatureCheck(NamedTuple):
    """Where the 14 features come from."""

    names: list[str]
    built_from: str  # ``"connections"``, ``"ready table"`` or ``"simulated connections"``
    n_minutes: int  # Minutes that were built
    max_difference: float | None  # Largest of any feature from the ready table, if both are there
    labels_agree: bool | None  # Whether attacks and their counts are the same in both
    seconds: float


class Source(NamedTuple):
    """The day of the map, the new day, and how their features were made."""

    day: Traffic
    new_day: Traffic
    features: FeatureCheck


class DayMap(NamedTuple):
    """Fig. 7.4: the images of all minutes of a day."""

    day: str
    times: list[str]
    attacks: list[str]  # Attack of each minute, empty for none
    coordinates: Array  # Shape (n, 5); the paper draws the first three columns


class Minute(NamedTuple):
    """A minute with a label."""

    row: int
    time: str
    attack: str  # Its attack, empty for none
    loud: bool
    value: float
    ratio: float | None  # Its score over the mean of the new minutes without a label; only for m(x)


class Score(NamedTuple):
    """One score of anomalous minutes."""

    name: str
    title: str
    values: Array  # Score of each new minute; higher is more unusual, for p-values lower
    mean: float  # Of the new minutes without a label
    auc: float | None  # Area under the ROC curve, all labelled minutes against the others
    auc_loud: float | None  # The same, loud minutes against those without a label
    top: list[Minute]  # The most unusual minutes
    labelled: list[Minute]  # The loud minutes, or where there are none, all labelled ones
    best_ratio: float | None  # Largest score of a labelled minute over the mean
    best_squared_ratio: float | None  # Of the squares: the paper does not state if it took the root
    paper_labelled: float | None
    paper_mean: float | None
    paper_ratio: float | None  # What the paper prints for its point #51


class Trial(NamedTuple):
    """Fig. 7.5 and 7.6: new minutes with positions and scores."""

    name: str
    title: str
    trained_on: str
    n_training: int
    n_neighbors: int  # Neighbours of the tangent weights, chosen by leave-one-out
    day: str
    times: list[str]
    attacks: list[str]
    n_attack: NDArray[np.int64]
    loud: Mask
    nystroem: Array  # Images by the Nyström extension, shape (q, 5)
    pca: Array  # Images by the paper's tangent weights
    scores: list[Score]


class TrafficDay(NamedTuple):
    """Fig. 7.4 to 7.6."""

    simulated: bool
    loud_connections: int
    map: DayMap
    # The new day; the map's day with half of its normal minutes held out; the new day again, by
    # all minutes of the map's day including attacks, as in the paper.
    trials: list[Trial]
    seconds: float = 0.0


def load_days(folder: Path | None = None) -> Source:
    """Return the features of both days from the connections, compared with the published table."""
    # Without a folder, or without files in its ``darpa98/``, both days are simulated.
    begin = perf_counter()
    raw, ready = (
        None if folder is None else Path(folder, "darpa98", name)
        for name in ("connections_minute.csv.gz", "minutes14.csv.gz")
    )
    built = None if raw is None or not raw.is_file() else load_connections(raw)
    table = None if ready is None or not ready.is_file() else load_minutes(ready)
    used, made_of = built or table, "connections" if built else "ready table"
    names = MAP_DAY, NEW_DAY
    if used is None:
        used, made_of = simulate_traffic(), "simulated connections"
        names = SIMULATED_MAP_DAY, SIMULATED_NEW_DAY
    difference = agree = None
    if built is not None and table is not None:
        difference, agree = _compare(built, table)
    seconds = perf_counter() - begin
    check = FeatureCheck(list(FEATURES), made_of, len(used.X), difference, agree, seconds)
    return Source(used.day(names[0]), used.day(names[1]), check)


def run(
    source: Source, n_minutes: int | None = None, progress: Progress | None = None
) -> TrafficDay:
    """Compute the map, place and score the new minutes; by default all minutes of each day."""
    tell = progress or (lambda share, next_step: None)
    tell(0.0, "Fig. 7.4: map of a day")
    day, new_day = (recording.rows(slice(n_minutes)) for recording in source[:2])
    (X,) = standardise(log_features(day.X))
    Y = traffic_map(X)
    shown = DayMap(_name(day), day.times.tolist(), day.attacks.tolist(), Y)
    normal = ~day.is_attack
    kept = normal & (np.arange(len(Y)) % 2 == 0)
    over = f"{_name(new_day)} on the map of {_name(day)}"
    trials = []
    for share, name, title, learned, new in (
        (0.3, "new day", over, normal, new_day),
        (0.6, "same day", f"Minutes of {_name(day)} held out", kept, day.rows(~kept)),
        (0.8, "new day, all learned", f"{over}, attacks learned", normal | True, new_day),
    ):
        tell(share, f"Fig. 7.5 and 7.6: {name}")
        trials.append(_trial(name, title, day, Y, learned, new))
    return TrafficDay(day.simulated, LOUD_CONNECTIONS, shown, trials)


def _trial(name: str, title: str, day: Traffic, Y: Array, learned: Mask, new: Traffic) -> Trial:
    """Fit to a sample of the map's minutes, place the new minutes and score them."""
    X, X_new = standardise(log_features(day.X[learned]), log_features(new.X))
    images = Y[learned]
    extension = paper_weights("tangent").fit(X, images)
    placed = extension.place(X_new)
    detector = NoveltyDetector(clone(extension)).fit(X, images)
    loud = loud_by_any_attack(new.n_attack)
    values = {
        "residual": np.sqrt(placed.residual),
        "dispersion": np.sqrt(placed.dispersion),
        "abnormality": np.asarray(detector.abnormality(X_new)),
        "p_value": np.asarray(detector.p_values(X_new)),
    }
    trained_on = f"{_name(day)}, {'all' if learned.all() else 'normal'} minutes"
    return Trial(
        name, title, trained_on, len(X), extension.n_neighbors_, _name(new), new.times.tolist(),
        new.attacks.tolist(), new.n_attack, loud,
        np.asarray(NystroemExtension().fit(X, images).transform(X_new), dtype=np.float64),
        np.asarray(placed.coordinates, dtype=np.float64),
        [_score(key, scores, new, loud) for key, scores in values.items()],
    )  # fmt: skip


def _score(name: str, values: Array, new: Traffic, loud: Mask) -> Score:
    """Return a score with its agreement with the labels."""
    unusualness = -values if name == "p_value" else values
    is_m = name in ("residual", "dispersion")
    is_attack = new.is_attack
    mean = float(values[~is_attack].mean())
    # Ratios are meaningful for m(x) only, which starts at 0.
    ratio = values / mean if is_m and mean > 0 else None

    def minute(row: int) -> Minute:
        time, attack, value = str(new.times[row]), str(new.attacks[row]), float(values[row])
        share = None if ratio is None else float(ratio[row])
        return Minute(row, time, attack, bool(loud[row]), value, share)

    top = np.argsort(-unusualness, kind="stable")[:N_NAMED]
    labelled = np.flatnonzero(loud if loud.any() else is_attack)
    ratios, squares = [], []
    if ratio is not None:
        ratios = ratio[labelled].tolist()
        squares = (values[labelled] ** 2 / (values[~is_attack] ** 2).mean()).tolist()
    paper = (PAPER_LABELLED, PAPER_MEAN, PAPER_LABELLED / PAPER_MEAN) if is_m else (None,) * 3
    is_labelled = loud | ~is_attack
    return Score(
        name, TITLES[name], values, mean, _area(is_attack, unusualness),
        _area(loud[is_labelled], unusualness[is_labelled]), [minute(int(row)) for row in top],
        [minute(int(row)) for row in labelled], max(ratios, default=None),
        max(squares, default=None), *paper,
    )  # fmt: skip


def _area(is_positive: Mask, scores: Array) -> float | None:
    """Return the area under the ROC curve; None if only one class is present."""
    if is_positive.all() or not is_positive.any():
        return None
    return float(roc_auc_score(is_positive, scores))


def _compare(built: Traffic, table: Traffic) -> tuple[float, bool]:
    """Return the largest difference between two tables of minutes, and whether labels agree."""
    if not np.array_equal(built.times, table.times):
        raise ValueError("the list of connections and the ready table have different minutes")
    agree = np.array_equal(built.n_attack, table.n_attack)
    return float(np.abs(built.X - table.X).max()), bool(agree)


def _name(day: Traffic) -> str:
    return str(day.days[0])
