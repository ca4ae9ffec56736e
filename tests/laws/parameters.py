"""Values for every parameter of every estimator: two that are valid, and one that is not."""

from __future__ import annotations

from typing import Any, NamedTuple

from sklearn.preprocessing import StandardScaler

from outsample import InverseDistance, NystroemExtension, PCAExtension


class Values(NamedTuple):
    """Two valid values, so that one differs from any other, and one that `fit` rejects."""

    first: Any
    second: Any
    invalid: Any


VALUES = {
    "n_neighbors": Values(3, 4, 0),
    "radius": Values(0.7, 0.8, -1.0),
    "weighting": Values("distance", InverseDistance(3.0), "nearest"),
    "order": Values(0, 1, 7),
    "loss": Values("squared", "absolute", "cubic"),
    "curvature": Values(2.0, 3.0, 0.0),
    "tangent_radius": Values(0.7, 0.8, -1.0),
    "tangent_dim": Values(1, 2, 0),
    "lipschitz": Values(2.0, 3.0, -1.0),
    "level": Values(0.7, 0.8, 2.0),
    "metric": Values("cosine", "euclidean", "angle"),
    "index": Values("brute", "kd_tree", "tree"),
    "n_jobs": Values(2, 1, 0),
    "bandwidth": Values(0.3, 0.4, -1.0),
    "n_components": Values(1, 2, 0),
    "condition": Values(1e3, 1e4, 0.0),
    "alpha": Values(0.25, 0.3, 2.0),
    "t": Values(2.0, 3.0, -1.0),
    "stop": Values("tolerance", "auto", "never"),
    "tolerance": Values(0.1, 0.2, -1.0),
    "initial_scale": Values(0.5, 0.6, -1.0),
    "ratio": Values(1.5, 3.0, 0.5),
    "max_levels": Values(2, 3, 0),
    "delta": Values(0.01, 0.02, 2.0),
    "max_scales": Values(2, 3, 0),
    "random_state": Values(1, 2, -1),
    "calibration": Values("split", "leave-one-out", "none"),
    "extension": Values(NystroemExtension(), PCAExtension(n_neighbors=2), object()),
    "embedding": Values(StandardScaler(), StandardScaler(with_std=False), object()),
}


def changes(model):
    """Every parameter of an estimator and of those inside it, with other values for it."""
    for name, value in model.get_params().items():
        values = VALUES[name.split("__")[-1]]
        yield name, value, values._replace(first=_other(value, values))


def _other(value, values):
    return values.second if repr(value) == repr(values.first) else values.first
