"""Hold-out errors: an extension is fitted to a part of a map and places the rest."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from outsample.estimators.extended import images_by

NAN = float("nan")


class Case(NamedTuple):
    """One training set, dense or sparse, with the points hidden from it."""

    X: Any
    Y: np.ndarray
    X_new: Any
    truth: np.ndarray  # True images of the hidden points `X_new`
    draws: int = 1  # The hidden points are this many draws of equal size, one after the other


class ComparisonRow(NamedTuple):
    """What one extension reached on points it had not seen.

    Attributes
    ----------
    name : str
        The extension.
    error : float
        Mean distance from the true image over the root mean square size of the map; NaN where
        the extension failed.
    spread : float
        Standard deviation of that mean from split to split.
    median, quantile_90 : float
        Of the same relative distances, over the hidden points of all splits.
    fit_seconds, place_ms : float
        Seconds of one fit and milliseconds for each hidden point; medians over the splits.
    failure : str
        Why there are no figures; empty if all went well.
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
    """Fit an extension to each case, place the hidden points; errors in units of `size`."""
    # The row's `failure` is set if the extension raised, or did not return a finite image a point.
    # `on_case` is called with the fitted extension, the case and the errors, shape (q,).
    errors, means, fits, places = [], [], [], []
    try:
        for case in cases:
            begin = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a line each would bury the table
                fitted = build()
                fitted.fit(case.X, case.Y)
                middle = time.perf_counter()
                placed = place(fitted, case.X_new, case.Y.shape[1])
            places.append(time.perf_counter() - middle)
            fits.append(middle - begin)
            errors.append(np.sqrt((((placed - case.truth) / size) ** 2).sum(axis=1)))
            means.extend(errors[-1].reshape(case.draws, -1).mean(axis=1))
            if on_case is not None:
                on_case(fitted, case, errors[-1])
    except Exception as error:  # whatever an extension raises, the others go on
        words = str(error).strip().splitlines() or [""]
        failure = f"{type(error).__name__}: {words[0]}"
        return ComparisonRow(name, NAN, NAN, NAN, NAN, NAN, NAN, failure)
    middle_error, high = np.quantile(np.concatenate(errors), [0.5, 0.9])
    seconds = float(np.median(places)) / len(cases[0].truth)
    return ComparisonRow(
        name, float(np.mean(means)), float(np.std(means)), float(middle_error), float(high),
        float(np.median(fits)), 1000 * seconds,
    )  # fmt: skip


def place(fitted: Any, X: Any, d: int) -> np.ndarray:
    """Return the images of q points, shape (q, d), under a fitted extension or regressor."""
    placed = images_by(fitted, X).astype(np.float64, copy=False)
    if placed.shape != (X.shape[0], d):
        raise ValueError(f"returned an array of shape {placed.shape}, not {(X.shape[0], d)}")
    if not np.isfinite(placed).all():
        raise ValueError("returned NaN or infinity")
    return placed
