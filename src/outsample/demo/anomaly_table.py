"""P-values of digits that the detector has not seen, and of images that are not digits."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from outsample import NoveltyDetector
from outsample.demo.digits import ANOMALY_KINDS, hide_fifth
from outsample.report.page import Section, Table

ALPHA = 0.05  # false-alarm rate
NEW_DIGITS = "new digits"
TITLES = {
    NEW_DIGITS: "Digits the detector has not seen",
    "constant": "Constant grey value",
    "times-10": "Digits, ten times too bright",
    "noise": "Noise",
    "permuted": "Digits with shuffled pixels",
}


class AnomalyRow(NamedTuple):
    """Results for one kind of image."""

    kind: str
    n_images: int
    share_flagged: float  # Share with a p-value of at most `ALPHA`
    median_p_value: float
    auc: float | None  # ROC AUC against the new digits; None for the new digits themselves


def measure(X: NDArray[np.float64], seed: int = 0) -> list[AnomalyRow]:
    """Fit the detector to four fifths of the digits (n, 64); score the others and anomalies."""
    hidden = hide_fifth(len(X), seed)
    X = X / X.max()
    detector = NoveltyDetector(alpha=ALPHA).fit(X[~hidden])
    rng = np.random.default_rng(seed)
    images_by_kind = {NEW_DIGITS: X[hidden]}
    images_by_kind |= {kind: make(X[hidden], rng) for kind, make in ANOMALY_KINDS.items()}
    normal_scores = detector.abnormality(X[hidden])
    rows = []
    for kind, images in images_by_kind.items():
        p_values, auc = detector.p_values(images), None
        if kind != NEW_DIGITS:
            scores = np.concatenate([normal_scores, detector.abnormality(images)])
            labels = np.repeat([0, 1], [len(normal_scores), len(images)])
            auc = float(roc_auc_score(labels, scores))
        share_flagged = float((p_values <= ALPHA).mean())
        rows.append(AnomalyRow(kind, len(images), share_flagged, float(np.median(p_values)), auc))
    return rows


def flagged_table(rows: Sequence[AnomalyRow]) -> Table:
    """Return the share of flagged images of each kind, for a terminal."""
    header = "Images", f"p <= {ALPHA:g}"
    return Table(header, [(TITLES[row.kind], f"{row.share_flagged:.1%}") for row in rows])


def section(rows: Sequence[AnomalyRow]) -> Section:
    """Return the table for a page."""
    table = Table(
        ("Images", "Number", "Flagged", "Median p-value", "ROC AUC"),
        [
            (TITLES[row.kind], str(row.n_images), f"{row.share_flagged:.1%}",
             f"{row.median_p_value:.2g}", "" if row.auc is None else f"{row.auc:.3f}")
            for row in rows
        ],
        "ROC AUC: how well the abnormality score separates these images from the new digits.",
        frozenset({0}),
    )  # fmt: skip
    text = (
        "A map has a position for every row, also for rows that do not belong. NoveltyDetector()"
        " was fitted to four fifths of the digits. It then scored the other digits, and images"
        f" that are not digits. Rows with a p-value of at most {ALPHA:g} are flagged: about"
        f" {ALPHA:.0%} of ordinary rows, and {rows[0].share_flagged:.1%} of the new digits here."
    )
    return Section("Does it belong?", [text], [table])
