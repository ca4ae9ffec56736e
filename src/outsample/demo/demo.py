"""The program behind ``outsample demo``: two experiments and one page."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from outsample import plots
from outsample.demo import anomaly_table, placement_table
from outsample.demo.digits import DigitsMap, map_digits
from outsample.demo.placement_table import DEFAULTS, REFERENCE
from outsample.plots.canvas import can_draw
from outsample.report.page import Picture, Section, Table, build_page, check_writable, write_file

CODE = """from outsample import NoveltyDetector, PCAExtension

ext = PCAExtension().fit(X, Y)   # Y: your map of X, from any method
ext.transform(X_new)             # coordinates of new rows
placed = ext.place(X_new)        # the same, with error bars
placed.coordinates, placed.error_bar

det = NoveltyDetector(ext).fit(X, Y)
det.p_values(X_new)              # do the new rows belong to the data?
"""
# Receives the share of the work that is done, from 0 to 1, and the name of the next step.
Progress = Callable[[float, str], None]


class Size(NamedTuple):
    """How many digits and random splits the demo uses."""

    n_digits: int | None = None
    splits: tuple[int, ...] = (0, 1, 2)


FULL = Size()
QUICK = Size(n_digits=500, splits=(0, 1))


class DemoResult(NamedTuple):
    """The measured rows, and the page that shows them."""

    placements: list[placement_table.PlacementRow]
    anomalies: list[anomaly_table.AnomalyRow]
    page: Path


def run_demo(
    out_dir: str | os.PathLike[str], size: Size = FULL, progress: Progress | None = None
) -> DemoResult:
    """Run the experiments and write the page; a page of an earlier run is replaced at the end."""
    check_writable(out_dir)
    report = progress or (lambda share, step: None)
    report(0.0, "t-SNE map of the digits")
    digits = map_digits(size.n_digits)
    report(0.5, "placing hidden digits")
    placements = [
        placement_table.measure(name, digits, size.splits) for name in placement_table.methods()
    ]
    report(0.7, "images that do not belong")
    anomalies = anomaly_table.measure(digits.X)
    report(0.8, "page")
    text = _page(placements, anomalies, digits)
    page = write_file(Path(out_dir) / "index.html", text)
    report(1.0, "done")
    return DemoResult(placements, anomalies, page)


def demo_tables(result: DemoResult) -> list[tuple[str, Table]]:
    """Return titles and tables for the terminal."""
    return [
        ("Mean error over the map size, digits t-SNE",
         placement_table.error_table(result.placements)),
        ("Share of images flagged as anomalous", anomaly_table.flagged_table(result.anomalies)),
    ]  # fmt: skip


def _page(
    placements: Sequence[placement_table.PlacementRow],
    anomalies: Sequence[anomaly_table.AnomalyRow],
    digits: DigitsMap,
) -> str:
    """Return the page, with pictures where matplotlib is installed."""
    drawing = can_draw()
    names = (REFERENCE, DEFAULTS) if drawing else ()
    examples = [placement_table.place_hidden(digits, name) for name in names]
    note = "" if drawing else "Install outsample[plots] and run the demo again to see pictures. "
    return build_page(
        "New points on an existing map",
        [
            placement_table.section(placements, digits, examples),
            anomaly_table.section(anomalies),
            Section("On your own data", ["Any map works, from any method or file."], code=CODE),
        ],
        lead="outsample takes your points and the map you made of them, and places new points on"
        " it. The map stays as it is. Below, points with a known position are hidden and placed"
        " again, and images that do not belong are detected.",
        facts=_facts(placements, digits),
        hero=_hero(digits, examples[-1]) if examples else None,
        footer=f"{note}Made by outsample demo on this computer. Paper: Aizenbud, Bermanis,"
        " Averbuch, PCA-Based Out-of-Sample Extension for Dimensionality Reduction.",
    )


def _facts(
    placements: Sequence[placement_table.PlacementRow], digits: DigitsMap
) -> list[tuple[str, str]]:
    """Return the figures at the top of the page."""
    reference, defaults = placements[0], placements[-1]
    return [
        (
            f"{defaults.error:.1%}",
            "mean error on a t-SNE map of digits, relative to the map size; inverse-distance"
            f" neighbours: {reference.error:.1%}",
        ),
        (
            f"{1000 * defaults.seconds:.0f} ms",
            f"to place {len(digits.X) // 5} points on one thread; the map itself took"
            f" {digits.seconds:.1f} s",
        ),
    ]


def _hero(digits: DigitsMap, example: placement_table.PlacedDigits) -> Picture:
    """Draw the picture at the top of the page."""
    return Picture(
        plots.hero(digits.Y, digits.labels, example.hidden, example.coordinates),
        "New digits placed on a t-SNE map",
        "Pale points are the map. Strong points were placed on it by PCAExtension() with all"
        " defaults; a line leads to the position that t-SNE had given the same point.",
    )
