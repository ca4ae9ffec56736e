"""Preparations of a table, and the choice among them by leave-one-out on a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from outsample.estimators.pca_extension import PCAExtension
from outsample.points import map_size
from outsample.preparation.columns import Columns, PrintedRows
from outsample.preparation.transformers import ColumnWeights, NearestRowsImputer

SCALINGS = ("standard", "robust", "rank", "range", "raw")
FILLS = ("neighbors", "median")
# Rows on which preparations are compared, and on which weights are searched.
COMPARED_ROWS, WEIGHTED_ROWS, MIN_ROWS = 1000, 600, 30
# Alternatives with the lowest screening errors, which are compared with the default.
FINALISTS = 2
# Guards: another preparation must be better by this many standard errors of the paired errors,
# and weights also by this share of the error. Unguarded weights were up to 1.9 times worse.
STANDARD_ERRORS, WEIGHT_GAIN = 2.0, 0.05
FACTORS = (0.0, 0.5, 1.0, 2.0, 4.0)
# Coordinate descent over the weights: passes, least gain of a step, most columns.
WEIGHT_PASSES, STEP_GAIN, MAX_WEIGHTED_COLUMNS = 3, 0.01, 60
SCREENING_NEIGHBORS = 5


class Recipe(NamedTuple):
    """A preparation: how numbers are scaled and gaps filled, and whether categories are used."""

    scaling: str = "standard"
    fill: str = "neighbors"
    has_categories: bool = True
    weights: tuple[float, ...] = ()

    def __str__(self) -> str:
        words = [self.scaling]
        words += [] if self.has_categories else ["numbers only"]
        words += ["median with indicator"] if self.fill == "median" else []
        return ", ".join(words + (["weighted columns"] if self.weights else []))


class PreparationTrial(NamedTuple):
    """A preparation that was tried on the map.

    Attributes
    ----------
    preparation : str
        What differs from the default.
    screening_error : float
        Leave-one-out error of the mean of the five nearest rows, over the size of the map.
    error : float or None
        Leave-one-out error of `PCAExtension`, over the size of the map; None if the preparation
        was not among those with the lowest screening errors.
    standard_errors : float or None
        How many standard errors of the paired differences the error is below the error of the
        default; for weights, of the same preparation without weights.
    is_chosen : bool
        Whether it is in use.
    """

    preparation: str
    screening_error: float
    error: float | None
    standard_errors: float | None
    is_chosen: bool


class PreparationTrials(PrintedRows[PreparationTrial]):
    """Trials in the order in which they were made; prints as a table."""

    def header(self) -> Sequence[str]:
        """Return the headings."""
        return "preparation", "5-NN error", "error", "SE lower", "chosen"

    def cells(self, row: PreparationTrial) -> Sequence[str]:
        """Return a trial as strings."""
        numbers = ((row.screening_error, 4), (row.error, 4), (row.standard_errors, 1))
        shown = ("" if number is None else f"{number:.{digits}f}" for number, digits in numbers)
        return row.preparation, *shown, "yes" if row.is_chosen else ""


def output_groups(columns: Columns) -> dict[str, list[int]]:
    """Return the encoded columns that are scaled, left as they are, and indicators."""
    groups: dict[str, list[int]] = {"number": [], "vector": [], "category": []}
    for column in columns:
        for part in range(len(column.outputs)):
            is_scaled = column.kind == "number" or (column.kind == "date" and part == 0)
            kind = "number" if is_scaled else "vector" if column.kind == "date" else column.kind
            groups[kind].append(sum(map(len, groups.values())))
    return groups


def build_pipeline(recipe: Recipe, columns: Columns, encoded: np.ndarray) -> Pipeline:
    """Return the pipeline of a recipe, fitted to the encoded rows (n, width) of a table."""
    scaler = {
        "vector": "passthrough",
        "category": "passthrough" if recipe.has_categories else "drop",
    }
    scaler["number"] = _scaler(recipe.scaling, len(encoded))
    parts = [(kind, scaler[kind], at) for kind, at in output_groups(columns).items() if at]
    steps: list[tuple[str, Any]] = [("scale", ColumnTransformer(parts))]
    if recipe.fill == "neighbors":
        steps.append(("fill", NearestRowsImputer()))
    else:
        steps.append(("fill", SimpleImputer(strategy="median", keep_empty_features=True)))
        if gaps := first_outputs(columns, encoded):
            marks = ColumnTransformer([("gaps", MissingIndicator(features="all"), gaps)])
            steps = [("fill", FeatureUnion([("cells", Pipeline(steps)), ("gaps", marks)]))]
    if recipe.weights:
        steps.append(("weights", ColumnWeights(list(recipe.weights))))
    return Pipeline(steps).fit(encoded)


def first_outputs(columns: Columns, encoded: np.ndarray) -> list[int]:
    """Return the first encoded column of each column that has missing cells."""
    widths = [len(column.outputs) for column in columns]
    starts = np.cumsum([0, *widths[:-1]])
    return [
        int(at)
        for at, w in zip(starts, widths, strict=True)
        if w and np.isnan(encoded[:, at]).any()
    ]


def output_sources(recipe: Recipe, columns: Columns, encoded: np.ndarray) -> np.ndarray:
    """Return the column of the table that each prepared column belongs to, by number."""
    owners = np.repeat(np.arange(len(columns)), [len(column.outputs) for column in columns])
    groups = output_groups(columns)
    if not recipe.has_categories:
        groups["category"] = []
    order = [at for group in groups.values() for at in group]
    if recipe.fill == "median":
        order += first_outputs(columns, encoded)
    return owners[order]


def _scaler(scaling: str, n_rows: int) -> Any:
    if scaling == "rank":
        ranks = QuantileTransformer(n_quantiles=min(1000, n_rows), subsample=None)
        return Pipeline([("ranks", ranks), ("scale", StandardScaler())])
    scalers = {
        "standard": StandardScaler(),
        "robust": RobustScaler(unit_variance=True),
        "range": MinMaxScaler(),
        "raw": "passthrough",
    }
    return scalers[scaling]


def choose_recipe(
    columns: Columns, encoded: np.ndarray, Y: np.ndarray, fill: str = "auto"
) -> tuple[Recipe, PreparationTrials]:
    """Return the recipe with the lowest leave-one-out error on a map (n, d), and the trials.

    The default recipe is replaced only by one that is better by two standard errors of the paired
    errors; weights of columns must also lower the error by 5 %. The choice is made on a sample of
    the rows and is the same every time.
    """
    start = Recipe(fill="neighbors" if fill == "auto" else fill)
    n = len(encoded)
    if n < MIN_ROWS:
        return start, PreparationTrials()
    if n > COMPARED_ROWS:
        rows = np.sort(np.random.default_rng(0).permutation(n)[:COMPARED_ROWS])
        encoded, Y = encoded[rows], Y[rows]
    alternatives = _alternatives(start, columns, encoded, fill)
    screened = {r: _screening_error(r, columns, encoded, Y) for r in (start, *alternatives)}
    finalists = sorted(alternatives, key=lambda recipe: screened[recipe])[:FINALISTS]
    errors = {recipe: _errors(recipe, columns, encoded, Y) for recipe in (start, *finalists)}
    below = {r: _standard_errors_below(errors[r], errors[start]) for r in errors}
    chosen = min(errors, key=lambda recipe: float(np.nanmean(errors[recipe])))
    if below[chosen] < STANDARD_ERRORS:
        chosen = start
    if weights := _weights(chosen, columns, encoded, Y):
        weighted = chosen._replace(weights=weights)
        screened[weighted] = _screening_error(weighted, columns, encoded, Y)
        errors[weighted] = _errors(weighted, columns, encoded, Y)
        below[weighted] = _standard_errors_below(errors[weighted], errors[chosen])
        gain = 1 - np.nanmean(errors[weighted]) / np.nanmean(errors[chosen])
        if below[weighted] >= STANDARD_ERRORS and gain >= WEIGHT_GAIN:
            chosen = weighted
    size = map_size(Y)
    trials = [
        PreparationTrial(
            preparation=str(recipe),
            screening_error=screening_error / size,
            error=float(np.nanmean(errors[recipe])) / size if recipe in errors else None,
            standard_errors=below.get(recipe),
            is_chosen=recipe == chosen,
        )
        for recipe, screening_error in screened.items()
    ]
    return chosen, PreparationTrials(tuple(trials))


def _alternatives(start: Recipe, columns: Columns, encoded: np.ndarray, fill: str) -> list[Recipe]:
    groups = output_groups(columns)
    has_numbers = bool(groups["number"] or groups["vector"])
    recipes = [start._replace(scaling=s) for s in SCALINGS[1:] if groups["number"]]
    if groups["category"] and has_numbers:
        recipes += [start._replace(scaling=s, has_categories=False) for s in ("standard", "raw")]
    if fill == "auto" and np.isnan(encoded).any():
        recipes.append(start._replace(fill="median"))
    return recipes


def _errors(recipe: Recipe, columns: Columns, encoded: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return leave-one-out errors (n,) on the map; NaN for rows that are not left out."""
    X = build_pipeline(recipe, columns, encoded).transform(encoded)
    left_out = PCAExtension().fit(X, Y).left_out_
    errors = np.full(len(Y), np.nan)
    errors[left_out.rows] = np.linalg.norm(left_out.coordinates - Y[left_out.rows], axis=1)
    return errors


def _standard_errors_below(errors: np.ndarray, others: np.ndarray) -> float:
    """Return the mean of the paired differences in units of its standard error."""
    gains = others - errors
    gains = gains[~np.isnan(gains)]
    if not gains.any():
        return 0.0
    return float(gains.mean() / max(gains.std() / np.sqrt(len(gains)), 1e-300))


def _weights(
    recipe: Recipe, columns: Columns, encoded: np.ndarray, Y: np.ndarray
) -> tuple[float, ...]:
    """Return a weight per prepared column by coordinate descent; () if all are 1.

    Each column of the table, and the block of vectors, has one of the factors. The criterion is
    the leave-one-out error of the mean of the five nearest rows, on squared distances that are
    sums over the columns.
    """
    X = build_pipeline(recipe, columns, encoded).transform(encoded)[:WEIGHTED_ROWS]
    Y, owners = Y[: len(X)], output_sources(recipe, columns, encoded)
    vectors = [at for at, column in enumerate(columns) if column.kind == "vector"]
    owners = np.where(np.isin(owners, vectors), -1, owners)
    blocks = np.unique(owners)
    if not 1 < len(blocks) <= MAX_WEIGHTED_COLUMNS or len(X) <= 2 * SCREENING_NEIGHBORS:
        return ()
    parts = [
        cdist(X[:, owners == block], X[:, owners == block], "sqeuclidean").astype(np.float32)
        for block in blocks
    ]
    total, factors = np.sum(parts, axis=0), np.ones(len(blocks))
    lowest = _nearest_error(total, Y)
    for _ in range(WEIGHT_PASSES):
        before = factors.copy()
        for at, part in enumerate(parts):
            remainder = total - np.float32(factors[at] ** 2) * part
            for factor in FACTORS:
                candidate = remainder + np.float32(factor**2) * part
                if (error := _nearest_error(candidate, Y)) < lowest * (1 - STEP_GAIN):
                    lowest, factors[at], total = error, factor, candidate
        if (factors == before).all():
            break
    if (factors == 1).all() or not factors.any():
        return ()
    return tuple(factors[np.searchsorted(blocks, owners)].tolist())


def _screening_error(recipe: Recipe, columns: Columns, encoded: np.ndarray, Y: np.ndarray) -> float:
    X = build_pipeline(recipe, columns, encoded).transform(encoded)
    return _nearest_error(cdist(X, X, "sqeuclidean"), Y)


def _nearest_error(distances: np.ndarray, Y: np.ndarray) -> float:
    """Return the mean error of the mean position of the nearest other rows."""
    distances = distances.copy()
    np.fill_diagonal(distances, np.inf)
    near = np.argpartition(distances, SCREENING_NEIGHBORS, axis=1)[:, :SCREENING_NEIGHBORS]
    return float(np.linalg.norm(Y - Y[near].mean(axis=1), axis=1).mean())
