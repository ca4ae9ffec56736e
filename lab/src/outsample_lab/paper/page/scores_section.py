"""Fig. 7.6 on the page: scores of the new minutes, compared with the labels."""

import numpy as np

from outsample.plots.colours import FAINT, ORANGE, VERMILLION
from outsample.report.page import Picture, Section, Table
from outsample_lab.paper.page.minute_labels import kinds_of, label, labels_of, score_of, short_title
from outsample_lab.paper.page.viewer import Part
from outsample_lab.paper.traffic_day import Minute, Trial
from outsample_lab.plots.traces import Kind, Trace, trace_chart
from outsample_lab.wording import ABSENT, number

LEVELS = {"p_value": 0.01}  # Where a dashed line is drawn
LOG = {"dispersion", "p_value"}  # Scores that span decades


def score_part(trial: Trial, first: bool, suffix: str, drawing: bool) -> Part:
    """Return the section with m(x) in both readings, abnormality and p-value of new minutes."""
    paper = (
        "In the paper: m(x) of each new point; point #51 has 2.72·10⁻⁷, the others"
        " 6.21·10⁻¹⁰ on average, 438 times less. Eq. 2.9 can be read as the minimised objective"
        " or, with Eq. 2.4, to the letter; both are here."
    )
    words = [*([paper] if first else []), _score_reading(trial)]
    if zeros := int(np.sum(score_of(trial, "dispersion").values == 0)):
        words.append(
            f"{zeros} of the new minutes have m(x) = 0, because they equal a training minute; on a"
            " logarithmic scale they are drawn at the lower end."
        )
    heading = f"Example II, Figure 7.6: scores of {trial.title}{suffix}"
    pictures = [_score_chart(trial, suffix)] if drawing and trial.times else []
    return Part(Section(heading, words, [score_table(trial), _top_table(trial)], pictures))


def _score_reading(trial: Trial) -> str:
    """Return sentences that compare each score with the labels."""
    judged = [(score, score.auc_loud) for score in trial.scores if score.auc_loud is not None]
    if not judged:
        return "Reading: no new minute is loud, so the area under the ROC curve is not defined."
    sentences = [f"{short_title(score)}: {_assessment(area)}." for score, area in judged]
    ratios = [
        f"{number(score.best_ratio)} times the mean for {short_title(score)}"
        f" ({number(score.best_squared_ratio)} times if squared)"
        for score in trial.scores
        if score.best_ratio is not None
    ]
    if ratios:
        sentences.append(
            f"The highest m(x) of a loud minute is {'; '.join(ratios)}. The paper's #51 has 438"
            " times the mean of the others."
        )
    return f"Reading, for the {trial.loud.sum()} loud minutes. {' '.join(sentences)}"


def _assessment(area: float) -> str:
    """Return an assessment of an area under the ROC curve."""
    words = "finds them" if area >= 0.95 else "finds some of them" if area >= 0.7 else ""
    if not words:
        words = "is no better than chance" if area > 0.3 else "ranks them below ordinary minutes"
    return f"{words} (area {number(area)})"


def score_table(trial: Trial) -> Table:
    """Return a table that compares each score with the labels, one row per score."""
    header = ["Score", "AUC, loud", "AUC, all", "Mean", "Loud / mean", "Squared", "Paper"]
    words = (
        "AUC: area under the ROC curve of loud minutes and of all labelled ones, against minutes"
        " without a label. Loud / mean: highest score of a loud minute over the mean of all new"
        " ones; squared: the same for squares, since the paper does not state whether it took the"
        " root; paper: #51 over the mean of the others."
    )
    rows = [
        [short_title(score), *map(number, (score.auc_loud, score.auc, score.mean, score.best_ratio,
                                         score.best_squared_ratio, score.paper_ratio))]
        for score in trial.scores
    ]  # fmt: skip
    return Table(header, rows, words)


def _top_table(trial: Trial) -> Table:
    """Return a table of the most unusual minutes by each score."""
    lines = max((len(score.top) for score in trial.scores), default=0)

    def named(top: list[Minute], at: int) -> str:
        if at >= len(top):
            return ABSENT
        return label(top[at].row, top[at].time, top[at].attack or "no label")

    rows = [[str(at + 1), *(named(score.top, at) for score in trial.scores)] for at in range(lines)]
    header = ["Rank", *map(short_title, trial.scores)]
    return Table(header, rows, "The most unusual new minutes by each score: number, time, attack.")


def _score_chart(trial: Trial, suffix: str) -> Picture:
    kinds, labels = kinds_of(trial), labels_of(trial.times, trial.attacks)
    traces = [
        Trace(score.title, score.values, score.name in LOG, LEVELS.get(score.name), "0.01")
        for score in trial.scores
    ]
    drawn = [
        Kind("no label", kinds.normal, FAINT, "o", 2.2),
        Kind("quiet attack", kinds.quiet, ORANGE, "^", 3.4),
        Kind("loud attack", kinds.loud, VERMILLION, "D", 5.5),
    ]
    return Picture(
        trace_chart(
            traces, [kind for kind in drawn if len(kind.places)], title=f"Figure 7.6{suffix}",
            x_label="number of the new minute",
            named=[(at, labels[at].split()[0]) for at in kinds.loud],
        ),
        f"Four scores of each new minute: {trial.title}",
        "High m(x) and abnormality are unusual, and low p-values. The m(x) of Eq. 2.4"
        " and the p-value are on logarithmic scales.",
    )  # fmt: skip
