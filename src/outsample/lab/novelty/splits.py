"""The data on which novelty detectors are measured, and how they are split.

A detector learns from normal rows alone and is then shown new rows, some normal, some strange.
Every source makes its split from a seed; the same seed makes the same split.
"""

import gzip
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outsample.lab import datasets
from outsample.lab.accuracy.maps import MNIST_FILE, Unavailable
from outsample.lab.traffic.days import log_features
from outsample.lab.traffic.loud import loud_by_flood_or_scan
from outsample.lab.traffic.recorded import load_traffic

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

OUTLIERS, DIGITS, MNIST, JUNK, DARPA = "outliers", "digits", "mnist", "junk", "darpa"
FRESH = "fresh"
GROUPS = {
    OUTLIERS: "Outlier sets",
    DIGITS: "Digits, one class new",
    MNIST: "MNIST, one class new",
    JUNK: "Images that are none",
    DARPA: "Network traffic",
    FRESH: "Sets unseen while the score was made",
}

TRAINING_ROWS, NEW_ROWS, IMAGES = 5000, 10_000, 5000
"""At most so many rows to learn from, so many new ones, and so many new images of MNIST."""
JUNK_ROWS = 500  # So many of each kind
QUIET_DAYS, SIMULATED_QUIET = ("1998-06-11", "1998-06-16"), "simulated-1"
FLOODED = ("1998-07-24", "1998-07-27", "1998-07-29", "1998-07-30", "1998-07-31")
"""Days on which one attack runs in nearly every minute: left out."""
FEWEST_MINUTES = 3  # A day counts if it has so many minutes of either kind


class Trial(NamedTuple):
    """New rows, and which of them are strange."""

    name: str  # The set whose figure this counts for; a set's figure is the mean over its trials
    X: Array
    strange: Mask
    part: str = ""  # Which of the set's trials, such as a day
    loud: Mask | None = None  # Minutes of traffic that no detector should miss


class Split(NamedTuple):
    """Rows to learn from, and what comes after."""

    X: Array
    trials: list[Trial]
    simulated: bool = False  # Whether the rows were made up, for want of the real ones


class Source(NamedTuple):
    """Data of one kind: one training, one or more sets."""

    name: str  # For the command line
    group: str
    titles: dict[str, str]  # Name of each set and its title for people
    make: Callable[[Path | None, int], Split]  # Takes the folder of data and a seed
    minutes: float  # Rough cost of all detectors on one split, for the time left
    most_seeds: int = 3  # Splits that are made at most; one where a split is large and dear


def half(normal: Array, rng: np.random.Generator, n_rows: int) -> tuple[Array, Array]:
    """Return a random half of the rows to learn from, at most `n_rows`, and the other half."""
    order = rng.permutation(len(normal))
    middle = len(normal) // 2
    return normal[order[: min(middle, n_rows)]], normal[order[middle:]]


def thin(
    normal: Array, strange: Array, rng: np.random.Generator, n_rows: int
) -> tuple[Array, Mask]:
    """Join new rows of both classes, normal ones first; if more than `n_rows`, thin both alike.

    Returns the rows, shape (q, D), and which are strange, shape (q,).
    """
    rate = min(1.0, n_rows / (len(normal) + len(strange)))
    kept = []
    for rows in (normal, strange):
        n = max(1, int(rate * len(rows)))
        kept.append(rows if rate == 1.0 else rows[np.sort(rng.permutation(len(rows))[:n])])
    return np.concatenate(kept), np.repeat([False, True], [len(rows) for rows in kept])


def standardise(X: Array, *others: Array) -> tuple[Array, ...]:
    """Shift and scale all columns by mean and deviation of the training rows X.

    A column that is constant in the training rows is 0 everywhere.
    """
    mean, spread = X.mean(axis=0), X.std(axis=0)
    constant = spread <= 1e-12 * np.maximum(1.0, np.abs(mean))
    scale = np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, spread))
    return tuple((rows - mean) * scale for rows in (X, *others))


def _outliers(name: str, folder: Path | None, seed: int) -> Split:
    """Half of a labelled set's normal rows; then the other half and all outliers."""
    with np.load(_file(folder, f"outliers/{name}.npz"), allow_pickle=False) as file:
        X, strange = file["X"].astype(np.float64), file["y"].astype(bool)
    rng = np.random.default_rng(seed)
    known, rest = half(X[~strange], rng, TRAINING_ROWS)
    new, mask = thin(rest, X[strange], rng, NEW_ROWS)
    known, new = standardise(known, new)
    return Split(known, [Trial(name, new, mask)])


def _digits(folder: Path | None) -> tuple[Array, NDArray[np.int64]]:
    X, labels = datasets.digits()
    return X / 16, labels


@lru_cache(maxsize=1)
def _mnist(folder: Path | None) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    with np.load(_file(folder, MNIST_FILE), allow_pickle=False) as file:
        images, labels = file["X_train"], file["y_train"]
    return images.reshape(len(images), -1), labels.astype(np.int64)


def _some_mnist(folder: Path | None, seed: int) -> tuple[Array, NDArray[np.int64]]:
    """Random images, twice as many as are wanted together."""
    images, labels = _mnist(folder)
    n = min(len(images), 2 * (TRAINING_ROWS + IMAGES))
    some = np.random.default_rng(seed).permutation(len(images))[:n]
    return images[some] / 255.0, labels[some]


def _new_digit(held_out: int, folder: Path | None, seed: int) -> Split:
    return _new_class(f"digits-{held_out}", *_digits(folder), held_out, seed)


def _new_mnist(held_out: int, folder: Path | None, seed: int) -> Split:
    return _new_class(f"mnist-{held_out}", *_some_mnist(folder, seed), held_out, seed)


def _new_class(name: str, X: Array, labels: NDArray[np.int64], held_out: int, seed: int) -> Split:
    """Half of the other nine classes; then their other half and all of the one held out."""
    rng = np.random.default_rng(seed)
    known, rest = half(X[labels != held_out], rng, TRAINING_ROWS)
    new, mask = thin(rest, X[labels == held_out], rng, IMAGES)
    return Split(known, [Trial(name, new, mask)])


def _digit_junk(folder: Path | None, seed: int) -> Split:
    return _junk("digits", _digits(folder)[0], seed)


def _mnist_junk(folder: Path | None, seed: int) -> Split:
    return _junk("mnist", _some_mnist(folder, seed)[0], seed)


def _junk(name: str, X: Array, seed: int) -> Split:
    """Half of the images; then the other half and images that nobody wrote."""
    rng = np.random.default_rng(seed)
    known, rest = half(X, rng, TRAINING_ROWS)
    normal, spare = rest[: IMAGES - JUNK_ROWS], rest[:JUNK_ROWS]
    trials = []
    for kind, make in datasets.JUNK_KINDS.items():
        junk = make(spare, rng)
        mask = np.repeat([False, True], [len(normal), len(junk)])
        trials.append(Trial(f"junk-{name}-{kind}", np.concatenate([normal, junk]), mask))
    return Split(known, trials)


def _traffic(quiet: str, folder: Path | None, seed: int) -> Split:
    """One quiet day's minutes; then those of each later day with attacks, day by day."""
    traffic = load_traffic(folder)
    if traffic.simulated:
        if quiet != QUIET_DAYS[0]:
            raise Unavailable("there is one simulated quiet day, and it was used already")
        name, quiet = f"darpa-{quiet[5:]}", SIMULATED_QUIET
    else:
        name = f"darpa-{quiet[5:]}"
    busy = traffic.X[:, 0] > 0  # connections
    logs = log_features(traffic.X)
    known = logs[busy & (traffic.days == quiet)]
    trials = []
    for day in np.unique(traffic.days[traffic.days > quiet]):
        rows = busy & (traffic.days == day)
        attack = traffic.is_attack[rows]
        if day in FLOODED or min(attack.sum(), (~attack).sum()) < FEWEST_MINUTES:
            continue
        loud = loud_by_flood_or_scan(traffic.attacks[rows])
        new = standardise(known, logs[rows])[1]
        trials.append(Trial(name, new, attack, str(day), loud))
    return Split(standardise(known)[0], trials, traffic.simulated)


def _new_object(held_out: int, folder: Path | None, seed: int) -> Split:
    """COIL-20: views of nineteen objects, then others of these and all of the twentieth."""
    with np.load(_file(folder, "embedding/coil20.npz"), allow_pickle=False) as file:
        X, labels = file["X"] / float(file["scale"]), file["y"].astype(np.int64)
    return _new_class(f"coil-{held_out}", X, labels, held_out, seed)


def _connections(folder: Path | None, seed: int) -> Split:
    """NSL-KDD: normal connections of the training file, then the test file; numeric columns."""
    known, normal = _nsl_kdd(_file(folder, "kdd99/nslkdd_train20.txt.gz"))
    new, fine = _nsl_kdd(_file(folder, "kdd99/nslkdd_test.txt.gz"))
    rng = np.random.default_rng(seed)
    known = known[normal][rng.permutation(normal.sum())[:TRAINING_ROWS]]
    rows, mask = thin(new[fine], new[~fine], rng, NEW_ROWS)
    known, rows = standardise(known, rows)
    return Split(known, [Trial("nsl-kdd", rows, mask)])


def _nsl_kdd(path: Path) -> tuple[Array, Mask]:
    """Return log(1 + x) of the numeric columns, and which rows are normal."""
    with gzip.open(path, "rt") as file:
        rows = [line.strip().split(",") for line in file]
    numbers = np.array([[row[0], *row[4:41]] for row in rows], dtype=np.float64)
    return np.log1p(numbers), np.array([row[41] == "normal" for row in rows])


def _file(folder: Path | None, name: str) -> Path:
    if folder is None or not (folder / name).is_file():
        raise Unavailable(
            f"no file {name if folder is None else folder / name}; name its folder with --data"
        )
    return folder / name


SETS = {
    "2_annthyroid": 0.6, "12_fault": 0.15, "16_http": 0.9, "18_Ionosphere": 0.06,
    "19_landsat": 0.7, "20_letter": 0.17, "22_magic.gamma": 1.0, "23_mammography": 0.7,
    "26_optdigits": 0.45, "27_PageBlocks": 0.6, "29_Pima": 0.1, "30_satellite": 0.5,
    "32_shuttle": 0.9, "35_SpamBase": 0.4, "37_Stamps": 0.05, "39_vertebral": 0.05,
    "40_vowels": 0.15, "43_WDBC": 0.06, "46_WPBC": 0.05, "47_yeast": 0.12,
}  # fmt: skip
"""The labelled sets, and the rough cost of each in minutes."""


def _sources() -> tuple[Source, ...]:
    found = []
    for name, minutes in SETS.items():
        title = name.partition("_")[2]
        found.append(Source(name, OUTLIERS, {name: title}, partial(_outliers, name), minutes))
    for digit in range(10):
        name, title = f"digits-{digit}", f"digits, new: {digit}"
        found.append(Source(name, DIGITS, {name: title}, partial(_new_digit, digit), 0.15))
    for day in QUIET_DAYS:
        name, title = f"darpa-{day[5:]}", f"traffic after {day[5:]}"
        found.append(Source(name, DARPA, {name: title}, partial(_traffic, day), 0.4))
    for number in range(1, 21):
        name, title = f"coil-{number}", f"COIL-20, new: {number}"
        found.append(Source(name, FRESH, {name: title}, partial(_new_object, number), 0.2))
    found.append(Source("nsl-kdd", FRESH, {"nsl-kdd": "NSL-KDD"}, _connections, 0.9))
    for name, title, make, minutes in (
        ("digits", "digits", _digit_junk, 0.3),
        ("mnist", "MNIST", _mnist_junk, 8.0),
    ):
        words = {kind: kind.replace("-", " ") for kind in datasets.JUNK_KINDS}
        titles = {f"junk-{name}-{kind}": f"{title}, {word}" for kind, word in words.items()}
        seeds = 1 if name == "mnist" else 3
        found.append(Source(f"junk-{name}", JUNK, titles, make, minutes, seeds))
    for digit in range(10):
        name, title = f"mnist-{digit}", f"MNIST, new: {digit}"
        found.append(Source(name, MNIST, {name: title}, partial(_new_mnist, digit), 3.5, 1))
    return tuple(found)


SOURCES = _sources()  # The benchmark, by group; the dearest, MNIST, last
QUICK = ("37_Stamps", "39_vertebral", "43_WDBC", "digits-0")  # Sources of the short run
