"""What is told of the new minutes of a trial: their names, kinds and scores."""

from typing import Any

__all__ = ["kinds_of", "label", "labels_of", "score_of", "short_title"]


def kinds_of(trial: dict[str, Any]) -> dict[str, list[int]]:
    """Return places of loud, quiet and unlabelled minutes, and of the strangest without a label."""
    loud = [at for at, is_loud in enumerate(trial["loud"]) if is_loud]
    quiet = [at for at, attack in enumerate(trial["attacks"]) if attack and not trial["loud"][at]]
    score = score_of(trial, "abnormality")
    top = [] if score is None else [one["row"] for one in score["top"] if not one["attack"]]
    normal = sorted(set(range(len(trial["times"]))) - {*loud, *quiet})
    return {"loud": loud, "quiet": quiet, "normal": normal, "top": top}


def labels_of(trial: dict[str, Any]) -> list[str]:
    """Return the words of all new minutes."""
    rows = zip(trial["times"], trial["attacks"], strict=True)
    return [label(at, time, attack) for at, (time, attack) in enumerate(rows)]


def label(at: int, time: str, attack: str) -> str:
    """Return number, clock time and attack, a long list of attacks cut short."""
    words = attack if len(attack) <= 24 else f"{attack[:23]}…"
    return f"#{at} {time.rpartition('T')[2]} {words}".rstrip()


def score_of(trial: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Return one score of a trial by its name, None if it has none such."""
    return next((one for one in trial["scores"] if one["name"] == name), None)


def short_title(score: dict[str, Any]) -> str:
    """Return a name for a column; m(x) with the reading of Eq. 2.9 that it stands for."""
    word = {"residual": ", objective", "dispersion": ", to the letter"}.get(score["name"], "")
    return str(score["title"]).partition(",")[0] + word
