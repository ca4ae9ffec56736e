"""Place new points into an existing map, and say how far to trust the place.

The names below are loaded when first used, so that ``import outsample`` costs nothing: neither
scikit-learn nor numba is imported by it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outsample.comparison import compare
    from outsample.diffusion import DiffusionMaps
    from outsample.extended import Extended
    from outsample.harmonics import GeometricHarmonics
    from outsample.multiscale import MultiscaleExtension
    from outsample.novelty import NoveltyDetector
    from outsample.nystroem import NystroemExtension
    from outsample.pca_extension import PCAExtension
    from outsample.pyramids import LaplacianPyramids
    from outsample.records import Placement

__version__ = "0.1.0"

_HOMES = {
    "DiffusionMaps": "outsample.diffusion",
    "Extended": "outsample.extended",
    "GeometricHarmonics": "outsample.harmonics",
    "LaplacianPyramids": "outsample.pyramids",
    "MultiscaleExtension": "outsample.multiscale",
    "NoveltyDetector": "outsample.novelty",
    "NystroemExtension": "outsample.nystroem",
    "PCAExtension": "outsample.pca_extension",
    "Placement": "outsample.records",
    "compare": "outsample.comparison",
}

__all__ = [
    "DiffusionMaps",
    "Extended",
    "GeometricHarmonics",
    "LaplacianPyramids",
    "MultiscaleExtension",
    "NoveltyDetector",
    "NystroemExtension",
    "PCAExtension",
    "Placement",
    "compare",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'outsample' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
