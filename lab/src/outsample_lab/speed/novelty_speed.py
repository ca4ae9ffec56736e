"""Time of the detector relative to the neighbour search that it needs."""

from functools import partial

from outsample import NoveltyDetector
from outsample.neighbors.index import NeighborIndex
from outsample.trust.abnormality import neighbors_needed
from outsample_lab.speed import made_up
from outsample_lab.speed.made_up import TRAFFIC
from outsample_lab.speed.sizes import JOBS, Ground
from outsample_lab.speed.speed_result import PartResult
from outsample_lab.speed.stopwatch import Work, take_turns


def novelty(ground: Ground) -> PartResult:
    """Time fit and p-values against the same search alone."""
    sizes = ground.sizes
    data = made_up.cloud(TRAFFIC, sizes.novelty, sizes.batch)
    detector = NoveltyDetector(n_jobs=JOBS).fit(data.X)
    k = neighbors_needed(len(data.X)) + 1
    index = detector.model_.index

    def search_all() -> None:
        NeighborIndex(data.X, n_jobs=JOBS).nearest(data.X, k + 1)

    works: dict[str, Work] = {
        "index and search of all training points": search_all,
        "NoveltyDetector().fit": partial(NoveltyDetector(n_jobs=JOBS).fit, data.X),
        "search of new rows": partial(index.nearest, data.Q, k),
        "NoveltyDetector.p_values": partial(detector.p_values, data.Q),
    }
    where = f"n = {sizes.novelty:,}, D = {TRAFFIC.D}, {sizes.batch:,} rows"
    times = take_turns(where, works, sizes.repeats, 2 * sizes.budget)
    search, fit, near, judge = works
    targets = [
        times.target("NoveltyDetector: fit, over its own search", 2.0, fit, search),
        times.target("NoveltyDetector: p_values, over its own search", 2.0, judge, near),
    ]
    words = [made_up.words(TRAFFIC), f"The detector uses {k} neighbours."]
    return PartResult("novelty", "Novelty detection", words, targets, times.timings(), [])
