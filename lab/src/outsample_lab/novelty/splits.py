"""The data on which novelty detectors are measured, and how they are split.

A detector is fitted to normal rows and scores new rows, normal and anomalous ones.
Every source makes its split from a seed; the same seed makes the same split.
"""

import gzip
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outsample.demo.digits import ANOMALY_KINDS, load_digits
from outsample_lab.accuracy.maps import MNIST_FILE, Unavailable, data_file
from outsample_lab.traffic.days import log_features
from outsample_lab.traffic.loud import loud_by_flood_or_scan
from outsample_lab.traffic.recorded import load_traffic

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Images = tuple[Array, NDArray[np.int64]]  # Grey values from 0 to 1, and what they show

OUTLIERS, DIGITS, MNIST, JUNK, DARPA = "outliers", "digits", "mnist", "junk", "darpa"
FRESH = "fresh"
GROUPS = {
    OUTLIERS: "Outlier sets",
    DIGITS: "Digits, one class held out",
    MNIST: "MNIST, one class held out",
    JUNK: "Non-digit images",
    DARPA: "Network traffic",
    FRESH: "Sets not used to choose the score",
}

# Maximum numbers of training rows, new rows, and new images of MNIST.
TRAINING_ROWS, NEW_ROWS, IMAGES = 5000, 10_000, 5000
JUNK_ROWS = 500  # Images of each kind
QUIET_DAYS, SIMULATED_QUIET = ("1998-06-11", "1998-06-16"), "simulated-1"
# Days on which one attack runs in nearly every minute: omitted.
FLOODED = ("1998-07-24", "1998-07-27", "1998-07-29", "1998-07-30", "1998-07-31")
MIN_MINUTES_PER_CLASS = 3  # Days with fewer normal or anomalous minutes are skipped


class Trial(NamedTuple):
    """New rows, and which of them are anomalous."""

    name: str  # The set whose figure this counts for; a set's figure is the mean over its trials
    X: Array
    is_anomalous: Mask
    part: str = ""  # Name of the trial, such as a day
    loud: Mask | None = None  # Minutes with a loud attack


class Split(NamedTuple):
    """Training rows, and trials with new rows."""

    X: Array
    trials: list[Trial]
    simulated: bool = False  # True if the recorded rows are not available


class Source(NamedTuple):
    """Data of one kind: one training set and one or more sets to rank."""

    name: str  # For the command line
    group: str
    titles: dict[str, str]  # Name of each set and its title for people
    make: Callable[[Path | None, int], Split]  # Takes the folder of data and a seed
    minutes: float  # Rough cost of all detectors on one split, for the time left
    most_seeds: int = 3  # Maximum number of splits; 1 where a split is large and expensive


def half(normal: Array, rng: np.random.Generator, n_rows: int) -> tuple[Array, Array]:
    """Return a random half of the rows for training, at most `n_rows`, and the other half."""
    order = rng.permutation(len(normal))
    middle = len(normal) // 2
    return normal[order[: min(middle, n_rows)]], normal[order[middle:]]


def thin(
    normal: Array, anomalous: Array, rng: np.random.Generator, n_rows: int
) -> tuple[Array, Mask]:
    """Return new rows (q, D), normal first, sampled to `n_rows`, and which are anomalous."""
    rate = min(1.0, n_rows / (len(normal) + len(anomalous)))
    kept = []
    for rows in (normal, anomalous):
        n = max(1, int(rate * len(rows)))
        kept.append(rows if rate == 1.0 else rows[np.sort(rng.permutation(len(rows))[:n])])
    return np.concatenate(kept), np.repeat([False, True], [len(rows) for rows in kept])


def standardise(X: Array, *tables: Array) -> tuple[Array, ...]:
    """Return rows standardised by mean and deviation of the training rows X."""
    # A column that is constant in the training rows is 0 everywhere.
    mean, spread = X.mean(axis=0), X.std(axis=0)
    constant = spread <= 1e-12 * np.maximum(1.0, np.abs(mean))
    scale = np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, spread))
    return tuple((rows - mean) * scale for rows in (X, *tables))


def _outliers(name: str, folder: Path | None, seed: int) -> Split:
    """Return a split: half of the normal rows; the other half and all outliers."""
    with np.load(data_file(folder, f"outliers/{name}.npz"), allow_pickle=False) as file:
        X, is_anomalous = file["X"].astype(np.float64), file["y"].astype(bool)
    rng = np.random.default_rng(seed)
    training, normal = half(X[~is_anomalous], rng, TRAINING_ROWS)
    new, mask = thin(normal, X[is_anomalous], rng, NEW_ROWS)
    training, new = standardise(training, new)
    return Split(training, [Trial(name, new, mask)])


def _digits(folder: Path | None, seed: int) -> Images:
    X, labels = load_digits()
    return X / 16, labels


@lru_cache(maxsize=1)
def _mnist(folder: Path | None) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    with np.load(data_file(folder, MNIST_FILE), allow_pickle=False) as file:
        images, labels = file["X_train"], file["y_train"]
    return images.reshape(len(images), -1), labels.astype(np.int64)


def _some_mnist(folder: Path | None, seed: int) -> Images:
    """Return random images, twice as many as needed."""
    images, labels = _mnist(folder)
    n = min(len(images), 2 * (TRAINING_ROWS + IMAGES))
    rows = np.random.default_rng(seed).permutation(len(images))[:n]
    return images[rows] / 255.0, labels[rows]


def _coil(folder: Path | None, seed: int) -> Images:
    with np.load(data_file(folder, "embedding/coil20.npz"), allow_pickle=False) as file:
        return file["X"] / float(file["scale"]), file["y"].astype(np.int64)


IMAGE_SETS = {"digits": _digits, "mnist": _some_mnist, "coil": _coil}


def _new_class(name: str, held_out: int, folder: Path | None, seed: int) -> Split:
    """Return a split: half of the other classes; their other half and the held-out class."""
    X, labels = IMAGE_SETS[name](folder, seed)
    rng = np.random.default_rng(seed)
    training, normal = half(X[labels != held_out], rng, TRAINING_ROWS)
    new, mask = thin(normal, X[labels == held_out], rng, IMAGES)
    return Split(training, [Trial(f"{name}-{held_out}", new, mask)])


def _junk(name: str, folder: Path | None, seed: int) -> Split:
    """Return a split: half of the images; the other half and non-digit images."""
    rng = np.random.default_rng(seed)
    training, images = half(IMAGE_SETS[name](folder, seed)[0], rng, TRAINING_ROWS)
    normal, spare = images[: IMAGES - JUNK_ROWS], images[:JUNK_ROWS]
    trials = []
    for kind, make in ANOMALY_KINDS.items():
        junk = make(spare, rng)
        mask = np.repeat([False, True], [len(normal), len(junk)])
        trials.append(Trial(f"junk-{name}-{kind}", np.concatenate([normal, junk]), mask))
    return Split(training, trials)


def _traffic(quiet: str, folder: Path | None, seed: int) -> Split:
    """Return a split: the minutes of a quiet day; one trial per later day with attacks."""
    traffic, name = load_traffic(folder), f"darpa-{quiet[5:]}"
    if traffic.simulated:
        if quiet != QUIET_DAYS[0]:
            raise Unavailable("there is only one simulated quiet day, which another set uses")
        quiet = SIMULATED_QUIET
    busy = traffic.X[:, 0] > 0  # connections
    logs = log_features(traffic.X)
    training = logs[busy & (traffic.days == quiet)]
    trials = []
    for day in np.unique(traffic.days[traffic.days > quiet]):
        rows = busy & (traffic.days == day)
        attack = traffic.is_attack[rows]
        if day in FLOODED or min(attack.sum(), (~attack).sum()) < MIN_MINUTES_PER_CLASS:
            continue
        loud = loud_by_flood_or_scan(traffic.attacks[rows])
        new = standardise(training, logs[rows])[1]
        trials.append(Trial(name, new, attack, str(day), loud))
    return Split(standardise(training)[0], trials, traffic.simulated)


def _connections(folder: Path | None, seed: int) -> Split:
    """Return NSL-KDD: normal training connections, then the test file; numeric columns."""
    training, normal = _nsl_kdd(data_file(folder, "kdd99/nslkdd_train20.txt.gz"))
    new, fine = _nsl_kdd(data_file(folder, "kdd99/nslkdd_test.txt.gz"))
    rng = np.random.default_rng(seed)
    training = training[normal][rng.permutation(normal.sum())[:TRAINING_ROWS]]
    rows, mask = thin(new[fine], new[~fine], rng, NEW_ROWS)
    training, rows = standardise(training, rows)
    return Split(training, [Trial("nsl-kdd", rows, mask)])


def _nsl_kdd(path: Path) -> tuple[Array, Mask]:
    """Return log(1 + x) of the numeric columns, and which rows are normal."""
    with gzip.open(path, "rt") as file:
        rows = [line.strip().split(",") for line in file]
    numbers = np.array([[row[0], *row[4:41]] for row in rows], dtype=np.float64)
    return np.log1p(numbers), np.array([row[41] == "normal" for row in rows])


# The labelled sets, and the rough cost of each in minutes.
SETS = {
    "2_annthyroid": 0.6, "12_fault": 0.15, "16_http": 0.9, "18_Ionosphere": 0.06,
    "19_landsat": 0.7, "20_letter": 0.17, "22_magic.gamma": 1.0, "23_mammography": 0.7,
    "26_optdigits": 0.45, "27_PageBlocks": 0.6, "29_Pima": 0.1, "30_satellite": 0.5,
    "32_shuttle": 0.9, "35_SpamBase": 0.4, "37_Stamps": 0.05, "39_vertebral": 0.05,
    "40_vowels": 0.15, "43_WDBC": 0.06, "46_WPBC": 0.05, "47_yeast": 0.12,
}  # fmt: skip


def _held_out(
    name: str, group: str, title: str, classes: range, minutes: float, seeds: int = 3
) -> Iterator[Source]:
    """Yield one source per class of images, with that class held out."""
    for at in classes:
        full, make = f"{name}-{at}", partial(_new_class, name, at)
        yield Source(full, group, {full: f"{title}, held out: {at}"}, make, minutes, seeds)


def _sources() -> Iterator[Source]:
    for name, minutes in SETS.items():
        titles = {name: name.partition("_")[2]}
        yield Source(name, OUTLIERS, titles, partial(_outliers, name), minutes)
    yield from _held_out("digits", DIGITS, "digits", range(10), 0.15)
    for day in QUIET_DAYS:
        name, title = f"darpa-{day[5:]}", f"traffic after {day[5:]}"
        yield Source(name, DARPA, {name: title}, partial(_traffic, day), 0.4)
    yield from _held_out("coil", FRESH, "COIL-20", range(1, 21), 0.2)
    yield Source("nsl-kdd", FRESH, {"nsl-kdd": "NSL-KDD"}, _connections, 0.9)
    for name, title, minutes, seeds in (("digits", "digits", 0.3, 3), ("mnist", "MNIST", 8.0, 1)):
        words = {kind: kind.replace("-", " ") for kind in ANOMALY_KINDS}
        titles = {f"junk-{name}-{kind}": f"{title}, {word}" for kind, word in words.items()}
        yield Source(f"junk-{name}", JUNK, titles, partial(_junk, name), minutes, seeds)
    yield from _held_out("mnist", MNIST, "MNIST", range(10), 3.5, 1)


SOURCES = tuple(_sources())  # By group; MNIST, the slowest, is last
QUICK = ("37_Stamps", "39_vertebral", "43_WDBC", "digits-0")  # Sources of the short run
