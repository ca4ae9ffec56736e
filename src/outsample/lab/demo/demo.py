"""What `outsample demo` does: three experiments, then one page that shows them."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from outsample import plots
from outsample.lab.demo import belonging
from outsample.lab.demo import digits_map as digits
from outsample.lab.demo import sphere_table as sphere
from outsample.lab.methods import DEFAULTS, REFERENCE, TITLES
from outsample.report.page import Picture, Section, build_page, check_writable, write_page

__all__ = ["FULL", "QUICK", "Result", "Size", "run_demo"]

Progress = Callable[[float, str], None]

CODE = """from outsample import NoveltyDetector, PCAExtension

ext = PCAExtension().fit(X, Y)   # Y: your map of X, from any method
ext.transform(X_new)             # where new points go
placed = ext.place(X_new)        # the same, and how far to trust it
placed.coordinates, placed.error_bar

det = NoveltyDetector(ext).fit(X, Y)
det.p_values(X_new)              # whether they belong at all
"""


class Size(NamedTuple):
    """How much of everything the demo does."""

    n_per_axis: tuple[int, ...] = (30, 50)
    n_new: int = 100
    n_seeds: int = 8
    n_digits: int | None = None
    splits: tuple[int, ...] = (0, 1, 2)


FULL = Size()
QUICK = Size(n_per_axis=(12, 18), n_new=50, n_seeds=2, n_digits=500, splits=(0, 1))


class Result(NamedTuple):
    """What the demo found, and the page that shows it."""

    page: Path
    sphere: list[sphere.Row]
    digits: list[digits.Row]
    belonging: list[belonging.Row]


def run_demo(
    out_dir: str | os.PathLike[str], size: Size = FULL, progress: Progress | None = None
) -> Result:
    """Run the experiments and write the page.

    Parameters
    ----------
    out_dir : path-like
        Folder of the page, made if missing. A page of an earlier run is replaced at the end.
    size : Size, default=FULL
        `QUICK` runs in seconds, to see that everything works.
    progress : callable, optional
        Called with the share of the work done, from 0 to 1, and what is done next.

    Returns
    -------
    Result
        The page's path and the rows of its tables.

    Raises
    ------
    OSError
        If the folder cannot be written; found out before the work begins.
    """
    check_writable(out_dir)
    n_rows = len(sphere.methods(1.0)) * len(size.n_per_axis), len(digits.methods())
    tell = _Teller(progress, n_rows[0] + 7 + n_rows[1] + 5)

    tell("sphere of Section 7.1", 0)
    sphere_rows = sphere.run(
        size.n_per_axis, size.n_new, size.n_seeds, lambda row: tell("sphere of Section 7.1", 1)
    )
    tell("t-SNE map of the digits", 0)
    digits_map = digits.embed(size.n_digits)
    tell("hidden digits", 7)
    digits_rows = digits.run(digits_map, size.splits, lambda row: tell("hidden digits", 1))
    tell("images that do not belong", 0)
    belonging_rows = belonging.run(digits_map.X)
    tell("pictures and page", 1)
    html = _page(sphere_rows, digits_rows, belonging_rows, digits_map, size)
    page = write_page(Path(out_dir) / "index.html", html)
    tell("done", 4)
    return Result(page, sphere_rows, digits_rows, belonging_rows)


class _Teller:
    """Counts the work done; weights are rough seconds on two cores."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def __call__(self, what_next: str, weight: int) -> None:
        self.done += weight
        if self.progress is not None:
            self.progress(self.done / self.total, what_next)


def _page(
    sphere_rows: list[sphere.Row],
    digits_rows: list[digits.Row],
    belonging_rows: list[belonging.Row],
    digits_map: digits.DigitsMap,
    size: Size,
) -> str:
    """Put words, tables and, where matplotlib is there to draw them, pictures together."""
    best = sphere.best(sphere_rows, size.n_per_axis[0] ** 2)
    spheres = [sphere.example(m, size.n_per_axis[0], size.n_new) for m in (REFERENCE, best)]
    maps = [digits.example(digits_map, m) for m in (REFERENCE, DEFAULTS)]
    drawing = find_spec("matplotlib") is not None
    note = "" if drawing else "Install outsample[plots] and run the demo again to see pictures. "
    return build_page(
        "New points on an old map",
        [
            digits.section(digits_rows, digits_map, maps, pictures=drawing),
            belonging.section(belonging_rows),
            sphere.section(sphere_rows, spheres, pictures=drawing),
            Section("On your own data", ["Any map will do, from any method or file."], code=CODE),
        ],
        lead="outsample takes the points you have and the map you made of them, and places new"
        " points on it. The map stays as it is. Below, points whose true place is known are hidden"
        " and placed again; and images that do not belong are found.",
        facts=_facts(sphere_rows, digits_rows, digits_map),
        hero=_hero(digits_map, maps[-1], spheres[-1]) if drawing else None,
        footer=f"{note}Made by outsample demo on this computer. Paper: Aizenbud, Bermanis,"
        " Averbuch, PCA-Based Out-of-Sample Extension for Dimensionality Reduction.",
    )


def _facts(
    sphere_rows: list[sphere.Row], digits_rows: list[digits.Row], data: digits.DigitsMap
) -> list[tuple[str, str]]:
    """Return the figures that stand at the top of the page."""
    reached, printed = sphere.met(sphere_rows)
    known, ours = digits_rows[0], digits_rows[-1]
    facts = [
        (
            f"{ours.error:.1%}",
            "mean error on a t-SNE map of digits, as a share of its size; inverse-distance"
            f" neighbours: {known.error:.1%}",
        ),
        (
            f"{1000 * ours.seconds:.0f} ms",
            f"to place {len(data.X) // 5} points on one thread; the map itself took"
            f" {data.seconds:.1f} s",
        ),
    ]
    if printed:
        words = "mean errors of the paper's Table 7.1 met or beaten"
        facts.insert(1, (f"{reached} of {printed}", words))
    return facts


def _hero(data: digits.DigitsMap, ours: digits.Example, ball: sphere.Example) -> Picture:
    """Draw the head of the page."""
    return Picture(
        plots.hero(
            (data.Y, data.labels, ours.hidden, ours.placed),
            (ball.training, ball.truth, ball.placed),
        ),
        "New digits placed on a t-SNE map, and new points placed on a sphere",
        "Left: pale points are the map, strong ones were placed on it by PCAExtension() with all"
        " defaults; a line leads to where t-SNE had put the same point. Right: true and placed"
        f" images on the sphere. {TITLES[ball.method]}.",
    )
