"""Single-cell data: place the cells of a query onto the map of a reference in AnnData objects."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from outsample.estimators.novelty_detector import NoveltyDetector
from outsample.files.array_source import ArraySource
from outsample.files.cells import cell_points, open_cells
from outsample.files.matching import match_features
from outsample.files.source import check_finite
from outsample.opened_model import OpenedModel
from outsample.trust.votes import means, votes

# Cells per chunk; X may be on disk.
CHUNK_CELLS = 20_000
# Numbers of the placement that are written to ``obs``, as ``outsample_error_bar`` and so on.
OBS_NUMBERS = ("error_bar", "abnormality", "p_value")
HINT = "; the query needs the reference's representation, by its loadings or by integration"


def map_query(
    query: Any,
    reference: Any = None,
    *,
    use_rep: str = "X_pca",
    basis: str = "X_umap",
    obs: str | Sequence[str] = (),
    model: Any = None,
    inplace: bool = True,
    n_jobs: int | None = None,
) -> Any:
    """Place the cells of a query onto the map of a reference, and transfer labels and numbers.

    The reference needs two arrays, ``obsm[use_rep]`` and ``obsm[basis]``; the model that made the
    map is not needed. The query must have the same representation, computed with the loadings of
    the reference or integrated with it. The result for a cell is bit-identical alone and in any
    batch.

    Parameters
    ----------
    query : AnnData or path of an .h5ad file
        Cells to place; may be backed. A path requires ``inplace=False``: the file is not changed.
    reference : AnnData or path of an .h5ad file, default=None
        Cells with a map; may be backed. Not needed with a `model`, unless `obs` needs it.
    use_rep : str, default="X_pca"
        Key of ``obsm`` with the representation in which cells are compared; ``"X"`` is the matrix
        itself, dense or sparse, with genes matched by ``var_names``.
    basis : str, default="X_umap"
        Key of ``obsm`` with the map.
    obs : str or sequence of str, default=()
        Columns of ``reference.obs`` to transfer, weighted by the weights that place the cell: a
        number is the mean over the neighbours, any other value is decided by majority vote.
        Reference cells without a value do not vote. Numeric cluster codes are treated as labels
        only if the column is categorical.
    model : NoveltyDetector or path of a model file, default=None
        Model from `fit_reference`. Without a reference, `obs` uses the columns saved with the
        file.
    inplace : bool, default=True
        Write to `query`; otherwise to a copy in memory.
    n_jobs : int, default=None
        Threads for fitting, as in scikit-learn.

    Returns
    -------
    None or AnnData
        The copy, with ``inplace=False``. These entries are written, replacing existing ones:

        - ``obsm[basis]``: coordinates on the map;
        - ``obs["outsample_error_bar"]``: radius that contains the true position for 90 % of cells
          from the distribution of the reference;
        - ``obs["outsample_abnormality"]``, ``obs["outsample_p_value"]``: whether the cell belongs;
          cells with small p-values are unlike any cell of the reference;
        - ``obs[name]``, ``obs[f"{name}_confidence"]`` for labels: the label, and its share of the
          votes, from 0 to 1; also the colours ``uns[f"{name}_colors"]``;
        - ``obs[name]``, ``obs[f"{name}_deviation"]`` for numbers: the mean, and the standard
          deviation among the neighbours;
        - ``uns["outsample"]``: the parameters.

        A warning is issued if a column of `query` is replaced that `map_query` has not written.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from outsample.anndata import map_query
    >>> rng = np.random.default_rng(0)
    >>> cells = rng.normal(size=(300, 5)) + np.repeat([[0], [9], [18]], 100, axis=0)
    >>> reference = AnnData(obsm={"X_pca": cells, "X_umap": cells[:, :2]})
    >>> reference.obs["cell_type"] = np.repeat(["B", "NK", "T"], 100)
    >>> query = AnnData(obsm={"X_pca": np.array([[9.0] * 5, [99.0] * 5])})
    >>> map_query(query, reference, obs="cell_type")
    >>> query.obs[["cell_type", "cell_type_confidence", "outsample_p_value"]].round(3)
      cell_type  cell_type_confidence  outsample_p_value
    0        NK                   1.0              0.980
    1         T                   1.0              0.003
    """
    names = [obs] if isinstance(obs, str) else list(obs)
    if inplace and isinstance(query, str | os.PathLike):
        raise ValueError("query is a path, and the file is not changed: use inplace=False.")
    query = open_cells(query, "query")
    if reference is not None:
        reference = open_cells(reference, "reference")
    elif model is None:
        raise ValueError("Pass a reference to place onto, or a model fitted to one.")
    saved_columns: Any = None
    if isinstance(model, str | os.PathLike):
        opened = OpenedModel.open(model)
        model, saved_columns = opened.model, opened.training_columns
    columns = {name: _column(name, reference, saved_columns) for name in names}
    points = cell_points(query, "query.", use_rep)
    if model is None:
        _check_alike(query, points, cell_points(reference, "reference.", use_rep))
        model = fit_reference(reference, use_rep=use_rep, basis=basis, n_jobs=n_jobs)
    _check_model(model)
    for column in columns.values():
        _check_rows(column, model)
    coordinates, numbers, weights = _placed(OpenedModel(model), query, points, bool(names))
    written = _written_before(query)
    _warn_of_replaced(query, names, written)
    result = query if inplace else query.to_memory(copy=True)
    result.obsm[basis] = coordinates
    for name, values in numbers.items():
        result.obs[f"outsample_{name}"] = values
    for name, column in columns.items():
        _write_column(result, reference, name, column, weights)
    transferred = np.array(sorted({*written, *names}), dtype=str)
    result.uns["outsample"] = {"use_rep": use_rep, "basis": basis, "obs": transferred}
    return None if inplace else result


def fit_reference(
    reference: Any, *, use_rep: str = "X_pca", basis: str = "X_umap", n_jobs: int | None = None
) -> NoveltyDetector:
    """Fit the model of a reference, for ``map_query(query, model=...)``.

    Parameters
    ----------
    reference : AnnData or path of an .h5ad file
        Cells with a map; may be backed.
    use_rep : str, default="X_pca"
        Key of ``obsm`` with the representation in which cells are compared; ``"X"`` is the matrix
        itself.
    basis : str, default="X_umap"
        Key of ``obsm`` with the map.
    n_jobs : int, default=None
        Threads, as in scikit-learn.

    Returns
    -------
    NoveltyDetector
        Fitted detector with the map.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from outsample.anndata import fit_reference
    >>> cells = np.random.default_rng(0).normal(size=(100, 5))
    >>> reference = AnnData(obsm={"X_pca": cells, "X_umap": cells[:, :2]})
    >>> fit_reference(reference).place(cells[:1]).coordinates.shape
    (1, 2)
    """
    reference = open_cells(reference, "reference")
    points = cell_points(reference, "reference.", use_rep)
    images = cell_points(reference, "reference.", basis).values
    X = _rows(reference, points, 0, reference.n_obs)
    fitted = NoveltyDetector(n_jobs=n_jobs)
    try:
        fitted.fit(X, images)
    except ValueError as error:
        message = f"{points.path} as X, reference.obsm[{basis!r}] as y: {error}"
        raise ValueError(message) from None
    if points.has_names:  # scikit-learn reads names from data frames only
        fitted.feature_names_in_ = np.array(points.names, dtype=object)
    return fitted


def _check_alike(query: Any, points: ArraySource, reference: ArraySource) -> None:
    """Raise an error if the query does not match the reference, before a long fit."""
    names = reference.names if reference.has_names else None
    match_features(points, names, len(reference.names), hint=HINT)
    if isinstance(points.values, np.ndarray):
        check_finite(points.values, points.names, points.path, 0, query.obs_names)


def _check_model(model: Any) -> None:
    if not isinstance(model, NoveltyDetector) or getattr(model, "extension_", None) is None:
        raise TypeError(
            f"model is {model!r}, but must be a NoveltyDetector fitted with a map, such as from "
            "fit_reference, or the path of its model file."
        )


def _column(name: str, reference: Any, saved_columns: Any) -> Any:
    """Return a column about the fitted cells, from the reference or the model file."""
    import pandas

    columns, where = (saved_columns or {}), "the model file"
    if reference is not None:
        columns, where = reference.obs, "reference.obs"
    elif saved_columns is None:
        raise ValueError("obs needs the reference, or a model file with these columns.")
    if name not in columns:
        available = ", ".join(map(repr, columns)) or "no columns"
        raise KeyError(f"obs contains {name!r}, but {where} has {available}.")
    column = pandas.Series(columns[name]).reset_index(drop=True)
    if column.dtype.kind in "mMc":
        raise TypeError(
            f"{where} has {column.dtype} in {name!r}, but only labels and numbers can be "
            "transferred."
        )
    return column


def _check_rows(column: Any, model: NoveltyDetector) -> None:
    n = model._training_state().n_rows
    if len(column) != n:
        raise ValueError(f"The reference has {len(column)} cells, but the model was fitted to {n}.")


def _placed(
    opened: OpenedModel, query: Any, points: ArraySource, with_weights: bool
) -> tuple[np.ndarray, dict[str, np.ndarray], Any]:
    """Return the coordinates and scores of all cells, and the neighbours' weights if wanted."""
    columns = opened.match(points, hint=HINT).features
    chunks, weights = [], []
    for start in range(0, query.n_obs, CHUNK_CELLS):
        rows = _rows(query, points, start, min(start + CHUNK_CELLS, query.n_obs), columns)
        chunks.append(opened.place(rows))
        if with_weights:
            weights.append(opened.array_model.neighbor_weights(rows))
    if not chunks:
        raise ValueError(f"{points.path} has no cells.")
    placed = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
    coordinates = np.column_stack([placed[name] for name in opened.map_names])
    numbers = {name: placed[name] for name in OBS_NUMBERS}
    return coordinates, numbers, sparse.vstack(weights, format="csr") if weights else None


def _rows(
    cells: Any, points: ArraySource, start: int, stop: int, columns: list[int] | None = None
) -> Any:
    """Return cells as finite points, with columns in the order of the model's features."""
    rows, names = points.values[start:stop], points.names
    if columns is not None and columns != list(points.feature_columns):
        rows, names = rows[:, columns], [names[column] for column in columns]
    check_finite(rows, names, points.path, start, cells.obs_names[start:stop])
    return rows


def _written_before(query: Any) -> list[str]:
    parameters = query.uns.get("outsample", {})
    if not isinstance(parameters, Mapping):
        return []
    return [str(name) for name in parameters.get("obs", [])]


def _warn_of_replaced(query: Any, names: list[str], written: list[str]) -> None:
    replaced = [name for name in names if name in query.obs and name not in written]
    if replaced:
        warnings.warn(
            f"map_query replaced the columns {', '.join(map(repr, replaced))} of query.obs by "
            "values transferred from the reference.",
            stacklevel=3,
        )


def _write_column(result: Any, reference: Any, name: str, column: Any, weights: Any) -> None:
    """Write labels with their confidence, or numbers with their deviation, to ``obs``."""
    import pandas

    if pandas.api.types.is_numeric_dtype(column) and column.dtype.kind != "b":
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        result.obs[name], result.obs[f"{name}_deviation"] = means(weights, values)
        return
    labels = column.astype("category")
    codes, confidence = votes(weights, labels.cat.codes.to_numpy(), len(labels.cat.categories))
    transferred = pandas.Categorical.from_codes(codes, dtype=labels.dtype)
    result.obs[name] = pandas.Series(transferred, index=result.obs.index)
    result.obs[f"{name}_confidence"] = confidence
    colour_key = f"{name}_colors"
    result.uns.pop(colour_key, None)  # the colours of replaced labels
    if reference is not None and colour_key in reference.uns:
        result.uns[colour_key] = np.array(reference.uns[colour_key])
