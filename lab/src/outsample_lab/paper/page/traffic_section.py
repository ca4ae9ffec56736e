"""Fig. 7.4 and 7.5 on the page: a day's map, and new minutes placed on it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from outsample.plots.colours import BLUE, ORANGE, PURPLE, SKY, VERMILLION
from outsample.report.page import Section
from outsample_lab.paper.page.minute_labels import Kinds, kinds_of, labels_of
from outsample_lab.paper.page.scores_section import score_part
from outsample_lab.paper.page.viewer import Part, turning_part
from outsample_lab.paper.traffic_day import TrafficDay, Trial
from outsample_lab.plots.scenes import Layer, Scene
from outsample_lab.wording import ABSENT, number, percent

Array = NDArray[np.float64]

AXES = ("coordinate 1", "coordinate 2", "coordinate 3")
GROUND = "#c3ccd6"
TURN = 0.4  # Initial view: coordinate 2 horizontal, coordinate 1 towards the viewer


def traffic_parts(day: TrafficDay, suffix: str, drawing: bool) -> list[Part]:
    """Return the sections of Fig. 7.4 to 7.6; `suffix` of titles marks simulated data."""
    parts = [_map_part(day, suffix, drawing)]
    for at, trial in enumerate(day.trials):
        parts.append(_placed_part(day, trial, at, suffix, drawing))
        parts.append(score_part(trial, at == 0, suffix, drawing))
    return parts


def _map_part(traffic_day: TrafficDay, suffix: str, drawing: bool) -> Part:
    day = traffic_day.map
    points, attacks = day.coordinates[:, :3], day.attacks
    far = np.linalg.norm(points - np.median(points, axis=0), axis=1)
    marked = sorted((at for at, attack in enumerate(attacks) if attack), key=lambda at: -far[at])
    unmarked = [at for at, attack in enumerate(attacks) if not attack]
    labels = labels_of(day.times, attacks)
    words = [
        "In the paper: the first three coordinates of 1321 points form a horseshoe, and a few"
        " points apart from it are the labelled attacks.",
        f"Here: the first three of five coordinates of the {len(points)} minutes of {day.day},"
        f" {len(marked)} of which carry the label of an attack.",
        f"Reading: {_shape(points[unmarked])} By distance"
        f" from the median of all minutes, the labelled ones have these ranks among {len(points)}:"
        f" {_ranked(points, marked, labels)}. A low rank means far from the others; attacks of a"
        " few connections are not far.",
    ]
    heading = f"Example II, Figure 7.4: the map of a day{suffix}"
    if not drawing:
        return Part(Section(heading, words))
    alt = f"The minutes of {day.day} in three diffusion coordinates, attacks marked"
    scene = Scene(
        f"Figure 7.4, minutes of {day.day}{suffix}",
        [
            _layer("no label", points, labels, unmarked, BLUE),
            _layer("labelled attack", points, labels, marked, VERMILLION, "diamond", 5.0, True),
        ],
        AXES,
        turn=TURN,
    )
    caption = f"One point per minute; numbers count the minutes of {day.day} from 0."
    return turning_part(heading, words, {alt: scene}, [caption])


def _placed_part(day: TrafficDay, trial: Trial, at: int, suffix: str, drawing: bool) -> Part:
    """Return the section on where both extensions place the new minutes."""
    kinds, labels = kinds_of(trial), labels_of(trial.times, trial.attacks)
    paper = (
        "In the paper: a new day, placed by Nyström on the left and by tangent weights on the"
        " right; on the left point #51 stands apart from the horseshoe, and on the right it is"
        " marked red."
    )
    words = [
        *([paper] if at == 0 else []),
        f"Here: {trial.title}. {trial.n_training} training minutes"
        f" ({trial.trained_on}), {len(trial.times)} new ones placed, with"
        f" {trial.n_neighbors} neighbours for tangent weights. {len(kinds.loud)} new minutes"
        f" have at least {day.loud_connections} connections of an attack and are called loud;"
        f" {len(kinds.quiet)} are labelled with fewer.",
        _placed_reading(trial, kinds.loud, labels),
    ]
    heading = f"Example II, Figure 7.5: {trial.title}{suffix}"
    if not drawing:
        return Part(Section(heading, words))
    around = np.concatenate([trial.nystroem[:, :3], trial.pca[:, :3], _normal_map(day)])
    placed = {"Nyström extension": trial.nystroem, "Tangent weights, Eq. 4.5": trial.pca}
    scenes = {
        f"{trial.title}, placed by {name}": Scene(
            f"Figure 7.5, {name}{suffix}",
            [
                Layer(f"map of {day.map.day}", _normal_map(day), GROUND, size=1.8),
                *_new_layers(images[:, :3], labels, kinds),
            ],
            AXES,
            turn=TURN,
            group=f"trial {at}",
            around=around,
        )
        for name, images in placed.items()
    }
    captions = [
        f"The paper's {side} image. Both have one box and turn together."
        for side in ("left", "right")
    ]
    return turning_part(heading, words, scenes, captions)


def _placed_reading(trial: Trial, loud: list[int], labels: list[str]) -> str:
    """Return sentences that compare the two extensions on loud minutes."""
    gaps = np.linalg.norm(trial.nystroem - trial.pca, axis=-1)
    gaps = gaps[np.isfinite(gaps)]
    middle = float(np.median(gaps)) if len(gaps) else None
    high = float(np.quantile(gaps, 0.9)) if len(gaps) else None
    sentence = (
        f"Reading: in all coordinates the two extensions put half of the new minutes within"
        f" {number(middle, 2)} of each other, and a tenth more than {number(high, 2)} apart."
    )
    if not loud:
        return sentence
    left, right = (_ranked(Y[:, :3], loud, labels) for Y in (trial.nystroem, trial.pca))
    return (
        f"{sentence} By distance from the median of the new minutes in these coordinates, loud"
        f" minutes have these ranks among {len(trial.times)}. Nyström: {left}. Tangent weights:"
        f" {right}. A weighted mean of neighbours' positions is close to them, so the position of"
        " an anomalous minute need not be unusual; its score shows the anomaly."
    )


def _new_layers(points: Array, labels: list[str], kinds: Kinds) -> list[Layer]:
    unnamed = [at for at in kinds.normal if at not in set(kinds.top)]
    layers = [
        _layer("new, no label", points, labels, unnamed, SKY, size=2.6),
        _layer("quiet attack", points, labels, kinds.quiet, ORANGE, "triangle", 2.8),
        _layer("most abnormal without label", points, labels, kinds.top, PURPLE, "square", 4.2,
               True),
        _layer("loud attack", points, labels, kinds.loud, VERMILLION, "diamond", 5.0, True),
    ]  # fmt: skip
    return [layer for layer in layers if len(np.asarray(layer.points))]


def _layer(
    name: str, points: Array, labels: Sequence[str], places: list[int], colour: str,
    shape: str = "circle", size: float = 2.4, named: bool = False,
) -> Layer:  # fmt: skip
    rim, always = ("#ffffff", range(len(places))) if named else ("", ())
    words = [labels[at] for at in places]
    return Layer(name, points[places], colour, shape, size, rim, words, always)


def _normal_map(day: TrafficDay) -> Array:
    kept = [at for at, attack in enumerate(day.map.attacks) if not attack]
    return day.map.coordinates[:, :3][kept]


def _ranked(points: Array, places: list[int], labels: list[str]) -> str:
    """Return labels with ranks by distance from the median; 1 is the farthest."""
    far = np.nan_to_num(np.linalg.norm(points - np.nanmedian(points, axis=0), axis=1))
    ranks = np.argsort(np.argsort(-far, kind="stable")) + 1
    listed = sorted((int(ranks[at]), labels[at]) for at in places)
    return "; ".join(f"rank {rank}, {label}" for rank, label in listed) or ABSENT


def _shape(points: Array) -> str:
    """Return a sentence on whether the map is a horseshoe: a bent second coordinate."""
    if not len(points):
        return ""
    first, second = points[:, 0], points[:, 1]
    low, high = np.quantile(first, [0.025, 0.975])
    inner = (first >= low) & (first <= high)
    spread = second[inner].var()
    if not spread or low == high:
        return ""
    shares = []
    for degree in (1, 2):
        fit = np.polynomial.Polynomial.fit(first[inner], second[inner], degree)
        shares.append(1 - float(((second[inner] - fit(first[inner])) ** 2).mean() / spread))
    return (
        "Of the inner 95 % of the minutes without a label, a parabola of the first coordinate"
        f" explains {percent(shares[1])} of the variance of the second, a straight line"
        f" {percent(shares[0])}: a horseshoe if the first share is high and the second low."
    )
