"""Transfer of labels and numbers from neighbours, weighted by shares (q, n)."""

from __future__ import annotations

import numpy as np
from scipy import sparse

# Queries per chunk of the dense table of votes.
VOTE_CHUNK_ROWS = 4096


def votes(
    shares: sparse.csr_matrix, codes: np.ndarray, n_labels: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the label with the most votes (q,) and its share of all votes (q,), from 0 to 1.

    ``codes`` (n,) number the labels from 0; rows with code -1 have no label and do not vote.
    Without votes the label is -1 and the confidence 0. Of tied labels, the first wins.

    >>> shares = sparse.csr_matrix([[0.5, 0.3, 0.2], [0.0, 0.0, 1.0]])
    >>> votes(shares, np.array([1, 0, -1]), 2)
    (array([ 1, -1]), array([0.625, 0.   ]))
    """
    labelled = np.flatnonzero(codes >= 0)
    ballots = sparse.csr_matrix(
        (np.ones(len(labelled)), (labelled, codes[labelled])), shape=(len(codes), max(n_labels, 1))
    )
    totals = shares @ (codes >= 0).astype(float)  # row by row: identical bits for any batch
    has_votes = totals > 0
    best, confidence = np.empty(shares.shape[0], dtype=np.int64), np.empty(shares.shape[0])
    for start in range(0, shares.shape[0], VOTE_CHUNK_ROWS):
        table = (shares[start : start + VOTE_CHUNK_ROWS] @ ballots).toarray()
        best[start : start + VOTE_CHUNK_ROWS] = table.argmax(axis=1)
        confidence[start : start + VOTE_CHUNK_ROWS] = table.max(axis=1)
    confidence /= np.where(has_votes, totals, 1.0)
    return np.where(has_votes, best, -1), np.minimum(confidence, 1.0)


def means(shares: sparse.csr_matrix, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean (q,) and standard deviation (q,) of numbers among the neighbours.

    ``values`` (n,) that are NaN do not count; without values the results are NaN.

    >>> shares = sparse.csr_matrix([[0.5, 0.3, 0.2], [0.0, 0.0, 1.0]])
    >>> mean, deviation = means(shares, np.array([1.0, 9.0, np.nan]))
    >>> mean.round(2), deviation.round(2)
    (array([ 4., nan]), array([3.87,  nan]))
    """
    q, counts = shares.shape[0], np.diff(shares.indptr)
    rows, entries = np.repeat(np.arange(q), counts), values[shares.indices]
    counted = np.where(np.isnan(entries), 0.0, shares.data)
    entries = np.where(np.isnan(entries), 0.0, entries)
    totals = np.bincount(rows, counted, minlength=q)  # in order: identical bits for any batch
    has_values = totals > 0
    totals = np.where(has_values, totals, 1.0)
    mean = np.bincount(rows, counted * entries, minlength=q) / totals
    squares = np.bincount(rows, counted * (entries - mean[rows]) ** 2, minlength=q) / totals
    return np.where(has_values, mean, np.nan), np.where(has_values, np.sqrt(squares), np.nan)
