"""Methods with their own transform, and ours on the maps that they made."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.manifold import Isomap, LocallyLinearEmbedding

from outsample import PCAExtension
from outsample_lab.speed import made_up
from outsample_lab.speed.made_up import TRAFFIC, Cloud
from outsample_lab.speed.sizes import JOBS, Ground, absent
from outsample_lab.speed.speed_result import PartResult, Target, Timing
from outsample_lab.speed.stopwatch import take_turns

Array = NDArray[np.float64]
Fitted = tuple[Array, Callable[[Array], Any]]  # A map, and a function that places new rows


class Rival(NamedTuple):
    """A method with its own transform."""

    module: str
    make: Callable[[Array], Fitted]
    asked: float | None  # Maximum of our time over its time; None: no target
    spectral: bool = False  # Only small maps


def _umap(X: Array) -> Fitted:
    import umap

    reducer: Any = umap.UMAP(n_jobs=JOBS).fit(X)
    return np.asarray(reducer.embedding_, dtype=np.float64), reducer.transform


def _opentsne(X: Array) -> Fitted:
    from openTSNE import TSNE

    made = TSNE(n_jobs=JOBS, random_state=0).fit(X)
    return np.array(made, dtype=np.float64), made.transform


def _isomap(X: Array) -> Fitted:
    made = Isomap(n_jobs=JOBS).fit(X)
    return np.asarray(made.embedding_), made.transform


def _lle(X: Array) -> Fitted:
    made = LocallyLinearEmbedding(n_neighbors=12, n_jobs=JOBS, random_state=0).fit(X)
    return np.asarray(made.embedding_), made.transform


RIVALS: Mapping[str, Rival] = {
    "UMAP.transform": Rival("umap", _umap, 0.1),
    "openTSNE transform": Rival("openTSNE", _opentsne, 0.1),
    "Isomap.transform": Rival("sklearn", _isomap, None, True),
    "LocallyLinearEmbedding.transform": Rival("sklearn", _lle, None, True),
}


def transforms(ground: Ground) -> PartResult:
    """Time the transform of each method, and ours with all defaults on its map."""
    sizes, targets, timings = ground.sizes, [], []
    words = [made_up.words(TRAFFIC), "Ours has all defaults and the other method's map."]
    for at, (name, rival) in enumerate(RIVALS.items()):
        ground.tell(at / len(RIVALS), name)
        n = sizes.spectral if rival.spectral else sizes.peers
        title = f"all defaults, n = {n:,}, {sizes.peer_rows:,} rows, against {name}"
        reason = absent(rival.module)
        if reason:
            words.append(f"{name} was skipped: {reason}.")
            if rival.asked is not None:
                targets.append(Target(title, rival.asked, skipped=reason))
            continue
        seconds, lines, selected_model = _against(ground, name, rival, n)
        timings += lines
        words.append(f"On the map of {name} our extension selected {selected_model}.")
        if rival.asked is not None:
            targets.append(seconds._replace(work=title))
    return PartResult("transforms", "Compared with other transforms", words, targets, timings, [])


def _against(ground: Ground, name: str, rival: Rival, n: int) -> tuple[Target, list[Timing], str]:
    sizes, data = ground.sizes, _points(ground, n)
    Y, transform = rival.make(data.X)
    ours = PCAExtension(n_jobs=JOBS).fit(data.X, Y)
    mine = f"ours, on the map of {name}"
    works = {name: partial(transform, data.Q), mine: partial(ours.transform, data.Q)}
    where = f"n = {n:,}, D = {TRAFFIC.D}, d = 2, {sizes.peer_rows:,} rows"
    times = take_turns(where, works, sizes.repeats, sizes.budget)
    target = times.target("", rival.asked or 1.0, mine, name)
    return target, times.timings(), f"{ours.weighting_}"


def _points(ground: Ground, n: int) -> Cloud:
    return made_up.cloud(TRAFFIC, n, ground.sizes.peer_rows)
