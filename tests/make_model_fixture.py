"""Write the model file of the current format version for the tests, with its results.

Run once per format version: ``python tests/make_model_fixture.py``. Old files are never rewritten.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import outsample
import recording
from outsample import NoveltyDetector, PCAExtension
from outsample.files.model_file import FORMAT_VERSION


def main() -> None:
    path = Path(__file__).parent / "data" / f"model-v{FORMAT_VERSION}.outsample"
    if path.exists():
        raise SystemExit(f"{path} exists already; a version has one fixture")
    X = np.random.default_rng(7).normal(size=(60, 3))
    Y = np.column_stack([X[:, 0] + X[:, 1] ** 2, np.sin(X[:, 2])])
    extension = PCAExtension(weighting="tangent", n_neighbors=8, order=1, loss="squared")
    detector = NoveltyDetector(extension).fit(X, Y)
    rows = {"id": np.arange(60), "name": [f"row {at}" for at in range(60)]}
    outsample.save(detector, path, columns=rows, map_names=["east", "north"])
    Q = np.random.default_rng(8).normal(size=(10, 3))
    answers = detector.place(Q)._asdict() | {"p_values": detector.p_values(Q)}
    machine = np.array(recording.machine())
    np.savez_compressed(path.with_suffix(".npz"), Q=Q, machine=machine, **answers)
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
