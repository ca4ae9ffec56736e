"""Hashes of rows that depend on their contents only, and sums in a fixed order."""

from __future__ import annotations

import numpy as np
from numba.extending import overload

from outsample._compiled.compiling import njit


@njit
def mixed(bits):
    """Return a number with the bits mixed over all 64 places (the finalizer of splitmix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@njit
def entry_hash(bits, column):
    """Return the hash of an entry from the bits of its value; a zero hashes to 0 in any column."""
    if bits << np.uint64(1) == np.uint64(0):  # 0.0 and -0.0
        return np.uint64(0)
    return mixed(bits + mixed(np.uint64(column) + np.uint64(0x9E3779B97F4A7C15)))


def row_hash(rows, i):
    """Return the sum of the hashes of row i; rows are (bits,) or (bits, columns, starts)."""
    total = 0
    if len(rows) == 1:
        for a in range(rows[0].shape[1]):
            total += int(entry_hash(rows[0][i, a], a))
    else:
        for at in range(rows[2][i], rows[2][i + 1]):
            total += int(entry_hash(rows[0][at], rows[1][at]))
    return np.uint64(total % 2**64)


@overload(row_hash)
def compile_row_hash(rows, i):
    """Return the dense or the sparse form when a kernel is compiled."""
    if len(rows) == 1:

        def dense(rows, i):
            total = np.uint64(0)
            for a in range(rows[0].shape[1]):
                total += entry_hash(rows[0][i, a], a)
            return total

        return dense

    def sparse(rows, i):
        total = np.uint64(0)
        for at in range(rows[2][i], rows[2][i + 1]):
            total += entry_hash(rows[0][at], rows[1][at])
        return total

    return sparse


@njit
def row_hashes(start, stop, rows, hashes):
    """Write the hash of every row; equal rows have equal hashes."""
    for i in range(start, stop):
        hashes[i] = row_hash(rows, i)


@njit
def ordered_sums(X, rows, sums):
    """Write the column sums of ``rows`` (m,) of X, added in the order of the rows."""
    for a in range(sums.size):
        sums[a] = 0.0
    for i in rows:
        for a in range(sums.size):
            sums[a] += X[i, a]
