"""Single cells: place a query onto the map of a reference, in AnnData's own slots."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from outsample.estimators.novelty_detector import NoveltyDetector
from outsample.files.cells import Representation, open_cells, slot
from outsample.records import JudgedPlacement
from outsample.trust.votes import means, votes

# Rows of X, which may be on disk, that are placed at a time.
CHUNK_CELLS = 20_000
# Numbers written to ``obs``, each under this name.
SCORES = {
    "outsample_error_bar": "error_bar",
    "outsample_abnormality": "abnormality",
    "outsample_p_value": "p_value",
}


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
    """Place the cells of a query onto the map of a reference, with their labels.

    All it needs of the reference are two arrays, ``obsm[use_rep]`` and ``obsm[basis]``: the model
    that made the map may be gone. The query must have the same representation, made with the
    reference's own loadings or integrated with it. A cell gets the same answer, to the last bit,
    alone and in any batch.

    Parameters
    ----------
    query : AnnData or path of an .h5ad file
        Cells to place; may be backed. A file is not written to: it needs ``inplace=False``.
    reference : AnnData or path of an .h5ad file, default=None
        Cells with a map; may be backed. Not needed with a `model`, unless labels are asked for.
    use_rep : str, default="X_pca"
        Key of ``obsm`` in which cells are compared; ``"X"`` is the matrix itself, dense or
        sparse, with genes matched by ``var_names``.
    basis : str, default="X_umap"
        Key of ``obsm`` with the map.
    obs : str or sequence of str, default=()
        Columns of ``reference.obs`` to carry over. Numbers become the mean of the neighbours'
        by the weights that place the cell, anything else the label with the most votes by these.
        Cells of the reference without a value do not vote. Number codes of clusters are labels
        only if the column is categorical.
    model : NoveltyDetector or path of a model file, default=None
        Fitted before, by `fit_reference`. Columns saved with the file serve as ``obs`` if no
        reference is given.
    inplace : bool, default=True
        Write into `query`; else into a copy, in memory.
    n_jobs : int, default=None
        Threads to fit with, as in scikit-learn.

    Returns
    -------
    None or AnnData
        The copy, with ``inplace=False``. These are written, over what was there before, and
        nothing else:

        - ``obsm[basis]``: places on the map;
        - ``obs["outsample_error_bar"]``: radius that holds the true place of 90 % of cells like
          the reference's;
        - ``obs["outsample_abnormality"]``, ``obs["outsample_p_value"]``: whether the cell belongs;
          small p-values are cells unlike any of the reference;
        - ``obs[name]``, ``obs[f"{name}_confidence"]`` for labels: the label, and its part of the
          votes, from 0 to 1; colours of ``uns[f"{name}_colors"]`` come along;
        - ``obs[name]``, ``obs[f"{name}_deviation"]`` for numbers: the mean, and the standard
          deviation among the neighbours;
        - ``uns["outsample"]``: what was done.

        A column of `query` that is replaced by a carried one, and that was not written here
        before, is told by a warning.

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
        raise ValueError("query is a path, which is not written to: ask for a copy, inplace=False.")
    query = open_cells(query, "query")
    if reference is not None:
        reference = open_cells(reference, "reference")
    elif model is None:
        raise ValueError("Give a reference to place onto, or a model fitted to one.")
    held: Any = None
    if isinstance(model, str | os.PathLike):
        model, held = _loaded(model)
    columns = {name: _column(name, reference, held) for name in names}
    points = Representation.of(query, "query", use_rep)
    if model is None:
        _check_alike(points, Representation.of(reference, "reference", use_rep))
        model = fit_reference(reference, use_rep=use_rep, basis=basis, n_jobs=n_jobs)
    _check_model(model)
    for column in columns.values():
        _check_rows(column, model)
    placed, shares = _placed(model, points, bool(names))
    written = _written_before(query)
    _warn_of_replaced(query, names, written)
    result = query if inplace else query.to_memory(copy=True)
    result.obsm[basis] = placed.coordinates
    for name, field in SCORES.items():
        result.obs[name] = getattr(placed, field)
    for name, column in columns.items():
        _write_column(result, reference, name, column, shares)
    carried = np.array(sorted({*written, *names}), dtype=str)
    result.uns["outsample"] = {"use_rep": use_rep, "basis": basis, "obs": carried}
    return None if inplace else result


def fit_reference(
    reference: Any, *, use_rep: str = "X_pca", basis: str = "X_umap", n_jobs: int | None = None
) -> NoveltyDetector:
    """Fit what `map_query` places with, to keep it: ``map_query(query, model=...)``.

    Parameters
    ----------
    reference : AnnData or path of an .h5ad file
        Cells with a map; may be backed.
    use_rep : str, default="X_pca"
        Key of ``obsm`` in which cells are compared; ``"X"`` is the matrix itself.
    basis : str, default="X_umap"
        Key of ``obsm`` with the map.
    n_jobs : int, default=None
        Threads, as in scikit-learn.

    Returns
    -------
    NoveltyDetector
        Fitted, with the map.

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
    points = Representation.of(reference, "reference", use_rep)
    images = slot(reference, "reference", basis)
    X = points.rows(0, reference.n_obs)
    points.check_finite(X, 0)
    fitted = NoveltyDetector(n_jobs=n_jobs)
    try:
        fitted.fit(X, images)
    except ValueError as error:
        told = f"{points.label} as X, reference.obsm[{basis!r}] as y: {error}"
        raise ValueError(told) from None
    if points.names is not None:  # scikit-learn takes none with a sparse matrix
        fitted.feature_names_in_ = points.names
    return fitted


def _loaded(path: str | os.PathLike[str]) -> tuple[Any, dict[str, np.ndarray]]:
    """Model of a file, and the columns that were saved with it."""
    from outsample.files.model_file import load, read_columns

    return load(path), read_columns(path)


def _check_alike(points: Representation, known: Representation) -> None:
    """Refuse what needs no fit to be wrong: a large reference takes its time."""
    points.order(known.names, known.width)
    if points.values is not None:
        points.check_finite(points.values, 0)


def _check_model(model: Any) -> None:
    if not isinstance(model, NoveltyDetector) or getattr(model, "extension_", None) is None:
        raise TypeError(
            f"model is {model!r}, but must be a NoveltyDetector fitted with a map, as from "
            "fit_reference, or the path of one that was saved."
        )


def _column(name: str, reference: Any, held: Any) -> Any:
    """Column about the cells that were fitted, from the reference or the model file."""
    import pandas

    columns, where = (held or {}), "the model file"
    if reference is not None:
        columns, where = reference.obs, "reference.obs"
    elif held is None:
        raise ValueError("obs needs the reference, or a model file with these columns.")
    if name not in columns:
        kept = ", ".join(map(repr, columns)) or "nothing"
        raise KeyError(f"obs names {name!r}, but {where} has {kept}.")
    column = pandas.Series(columns[name]).reset_index(drop=True)
    if column.dtype.kind in "mMc":
        raise TypeError(f"{where} has {column.dtype} in {name!r}: carry labels or numbers.")
    return column


def _check_rows(column: Any, model: NoveltyDetector) -> None:
    n = model._known().n_rows
    if len(column) != n:
        raise ValueError(f"The reference has {len(column)} cells, but the model was fitted to {n}.")


def _placed(
    model: NoveltyDetector, points: Representation, with_shares: bool
) -> tuple[JudgedPlacement, Any]:
    """Place all cells, in pieces because they may be on disk; shares (q, n) for the columns."""
    order = points.order(getattr(model, "feature_names_in_", None), model.n_features_in_)
    parts, shares = [], []
    for at in range(0, points.cells.n_obs, CHUNK_CELLS):
        some = points.rows(at, min(at + CHUNK_CELLS, points.cells.n_obs), order)
        points.check_finite(some, at)
        with warnings.catch_warnings():  # the names were compared above
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            parts.append(model.place(some))
            if with_shares:
                shares.append(model.neighbor_weights(some))
    if not parts:
        raise ValueError(f"{points.label} has no cells.")
    placed = JudgedPlacement(*(np.concatenate(field) for field in zip(*parts, strict=True)))
    return placed, sparse.vstack(shares, format="csr") if shares else None


def _written_before(query: Any) -> list[str]:
    done = query.uns.get("outsample", {})
    return [str(name) for name in done.get("obs", [])] if isinstance(done, Mapping) else []


def _warn_of_replaced(query: Any, names: list[str], written: list[str]) -> None:
    replaced = [name for name in names if name in query.obs and name not in written]
    if replaced:
        warnings.warn(
            f"query.obs had {', '.join(map(repr, replaced))} already, replaced by what the "
            "reference's cells say; keep a copy under another name if you need it.",
            stacklevel=3,
        )


def _write_column(result: Any, reference: Any, name: str, column: Any, shares: Any) -> None:
    """Carry labels with their confidence, numbers with their deviation."""
    import pandas

    if pandas.api.types.is_numeric_dtype(column) and column.dtype.kind != "b":
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        result.obs[name], result.obs[f"{name}_deviation"] = means(shares, values)
        return
    labels = column.astype("category")
    codes, confidence = votes(shares, labels.cat.codes.to_numpy(), len(labels.cat.categories))
    found = pandas.Categorical.from_codes(codes, dtype=labels.dtype)
    result.obs[name] = pandas.Series(found, index=result.obs.index)
    result.obs[f"{name}_confidence"] = confidence
    colours = f"{name}_colors"
    result.uns.pop(colours, None)  # those of the labels that were replaced
    if reference is not None and colours in reference.uns:
        result.uns[colours] = np.array(reference.uns[colours])
