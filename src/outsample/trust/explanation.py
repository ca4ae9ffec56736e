"""Why a point is strange, or not: its numbers beside those of the training points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from outsample.records import Counts, Neighbors, Reals
from outsample.trust.conformal import p_values

# Numbers that the abnormality is made of; of the first two the rarer is the reason, or the nearest.
MEASURED, RELATIVE = ("nearest_distance", "plane_distance"), "relative_distance"


class Reason(NamedTuple):
    """One number of a point beside those of the training points.

    Attributes
    ----------
    value : float
        The number.
    typical : float
        Its median over the training points, each left out of the others.
    p_value : float
        Share of them with at least that value, the point counted among them.
    """

    value: float
    typical: float
    p_value: float


class Explanation(NamedTuple):
    """Why a point is strange, or not.

    Attributes
    ----------
    abnormality, p_value : float
        As from the detector.
    main_reason : str
        Name of the number that makes the abnormality: ``relative_distance`` where it is that which
        counts, else ``nearest_distance`` or ``plane_distance``, whichever is less like those of
        the training points.
    reasons : dict of str to Reason
        ``nearest_distance`` (mean distance of the two nearest training points),
        ``plane_distance`` (distance from the soft planes of 10, 20 and 40 neighbours) and
        ``relative_distance`` (geometric mean of the two, over the distance of the ten nearest
        neighbours from their own 40th); with a map also ``residual`` and ``dispersion``, the two
        readings of Eq. 2.9.
    neighbors : ndarray of int
        The nearest training rows, of the X that was fitted.
    distances : ndarray of float
        How far they are.
    """

    abnormality: float
    p_value: float
    main_reason: str
    reasons: dict[str, Reason]
    neighbors: Counts
    distances: Reals

    def __str__(self) -> str:
        lines = [f"abnormality {self.abnormality:.2f}, p = {self.p_value:.3g}: {self.main_reason}"]
        for name, (value, typical, p) in self.reasons.items():
            lines.append(f"  {name:<18}{value:<10.4g} typical {typical:<10.4g} p = {p:.3g}")
        pairs = zip(self.neighbors, self.distances, strict=True)
        lines.append("  nearest: " + ", ".join(f"row {row} at {apart:.4g}" for row, apart in pairs))
        return "\n".join(lines)


def explanations(
    scores: np.ndarray,
    p: np.ndarray,
    numbers: Mapping[str, tuple[np.ndarray, np.ndarray]],
    relative: np.ndarray,
    near: Neighbors,
) -> list[Explanation]:
    """Explain points with scores and p-values (q,) and a few nearest training rows each.

    ``numbers`` are, by name, those of the points (q,) and those of training points, ascending.
    ``relative`` (q,) tells where the relative distance makes the score.
    """
    reasons = {name: _reasons(*values) for name, values in numbers.items()}
    rows = near.indices.reshape(len(p), -1)
    distances = near.distances.reshape(len(p), -1)
    found = []
    for i in range(len(p)):
        mine = {name: reason[i] for name, reason in reasons.items()}
        names = (RELATIVE,) if relative[i] else MEASURED
        main = min(names, key=lambda name: mine[name].p_value)
        found.append(
            Explanation(float(scores[i]), float(p[i]), main, mine, rows[i], distances[i])
        )
    return found


def _reasons(values: np.ndarray, reference: np.ndarray) -> list[Reason]:
    typical = 2 * float(np.median(reference / 2))  # the sum of two may be beyond a double
    pairs = zip(values.tolist(), p_values(values, reference).tolist(), strict=True)
    return [Reason(value, typical, share) for value, share in pairs]
