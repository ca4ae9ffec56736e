"""Place new points into an existing map, with error bars and p-values.

Public names are imported on first use, so that ``import outsample`` is fast: it imports neither
scikit-learn nor numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outsample.comparison.compare import compare
    from outsample.engines.batch_placer import BatchPlacer
    from outsample.engines.batches import place_batches
    from outsample.estimators.diffusion_maps import DiffusionMaps
    from outsample.estimators.extended import Extended
    from outsample.estimators.harmonics import GeometricHarmonics
    from outsample.estimators.multiscale import MultiscaleExtension
    from outsample.estimators.novelty_detector import NoveltyDetector
    from outsample.estimators.nystroem import NystroemExtension
    from outsample.estimators.pca_extension import PCAExtension
    from outsample.estimators.pyramids import LaplacianPyramids
    from outsample.files.layout import ModelFileError
    from outsample.files.model_file import load, save
    from outsample.placers.blend import Blend
    from outsample.placers.diffusion import Diffusion
    from outsample.placers.kriging import Correlated
    from outsample.placers.neighbor_loss import NeighborLoss
    from outsample.placers.weighting import GaussianDistance, InverseDistance
    from outsample.preparation.prepared_model import PreparedModel
    from outsample.records import Placement
    from outsample.streaming.discoveries import OnlineDiscoveries
    from outsample.streaming.extension import StreamingExtension

__version__ = "0.1.0"

_MODULES = {
    "BatchPlacer": "outsample.engines.batch_placer",
    "Blend": "outsample.placers.blend",
    "Correlated": "outsample.placers.kriging",
    "Diffusion": "outsample.placers.diffusion",
    "GaussianDistance": "outsample.placers.weighting",
    "InverseDistance": "outsample.placers.weighting",
    "DiffusionMaps": "outsample.estimators.diffusion_maps",
    "Extended": "outsample.estimators.extended",
    "GeometricHarmonics": "outsample.estimators.harmonics",
    "LaplacianPyramids": "outsample.estimators.pyramids",
    "MultiscaleExtension": "outsample.estimators.multiscale",
    "ModelFileError": "outsample.files.layout",
    "NoveltyDetector": "outsample.estimators.novelty_detector",
    "NystroemExtension": "outsample.estimators.nystroem",
    "PCAExtension": "outsample.estimators.pca_extension",
    "NeighborLoss": "outsample.placers.neighbor_loss",
    "OnlineDiscoveries": "outsample.streaming.discoveries",
    "Placement": "outsample.records",
    "PreparedModel": "outsample.preparation.prepared_model",
    "place_batches": "outsample.engines.batches",
    "StreamingExtension": "outsample.streaming.extension",
    "compare": "outsample.comparison.compare",
    "load": "outsample.files.model_file",
    "save": "outsample.files.model_file",
}

__all__ = [
    "BatchPlacer",
    "Blend",
    "Correlated",
    "Diffusion",
    "DiffusionMaps",
    "Extended",
    "GaussianDistance",
    "GeometricHarmonics",
    "InverseDistance",
    "LaplacianPyramids",
    "ModelFileError",
    "MultiscaleExtension",
    "NeighborLoss",
    "NoveltyDetector",
    "NystroemExtension",
    "OnlineDiscoveries",
    "PCAExtension",
    "Placement",
    "PreparedModel",
    "StreamingExtension",
    "compare",
    "load",
    "place_batches",
    "save",
]


if not TYPE_CHECKING:  # with __getattr__, a type checker would accept misspelt names

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module 'outsample' has no attribute {name!r}")
        value = getattr(import_module(_MODULES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
