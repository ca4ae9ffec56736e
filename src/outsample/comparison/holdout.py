"""Hold-out errors: an extension is fitted to a part of a map and places the other points."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from outsample.estimators.extended import images_by

NAN = float("nan")


class Case(NamedTuple):
    """A training set, dense or sparse, and hidden points with their true positions."""

    X: Any
    Y: np.ndarray
    X_new: Any
    truth: np.ndarray  # True positions of the hidden points `X_new`
    draws: int = 1  # Number of equally large samples that the hidden points consist of


class ComparisonRow(NamedTuple):
    """Hold-out errors and run time of one extension.

    Attributes
    ----------
    name : str
        The extension.
    error : float
        Mean distance from the true position, relative to the root mean square size of the map;
        NaN if the extension failed.
    spread : float
        Standard deviation of the error over splits.
    median, quantile_90 : float
        Quantiles of the relative distances, over the hidden points of all splits.
    fit_seconds, place_ms : float
        Seconds per fit and milliseconds per hidden point; medians over the splits.
    failure : str
        The error if the extension failed, else empty.
    """

    name: str
    error: float
    spread: float
    median: float
    quantile_90: float
    fit_seconds: float
    place_ms: float
    failure: str = ""


def measure(
    name: str,
    build: Callable[[], Any],
    cases: Sequence[Case],
    size: float,
    on_case: Callable[[Any, Case, np.ndarray], None] | None = None,
) -> ComparisonRow:
    """Fit an extension to each case, place the hidden points, and return the errors over `size`.

    If the extension raises, or returns coordinates that are not finite, the row has a `failure`.
    `on_case` is called with the fitted extension, the case and the errors (q,).
    """
    errors, means, fit_times, place_times = [], [], [], []
    try:
        for case in cases:
            begin = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the table would be lost among warnings
                fitted = build()
                fitted.fit(case.X, case.Y)
                middle = time.perf_counter()
                placed = place(fitted, case.X_new, case.Y.shape[1])
            place_times.append(time.perf_counter() - middle)
            fit_times.append(middle - begin)
            errors.append(np.sqrt((((placed - case.truth) / size) ** 2).sum(axis=1)))
            means.extend(errors[-1].reshape(case.draws, -1).mean(axis=1))
            if on_case is not None:
                on_case(fitted, case, errors[-1])
    except Exception as error:  # the other extensions are still compared
        lines = str(error).strip().splitlines() or [""]
        failure = f"{type(error).__name__}: {lines[0]}"
        return ComparisonRow(name, NAN, NAN, NAN, NAN, NAN, NAN, failure)
    median, quantile_90 = np.quantile(np.concatenate(errors), [0.5, 0.9])
    seconds_per_point = float(np.median(place_times)) / len(cases[0].truth)
    return ComparisonRow(
        name=name,
        error=float(np.mean(means)),
        spread=float(np.std(means)),
        median=float(median),
        quantile_90=float(quantile_90),
        fit_seconds=float(np.median(fit_times)),
        place_ms=1000 * seconds_per_point,
    )


def place(fitted: Any, X: Any, d: int) -> np.ndarray:
    """Return the coordinates (q, d) of points by a fitted extension or regressor."""
    placed = images_by(fitted, X).astype(np.float64, copy=False)
    if placed.shape != (X.shape[0], d):
        raise ValueError(f"returned an array of shape {placed.shape}, not {(X.shape[0], d)}")
    if not np.isfinite(placed).all():
        raise ValueError("returned NaN or infinity")
    return placed
