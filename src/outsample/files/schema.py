"""Which classes a model file may hold, their fields, and what fits them: the ground.

The table is fixed: a file names classes of it, and nothing else is ever built. A new field is a
line in `schema`, `placer_schema`, `trust_schema` or `estimator_schema`; a test compares the table
with the classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from outsample._validation import LARGEST_VALUE
from outsample.estimators.extended import NotKept
from outsample.estimators.pyramids import Candidate
from outsample.files import kinds
from outsample.files.kinds import (
    Kind,
    Misfit,
    Scope,
    any_float,
    array,
    jobs,
    one_of,
    optional,
    points,
    real,
    rows_of,
    setting,
    whole,
)  # fmt: skip
from outsample.neighbors.approximate import WIDTHS
from outsample.neighbors.duplicates import Distinct
from outsample.neighbors.index import KINDS, NeighborIndex
from outsample.neighbors.neighborhoods import Search
from outsample.records import Frames
from outsample.spectral.bandwidth import Choice
from outsample.spectral.units import MapUnit, PointUnit

Fields = dict[str, Kind]
FIELDS: dict[type, Fields] = {}
LAWS: dict[type, Callable[[Any, Scope], None]] = {}


def is_a(*classes: type) -> Kind:
    """Objects of one of these classes, whose own fields fit."""

    def check(value: Any, scope: Scope) -> None:
        if type(value) not in classes:
            names = ", ".join(cls.__name__ for cls in classes)
            raise Misfit(f"is {kinds.shown(value)}, but must be a {names}")
        fits(value, scope)

    return check


def fits(value: Any, scope: Scope) -> None:
    """Refuse an object whose fields do not fit; once for every object."""
    if id(value) in scope.seen:
        return
    scope.seen.add(id(value))
    for name, kind in FIELDS[type(value)].items():
        part_fits(name, kind, getattr(value, name), scope)
    if type(value) in LAWS:
        LAWS[type(value)](value, scope)


def part_fits(name: str, kind: Kind, value: Any, scope: Scope) -> None:
    """Refuse a part that is not of its kind, by its name."""
    try:
        kind(value, scope)
    except Misfit as misfit:
        joint = "" if str(misfit)[:1] == "." else " "
        raise Misfit(f".{name}{joint}{misfit}") from None


positive = real(0, above=True)
not_negative = real(0)
scale = real(2.0**-1000, 2.0**1000)

FIELDS |= {
    NotKept: {"words": kinds.text},
    # Ground.
    Distinct: {
        "groups": rows_of("n", below="n"),
        "rows": rows_of("m", below="n"),
        "counts": array("m", dtype=np.int64, least=1),
    },
    NeighborIndex: {
        "X": points("m"),
        "kind": one_of(*KINDS),
        "n_jobs": jobs,
        "width": whole(0, max(max(widths) for widths in WIDTHS.values())),
        "recall": real(0, 1),
    },
    Search: {
        "index": is_a(NeighborIndex),
        "radius": optional(positive),
        "tangent_radius": optional(positive),
        "least_framed": whole(1, "m"),
    },
    Frames: {
        "axes": array("m", "d", "d", least=-1.001, most=1.001),
        "spread": array("m", "d", least=0, most=LARGEST_VALUE),
    },
    PointUnit: {"scale": scale},
    MapUnit: {"center": kinds.images("d"), "scale": scale},
    Choice: {"bandwidth": any_float, "error": any_float},
    Candidate: {
        "initial_scale": any_float,
        "ratio": setting(1, 1e300),
        "levels": whole(),
        "error": any_float,
    },
}


def counts_fit(value: Any, scope: Scope) -> None:
    """Refuse counts of copies that are not those of the n rows."""
    counts, n = value.counts, scope.size("n")
    if counts.max() > n or counts.sum() != n:
        raise Misfit(".counts do not sum to the number of rows")


def dense(scope: Scope, what: str) -> None:
    """Refuse sparse points where they cannot be."""
    if scope.is_sparse:
        raise Misfit(f"does not fit: {what} does not take sparse points")


def _distinct(value: Distinct, scope: Scope) -> None:
    counts_fit(value, scope)
    if scope.size("m") < 2:
        raise Misfit(".rows are fewer than two")
    if value.groups.max() >= scope.size("m"):
        raise Misfit(".groups are beyond the distinct points")


def _index(value: NeighborIndex, scope: Scope) -> None:
    if value.kind != "brute":
        dense(scope, "such an index")
    known = {"kd_tree": value.width < 100, "brute": value.width == 0, "codes": value.width > 0}
    if not known[value.kind]:
        raise Misfit(".width does not fit the kind")


LAWS |= {Distinct: _distinct, NeighborIndex: _index}
