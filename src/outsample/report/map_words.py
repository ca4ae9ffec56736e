"""What a map page says in words and tables: the figures, the strangest points, the race."""

from __future__ import annotations

import math
from html import escape

import numpy as np

from outsample.report.map_data import ERROR, REASON, MapData, PointSet
from outsample.report.map_packing import is_naming, shortened
from outsample.report.page import Table

STRANGE = 0.01
MOST_ROWS, FIRST_ROWS = 50, 15
MOST_RACERS = 12
REASONS = {
    "nearest_distance": "far from all training points",
    "plane_distance": "off the surface that its neighbours lie on",
    "relative_distance": "far for how dense its neighbourhood is",
}
NAMING = {"id", "ids", "index", "_index", "name", "key", "uid", "uuid", "cell", "barcode"}


def figure(value: float, digits: int = 3) -> str:
    """Write a number in few digits; a missing one is a dash.

    >>> figure(0.012345), figure(1234567), figure(12345.6), figure(float("nan"))
    ('0.0123', '1\u202f234\u202f567', '12\u202f346', '–')
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if (float(value).is_integer() and abs(value) < 1e12) or 1e4 <= abs(value) < 1e9:
        return f"{value:,.0f}".replace(",", "\u202f")
    return f"{value:.{digits}g}"


def lead(data: MapData) -> str:
    """Say what is shown: how many points, and how many of them are strange."""
    n, d = data.training.coordinates.shape
    said = f"A {d}-dimensional map of {figure(n)} training points"
    if data.placed is None:
        return said + ", and how well it places points that it has not seen."
    q = len(data.placed.coordinates)
    said += f", with {figure(q)} new point{'s' if q > 1 else ''} placed into it"
    p = data.placed.numbers("p_value")
    if p is None:
        return said + "."
    n_strange, expected = _strange(p)
    verdict = f"{figure(n_strange)} {'is' if n_strange == 1 else 'are'} strange at 1 %"
    return f"{said}: {verdict}, where chance alone would give about {figure(expected)}."


def facts(data: MapData) -> list[tuple[str, str]]:
    """Return the figures on top of the page, each with its words."""
    told = [(figure(len(data.training.coordinates)), "training points")]
    if data.placed is not None:
        told.append((figure(len(data.placed.coordinates)), "new points"))
        p, bars = data.placed.numbers("p_value"), data.placed.numbers("error_bar")
        if p is not None:
            n_strange, expected = _strange(p)
            words = f"strange at 1\u00a0%; {figure(expected)} expected by chance"
            told.append((figure(n_strange), words))
        if bars is not None and np.isfinite(bars).any():
            words = f"median error bar: {100 * data.level:g}\u00a0% of true places within"
            told.append((figure(float(np.median(bars[np.isfinite(bars)]))), words))
    errors = data.training.columns[ERROR]
    if np.isfinite(errors).any():
        typical = float(np.nanmedian(errors))
        share = 100 * typical / data.size if data.size else math.nan
        words = f"median leave-one-out error, {share:.2g}\u00a0% of the map's size"
        told.append((figure(typical), words))
    return told


def naming_column(points: PointSet) -> str | None:
    """Name of the column that names points: one called id or so, else words that never repeat."""
    words = [name for name in points.columns if name != REASON]
    for name in words:
        if name.lower() in NAMING:
            return name
    for name in words:
        values = points.columns[name]
        if values.dtype.kind == "U" and is_naming(values):
            return name
    return None


def strangest_table(data: MapData) -> str:
    """Return the strangest new points as a table, a row a point, with reasons where they are known.

    The rows carry their number, by which the script shows them on the map.
    """
    placed = data.placed
    if placed is None:
        return ""
    order = _strangest_first(placed)
    naming = naming_column(placed)
    measured = [name for name in ("p_value", "abnormality", "error_bar") if name in placed.columns]
    carried = [
        name
        for name, values in placed.columns.items()
        if name not in (naming, REASON) and values.dtype.kind == "U"
    ][:2]
    head = ["point", *(TITLES.get(name, name) for name in measured), *carried]
    head += ["reason"] if REASON in placed.columns else []
    n_numbers = 1 + len(measured)
    cells = "".join(
        f'<th scope="col"{"" if at < n_numbers else " class=words"}>{escape(shortened(name))}</th>'
        for at, name in enumerate(head)
    )
    rows = []
    for at, i in enumerate(order[:MOST_ROWS].tolist()):
        name = shortened(str(placed.columns[naming][i])) if naming else ""
        row = [f'<td><button type="button"><bdi>{escape(name or f"row {i}")}</bdi></button></td>']
        row += [f"<td>{figure(float(placed.columns[one][i]))}</td>" for one in measured]
        words = [str(placed.columns[one][i]) for one in carried]
        if REASON in placed.columns:
            given = str(placed.columns[REASON][i])
            words.append(REASONS.get(given, given))
        row += [f'<td class="words"><bdi>{escape(shortened(word))}</bdi></td>' for word in words]
        later = " hidden" if at >= FIRST_ROWS else ""
        rows.append(f'<tr data-row="{i}"{later}>{"".join(row)}</tr>')
    body, n_more = "\n".join(rows), len(rows) - FIRST_ROWS
    more = f'<p class="noprint"><button type="button" id="more-rows">{n_more} more</button></p>'
    return (
        f'<div class="scroll"><table><thead><tr>{cells}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{more if n_more > 0 else ''}"
    )


def race_table(data: MapData) -> Table | None:
    """Lay out the last round of the race, the best first; None where nothing raced."""
    if not data.race:
        return None
    most = max(one.n_rows for one in data.race)
    last = sorted((one for one in data.race if one.n_rows == most), key=lambda one: one.error)
    rows = [
        (one.name, f"{100 * one.error:.3g} %", figure(one.n_rows), f"{one.seconds:.2f}")
        for one in last[:MOST_RACERS]
    ]
    count = len(data.race)
    tried = f"{figure(count)} ways of placing points were" if count > 1 else "One way was"
    furthest = " These came furthest." if count > len(rows) else ""
    caption = (
        f"{tried} tried on training points, each left out of the others.{furthest} Error: mean "
        "distance from the true place, over the size of the map."
    )
    in_use = frozenset(at for at, row in enumerate(rows) if row[0] == data.in_use)
    return Table(["way of placing", "error", "points tried", "seconds"], rows, caption, in_use)


TITLES = {"p_value": "p-value", "error_bar": "error bar"}


def _strange(p: np.ndarray) -> tuple[int, float]:
    """Count points with p <= 0.01, and how many would have that by chance."""
    known = p[np.isfinite(p)]
    expected = STRANGE * len(known)
    return int((known <= STRANGE).sum()), round(expected, 1 if expected < 10 else None)


def _strangest_first(placed: PointSet) -> np.ndarray:
    """Rows by abnormality, which goes on to rank where p-values end; else by p, else by bar."""
    for name, sign in (("abnormality", -1.0), ("p_value", 1.0), ("error_bar", -1.0)):
        values = placed.numbers(name)
        if values is not None:
            return np.argsort(np.where(np.isnan(values), np.inf, sign * values), kind="stable")
    return np.arange(len(placed.coordinates))
