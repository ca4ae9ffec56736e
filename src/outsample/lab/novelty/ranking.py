"""How well detectors tell strange rows from normal ones, when they have seen only normal rows.

For each set and each seed: every detector learns from the same normal rows and ranks the same new
rows. The figures are the area under the ROC curve and the average precision; 0.5 is chance for
the first, the share of strange rows for the second.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from outsample.lab.accuracy.maps import Unavailable
from outsample.lab.novelty.detectors import OURS, PEER, Detector, detectors
from outsample.lab.novelty.splits import SOURCES, Source, Split, Trial

__all__ = [
    "LEVEL", "Alarms", "Row", "SetResult", "Standing", "areas", "figures", "mean_ranks", "run",
    "run_source", "select", "standings",
]  # fmt: skip

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Progress = Callable[[float, str], None]

LEVEL = 0.01
"""A row raises an alarm if its p-value is at most that."""


class Row(NamedTuple):
    """One detector on one set."""

    name: str
    family: str
    """`detectors.OURS` or `PEER`."""
    note: str
    auc: tuple[float, ...] = ()
    """Area under the ROC curve, seed by seed."""
    precision: tuple[float, ...] = ()
    """Average precision, seed by seed."""
    seconds: float = math.nan
    """To learn and to rank, the mean of the seeds."""
    failure: str = ""
    parts: tuple[float, ...] = ()
    """Area under the ROC curve of each part, such as a day; the mean of the seeds."""

    @property
    def mean_auc(self) -> float:
        """Mean over the seeds; NaN after a failure."""
        return math.nan if self.failure else float(np.mean(self.auc))

    @property
    def mean_precision(self) -> float:
        """Mean over the seeds; NaN after a failure."""
        return math.nan if self.failure else float(np.mean(self.precision))


class Alarms(NamedTuple):
    """Shares of rows with a p-value of at most `LEVEL`, as our detector gives them."""

    strange: float
    normal: float
    """The rate of false alarms; `LEVEL` is promised for rows like the training rows."""
    loud: float | None = None
    """Of minutes of traffic that no detector should miss; None without any."""
    normal_beside_loud: float | None = None
    """Of normal minutes, on the days with loud ones."""
    n_loud: int = 0


class SetResult(NamedTuple):
    """One set, its rows from the best to the worst, or why there are none."""

    name: str
    title: str
    group: str
    rows: list[Row]
    shape: tuple[int, int] = (0, 0)
    """Training rows and columns."""
    counts: tuple[int, int] = (0, 0)
    """New rows, and the strange ones among them."""
    parts: tuple[str, ...] = ()
    """What the set's figures are means over, such as days."""
    alarms: Alarms | None = None
    simulated: bool = False
    skipped: str = ""

    @property
    def ours(self) -> Row | None:
        """The row of our detector, unless it failed."""
        return next((row for row in self.ran if row.family == OURS), None)

    @property
    def best_peer(self) -> Row | None:
        """The best row of another detector."""
        return next((row for row in self.ran if row.family == PEER), None)

    @property
    def ran(self) -> list[Row]:
        """Rows with figures."""
        return [row for row in self.rows if not row.failure]


class Standing(NamedTuple):
    """One detector on all sets of a group."""

    name: str
    family: str
    auc: float
    """Mean area under the ROC curve over the sets on which it ran; NaN if it ran on none."""
    precision: float
    """Mean average precision, likewise."""
    rank: float
    """Mean rank by area under the ROC curve over all sets: 1 is best, equal areas share their
    ranks, and who failed on a set is last there. NaN for who ran on none, and is not ranked."""
    seconds: float
    """Mean of a set."""
    n_sets: int
    """On how many sets it ran."""
    total: int
    """How many sets the group has here."""


def select(names: Sequence[str]) -> list[Source]:
    """Return the sources with these names; the beginning of a name stands for all that share it.

    Parameters
    ----------
    names : sequence of str
        None at all selects every source. A group's name stands for all its sources; the number
        in front of a name may be left out, and capitals do not matter.

    Returns
    -------
    list of Source

    Examples
    --------
    >>> from outsample.lab.novelty.ranking import select
    >>> [source.name for source in select(["stamps", "darpa"])]
    ['37_Stamps', 'darpa-06-11', 'darpa-06-16']
    """
    chosen: set[str] = set()
    for name in names:
        word = name.lower()
        known = {source.name: _names(source) for source in SOURCES}
        found = {at for at, words in known.items() if word in words} or {
            at for at, words in known.items() if any(other.startswith(word) for other in words)
        }
        if not found:
            raise ValueError(f"there is no set {name!r}; the sets are: {', '.join(known)}")
        chosen |= found
    return [source for source in SOURCES if not names or source.name in chosen]


def _names(source: Source) -> set[str]:
    """Return everything a source may be called."""
    word = source.name.lower()
    number, _, rest = word.partition("_")
    return {word, source.group} | ({rest} if number.isdigit() else set())


def run(
    sources: Sequence[Source] = SOURCES,
    seeds: Sequence[int] = (0, 1, 2),
    folder: Path | None = None,
    *,
    listed: Sequence[Detector] | None = None,
    progress: Progress | None = None,
    on_set: Callable[[SetResult], None] | None = None,
) -> list[SetResult]:
    """Measure every detector on every set.

    Parameters
    ----------
    sources : sequence of Source
        Where the sets come from.
    seeds : sequence of int
        One random split each; detectors that draw numbers take them from the seed too.
    folder : Path, optional
        Where the data files are; sets that need one are skipped without it.
    listed : sequence of Detector, optional
        All of `detectors.detectors` if not given.
    progress : callable, optional
        Called with the share of the work done, from 0 to 1, and what is done next.
    on_set : callable, optional
        Called with each result as soon as it is known.

    Returns
    -------
    list of SetResult
    """
    lines = detectors() if listed is None else listed
    total, done, found = sum(source.minutes for source in sources), 0.0, []
    for source in sources:

        def tell(part: float, what: str, source: Source = source, done: float = done) -> None:
            if progress is not None:
                progress((done + part * source.minutes) / total, f"{source.name}: {what}")

        for result in run_source(source, seeds, folder, lines, tell):
            found.append(result)
            if on_set is not None:
                on_set(result)
        done += source.minutes
    if progress is not None:
        progress(1.0, "done")
    return found


def run_source(
    source: Source,
    seeds: Sequence[int],
    folder: Path | None,
    listed: Sequence[Detector],
    tell: Progress,
) -> list[SetResult]:
    """Make the splits of one source and measure every detector on its sets.

    Parameters
    ----------
    source : Source
        Where the sets come from.
    seeds, folder, listed
        As in `run`.
    tell : callable
        Called with the share of this source's work done, and what is done next.

    Returns
    -------
    list of SetResult
        One for each set of the source.
    """
    tables = {name: _Table(listed) for name in source.titles}
    seeds = seeds[: source.most_seeds]
    for turn, seed in enumerate(seeds):
        tell(turn / len(seeds), "reading")
        try:
            split = source.make(folder, seed)
        except Unavailable as reason:
            return [
                SetResult(name, title, source.group, [], skipped=str(reason))
                for name, title in source.titles.items()
            ]
        for at, detector in enumerate(listed):
            tell((turn + at / len(listed)) / len(seeds), detector.name)
            _measure(detector, seed, split, tables)
    return [
        tables[name].result(name, title, source.group, split)
        for name, title in source.titles.items()
    ]


def _measure(detector: Detector, seed: int, split: Split, tables: "dict[str, _Table]") -> None:
    """Fit once, rank the rows of every trial, and enter the figures in the tables of their sets."""
    if any(detector.name in table.failures for table in tables.values()):
        return  # once is enough
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # a line each would bury the table
            begin = perf_counter()
            fitted = detector.build(seed).fit(split.X)
            seconds = (perf_counter() - begin) / len(split.trials)
            for trial in split.trials:
                begin = perf_counter()
                scores = _scores(fitted, trial.X)
                spent = seconds + perf_counter() - begin
                p_values = fitted.p_values(trial.X) if hasattr(fitted, "p_values") else None
                tables[trial.name].enter(detector.name, seed, trial, scores, spent, p_values)
    except Exception as error:  # whatever a detector raises, the others go on
        words = str(error).strip().splitlines() or [""]
        for table in tables.values():
            table.failures[detector.name] = f"{type(error).__name__}: {words[0]}"


def _scores(fitted: Any, X: Array) -> Array:
    scores = np.asarray(fitted.score(X), dtype=np.float64)
    if scores.shape != (len(X),):
        raise ValueError(f"returned an array of shape {scores.shape}, not {(len(X),)}")
    if np.isnan(scores).any():
        raise ValueError("returned NaN")
    if np.isinf(scores).all():
        raise ValueError("returned infinity for every row")
    return scores


def areas(strange: NDArray[np.bool_], scores: Array) -> tuple[float, float]:
    """Return the area under the ROC curve and the average precision.

    Parameters
    ----------
    strange : ndarray of bool of shape (q,)
        The truth; both kinds must be there.
    scores : ndarray of shape (q,)
        Higher is stranger; infinity is allowed.

    Returns
    -------
    tuple of two floats

    Examples
    --------
    >>> import numpy as np
    >>> from outsample.lab.novelty.ranking import areas
    >>> areas(np.array([False, False, True]), np.array([0.0, 2.0, 1.0]))
    (0.5, 0.5)
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    order = rankdata(scores)  # both figures depend on ranks alone, and ranks are finite
    return float(roc_auc_score(strange, order)), float(average_precision_score(strange, order))


class _Table:
    """Collects the figures of one set."""

    def __init__(self, listed: Sequence[Detector]) -> None:
        self.listed = listed
        self.found: dict[str, dict[int, list[tuple[float, float, float]]]] = {}
        self.failures: dict[str, str] = {}
        self.judged: dict[int, list[tuple[Trial, Array]]] = {}

    def enter(
        self, name: str, seed: int, trial: Trial, scores: Array, seconds: float,
        p_values: Array | None,
    ) -> None:  # fmt: skip
        """Add one detector's scores of one trial."""
        line = (*areas(trial.strange, scores), seconds)
        self.found.setdefault(name, {}).setdefault(seed, []).append(line)
        if p_values is not None:
            self.judged.setdefault(seed, []).append((trial, p_values))

    def result(self, name: str, title: str, group: str, split: Split) -> SetResult:
        """Return everything, the best row first."""
        trials = [trial for trial in split.trials if trial.name == name]
        rows = [self._row(detector) for detector in self.listed]
        rows.sort(key=lambda row: (bool(row.failure), -row.mean_auc))
        return SetResult(
            name,
            "simulated traffic" if split.simulated else title,
            group,
            rows,
            (len(split.X), split.X.shape[1]),
            (sum(len(trial.X) for trial in trials), sum(int(t.strange.sum()) for t in trials)),
            tuple(trial.part for trial in trials if trial.part),
            _alarms(list(self.judged.values())) if self.judged else None,
            split.simulated,
        )

    def _row(self, detector: Detector) -> Row:
        name, family, _, note = detector
        if name in self.failures:
            return Row(name, family, note, failure=self.failures[name])
        lines = np.array(list(self.found[name].values()))  # seeds, trials, three figures
        auc, precision = lines[..., :2].mean(axis=1).T.tolist()
        seconds = float(lines[..., 2].sum(axis=1).mean())
        parts = tuple(lines[..., 0].mean(axis=0).tolist())
        return Row(name, family, note, tuple(auc), tuple(precision), seconds, "", parts)


def _alarms(judged: Sequence[Sequence[tuple[Trial, Array]]]) -> Alarms:
    """Pool the rows of all trials of all seeds."""
    trials = [(trial, p <= LEVEL) for seed in judged for trial, p in seed]
    beside = [(trial.loud, trial, p) for trial, p in trials if trial.loud is not None]
    beside = [(loud, trial, raised) for loud, trial, raised in beside if loud.any()]
    found = Alarms(
        _share((trial.strange, raised) for trial, raised in trials),
        _share((~trial.strange, raised) for trial, raised in trials),
    )
    if not beside:
        return found
    return found._replace(
        loud=_share((loud, raised) for loud, _, raised in beside),
        normal_beside_loud=_share((~trial.strange, raised) for _, trial, raised in beside),
        n_loud=sum(int(loud.sum()) for loud, _, _ in beside) // len(judged),
    )


def _share(pairs: Iterable[tuple[Mask, Mask]]) -> float:
    """Return how many of the chosen rows raise an alarm, as a share."""
    return float(np.concatenate([raised[chosen] for chosen, raised in pairs]).mean())


def standings(results: Sequence[SetResult]) -> list[Standing]:
    """Compare the detectors over all sets of a group.

    Parameters
    ----------
    results : sequence of SetResult
        The sets; those that were skipped do not count.

    Returns
    -------
    list of Standing
        From the best mean rank to the worst; who ran on no set comes last.
    """
    done = [result for result in results if not result.skipped]
    found: dict[str, list[Row]] = {}
    for result in done:
        for row in result.rows:
            found.setdefault(row.name, []).append(row)
    ran = [name for name, rows in found.items() if not all(row.failure for row in rows)]
    areas_of = np.array([[row.mean_auc for row in found[name]] for name in ran])
    ranks = dict(zip(ran, mean_ranks(areas_of) if ran else (), strict=True))
    table = [_standing(rows, ranks.get(name, math.nan)) for name, rows in found.items()]
    return sorted(table, key=lambda line: (math.isnan(line.rank), line.rank))


def mean_ranks(areas: Array) -> Array:
    """Return the mean rank of each line over all columns.

    Parameters
    ----------
    areas : ndarray of shape (m, n)
        A line a detector, a column a set; NaN where it failed.

    Returns
    -------
    ndarray of shape (m,)
        1 is the largest; equal ones share their ranks, and NaN is last.

    Examples
    --------
    >>> import numpy as np
    >>> from outsample.lab.novelty.ranking import mean_ranks
    >>> mean_ranks(np.array([[0.9, 0.8], [0.9, np.nan], [0.7, 0.9]]))
    array([1.75, 2.25, 2.  ])
    """
    # Rounded: equal rankings may give areas that differ in the last digit.
    filled = np.nan_to_num(np.round(areas, 9), nan=-1.0)
    return np.asarray(rankdata(-filled, axis=0).mean(axis=1))


def _standing(rows: Sequence[Row], rank: float) -> Standing:
    ran = [row for row in rows if not row.failure]
    figures = [(row.mean_auc, row.mean_precision, row.seconds) for row in ran]
    auc, precision, seconds = np.mean(figures, axis=0).tolist() if ran else (math.nan,) * 3
    first = rows[0]
    return Standing(first.name, first.family, auc, precision, rank, seconds, len(ran), len(rows))


def figures(result: SetResult) -> dict[str, Any]:
    """Return every number of one set, ready for JSON.

    Parameters
    ----------
    result : SetResult
        The set.

    Returns
    -------
    dict
    """
    start = {"name": result.name, "title": result.title, "group": result.group}
    if result.skipped:
        return start | {"skipped": result.skipped}
    peer = result.best_peer
    return start | {
        "simulated": result.simulated,
        "n_training": result.shape[0],
        "n_columns": result.shape[1],
        "n_new": result.counts[0],
        "n_strange": result.counts[1],
        "parts": list(result.parts),
        "ours": None if result.ours is None else result.ours.mean_auc,
        "best_peer": None if peer is None else peer.name,
        "best_peer_auc": None if peer is None else peer.mean_auc,
        "alarms": None if result.alarms is None else result.alarms._asdict() | {"level": LEVEL},
        "rows": [_row_figures(row, bool(result.parts)) for row in result.rows],
    }


def _row_figures(row: Row, parts: bool) -> dict[str, Any]:
    start = {"name": row.name, "family": row.family, "parameters": row.note}
    if row.failure:
        return start | {"failure": row.failure}
    found = start | {
        "auc": row.mean_auc,
        "auc_spread": float(np.std(row.auc)),
        "precision": row.mean_precision,
        "precision_spread": float(np.std(row.precision)),
        "seconds": row.seconds,
        "auc_of_seeds": list(row.auc),
        "precision_of_seeds": list(row.precision),
    }
    return found | {"auc_of_parts": list(row.parts)} if parts else found
