"""Ranking of the detectors over all sets of a group."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from outsample_lab.novelty.set_result import DetectorRow, SetResult
from outsample_lab.novelty.splits import GROUPS

Array = NDArray[np.float64]


class Standing(NamedTuple):
    """One detector on all sets of a group."""

    name: str
    family: str
    auc: float  # Mean area under the ROC curve over the sets on which it ran; NaN if it ran on none
    precision: float  # Mean average precision, likewise
    # Mean rank by AUC over all sets: 1 is best, ties share a rank, and a failed detector is last.
    # NaN if the detector ran on no set.
    rank: float
    seconds: float  # Mean over the sets
    n_sets: int  # Sets on which it ran
    total: int  # Sets of the group


class Group(NamedTuple):
    """A group of sets, and the ranking of the detectors on it."""

    title: str
    simulated: bool
    sets: Sequence[SetResult]
    standings: Sequence[Standing]


def grouped(results: Sequence[SetResult]) -> dict[str, Group]:
    """Return the groups with at least one measured set."""
    groups = {}
    for name, title in GROUPS.items():
        if sets := [result for result in results if result.group == name and not result.skipped]:
            simulated = any(result.simulated for result in sets)
            title = f"{title} (simulated)" if simulated else title
            groups[name] = Group(title, simulated, sets, standings(sets))
    return groups


def standings(results: Sequence[SetResult]) -> list[Standing]:
    """Return one line per detector in order of mean rank; detectors that never ran are last."""
    rows_by_detector: dict[str, list[DetectorRow]] = {}
    for result in results:
        for row in result.rows:
            rows_by_detector.setdefault(row.name, []).append(row)
    ran = [name for name, rows in rows_by_detector.items() if not all(row.failure for row in rows)]
    areas = np.array([[row.auc for row in rows_by_detector[name]] for name in ran])
    ranks = dict(zip(ran, mean_ranks(areas) if ran else (), strict=True))
    table = [_standing(rows, ranks.get(name, math.nan)) for name, rows in rows_by_detector.items()]
    return sorted(table, key=lambda line: (math.isnan(line.rank), line.rank))


def mean_ranks(areas: Array) -> Array:
    """Return the mean rank of each line over columns: 1 is largest, ties share, NaN is last.

    >>> mean_ranks(np.array([[0.9, 0.8], [0.9, np.nan], [0.7, 0.9]]))
    array([1.75, 2.25, 2.  ])
    """
    # Rounded: equal rankings may give areas that differ in the last digit.
    filled = np.nan_to_num(np.round(areas, 9), nan=-1.0)
    return np.asarray(rankdata(-filled, axis=0).mean(axis=1))


def _standing(rows: Sequence[DetectorRow], rank: float) -> Standing:
    ran = [row for row in rows if not row.failure]
    figures = [(row.auc, row.precision, row.seconds) for row in ran]
    auc, precision, seconds = np.mean(figures, axis=0).tolist() if ran else (math.nan,) * 3
    first = rows[0]
    return Standing(first.name, first.family, auc, precision, rank, seconds, len(ran), len(rows))
