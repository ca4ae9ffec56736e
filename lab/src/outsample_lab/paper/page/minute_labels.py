"""Labels of the new minutes of a trial: names, kinds and scores."""

from typing import NamedTuple

import numpy as np

from outsample_lab.paper.traffic_day import Score, Trial


class Kinds(NamedTuple):
    """Rows of a trial's minutes by kind."""

    loud: list[int]
    quiet: list[int]  # Of an attack, but not loud
    normal: list[int]  # Without a label
    top: list[int]  # The most unusual without a label


def kinds_of(trial: Trial) -> Kinds:
    """Return the rows of loud, quiet, unlabelled, and most unusual unlabelled minutes."""
    loud = np.flatnonzero(trial.loud).tolist()
    quiet = [at for at, attack in enumerate(trial.attacks) if attack and not trial.loud[at]]
    top = [minute.row for minute in score_of(trial, "abnormality").top if not minute.attack]
    normal = sorted(set(range(len(trial.times))) - {*loud, *quiet})
    return Kinds(loud, quiet, normal, top)


def labels_of(times: list[str], attacks: list[str]) -> list[str]:
    """Return the labels of all minutes."""
    return [label(*row) for row in zip(range(len(times)), times, attacks, strict=True)]


def label(at: int, time: str, attack: str) -> str:
    """Return number, time and attack of a minute, shortened."""
    words = attack if len(attack) <= 24 else f"{attack[:23]}…"
    return f"#{at} {time.rpartition('T')[2]} {words}".rstrip()


def score_of(trial: Trial, name: str) -> Score:
    """Return one score of a trial by its name."""
    return next(score for score in trial.scores if score.name == name)


def short_title(score: Score) -> str:
    """Return the heading of a score; for m(x), with the reading of Eq. 2.9."""
    word = {"residual": ", objective", "dispersion": ", to the letter"}.get(score.name, "")
    return score.title.partition(",")[0] + word
