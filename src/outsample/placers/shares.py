"""How much each placer of a blend counts: convex shares of least mean error, and when they pay.

Errors are those of training rows left out, ``e_ij = f_j(x_i) - y_i``, of J placers on s rows in d
coordinates, over the size of the map: arrays (J, s, d). The shares w are not negative and sum to
one, so that the errors of the blend are ``sum_j w_j e_ij`` (stacking: Wolpert 1992, Breiman 1996).
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

# A blend has at most so many parts; each of them lowers the error by this share at least, and the
# one that comes first wins among those as good to TIE.
MOST_PARTS = 3
LEAST_STEP = 0.002
TIE = 1e-3
# It takes at most so many times as long as its first part, search included; or so many
# microseconds a point, which is little enough not to matter.
MOST_EFFORT = 3.0
QUICK = 100.0
# It pays if its mean error or its typical one is lower by this share, and neither is higher by
# more than its standard error, on rows that did not choose the parts and shares: one fold of FOLDS
# at a time. The constants were chosen on maps of the digits and of an s-curve.
LEAST_GAIN = 0.005
FOLDS = 5
# Fewer rows than this tell nothing about shares.
LEAST_ROWS = 64
# Mean errors below this, over the size of the map, are nothing but rounding.
ROUNDING = 1e-13
# Shares are whole numbers of these, so that they sum to one exactly.
GRAINS = 1024
# Reweighted solves for the shares of a blend, until these move less than that; and solves for the
# share of one more part.
STEPS, SETTLED, QUICK_STEPS = 50, 3e-5, 6
# Lengths below this share of the mean one count as this: weights are one over them.
FLOOR = 1e-3
# Squares are summed with this beside their mean, so that placers that agree share alike.
RIDGE = 1e-14


class Efforts(NamedTuple):
    """Microseconds that each placer takes for a point (J,), and the search (J,) all can share."""

    placers: np.ndarray
    searches: np.ndarray

    def too_long(self, parts: list[int], first: int) -> np.ndarray:
        """Which placers (J,) would make a blend of these parts take too long."""
        search = np.maximum(self.searches[parts].max(), self.searches)
        together = search + self.placers[parts].sum() + self.placers
        alone = self.searches[first] + self.placers[first]
        return together > max(MOST_EFFORT * alone, QUICK)


class Mixture(NamedTuple):
    """Parts of a blend, the heaviest first, their shares, and its errors (s,) on the rows."""

    parts: list[int]
    shares: list[float]
    lengths: np.ndarray


def mixture(errors: np.ndarray, efforts: Efforts, first: int) -> Mixture | None:
    """Find the blend of a placer with a few of the others; None if it does not pay."""
    s = errors.shape[1]
    if s < LEAST_ROWS:
        return None
    alone = _lengths(errors[first])
    found = _grown(errors, efforts, first)
    if alone.mean() <= ROUNDING or len(found.parts) == 1:
        return None
    unseen, fold = np.empty(s), np.arange(s) % FOLDS
    for held in range(FOLDS):
        parts, shares, _ = _grown(errors[:, fold != held], efforts, first)
        unseen[fold == held] = _lengths(_mixed(errors[parts][:, fold == held], np.array(shares)))
    return found if _pays(alone, unseen) else None


def team(errors: np.ndarray, efforts: Efforts, first: int) -> list[int]:
    """Return the placers that blend best with the first one, it among them."""
    return _grown(errors, efforts, first).parts if errors.shape[1] >= LEAST_ROWS else [first]


def convex_shares(errors: np.ndarray) -> np.ndarray:
    """Shares (J,), not negative, of sum one, with the least ``sum_i |sum_j w_j e_ij|``.

    Least squares again and again, row i weighted by one over the length of its error.

    >>> convex_shares(np.array([[[1.0], [3.0]], [[-1.0], [-3.0]]]))
    array([0.5, 0.5])
    """
    J, s, _ = errors.shape
    products = np.einsum("jsd,ksd->jks", errors, errors).reshape(J * J, s)
    pull, shares = np.ones(s), np.zeros(J)
    for _ in range(STEPS):
        before, shares = shares, _least_squares((products @ pull).reshape(J, J))
        if np.abs(shares - before).max() < SETTLED:
            break
        squares = np.outer(shares, shares).ravel() @ products
        pull = _pull(np.sqrt(np.maximum(squares, 0.0)))
    return shares


def _least_squares(gram: np.ndarray) -> np.ndarray:
    """Shares (J,) with the least ``w' gram w``: all parts, else the best of smaller supports."""
    J = len(gram)
    gram = gram / (np.trace(gram) or 1.0) + RIDGE * np.eye(J)
    shares, least = np.eye(J)[0], np.inf
    for size in range(J, 0, -1):
        for support in combinations(range(J), size):
            block = gram[np.ix_(support, support)]
            solved = np.linalg.solve(block, np.ones(size))
            total = solved.sum()  # one over the least value
            if (solved >= 0).all() and total * least > 1:
                shares, least = np.zeros(J), 1 / total
                shares[list(support)] = solved / total
        if size == J and least < np.inf:
            break
    return shares


def _grown(errors: np.ndarray, efforts: Efforts, first: int) -> Mixture:
    """Add to the first placer, one at a time, the one that lowers the error of the blend most."""
    parts, shares, mixed = [first], np.ones(1), errors[first]
    while len(parts) < min(MOST_PARTS, len(errors)):
        least = _lengths(mixed).mean()
        with_one_more = _errors_beside(mixed, errors)
        with_one_more[parts] = np.inf
        with_one_more[efforts.too_long(parts, first)] = np.inf
        best = int(np.argmax(with_one_more <= with_one_more.min() * (1 + TIE)))
        if not with_one_more[best] < least * (1 - LEAST_STEP):
            break
        parts.append(best)
        shares = convex_shares(errors[parts])
        mixed = _mixed(errors[parts], shares)
    grains = np.round(shares * GRAINS)
    grains[grains.argmax()] += GRAINS - grains.sum()
    order = [at for at in np.argsort(-grains, kind="stable") if grains[at] > 0]
    parts, shares = [parts[at] for at in order], grains[order] / GRAINS
    return Mixture(parts, shares.tolist(), _lengths(_mixed(errors[parts], shares)))


def _errors_beside(mixed: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Mean errors (J,) of a blend (s, d) with each of the placers, at the best share of it."""
    apart = errors - mixed
    along, squared = (apart * mixed).sum(axis=2), (apart**2).sum(axis=2)
    own = (mixed**2).sum(axis=1)
    lengths = np.broadcast_to(np.sqrt(own), along.shape)
    for _ in range(QUICK_STEPS):
        pull = _pull(lengths)
        total = (pull * squared).sum(axis=1, keepdims=True)
        share = -(pull * along).sum(axis=1, keepdims=True) / np.where(total > 0, total, 1.0)
        share = np.clip(share, 0.0, 1.0)
        lengths = np.sqrt(np.maximum(own + share * (2 * along + share * squared), 0.0))
    return lengths.mean(axis=1)


def _pays(alone: np.ndarray, blended: np.ndarray) -> bool:
    """Whether errors (s,) of the blend are lower than those of one placer by enough."""
    gains, doubts = [], []
    for power in (1.0, 0.5):  # the mean error, and the typical one: a mean of roots
        before, after = alone**power, blended**power
        gains.append((before - after).mean() / before.mean() / power)
        doubts.append((before - after).std() / len(alone) ** 0.5 / before.mean() / power)
    certain = all(gain > -doubt for gain, doubt in zip(gains, doubts, strict=True))
    return certain and max(gains) > LEAST_GAIN


def _mixed(errors: np.ndarray, shares: np.ndarray) -> np.ndarray:
    return np.einsum("j,jsd->sd", shares, errors)


def _lengths(errors: np.ndarray) -> np.ndarray:
    return np.sqrt((errors**2).sum(axis=-1))


def _pull(lengths: np.ndarray) -> np.ndarray:
    """One over lengths (..., s), over no more than the inverse of a small share of their mean."""
    return 1.0 / np.maximum(lengths, FLOOR * lengths.mean(axis=-1, keepdims=True) + 1e-300)
