"""A self-contained HTML page that shows a map, the points placed into it, and which are unusual.

The page's content-security policy forbids the browser to load or send anything. The script comes
from the files in ``viewer``.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from outsample.report.map_data import MapData, collect
from outsample.report.map_packing import pack
from outsample.report.map_words import facts, lead, selection_table, unusual_points_table
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
    """Write a page that shows a fitted model's map, and new points placed into it.

    Parameters
    ----------
    path : path-like
        The ``.html`` file to write. An existing file is replaced when the new page is complete.
    model : NoveltyDetector, PCAExtension or Extended
        Fitted model with a map.
    map_names : sequence of str, default=None
        Names of the d columns of the map; the default is ``map_1``, ``map_2``, ...
    columns : dict of str to array-like of shape (n,), default=None
        Columns about the training points: ids, labels, numbers.
    placed : dict of str to array-like of shape (q,), default=None
        New points. Their coordinates are required, under ``map_names``. Optional columns are
        ``p_value``, ``abnormality``, ``error_bar``, ``bound``, ``n_neighbors``, ``main_reason``,
        ``neighbors`` (training rows of each point) and ``neighbor_distances``. Other columns,
        such as ids and labels, are shown unchanged. The default shows the model alone.
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
    parts = "".join(_file(f"{name}.js") for name in SCRIPTS)
    script = "(function () {\n'use strict';\n" + parts + "})();\n"
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
            "<noscript><p>The map needs JavaScript; the tables below do not.</p></noscript>",
            _map(data),
            *_sections(data),
            "<footer>Made by outsample. The page contains all its data and makes no network "
            "requests.</footer>",
            f'<script type="text/plain" id="points">{pack(data, {"level": data.level})}</script>',
            f"<script>{script}</script></main></body></html>\n",
        ]
    )


def _map(data: MapData) -> str:
    """Return the map with its controls; without new points, without the controls for them."""
    page = _file("map.html")
    return page if data.placed is not None else _without(page, "new")


def _sections(data: MapData) -> list[str]:
    parts = []
    if data.placed is not None:
        hint = "Click a row to show the point on the map."
        if "main_reason" not in data.placed.columns:
            hint += " Place the points with --explain to see the reasons."
        parts.append(
            '<section class="words unusual"><h2>Most unusual new points</h2>'
            f'<p class="noprint">{hint}</p>{unusual_points_table(data)}</section>'
        )
    selection = selection_table(data)
    if selection:
        parts.append(
            '<section class="words"><h2>Model selection</h2>'
            f"<p>In use: {escape(data.in_use)}.</p>{table_html(selection)}</section>"
        )
    guide = _file("guide.html").replace("{level}", f"{100 * data.level:g}")
    parts.append(guide if data.placed is not None else _without(guide, "new"))
    return parts


def _without(page: str, mark: str) -> str:
    """Return the page without the parts from ``<!-- mark -->`` to ``<!-- end mark -->``."""
    return re.sub(f"<!-- {mark} -->\n.*?<!-- end {mark} -->\n", "", page, flags=re.S)


def _file(name: str) -> str:
    return files("outsample.report").joinpath("viewer", name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode('ascii')}'"
