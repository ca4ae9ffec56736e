"""Explanations of abnormality scores: a point's values compared with the training points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from outsample.records import Counts, Neighbors, Reals
from outsample.trust.conformal import p_values

# Components of the abnormality: the less typical of the first two is the main reason, unless the
# relative distance determines the score.
MEASURED, RELATIVE = ("nearest_distance", "plane_distance"), "relative_distance"


class Reason(NamedTuple):
    """One value of a point, compared with the training points.

    Attributes
    ----------
    value : float
        The value.
    typical : float
        Its median over the training points, leaving one out.
    p_value : float
        Share of points with at least that value, including the point itself.
    """

    value: float
    typical: float
    p_value: float


class Explanation(NamedTuple):
    """Explanation of the abnormality of a point.

    Attributes
    ----------
    abnormality, p_value : float
        As from the detector.
    main_reason : str
        Name of the value that determines the abnormality: ``relative_distance``, or the one of
        ``nearest_distance`` and ``plane_distance`` that is less typical of the training points.
    reasons : dict of str to Reason
        ``nearest_distance`` (mean distance of the two nearest training points),
        ``plane_distance`` (distance from the soft planes of 10, 20 and 40 neighbours) and
        ``relative_distance`` (geometric mean of the two, over the distance of the ten nearest
        neighbours from their own 40th); with a map also ``residual`` and ``dispersion``, the two
        readings of Eq. 2.9.
    neighbors : ndarray of int
        The nearest training rows, as row numbers of the fitted X.
    distances : ndarray of float
        Their distances.
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
        lines.append("  nearest: " + ", ".join(f"row {row} at {r:.4g}" for row, r in pairs))
        return "\n".join(lines)


def explanations(
    scores: np.ndarray,
    p: np.ndarray,
    numbers: Mapping[str, tuple[np.ndarray, np.ndarray]],
    relative: np.ndarray,
    neighbors: Neighbors,
) -> list[Explanation]:
    """Return explanations of points with scores and p-values (q,) and their nearest rows.

    ``numbers`` maps names to the values of the points (q,) and of the training points, ascending.
    ``relative`` (q,) is true where the relative distance determines the score.
    """
    reasons = {name: _reasons(*values) for name, values in numbers.items()}
    rows = neighbors.indices.reshape(len(p), -1)
    distances = neighbors.distances.reshape(len(p), -1)
    results = []
    for i in range(len(p)):
        own_reasons = {name: reason[i] for name, reason in reasons.items()}
        names = (RELATIVE,) if relative[i] else MEASURED
        main = min(names, key=lambda name: own_reasons[name].p_value)
        results.append(
            Explanation(float(scores[i]), float(p[i]), main, own_reasons, rows[i], distances[i])
        )
    return results


def _reasons(values: np.ndarray, reference: np.ndarray) -> list[Reason]:
    typical = 2 * float(np.median(reference / 2))  # the sum of two values may overflow
    pairs = zip(values.tolist(), p_values(values, reference).tolist(), strict=True)
    return [Reason(value, typical, share) for value, share in pairs]
