"""What `outsample demo` does: three experiments, then one page that shows them."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from outsample import plots
from outsample.lab.demo import belonging
from outsample.lab.demo import digits_map as digits
from outsample.lab.demo import sphere_table as sphere
from outsample.lab.methods import DEFAULTS, REFERENCE, TITLES
from outsample.lab.progress import Progress, Teller, step_by_step
from outsample.plots.canvas import can_draw
from outsample.report.page import Picture, Section, Table, build_page, check_writable, write_file

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


class DemoResult(NamedTuple):
    """What the demo found, and the page that shows it."""

    sphere: list[sphere.TableRow]
    digits: list[digits.DigitsRow]
    belonging: list[belonging.KindRow]
    page: Path = Path()


def run_demo(
    out_dir: str | os.PathLike[str], size: Size = FULL, progress: Progress | None = None
) -> DemoResult:
    """Run the experiments and write the page; one of an earlier run is replaced at the end."""
    check_writable(out_dir)
    n_sphere, n_digits = len(sphere.methods(1.0)) * len(size.n_per_axis), len(digits.methods())
    teller = Teller(
        progress, {"sphere": n_sphere, "map": 7, "digits": n_digits, "belonging": 1, "page": 4}
    )
    on_row = step_by_step(teller.part("sphere"), n_sphere, "sphere of Section 7.1")
    sphere_rows = sphere.run(size.n_per_axis, size.n_new, size.n_seeds, on_row)
    teller.part("map")(0.0, "t-SNE map of the digits")
    digits_map = digits.embed(size.n_digits)
    on_row = step_by_step(teller.part("digits"), n_digits, "hidden digits")
    digits_rows = digits.run(digits_map, size.splits, on_row)
    teller.part("belonging")(0.0, "images that do not belong")
    found = DemoResult(sphere_rows, digits_rows, belonging.run(digits_map.X))
    teller.part("page")(0.0, "pictures and page")
    page = write_file(Path(out_dir) / "index.html", _page(found, digits_map, size))
    teller.finish()
    return found._replace(page=page)


def demo_tables(result: DemoResult) -> list[tuple[str, Table]]:
    """Return titles and tables for the terminal: errors beside the reference's, then belonging."""
    grids = sorted({row.n_points for row in result.sphere})
    blocks = [(f"sphere, {n}", [r for r in result.sphere if r.n_points == n]) for n in grids]
    tables = [
        (f"Mean error, {name}", _error_table([(r.method, r.error, r.paper) for r in rows], ".2e"))
        for name, rows in blocks
    ]
    known = _error_table([(row.method, row.error, None) for row in result.digits], ".2%")
    tables.append(("Mean error over the size of the map, digits t-SNE", known))
    strange = belonging.flagged_table(result.belonging)
    return [*tables, ("Do they belong? Share called strange", strange)]


def _error_table(rows: Sequence[tuple[str, float, float | None]], form: str) -> Table:
    """Lay out method, error and the paper's number, each error beside the reference's."""
    base = next(error for method, error, _ in rows if method == REFERENCE)
    cells = [
        (TITLES[method], f"{error:{form}}", ratio(error, base), f"{paper:.2e}" if paper else "")
        for method, error, paper in rows
    ]
    return Table(("Method", "Error", "vs 15-NN", "Paper"), cells)


def ratio(error: float, base: float) -> str:
    """Say how many times smaller or larger than the reference an error is."""
    return f"{error / base:.2g} x" if error > 0.001 * base else "< 0.001 x"


def _page(found: DemoResult, digits_map: digits.DigitsMap, size: Size) -> str:
    """Put words, tables and, where matplotlib is there to draw them, pictures together."""
    best = sphere.best(found.sphere, size.n_per_axis[0] ** 2)
    spheres = [sphere.example(m, size.n_per_axis[0], size.n_new) for m in (REFERENCE, best)]
    maps = [digits.example(digits_map, m) for m in (REFERENCE, DEFAULTS)]
    drawing = can_draw()
    note = "" if drawing else "Install outsample[plots] and run the demo again to see pictures. "
    return build_page(
        "New points on an old map",
        [
            digits.section(found.digits, digits_map, maps, pictures=drawing),
            belonging.section(found.belonging),
            sphere.section(found.sphere, spheres, pictures=drawing),
            Section("On your own data", ["Any map will do, from any method or file."], code=CODE),
        ],
        lead="outsample takes the points you have and the map you made of them, and places new"
        " points on it. The map stays as it is. Below, points whose true place is known are hidden"
        " and placed again; and images that do not belong are found.",
        facts=_facts(found.sphere, found.digits, digits_map),
        hero=_hero(digits_map, maps[-1], spheres[-1]) if drawing else None,
        footer=f"{note}Made by outsample demo on this computer. Paper: Aizenbud, Bermanis,"
        " Averbuch, PCA-Based Out-of-Sample Extension for Dimensionality Reduction.",
    )


def _facts(
    sphere_rows: list[sphere.TableRow], digits_rows: list[digits.DigitsRow], data: digits.DigitsMap
) -> list[tuple[str, str]]:
    """Return the figures that stand at the top of the page."""
    reached, printed = sphere.met(sphere_rows)
    known, ours = digits_rows[0], digits_rows[-1]
    error = (
        "mean error on a t-SNE map of digits, as a share of its size; inverse-distance neighbours:"
        f" {known.error:.1%}"
    )
    n_placed, spent = len(data.X) // 5, f"{data.seconds:.1f} s"
    time = f"to place {n_placed} points on one thread; the map itself took {spent}"
    facts = [(f"{ours.error:.1%}", error), (f"{1000 * ours.seconds:.0f} ms", time)]
    if printed:
        words = "mean errors of the paper's Table 7.1 met or beaten"
        facts.insert(1, (f"{reached} of {printed}", words))
    return facts


def _hero(
    data: digits.DigitsMap, ours: digits.DigitsExample, ball: sphere.SphereExample
) -> Picture:
    """Draw the head of the page."""
    shown = data.Y, data.labels, ours.hidden, ours.placed
    return Picture(
        plots.hero(shown, (ball.training, ball.truth, ball.placed)),
        "New digits placed on a t-SNE map, and new points placed on a sphere",
        "Left: pale points are the map, strong ones were placed on it by PCAExtension() with all"
        " defaults; a line leads to where t-SNE had put the same point. Right: true and placed"
        f" images on the sphere. {TITLES[ball.method]}.",
    )
