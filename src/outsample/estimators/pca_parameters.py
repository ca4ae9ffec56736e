"""The parameters of `PCAExtension`, checked: what is given, and what is left to the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from outsample._validation import check_choice, check_jobs, check_number, plain
from outsample.neighbors.index import CHOICES
from outsample.placers.candidates import Constraints

FOR_SPARSE = ("auto", "brute")


def check_parameters(extension: Any) -> None:
    """Reject parameters that no data allow."""
    if extension.radius is not None:
        check_number("radius", extension.radius, 0, np.inf, open_below=True)
    if extension.tangent_radius is not None:
        check_number("tangent_radius", extension.tangent_radius, 0, np.inf, open_below=True)
    check_choice("order", extension.order, ["auto", 0, 1, 2])
    check_choice("loss", extension.loss, ["auto", "squared", "absolute"])
    if extension.curvature != "auto":
        check_number("curvature", extension.curvature, 0, np.inf, open_below=True)
    if extension.lipschitz != "auto":
        check_number("lipschitz", extension.lipschitz, 0, np.inf)
    check_number("level", extension.level, 0.5, 0.99)
    check_choice("index", extension.index, CHOICES)
    balls = extension.radius is not None or extension.tangent_radius is not None
    if balls and extension.index == "approximate":
        raise ValueError(
            "index is 'approximate', which cannot tell all the points of a ball: leave radius and "
            "tangent_radius out and give n_neighbors, or use index='auto'."
        )
    check_choice("metric", extension.metric, ["euclidean", "cosine"])
    check_jobs(extension.n_jobs)


def given_parameters(extension: Any, n: int, m: int, d: int, is_sparse: bool) -> Constraints:
    """Check the parameters for n rows, m distinct points, d map columns; None is left open."""
    if extension.n_neighbors != "auto":
        check_number("n_neighbors", extension.n_neighbors, 1, n, whole=True)
    if extension.tangent_dim != "auto":
        most = d if extension.weighting == "split_tangent" else extension.n_features_in_
        check_number("tangent_dim", extension.tangent_dim, 1, most, whole=True)
    if is_sparse and extension.index not in FOR_SPARSE:
        raise ValueError(
            f"index is '{extension.index}', but must be one of 'auto', 'brute' for sparse X: "
            "trees and approximate indexes need coordinates."
        )
    flat = not is_sparse and extension.metric == "euclidean"
    if extension.order not in ("auto", 0) and not flat:
        raise ValueError(
            f"order is {extension.order}, but must be 0 or 'auto' for sparse X and for metric="
            "'cosine': a local polynomial needs coordinates."
        )
    constraints = Constraints(
        None if extension.weighting == "auto" else plain(extension.weighting),
        None if extension.n_neighbors == "auto" else min(plain(extension.n_neighbors), m),
        (None if flat else 0) if extension.order == "auto" else plain(extension.order),
        None if extension.loss == "auto" else plain(extension.loss),
        None if extension.tangent_dim == "auto" else plain(extension.tangent_dim),
    )
    if constraints.family.fixed is not None:
        _check_fixed(extension, is_sparse, flat)
    elif not constraints.family.weightings:
        _check_all_points(extension, n, is_sparse)
    return constraints


def _check_fixed(extension: Any, is_sparse: bool, flat: bool) -> None:
    """Refuse what a blend and others with settings of their own cannot do."""
    given = (extension.n_neighbors, extension.order, extension.loss, extension.tangent_dim)
    if any(value != "auto" for value in given) or extension.radius is not None:
        raise ValueError(
            "weighting is a blend or a loss with settings of its own: leave n_neighbors, radius, "
            "order, loss and tangent_dim as they are by default."
        )
    parts = getattr(extension.weighting, "parts", ())
    if is_sparse and any(part.n_neighbors is None for part in parts):
        raise ValueError("weighting is a blend with a part over all points, which sparse X lacks.")
    if not flat and any(part.order > 0 for part in parts):
        raise ValueError(
            "weighting is a blend with a part of order 1 or 2, which sparse X and metric='cosine' "
            "do not allow: a local polynomial needs coordinates."
        )


def _check_all_points(extension: Any, n: int, is_sparse: bool) -> None:
    """Refuse what a diffusion cannot do: it is one constant over all training points."""
    settings = (extension.order, [0]), (extension.loss, ["squared"]), (extension.n_neighbors, [n])
    fits = all(value == "auto" or value in allowed for value, allowed in settings)
    if not fits or extension.radius is not None or is_sparse:
        raise ValueError(
            "weighting='diffusion' takes all training points, dense ones, no sparse X: leave "
            "n_neighbors, radius, order and loss as they are by default."
        )
