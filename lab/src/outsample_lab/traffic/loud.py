"""Minutes in which an attack is loud: visible in the counts.

There are two rules, because figures were published for each: Fig. 7.6 of `outsample reproduce`
counts attacks of any kind, `outsample bench novelty` only floods and fast scans.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]

LOUD_CONNECTIONS = 100
FLOODS_AND_SCANS = ("smurf", "pod", "teardrop", "neptune", "satan", "ipsweep")


def loud_by_any_attack(n_attack: NDArray[np.int64]) -> Mask:
    """Return a mask (q,) of minutes with at least 100 connections of attacks."""
    return n_attack >= LOUD_CONNECTIONS


def loud_by_flood_or_scan(attacks: Iterable[str]) -> Mask:
    """Return a mask (q,) of minutes with more than 100 connections of floods and fast scans.

    >>> loud_by_flood_or_scan(["pod:98;phf:7;smurf:3", "pod:90;phf:99", ""]).tolist()
    [True, False, False]
    """
    counts = []
    for words in attacks:
        pairs = (attack.rpartition(":") for attack in words.split(";"))
        counts.append(sum(int(count) for name, _, count in pairs if name in FLOODS_AND_SCANS))
    return np.array(counts) > LOUD_CONNECTIONS
