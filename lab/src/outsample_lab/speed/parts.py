"""The parts of the benchmark: name, duration and function."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from outsample_lab.bench_files import select_by_name
from outsample_lab.progress import Progress, RunProgress
from outsample_lab.speed.approximate_search import approximate
from outsample_lab.speed.exact_search import against_regressors, over_the_search
from outsample_lab.speed.fits import default_fits, fixed_fits, wide_fits
from outsample_lab.speed.growth_exponents import growth
from outsample_lab.speed.many_machines import by_dask, cold_start, stream_memory
from outsample_lab.speed.more_points import more_points
from outsample_lab.speed.novelty_speed import novelty
from outsample_lab.speed.other_transforms import transforms
from outsample_lab.speed.sizes import Ground, Sizes
from outsample_lab.speed.speed_result import PartResult
from outsample_lab.speed.sweep import one_row, over_sizes, peak_memory


class Part(NamedTuple):
    """A part of the benchmark."""

    name: str  # For the command line
    title: str
    run: Callable[[Ground], PartResult]
    seconds: float  # Rough cost of a full run on two idle cores, for the time left
    quick: bool = True  # True if the quick run includes it


PARTS: tuple[Part, ...] = (
    Part("exact", "Placing over the bare search", over_the_search, 100),
    Part("regressors", "Compared with regressors", against_regressors, 150),
    Part("approximate", "Approximate search", approximate, 150),
    Part("transforms", "Compared with other transforms", transforms, 150, False),
    Part("row", "One row", one_row, 5),
    Part("fits", "Fits with fixed parameters", fixed_fits, 60),
    Part("defaults", "Fits with all defaults", default_fits, 300, False),
    Part("wide", "Many columns", wide_fits, 120, False),
    Part("novelty", "Novelty detection", novelty, 60),
    Part("stream", "Memory of a stream", stream_memory, 300),
    Part("dask", "Many processes", by_dask, 60, False),
    Part("errors", "Error by number of points", more_points, 600, False),
    Part("sizes", "From small to large", over_sizes, 400),
    Part("growth", "Growth of the time with k and d", growth, 120),
    Part("memory", "Memory", peak_memory, 200, False),
    Part("cold", "Cold start", cold_start, 60, False),
)


def select(names: Sequence[str], quick: bool) -> list[Part]:
    """Return the parts whose names are, or start with, those listed; all without a list."""
    listed = select_by_name("part", PARTS, names, lambda part: {part.name})
    return [part for part in listed if names or part.quick or not quick]


def run_parts(
    parts: Sequence[Part],
    sizes: Sizes,
    folder: Path | None,
    progress: Progress | None = None,
    on_part: Callable[[PartResult], None] | None = None,
) -> list[PartResult]:
    """Run the parts one after the other; a part that fails is reported and skipped."""
    run_progress, results = RunProgress(progress, {part.name: part.seconds for part in parts}), []
    for part in parts:
        tell = partial(_tell, run_progress.part(part.name), part.name)
        tell(0.0, "begins")
        begin = perf_counter()
        try:
            result = part.run(Ground(sizes, folder, tell))
        except Exception as fault:  # the other parts continue
            words = " ".join(f"{type(fault).__name__}: {fault}".split())
            result = PartResult(part.name, part.title, [], [], [], [], skipped=f"failed, {words}")
        results.append(result._replace(seconds=perf_counter() - begin))
        if on_part is not None:
            on_part(results[-1])
    run_progress.finish()
    return results


def _tell(tell: Progress, name: str, share: float, next_step: str) -> None:
    tell(share, f"{name}: {next_step}")
