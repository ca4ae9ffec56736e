"""Measure how well detectors fitted to normal rows rank anomalous rows.

For each set and each seed, every detector is fitted to the same normal rows and ranks the same new
rows. The figures are the area under the ROC curve and the average precision; 0.5 is chance for
the first, the share of anomalous rows for the second.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score, roc_auc_score

from outsample_lab.accuracy.maps import Unavailable
from outsample_lab.bench_files import select_by_name
from outsample_lab.novelty.detectors import Detector, detectors
from outsample_lab.novelty.set_result import LEVEL, Alarms, DetectorRow, SetResult
from outsample_lab.novelty.splits import SOURCES, Source, Split, Trial
from outsample_lab.progress import Progress, RunProgress

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def select(names: Sequence[str]) -> list[Source]:
    """Return the sources whose names are, or start with, those listed; all without a list.

    The name of a group selects all its sources. The number in front of a name can be omitted, and
    case does not matter.

    >>> [source.name for source in select(["stamps", "darpa"])]
    ['37_Stamps', 'darpa-06-11', 'darpa-06-16']
    """
    return select_by_name("set", SOURCES, names, _names, str.lower)


def _names(source: Source) -> set[str]:
    """Return all names of a source."""
    word = source.name.lower()
    number, _, suffix = word.partition("_")
    return {word, source.group} | ({suffix} if number.isdigit() else set())


def run(
    sources: Sequence[Source] = SOURCES,
    seeds: Sequence[int] = (0, 1, 2),
    folder: Path | None = None,
    *,
    listed: Sequence[Detector] | None = None,
    progress: Progress | None = None,
    on_set: Callable[[SetResult], None] | None = None,
) -> list[SetResult]:
    """Measure every detector on every set, one random split per seed."""
    # Sets that need a data file are skipped without its folder; `on_set` receives each result.
    lines = detectors() if listed is None else listed
    run_progress = RunProgress(progress, {source.name: source.minutes for source in sources})
    results = []
    for source in sources:
        for result in run_source(source, seeds, folder, lines, run_progress.part(source.name)):
            results.append(result)
            if on_set is not None:
                on_set(result)
    run_progress.finish()
    return results


def run_source(
    source: Source,
    seeds: Sequence[int],
    folder: Path | None,
    listed: Sequence[Detector],
    tell: Progress,
) -> list[SetResult]:
    """Split one source and measure every detector on each of its sets."""
    tables = {name: _SetFigures(listed) for name in source.titles}
    seeds = seeds[: source.most_seeds]
    for turn, seed in enumerate(seeds):
        tell(turn / len(seeds), f"{source.name}: reading")
        try:
            split = source.make(folder, seed)
        except Unavailable as reason:
            return [
                SetResult(name, title, source.group, skipped=str(reason))
                for name, title in source.titles.items()
            ]
        for at, detector in enumerate(listed):
            tell((turn + at / len(listed)) / len(seeds), f"{source.name}: {detector.name}")
            _measure(detector, seed, split, tables)
    return [
        tables[name].result(name, title, source.group, split)
        for name, title in source.titles.items()
    ]


def _measure(detector: Detector, seed: int, split: Split, tables: "dict[str, _SetFigures]") -> None:
    """Fit once, rank the rows of every trial, and add the results to their sets."""
    if any(detector.name in table.failures for table in tables.values()):
        return  # it failed on another set
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # warnings would hide the table
            begin = perf_counter()
            fitted = detector.build(seed).fit(split.X)
            seconds = (perf_counter() - begin) / len(split.trials)
            for trial in split.trials:
                begin = perf_counter()
                scores = _scores(fitted, trial.X)
                spent = seconds + perf_counter() - begin
                p_values = fitted.p_values(trial.X) if hasattr(fitted, "p_values") else None
                tables[trial.name].enter(detector.name, seed, trial, scores, spent, p_values)
    except Exception as error:  # an error of one detector does not stop the others
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


def areas(is_anomalous: Mask, scores: Array) -> tuple[float, float]:
    """Return the area under the ROC curve and the average precision; infinite scores are allowed.

    >>> areas(np.array([False, False, True]), np.array([0.0, 2.0, 1.0]))
    (0.5, 0.5)
    """
    order = rankdata(scores)  # both figures depend on ranks alone, and ranks are finite
    auc = roc_auc_score(is_anomalous, order)
    return float(auc), float(average_precision_score(is_anomalous, order))


class _SetFigures:
    """Collects the results of one set."""

    def __init__(self, listed: Sequence[Detector]) -> None:
        self.listed = listed
        self.figures_by_detector: dict[str, dict[int, list[tuple[float, float, float]]]] = {}
        self.failures: dict[str, str] = {}
        self.judged: dict[int, list[tuple[Trial, Array]]] = {}

    def enter(
        self, name: str, seed: int, trial: Trial, scores: Array, seconds: float,
        p_values: Array | None,
    ) -> None:  # fmt: skip
        """Add one detector's scores of one trial."""
        figures = (*areas(trial.is_anomalous, scores), seconds)
        self.figures_by_detector.setdefault(name, {}).setdefault(seed, []).append(figures)
        if p_values is not None:
            self.judged.setdefault(seed, []).append((trial, p_values))

    def result(self, name: str, title: str, group: str, split: Split) -> SetResult:
        """Return the result of the set, the best row first."""
        trials = [trial for trial in split.trials if trial.name == name]
        parts = tuple(trial.part for trial in trials if trial.part)
        rows = [self._row(detector, bool(parts)) for detector in self.listed]
        rows.sort(key=lambda row: (bool(row.failure), -row.auc))
        return SetResult(
            name,
            "simulated traffic" if split.simulated else title,
            group,
            rows,
            n_training=len(split.X),
            n_columns=split.X.shape[1],
            n_new=sum(len(trial.X) for trial in trials),
            n_anomalous=sum(int(trial.is_anomalous.sum()) for trial in trials),
            parts=parts,
            alarms=_alarms(list(self.judged.values())) if self.judged else None,
            simulated=split.simulated,
        )

    def _row(self, detector: Detector, in_parts: bool) -> DetectorRow:
        name, family, _, note = detector
        if name in self.failures:
            return DetectorRow(name, family, note, failure=self.failures[name])
        # Shape: seeds, trials, three figures.
        lines = np.array(list(self.figures_by_detector[name].values()))
        auc, precision = lines[..., :2].mean(axis=1).T.tolist()
        seconds = float(lines[..., 2].sum(axis=1).mean())
        parts = tuple(lines[..., 0].mean(axis=0).tolist()) if in_parts else ()
        return DetectorRow(name, family, note, tuple(auc), tuple(precision), seconds, "", parts)


def _alarms(judged: Sequence[Sequence[tuple[Trial, Array]]]) -> Alarms:
    """Return the alarm rates over all trials of all seeds."""
    trials = [(trial, p <= LEVEL) for seed in judged for trial, p in seed]
    loud_trials = [(trial.loud, trial, p) for trial, p in trials if trial.loud is not None]
    loud_trials = [(loud, trial, raised) for loud, trial, raised in loud_trials if loud.any()]
    alarms = Alarms(
        _share((trial.is_anomalous, raised) for trial, raised in trials),
        _share((~trial.is_anomalous, raised) for trial, raised in trials),
    )
    if not loud_trials:
        return alarms
    return alarms._replace(
        loud=_share((loud, raised) for loud, _, raised in loud_trials),
        normal_on_loud_days=_share(
            (~trial.is_anomalous, raised) for _, trial, raised in loud_trials
        ),
        n_loud=sum(int(loud.sum()) for loud, _, _ in loud_trials) // len(judged),
    )


def _share(pairs: Iterable[tuple[Mask, Mask]]) -> float:
    """Return the share of the selected rows that raise an alarm."""
    return float(np.concatenate([raised[selected] for selected, raised in pairs]).mean())
