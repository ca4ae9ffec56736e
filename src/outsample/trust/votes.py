"""What the neighbours say about a point: votes for labels, means of numbers, by shares (q, n)."""

from __future__ import annotations

import numpy as np
from scipy import sparse

# Votes held at once.
CHUNK_ROWS = 4096


def votes(
    shares: sparse.csr_matrix, codes: np.ndarray, n_labels: int
) -> tuple[np.ndarray, np.ndarray]:
    """Label with the most votes (q,), and its part of all votes (q,), from 0 to 1.

    ``codes`` (n,) number the labels from 0; a row of -1 has none and does not vote. Where nobody
    votes the label is -1 and the confidence 0. Of labels with as many votes, the first wins.

    >>> shares = sparse.csr_matrix([[0.5, 0.3, 0.2], [0.0, 0.0, 1.0]])
    >>> votes(shares, np.array([1, 0, -1]), 2)
    (array([ 1, -1]), array([0.625, 0.   ]))
    """
    labelled = np.flatnonzero(codes >= 0)
    ballots = sparse.csr_matrix(
        (np.ones(len(labelled)), (labelled, codes[labelled])), shape=(len(codes), max(n_labels, 1))
    )
    every = shares @ (codes >= 0).astype(float)  # row by row: the same bits alone, in any order
    some_vote = every > 0
    best, confidence = np.empty(shares.shape[0], dtype=np.int64), np.empty(shares.shape[0])
    for at in range(0, shares.shape[0], CHUNK_ROWS):
        cast = (shares[at : at + CHUNK_ROWS] @ ballots).toarray()
        best[at : at + CHUNK_ROWS] = cast.argmax(axis=1)
        confidence[at : at + CHUNK_ROWS] = cast.max(axis=1)
    confidence /= np.where(some_vote, every, 1.0)
    return np.where(some_vote, best, -1), np.minimum(confidence, 1.0)


def means(shares: sparse.csr_matrix, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean of numbers (q,) and their deviation (q,) among the neighbours; NaN where none has one.

    ``values`` (n,) that are NaN do not count.

    >>> shares = sparse.csr_matrix([[0.5, 0.3, 0.2], [0.0, 0.0, 1.0]])
    >>> mean, deviation = means(shares, np.array([1.0, 9.0, np.nan]))
    >>> mean.round(2), deviation.round(2)
    (array([ 4., nan]), array([3.87,  nan]))
    """
    q, counts = shares.shape[0], np.diff(shares.indptr)
    rows, given = np.repeat(np.arange(q), counts), values[shares.indices]
    counted = np.where(np.isnan(given), 0.0, shares.data)
    given = np.where(np.isnan(given), 0.0, given)
    every = np.bincount(rows, counted, minlength=q)  # in order: the same bits alone
    voted = every > 0
    every = np.where(voted, every, 1.0)
    mean = np.bincount(rows, counted * given, minlength=q) / every
    squares = np.bincount(rows, counted * (given - mean[rows]) ** 2, minlength=q) / every
    return np.where(voted, mean, np.nan), np.where(voted, np.sqrt(squares), np.nan)
