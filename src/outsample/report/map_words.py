"""Text and tables of a map page: summary, most unusual points, model selection."""

from __future__ import annotations

import math
from html import escape

import numpy as np

from outsample.report.map_data import ERROR, REASON, MapData, PointSet
from outsample.report.map_packing import is_identifying, shortened
from outsample.report.page import Table

UNUSUAL_P_VALUE = 0.01
MAX_TABLE_ROWS, INITIAL_TABLE_ROWS = 50, 15
MAX_CANDIDATES_SHOWN = 12
REASON_TEXTS = {
    "nearest_distance": "far from all training points",
    "plane_distance": "off the surface that its neighbours lie on",
    "relative_distance": "far for the density of its neighbourhood",
}
ID_COLUMN_NAMES = {"id", "ids", "index", "_index", "name", "key", "uid", "uuid", "cell", "barcode"}
COLUMN_TITLES = {"p_value": "p-value", "error_bar": "error bar"}


def format_number(value: float, digits: int = 3) -> str:
    """Return a number as short text; a missing number is a dash.

    >>> format_number(0.012345), format_number(1234567)
    ('0.0123', '1\u202f234\u202f567')
    >>> format_number(12345.6), format_number(float("nan"))
    ('12\u202f346', '–')
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if (float(value).is_integer() and abs(value) < 1e12) or 1e4 <= abs(value) < 1e9:
        return f"{value:,.0f}".replace(",", "\u202f")
    return f"{value:.{digits}g}"


def lead(data: MapData) -> str:
    """Return the first sentence of the page: number of points, and how many are unusual."""
    n, d = data.training.coordinates.shape
    sentence = f"A {d}-dimensional map of {format_number(n)} training points"
    if data.placed is None:
        return sentence + ", and its leave-one-out errors."
    q = len(data.placed.coordinates)
    sentence += f", with {format_number(q)} new point{'s' if q > 1 else ''} placed into it"
    p = data.placed.numbers("p_value")
    if p is None:
        return sentence + "."
    n_unusual, n_expected = _count_unusual(p)
    verdict = f"{format_number(n_unusual)} {'is' if n_unusual == 1 else 'are'} unusual (p ≤ 0.01)"
    return f"{sentence}: {verdict}; about {format_number(n_expected)} would be by chance."


def facts(data: MapData) -> list[tuple[str, str]]:
    """Return the numbers at the top of the page, each with its description."""
    pairs = [(format_number(len(data.training.coordinates)), "training points")]
    if data.placed is not None:
        pairs.append((format_number(len(data.placed.coordinates)), "new points"))
        p, bars = data.placed.numbers("p_value"), data.placed.numbers("error_bar")
        if p is not None:
            n_unusual, n_expected = _count_unusual(p)
            text = f"unusual (p\u00a0≤\u00a00.01); {format_number(n_expected)} expected by chance"
            pairs.append((format_number(n_unusual), text))
        if bars is not None and np.isfinite(bars).any():
            text = f"median error bar: contains {100 * data.level:g}\u00a0% of true positions"
            pairs.append((format_number(float(np.median(bars[np.isfinite(bars)]))), text))
    errors = data.training.columns[ERROR]
    if np.isfinite(errors).any():
        median_error = float(np.nanmedian(errors))
        percent = 100 * median_error / data.size if data.size else math.nan
        text = f"median leave-one-out error, {percent:.2g}\u00a0% of the map's size"
        pairs.append((format_number(median_error), text))
    return pairs


def id_column(points: PointSet) -> str | None:
    """Return the column that identifies points: called id or similar, else mostly unique text."""
    names = [name for name in points.columns if name != REASON]
    for name in names:
        if name.lower() in ID_COLUMN_NAMES:
            return name
    for name in names:
        values = points.columns[name]
        if values.dtype.kind == "U" and is_identifying(values):
            return name
    return None


def unusual_points_table(data: MapData) -> str:
    """Return an HTML table of the most unusual new points, one row per point.

    Each table row carries its row number, which the script uses to find the point on the map.
    """
    placed = data.placed
    if placed is None:
        return ""
    order = _most_unusual_first(placed)
    id_name = id_column(placed)
    number_names = [n for n in ("p_value", "abnormality", "error_bar") if n in placed.columns]
    text_names = [
        name
        for name, values in placed.columns.items()
        if name not in (id_name, REASON) and values.dtype.kind == "U"
    ][:2]
    titles = ["point", *(COLUMN_TITLES.get(name, name) for name in number_names), *text_names]
    titles += ["reason"] if REASON in placed.columns else []
    n_numeric = 1 + len(number_names)
    header = "".join(
        f'<th scope="col"{"" if at < n_numeric else " class=words"}>{escape(shortened(title))}</th>'
        for at, title in enumerate(titles)
    )
    rows = []
    for at, i in enumerate(order[:MAX_TABLE_ROWS].tolist()):
        label = (shortened(str(placed.columns[id_name][i])) if id_name else "") or f"row {i}"
        cells = [f'<td><button type="button"><bdi>{escape(label)}</bdi></button></td>']
        cells += [f"<td>{format_number(float(placed.columns[c][i]))}</td>" for c in number_names]
        texts = [str(placed.columns[name][i]) for name in text_names]
        if REASON in placed.columns:
            reason = str(placed.columns[REASON][i])
            texts.append(REASON_TEXTS.get(reason, reason))
        cells += [f'<td class="words"><bdi>{escape(shortened(text))}</bdi></td>' for text in texts]
        hidden = " hidden" if at >= INITIAL_TABLE_ROWS else ""
        rows.append(f'<tr data-row="{i}"{hidden}>{"".join(cells)}</tr>')
    body, n_hidden = "\n".join(rows), len(rows) - INITIAL_TABLE_ROWS
    table = (
        f'<div class="scroll"><table><thead><tr>{header}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
    if n_hidden <= 0:
        return table
    button = f'<button type="button" id="more-rows">{n_hidden} more</button>'
    return f'{table}<p class="noprint">{button}</p>'


def selection_table(data: MapData) -> Table | None:
    """Return the last round of model selection, the best candidate first; None without a trial."""
    if not data.trials:
        return None
    # The first trial is the selected model's, of the last round. All-points models may have been
    # tuned on more rows before.
    n_rows = data.trials[0].n_rows
    finalists = [trial for trial in data.trials if trial.n_rows == n_rows]
    finalists.sort(key=lambda trial: trial.error)
    rows = [
        (t.name, f"{100 * t.error:.3g} %", format_number(t.n_rows), f"{t.seconds:.2f}")
        for t in finalists[:MAX_CANDIDATES_SHOWN]
    ]
    count = len(data.trials)
    subject = f"{format_number(count)} candidate models were" if count > 1 else "One model was"
    best = " The table shows the best of the last round." if count > len(rows) else ""
    caption = (
        f"{subject} compared by leave-one-out on training points.{best} Error: mean distance from "
        "the true position, relative to the size of the map."
    )
    highlight = frozenset(at for at, row in enumerate(rows) if row[0] == data.in_use)
    return Table(["model", "error", "points", "seconds"], rows, caption, highlight)


def _count_unusual(p: np.ndarray) -> tuple[int, float]:
    """Return the number of points with p <= 0.01, and the number expected by chance."""
    finite = p[np.isfinite(p)]
    expected = UNUSUAL_P_VALUE * len(finite)
    return int((finite <= UNUSUAL_P_VALUE).sum()), round(expected, 1 if expected < 10 else None)


def _most_unusual_first(placed: PointSet) -> np.ndarray:
    """Return rows by abnormality, else by p-value, else by error bar.

    Abnormality comes first because it still ranks points that share the smallest p-value.
    """
    for name, sign in (("abnormality", -1.0), ("p_value", 1.0), ("error_bar", -1.0)):
        values = placed.numbers(name)
        if values is not None:
            return np.argsort(np.where(np.isnan(values), np.inf, sign * values), kind="stable")
    return np.arange(len(placed.coordinates))
