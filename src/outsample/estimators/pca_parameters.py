"""Checked parameters of `PCAExtension`, as constraints for model selection."""

from __future__ import annotations

from typing import Any

import numpy as np

from outsample._validation import check_choice, check_jobs, check_number, plain
from outsample.neighbors.index import CHOICES
from outsample.placers.candidates import Constraints

SPARSE_CHOICES = ("auto", "brute")


def check_parameters(extension: Any) -> None:
    """Raise ValueError for parameters that no data allow."""
    for name in ("radius", "tangent_radius"):
        if getattr(extension, name) is not None:
            check_number(name, getattr(extension, name), 0, np.inf, open_below=True)
    check_choice("order", extension.order, ["auto", 0, 1, 2])
    check_choice("loss", extension.loss, ["auto", "squared", "absolute"])
    if extension.curvature != "auto":
        check_number("curvature", extension.curvature, 0, np.inf, open_below=True)
    if extension.lipschitz != "auto":
        check_number("lipschitz", extension.lipschitz, 0, np.inf)
    check_number("level", extension.level, 0.5, 0.99)
    check_choice("index", extension.index, CHOICES)
    has_radius = extension.radius is not None or extension.tangent_radius is not None
    if has_radius and extension.index == "approximate":
        raise ValueError(
            "index is 'approximate', which may miss points of a ball: use n_neighbors instead of "
            "radius and tangent_radius, or index='auto'."
        )
    check_choice("metric", extension.metric, ["euclidean", "cosine"])
    check_jobs(extension.n_jobs)


def constraints_for(extension: Any, n: int, m: int, d: int, is_sparse: bool) -> Constraints:
    """Return the constraints of n rows, m distinct points and d map columns; None is open."""
    if extension.n_neighbors != "auto":
        check_number("n_neighbors", extension.n_neighbors, 1, n, whole=True)
    if extension.tangent_dim != "auto":
        largest = d if extension.weighting == "split_tangent" else extension.n_features_in_
        check_number("tangent_dim", extension.tangent_dim, 1, largest, whole=True)
    if is_sparse and extension.index not in SPARSE_CHOICES:
        raise ValueError(
            f"index is '{extension.index}', but must be one of 'auto', 'brute' for sparse X: "
            "trees and approximate indexes need coordinates."
        )
    has_coordinates = not is_sparse and extension.metric == "euclidean"
    if extension.order not in ("auto", 0) and not has_coordinates:
        raise ValueError(
            f"order is {extension.order}, but must be 0 or 'auto' for sparse X and for metric="
            "'cosine': a local polynomial needs coordinates."
        )
    order = extension.order
    if order == "auto":
        order = None if has_coordinates else 0
    n_neighbors = extension.n_neighbors
    constraints = Constraints(
        None if extension.weighting == "auto" else plain(extension.weighting),
        None if n_neighbors == "auto" else min(plain(n_neighbors), m),
        plain(order),
        None if extension.loss == "auto" else plain(extension.loss),
        None if extension.tangent_dim == "auto" else plain(extension.tangent_dim),
    )
    if constraints.family.fixed is not None:
        _check_fixed(extension, is_sparse, has_coordinates)
    elif not constraints.family.weightings:
        _check_all_points(extension, n, is_sparse)
    return constraints


def _check_fixed(extension: Any, is_sparse: bool, has_coordinates: bool) -> None:
    """Raise ValueError for parameters that a model with its own settings does not allow."""
    settings = (extension.n_neighbors, extension.order, extension.loss, extension.tangent_dim)
    if any(value != "auto" for value in settings) or extension.radius is not None:
        raise ValueError(
            "weighting is a blend or a loss with settings of its own: leave n_neighbors, radius, "
            "order, loss and tangent_dim at their defaults."
        )
    parts = getattr(extension.weighting, "parts", ())
    if is_sparse and any(part.n_neighbors is None for part in parts):
        raise ValueError("weighting is a blend with an all-points part, which needs dense X.")
    if not has_coordinates and any(part.order > 0 for part in parts):
        raise ValueError(
            "weighting is a blend with a part of order 1 or 2, which sparse X and metric='cosine' "
            "do not allow: a local polynomial needs coordinates."
        )


def _check_all_points(extension: Any, n: int, is_sparse: bool) -> None:
    """Raise ValueError for parameters that an all-points diffusion does not allow."""
    settings = (extension.order, [0]), (extension.loss, ["squared"]), (extension.n_neighbors, [n])
    fits = all(value == "auto" or value in allowed for value, allowed in settings)
    if not fits or extension.radius is not None or is_sparse:
        raise ValueError(
            "weighting='diffusion' uses all training points and needs dense X: leave n_neighbors, "
            "radius, order and loss at their defaults."
        )
