"""Growth of the time per row with the number of neighbours and of columns of the map."""

from collections.abc import Sequence
from functools import partial

from outsample import PCAExtension
from outsample_lab.power_law import late_slope
from outsample_lab.speed import made_up
from outsample_lab.speed.exact_search import SETTINGS, K
from outsample_lab.speed.made_up import TRAFFIC, Shape
from outsample_lab.speed.sizes import JOBS, Ground
from outsample_lab.speed.speed_result import Curve, PartResult
from outsample_lab.speed.stopwatch import take_turns


def growth(ground: Ground) -> PartResult:
    """Time every setting while k or d grows, all at one n."""
    sizes = ground.sizes
    curves = [
        *_curves(ground, "k", "neighbours", sizes.k, 0.0),
        *_curves(ground, "d", "map columns", sizes.d, 0.5),
    ]
    words = [
        made_up.words(TRAFFIC),
        f"n = {sizes.growth:,}; k = {K} and d = {TRAFFIC.d} while the other grows. Over this short"
        " range exponents are approximate, because fixed costs still matter. Growth with n is in"
        " the section From small to large.",
    ]
    return PartResult("growth", "Growth of the time with k and d", words, [], [], curves)


def _curves(
    ground: Ground, letter: str, label: str, values: Sequence[int], begin: float
) -> list[Curve]:
    sizes = ground.sizes
    seconds: dict[str, list[float]] = {name: [] for name in SETTINGS}
    for at, value in enumerate(values):
        ground.tell(begin + 0.5 * at / len(values), f"growth with {letter}")
        k, d = (value, TRAFFIC.d) if letter == "k" else (K, value)
        data = made_up.cloud(Shape(TRAFFIC.D, d, TRAFFIC.latent), sizes.growth, sizes.batch)
        works = {
            name: partial(
                PCAExtension(n_neighbors=k, n_jobs=JOBS, **settings).fit(data.X, data.Y).transform,
                data.Q,
            )
            for name, settings in SETTINGS.items()
        }
        times = take_turns("", works, sizes.repeats, sizes.budget / 4)
        for name in works:
            seconds[name].append(1e6 * times.median(name) / sizes.batch)
    return [
        Curve(f"Time of a row against {label}", label, "microseconds per row", name,
              [float(value) for value in values], figures, late_slope(values, figures))
        for name, figures in seconds.items()
    ]  # fmt: skip
