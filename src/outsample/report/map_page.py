"""One self-contained page to look at: a map, the points placed into it, and which are strange.

The page loads nothing and sends nothing: a policy in it forbids the browser to. Its script is our
own, read from the files beside this one.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from outsample.report.map_data import MapData, collect
from outsample.report.map_packing import pack
from outsample.report.map_words import facts, lead, race_table, strangest_table
from outsample.report.page import STYLE, facts_html, table_html, write_file

SCRIPTS = "packing colours raster map lines choice hands card legend panel start".split()


def write_map_page(
    path: str | os.PathLike[str],
    model: Any,
    *,
    map_names: Iterable[str] | None = None,
    columns: Mapping[str, Any] | None = None,
    placed: Mapping[str, Any] | None = None,
    title: str = "Points on a map",
) -> Path:
    """Write one page that shows a fitted model's map, and new points placed into it.

    Parameters
    ----------
    path : path-like
        File to write, ``.html``. An old file stays until the new one is complete.
    model : NoveltyDetector, PCAExtension or Extended
        Fitted, with a map.
    map_names : sequence of str, default=None
        Names of the d columns of the map; None is ``map_1``, ``map_2``, ...
    columns : dict of str to array-like of shape (n,), default=None
        What is known about the training points: ids, labels, numbers.
    placed : dict of str to array-like of shape (q,), default=None
        New points: their coordinates under ``map_names``; where known ``p_value``,
        ``abnormality``, ``error_bar``, ``bound``, ``n_neighbors``, ``main_reason``, ``neighbors``
        (training rows of each point) and ``neighbor_distances``; anything else, such as ids and
        labels, is carried along. None shows the model alone.
    title : str
        Heading of the page.

    Returns
    -------
    Path
        Absolute path of the page.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from outsample import NoveltyDetector, PCAExtension
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> extension = PCAExtension(n_neighbors=5, weighting="distance", order=0, loss="squared")
    >>> detector = NoveltyDetector(extension).fit(X, X[:, :2])
    >>> new = detector.place(X[:5] + 0.1)
    >>> placed = {"map_1": new.coordinates[:, 0], "map_2": new.coordinates[:, 1],
    ...           "p_value": new.p_value, "error_bar": new.error_bar}
    >>> page = write_map_page(tempfile.mkdtemp() + "/map.html", detector, placed=placed)
    >>> "5 new points placed" in page.read_text(encoding="utf-8")
    True
    """
    data = collect(model, map_names, columns, placed)
    return write_file(path, _document(data, str(title)))


def _document(data: MapData, title: str) -> str:
    style = STYLE + _file("map.css")
    script = "(function () {\n'use strict';\n" + "".join(map(_script, SCRIPTS)) + "})();\n"
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)};"
        " base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{escape(title)}</title>",
            f"<style>{style}</style></head><body><main>",
            f'<header><h1><bdi>{escape(title)}</bdi></h1><p class="lead">{escape(lead(data))}</p>'
            "</header>",
            f'<div class="facts">{facts_html(facts(data))}</div>',
            '<p id="failed" role="alert" hidden></p>',
            "<noscript><p>The map itself needs scripts; the tables below do not.</p></noscript>",
            _map(data),
            *_sections(data),
            "<footer>Made by outsample on the computer of whoever sent it. The page holds all its "
            "data and asks nobody for more.</footer>",
            f'<script type="text/plain" id="points">{pack(data, {"level": data.level})}</script>',
            f"<script>{script}</script></main></body></html>\n",
        ]
    )


def _map(data: MapData) -> str:
    """Return the map with its controls, from the template; parts without data are left out."""
    page = _file("map.html")
    if data.placed is None:
        page = _without(page, "new")
    return page


def _sections(data: MapData) -> list[str]:
    parts = []
    if data.placed is not None:
        words = "Press a row to see the point on the map."
        if "main_reason" not in data.placed.columns:
            words += " Reasons are told if the points were placed with explanations."
        parts.append(
            '<section class="words strange"><h2>The strangest new points</h2>'
            f'<p class="noprint">{words}</p>{strangest_table(data)}</section>'
        )
    race = race_table(data)
    if race:
        parts.append(
            '<section class="words"><h2>How the points are placed</h2>'
            f"<p>In use: {escape(data.in_use)}.</p>{table_html(race)}</section>"
        )
    guide = _file("guide.html").replace("{level}", f"{100 * data.level:g}")
    parts.append(guide if data.placed is not None else _without(guide, "new"))
    return parts


def _without(page: str, mark: str) -> str:
    """Leave out the lines between ``<!-- mark -->`` and ``<!-- end mark -->``."""
    kept, skipping = [], False
    for line in page.splitlines():
        if line.strip() == f"<!-- {mark} -->":
            skipping = True
        if not skipping:
            kept.append(line)
        if line.strip() == f"<!-- end {mark} -->":
            skipping = False
    return "\n".join(kept)


def _script(name: str) -> str:
    return _file(f"{name}.js")


def _file(name: str) -> str:
    return files("outsample.report").joinpath("viewer", name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode('ascii')}'"
