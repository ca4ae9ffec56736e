"""Sizes of a full run and of a quick run, and the arguments of a part."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from outsample_lab.progress import Progress


class Sizes(NamedTuple):
    """Sizes of a run; numbers of training points unless stated otherwise."""

    repeats: int = 7  # Turns of a comparison, or as many as begin within `budget` seconds
    budget: float = 20.0
    batch: int = 10_000  # New rows
    exact: int = 50_000
    sweep: Sequence[int] = (1000, 10_000, 50_000, 200_000, 1_000_000)
    single: int = 10_000
    single_rows: int = 2000
    peers: int = 10_000
    peer_rows: int = 1000
    spectral: int = 2000  # For Isomap and LLE
    approximate: Sequence[int] = (10_000, 50_000, 200_000, 1_000_000)
    fit: int = 200_000
    umap_fits: Sequence[int] = (2000, 10_000, 100_000)
    growth: int = 10_000
    k: Sequence[int] = (5, 10, 20, 40, 80)
    d: Sequence[int] = (1, 2, 4, 8, 16, 32)
    novelty: int = 50_000
    wide: Sequence[int] = (1000, 2000)  # For many map columns, for many columns of points
    map_columns: Sequence[int] = (10, 50, 100, 200)
    columns: Sequence[int] = (784, 2000, 5000)
    errors: Sequence[int] = (1000, 2000, 4000, 8000, 8200, 16_000, 32_000, 50_000)
    held_out: int = 2000
    stream: Sequence[int] = (1_000_000, 10_000_000)  # Rows placed from a memory map
    stream_chunk: int = 50_000
    many: int = 1_000_000  # Rows placed by Dask
    cold: int = 10_000
    umap: bool = True  # Whether UMAP computes the map with discontinuities; else it is synthetic


FULL = Sizes()
QUICK = Sizes(
    repeats=3, budget=2.0, batch=1000, exact=4000, sweep=(500, 2000), single=2000, single_rows=100,
    peers=1000, peer_rows=100, spectral=500, approximate=(1000, 4000), fit=5000, umap_fits=(500,),
    growth=1000, k=(5, 10, 20), d=(1, 2, 4), novelty=2000, wide=(200, 200), map_columns=(5, 10),
    columns=(50, 200), errors=(250, 500, 1000), held_out=200, stream=(5000, 20_000),
    stream_chunk=2000, many=5000, cold=500, umap=False,
)  # fmt: skip


class Ground(NamedTuple):
    """Arguments of a part."""

    sizes: Sizes
    folder: Path | None  # Of data
    tell: Progress


def absent(*modules: str) -> str:
    """Return which of these packages are not installed; empty if all are."""
    missing = [PACKAGES.get(module, module) for module in modules if find_spec(module) is None]
    return f"{', '.join(missing)} is not installed" if missing else ""


PACKAGES = {"umap": "umap-learn", "faiss": "faiss-cpu", "distributed": "dask[distributed]"}
JOBS = 2  # Number of threads unless stated otherwise
