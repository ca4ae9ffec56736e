"""Compare `map_query` with scanpy's ``ingest``: ``python -m outsample_lab.figures.ingest_figures``.

Prints the table of docs/single_cell.md. Needs scanpy, which contains the cells of 10x Genomics, and
a version of pynndescent that works with ``ingest``, such as 0.5.13.

The true positions of the query cells are known: UMAP computes one map of all cells, and both
methods receive the part of the reference. Principal components are those of the reference.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

N_ALONE = 40


def cells() -> Any:
    """Return 700 blood cells with labels, 765 genes."""
    import scanpy

    raw = scanpy.datasets.pbmc68k_reduced()
    full = raw.raw.to_adata()
    full.X = full.X.toarray()
    full.obs = raw.obs[["bulk_labels"]].rename(columns={"bulk_labels": "label"})
    return full


def digits() -> Any:
    """Return 1797 handwritten digits in place of cells."""
    import pandas as pd
    from anndata import AnnData
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    obs = pd.DataFrame(
        {"label": pd.Categorical(y.astype(str))}, index=np.arange(len(y)).astype(str)
    )
    return AnnData(X.astype(np.float32), obs=obs)


def split(every: Any) -> tuple[Any, Any]:
    """Return reference and query; ``query.obsm["truth"]`` contains the true positions."""
    import scanpy

    order = np.random.default_rng(1).permutation(every.n_obs)
    n_new = min(500, every.n_obs // 4)
    reference = every[order[n_new:]].copy()
    scanpy.pp.pca(reference, n_comps=30, random_state=0)
    every.obsm["X_pca"] = np.asarray((every.X - reference.X.mean(axis=0)) @ reference.varm["PCs"])
    scanpy.pp.neighbors(every, use_rep="X_pca", random_state=0)
    scanpy.tl.umap(every, random_state=0)
    query = every[order[:n_new]].copy()
    query.obsm["truth"], query.obs["truth"] = query.obsm.pop("X_umap"), query.obs.pop("label")
    reference.obsm["X_umap"] = every.obsm["X_umap"][order[n_new:]].copy()
    reference.uns["umap"] = every.uns["umap"]
    scanpy.pp.neighbors(reference, random_state=0)
    return reference, query


def figures(placed: Any, truth: Any, size: float) -> tuple[float, float]:
    """Return the share of correct labels and the mean error relative to the size of the map."""
    right = placed.obs["label"].astype(str).to_numpy() == truth.obs["truth"].astype(str).to_numpy()
    errors = np.linalg.norm(np.asarray(placed.obsm["X_umap"]) - truth.obsm["truth"], axis=1)
    return float(right.mean()), float(errors.mean() / size)


def confidences(placed: Any, truth: Any) -> str:
    """Return a line with the numbers of correct labels by confidence."""
    right = placed.obs["label"].astype(str).to_numpy() == truth.obs["truth"].astype(str).to_numpy()
    confidence, counts = placed.obs["label_confidence"].to_numpy(), []
    for low, high in ((0.0, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 0.99), (0.99, 1.1)):
        in_bin = (confidence >= low) & (confidence < high)
        counts.append(f"{right[in_bin].sum()} of {in_bin.sum()} from {low}")
    return "correct by confidence: " + ", ".join(counts)


def methods(reference: Any) -> dict[str, Any]:
    """Return both methods of placing a query; each writes into a copy."""
    import scanpy

    from outsample.anndata import fit_reference, map_query

    model = fit_reference(reference)

    def ours(query: Any) -> Any:
        return map_query(query, reference, obs="label", model=model, inplace=False)

    def ingest(query: Any) -> Any:
        copy = query.copy()
        scanpy.tl.ingest(copy, reference, obs="label")
        return copy

    return {"outsample": ours, "ingest": ingest}


def main() -> None:
    """Print a row for each set and method: in a batch, and the first cells one by one."""
    import anndata

    warnings.filterwarnings("ignore")
    print("| set | | labels, batch | labels, singly | map error, batch | map error, singly |")
    print("|---|---|---|---|---|---|")
    summaries = []
    for name, make in {"blood cells": cells, "digits": digits}.items():
        reference, query = split(make())
        Y = reference.obsm["X_umap"]
        size = float(np.sqrt(((Y - Y.mean(axis=0)) ** 2).sum(axis=1).mean()))
        for method, place in methods(reference).items():
            placed = place(query)
            if method == "outsample":
                summaries.append(f"{name}: {confidences(placed, query)}")
            batch = figures(placed, query, size)
            alone = [place(query[i : i + 1].copy()) for i in range(N_ALONE)]
            for cell in alone:
                cell.obs["label"] = cell.obs["label"].astype(str)
            singly = figures(anndata.concat(alone), query[:N_ALONE], size)
            labels, errors = zip(batch, singly, strict=True)
            shown = [*(f"{x:.2f}" for x in labels), *(f"{x:.3f}" for x in errors)]
            print(f"| {name} | {method} | {' | '.join(shown)} |", flush=True)
    print("", *summaries, sep="\n")


if __name__ == "__main__":
    main()
