"""The 14 features of network traffic by the minute, computed from connections.

Addresses are encoded as integers first; the features then follow by sorting and counting arrays.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

# Stamp (a minute number; a day is `DAY_LENGTH` of them), source, destination, label, how many.
Connection = tuple[int, str, str, str, int]
FEATURES = (
    "n_conn", "n_src", "n_dst", "n_pair", "max_conn_per_src", "max_conn_per_dst",
    "max_conn_per_pair", "max_fanout", "max_fanin", "src_entropy", "dst_entropy", "n_inbound",
    "n_outbound", "n_dst_inside",
)  # fmt: skip
DAY_LENGTH = 24 * 60
INSIDE = "172.016."
NORMAL = "-"
CELL = np.dtype([(name, np.int64) for name in ("stamp", "source", "destination", "label", "n")])


class MinuteTable(NamedTuple):
    """Counts of connections, one row per minute; minutes without any are zeros."""

    stamps: Ints  # All minutes from the first to the last with a connection of each day, shape (q,)
    X: Array  # The counts, columns in the order of `FEATURES`, shape (q, 14)
    attacks: NDArray[np.str_]  # ``"name:count"`` joined by ``";"``, most frequent first, shape (q,)
    n_attack: Ints  # Connections with a label other than ``"-"``, shape (q,)


class _Ends(NamedTuple):
    """Distribution of connections over sources or destinations; each of shape (q,)."""

    distinct: NDArray[Any]
    largest: NDArray[Any]
    max_partners: NDArray[Any]
    entropy: NDArray[Any]


def minute_table(connections: Iterable[Connection]) -> MinuteTable:
    """Return the counts of connections by the minute, in order of time.

    An entropy is that of the connections' sources or destinations within the minute, in bits:
    -sum_i p_i log2 p_i with p_i the share of address i.

    >>> inside, outside, other = "172.016.112.020", "192.000.002.010", "192.000.002.011"
    >>> table = minute_table([
    ...     (480, inside, outside, "-", 2), (480, inside, other, "-", 2),
    ...     (482, outside, inside, "pod", 9),
    ... ])
    >>> table.X[:, FEATURES.index("n_conn")].tolist(), table.attacks.tolist()
    ([4.0, 0.0, 9.0], ['', '', 'pod:9'])
    """
    addresses: dict[str, int] = {}
    labels = {NORMAL: 0}

    def number(address: str) -> int:
        return addresses.setdefault(address, len(addresses))

    encoded = (
        (stamp, number(source), number(destination), labels.setdefault(label, len(labels)), n)
        for stamp, source, destination, label, n in connections
    )
    cells = np.fromiter(encoded, dtype=CELL)
    stamps = _all_minutes(cells["stamp"])
    row = np.searchsorted(stamps, cells["stamp"])
    inside = np.array([address.startswith(INSIDE) for address in addresses], dtype=bool)
    attack = cells["label"] > 0
    n, label = cells["n"], cells["label"]
    return MinuteTable(
        stamps,
        _features(row, cells["source"], cells["destination"], n, inside, len(stamps)),
        _attack_texts(row[attack], label[attack], n[attack], list(labels), stamps),
        np.bincount(row, n * attack, len(stamps)).astype(np.int64),
    )


def _all_minutes(stamps: Ints) -> Ints:
    """Return every minute from the first to the last stamp of each day."""
    distinct = np.unique(stamps)
    _, first = np.unique(distinct // DAY_LENGTH, return_index=True)
    last = np.append(first, len(distinct))[1:] - 1
    spans = [np.arange(distinct[a], distinct[b] + 1) for a, b in zip(first, last, strict=True)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *spans])


def _features(
    row: Ints, source: Ints, destination: Ints, n: Ints, inside: NDArray[np.bool_], n_rows: int
) -> Array:
    """Return the features of every row; arrays have one entry per group of equal connections."""
    # Merge connections of a pair with different labels, so that a pair occurs once per minute.
    size = len(inside) + 1
    key, where = np.unique((row * size + source) * size + destination, return_inverse=True)
    n = np.bincount(where, n, len(key))
    row, source, destination = key // size**2, key // size % size, key % size
    by_source = _ends(row, source, n, size, n_rows)
    by_destination = _ends(row, destination, n, size, n_rows)
    inbound = inside[destination] & ~inside[source]
    outbound = inside[source] & ~inside[destination]
    into = np.unique((row * size + destination)[inside[destination]]) // size
    columns = {
        "n_conn": np.bincount(row, n, n_rows),
        "n_src": by_source.distinct,
        "n_dst": by_destination.distinct,
        "n_pair": np.bincount(row, minlength=n_rows),
        "max_conn_per_src": by_source.largest,
        "max_conn_per_dst": by_destination.largest,
        "max_conn_per_pair": _largest(row, n, n_rows),
        "max_fanout": by_source.max_partners,
        "max_fanin": by_destination.max_partners,
        "src_entropy": by_source.entropy,
        "dst_entropy": by_destination.entropy,
        "n_inbound": np.bincount(row, n * inbound, n_rows),
        "n_outbound": np.bincount(row, n * outbound, n_rows),
        "n_dst_inside": np.bincount(into, minlength=n_rows),
    }
    return np.column_stack([columns[name] for name in FEATURES]).astype(np.float64)


def _ends(row: Ints, address: Ints, n: NDArray[Any], size: int, n_rows: int) -> _Ends:
    """Return the distribution of each minute's connections over addresses."""
    key, where = np.unique(row * size + address, return_inverse=True)
    at, count = key // size, np.bincount(where, n, len(key))
    share = count / np.bincount(at, count, n_rows)[at]
    # Sum in order of size: otherwise the last bit would depend on the order of the addresses,
    # and on which other days were read.
    order = np.lexsort((count, at))
    return _Ends(
        np.bincount(at, minlength=n_rows),
        _largest(at, count, n_rows),
        _largest(at, np.bincount(where, minlength=len(key)), n_rows),
        np.bincount(at, (-share * np.log2(share))[order], n_rows),
    )


def _largest(row: Ints, values: NDArray[Any], n_rows: int) -> NDArray[Any]:
    """Return the largest value of each row, zero where there is none."""
    result = np.zeros(n_rows, dtype=values.dtype)
    np.maximum.at(result, row, values)
    return result


def _attack_texts(
    row: Ints, label: Ints, n: Ints, names: list[str], stamps: Ints
) -> NDArray[np.str_]:
    """Return ``name:count;...`` of every row, most frequent first, then by name."""
    key, where = np.unique(row * len(names) + label, return_inverse=True)
    groups = zip(key.tolist(), np.bincount(where, n, len(key)).tolist(), strict=True)
    attacks: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
    for k, count in groups:
        attacks[k // len(names)].append((-int(count), names[k % len(names)]))
    texts = [";".join(f"{name}:{-n}" for n, name in sorted(attacks[i])) for i in range(len(stamps))]
    return np.array(texts, dtype=np.str_)
