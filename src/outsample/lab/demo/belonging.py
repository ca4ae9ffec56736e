"""Do they belong? Digits that the map has not seen, and images that are no digits.

The detector learns from four fifths of the digits. New digits should pass, but for the false alarms
that were agreed on; images that nobody wrote should not.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from outsample import NoveltyDetector
from outsample.lab.datasets import JUNK_KINDS
from outsample.lab.demo.digits_map import split
from outsample.report.page import Section, Table

ALPHA = 0.05  # Share of false alarms asked for
NEW = "new digits"
TITLES = {
    NEW: "Digits the detector has not seen",
    "constant": "One grey value all over",
    "times-10": "Digits, ten times too bright",
    "noise": "Noise",
    "permuted": "Digits with shuffled pixels",
}


class KindRow(NamedTuple):
    """One kind of image."""

    kind: str
    n_images: int
    flagged: float  # Share with a p-value of at most `ALPHA`
    median: float  # Median p-value
    area: float | None  # Area under the ROC curve against the new digits; None for these themselves


def run(X: NDArray[np.float64], seed: int = 0) -> list[KindRow]:
    """Learn from four fifths of the digits, (n, 64), then judge the rest (first row) and junk."""
    hidden = split(len(X), seed)
    X = X / X.max()
    detector = NoveltyDetector(alpha=ALPHA).fit(X[~hidden])
    rng = np.random.default_rng(seed)
    images = {NEW: X[hidden]} | {kind: make(X[hidden], rng) for kind, make in JUNK_KINDS.items()}
    normal, rows = detector.abnormality(X[hidden]), []
    for kind, batch in images.items():
        p, area = detector.p_values(batch), None
        if kind != NEW:
            scores = np.concatenate([normal, detector.abnormality(batch)])
            labels = np.repeat([0, 1], [len(normal), len(batch)])
            area = float(roc_auc_score(labels, scores))
        flagged = float((p <= ALPHA).mean())
        rows.append(KindRow(kind, len(batch), flagged, float(np.median(p)), area))
    return rows


def flagged_table(rows: Sequence[KindRow]) -> Table:
    """Lay out for a terminal how many images of each kind were called strange."""
    header = "Images", f"p <= {ALPHA:g}"
    return Table(header, [(TITLES[row.kind], f"{row.flagged:.1%}") for row in rows])


def section(rows: Sequence[KindRow]) -> Section:
    """Show the table on a page."""
    normal = rows[0]
    table = Table(
        ("Images", "How many", "Called strange", "Median p-value", "ROC area"),
        [
            (TITLES[row.kind], str(row.n_images), f"{row.flagged:.1%}", f"{row.median:.2g}",
             "" if row.area is None else f"{row.area:.3f}")
            for row in rows
        ],
        "ROC area: how well the abnormality tells these from the new digits; 1 is without fault.",
        frozenset({0}),
    )  # fmt: skip
    words = [
        "A map has a place for everything, also for what does not belong on it. NoveltyDetector()"
        " learned four fifths of the digits and judges the rest, and images that nobody wrote."
        f" A p-value of at most {ALPHA:g} counts as strange; of ordinary points that should be"
        f" about {ALPHA:.0%}, and of the new digits it is {normal.flagged:.1%}."
    ]
    return Section("Does it belong?", words, [table])
