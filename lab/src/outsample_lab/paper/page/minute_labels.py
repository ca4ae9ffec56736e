"""What is told of the new minutes of a trial: their names, kinds and scores."""

from typing import NamedTuple

import numpy as np

from outsample_lab.paper.traffic_day import Score, Trial


class Kinds(NamedTuple):
    """Places of a trial's minutes by kind."""

    loud: list[int]
    quiet: list[int]  # Of an attack, but not loud
    normal: list[int]  # Without a label
    top: list[int]  # The strangest without a label


def kinds_of(trial: Trial) -> Kinds:
    """Return the places of loud, quiet, unlabelled and strangest unlabelled minutes."""
    loud = np.flatnonzero(trial.loud).tolist()
    quiet = [at for at, attack in enumerate(trial.attacks) if attack and not trial.loud[at]]
    top = [one.row for one in score_of(trial, "abnormality").top if not one.attack]
    normal = sorted(set(range(len(trial.times))) - {*loud, *quiet})
    return Kinds(loud, quiet, normal, top)


def labels_of(times: list[str], attacks: list[str]) -> list[str]:
    """Return the words of all minutes."""
    return [label(*row) for row in zip(range(len(times)), times, attacks, strict=True)]


def label(at: int, time: str, attack: str) -> str:
    """Return number, clock time and attack, a long list of attacks cut short."""
    words = attack if len(attack) <= 24 else f"{attack[:23]}…"
    return f"#{at} {time.rpartition('T')[2]} {words}".rstrip()


def score_of(trial: Trial, name: str) -> Score:
    """Return one score of a trial by its name."""
    return next(one for one in trial.scores if one.name == name)


def short_title(score: Score) -> str:
    """Return a name for a column; m(x) with the reading of Eq. 2.9 that it stands for."""
    word = {"residual": ", objective", "dispersion": ", to the letter"}.get(score.name, "")
    return score.title.partition(",")[0] + word
