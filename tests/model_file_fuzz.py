"""Broken and hostile model files, by number; for `test_model_file_fuzz.py`.

``python tests/model_file_fuzz.py FOLDER START STOP`` tries the mutants of these numbers of the
files in a folder, in a process that may crash, and prints a line for each that escapes.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import random
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pytest import MonkeyPatch
from scipy import sparse

import outsample
from laws.subjects import sparse_stays
from outsample import (
    Blend,
    Correlated,
    Diffusion,
    DiffusionMaps,
    Extended,
    GaussianDistance,
    GeometricHarmonics,
    InverseDistance,
    LaplacianPyramids,
    ModelFileError,
    MultiscaleExtension,
    NeighborLoss,
    NoveltyDetector,
    NystroemExtension,
    PCAExtension,
    StreamingExtension,
)
from outsample.files import layout, model_file
from outsample.files.model_file import describe, read_columns
from outsample.placers.local import LocalPlacer

# A mutant that takes so many seconds has escaped, and so has one that takes so much memory.
MOST_SECONDS, MOST_BYTES = 30, 2e8
TEXTS = ["learnt"] * 20 + ["parameters"] * 4 + ["summary", "columns", "class", "sha256"]
NUMBERS = [
    0, 1, -1, 2, 7, 23, 24, 25, 10**6, 2**31, 2**63, -(2**63), 10**30, 0.0, -0.0, 0.5, -0.5, 1e308,
    -1e308, 1e-320, 1e300, 1e-300, 1.0, 3.7,
]  # fmt: skip
OTHERS: list[Any] = [
    None, True, False, "", "auto", "kd_tree", "brute", "cosine", "PCAExtension", "LocalPlacer",
    "x" * 1000, [], {}, [[[[[[[[[[]]]]]]]]]], {"float": "nan"}, {"float": "inf"},
    {"float": "-inf"}, {"tuple": []}, {"dict": {}}, {"scalar": "float32", "value": 1e300},
    {"scalar": "int64", "value": 2**62}, {"scalar": "object", "value": 1},
]  # fmt: skip
ENTRIES = [0, 1, -1, 2, 24, 2**40, -(2**40), np.nan, np.inf, -np.inf, 1e308, 1e-310, 0.5, 1e200]
DTYPES = ["<f8", "<i8", "<f4", "<i4", "|u1", "|b1", "<u8", "<i2"]


BLEND = Blend(
    (
        LocalPlacer(InverseDistance(2), 6, 0, "squared", 1),
        Diffusion(1.0),
        LocalPlacer(Correlated("linear", 1.0, 0.0), 9, 1, "squared", 2),
    ),
    (0.5, 0.3, 0.2),
)


class Identity:
    """An embedding that is no estimator of anybody's."""

    def fit_transform(self, X: Any) -> np.ndarray:
        return np.asarray(X)[:, :2] * 2.0


def models() -> dict[str, Any]:
    """Small fitted models, of every class that a file can hold."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 3))
    X[20:] = X[:4]
    Y = np.column_stack([X[:, 0] + X[:, 1] ** 2, X[:, 2]])
    many = rng.normal(size=(70, 3))  # enough for error bars with a scale of their own
    larger = many, np.column_stack([many[:, 0] + many[:, 1] ** 2, many[:, 2]])
    thin = sparse.csr_matrix(np.round(X, 1))
    fixed = {"n_neighbors": 6, "order": 0, "loss": "squared"}
    with sparse_stays():
        thin_models = {
            "sparse": PCAExtension(weighting="distance", metric="cosine", **fixed).fit(thin, Y),
            "harmonics": GeometricHarmonics().fit(thin, Y),
            "sparse stream": StreamingExtension(
                NoveltyDetector(PCAExtension(weighting="distance", **fixed)).fit(thin, Y), guard=0.0
            ),
        }
    found = {
        "auto": PCAExtension().fit(X, Y),
        "local tangent": PCAExtension(weighting="local_tangent", **fixed).fit(X, Y),
        "split tangent": PCAExtension(weighting="split_tangent", **fixed).fit(X, Y),
        "process": PCAExtension(weighting=Correlated("matern52"), n_neighbors=24).fit(X, Y),
        "kriging": PCAExtension(weighting=Correlated("affine"), n_neighbors=6).fit(X, Y),
        "blend": PCAExtension(weighting=BLEND).fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y),
        "gaussian": PCAExtension(weighting=GaussianDistance(np.float32(0.4)), order=0).fit(*larger),
        "neighbor loss": PCAExtension(weighting=NeighborLoss(3.0)).fit(X, Y),
        "diffusion": PCAExtension(weighting=Diffusion(1.0)).fit(X, Y),
        "polynomial": PCAExtension(
            weighting="distance", n_neighbors=12, order=2, loss="absolute"
        ).fit(X, Y),
        "ball": PCAExtension(
            weighting="tangent", radius=1.0, tangent_radius=0.8, order=0, loss="squared"
        ).fit(X, Y),
        "sparse": thin_models["sparse"],
        "nystroem": NystroemExtension().fit(X, Y),
        "harmonics": thin_models["harmonics"],
        "pyramids": LaplacianPyramids().fit(X, Y),
        "multiscale": MultiscaleExtension().fit(X, Y),
        "walk": DiffusionMaps(n_neighbors=6).fit(X),
        "fixed walk": DiffusionMaps(bandwidth=4.0, n_neighbors=6).fit(X),
        "extended": Extended(Identity()).fit(X),
        "detector": NoveltyDetector(PCAExtension(weighting="distance", **fixed)).fit(X, Y),
        "split detector": NoveltyDetector(calibration="split").fit(X),
        "stream": StreamingExtension(
            NoveltyDetector(PCAExtension(weighting="local_tangent", **fixed)).fit(X, Y), window=30
        ),
        "bare stream": StreamingExtension(PCAExtension(weighting=BLEND).fit(X, Y), window=20),
        "sparse stream": thin_models["sparse stream"],
    }
    with MonkeyPatch.context() as patch:
        patch.setattr("outsample.placers.neighbor_loss.MAX_FACTORED_ROWS", 10)
        found["repulsion field"] = PCAExtension(weighting=NeighborLoss(3.0)).fit(X, Y)
    found["stream"].learn(many[:40])
    found["bare stream"].learn(many[:8])
    found["sparse stream"].learn(sparse.csr_matrix(np.round(many[:8], 1)))
    return found


def write_all(folder: Path) -> list[Path]:
    """Save the models, with columns and names."""
    rows = {"id": np.arange(24), "label": [f"row {at}" for at in range(24)]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model in models().items():
            columns = {} if name == "gaussian" else rows
            outsample.save(model, folder / f"{name}.outsample", columns=columns)
    return sorted(folder.glob("*.outsample"))


def answers(model: Any) -> dict[str, np.ndarray]:
    """Everything that a model answers to a few points."""
    X = np.random.default_rng(1).normal(size=(6, 3))
    X[5] *= 30
    found = {}
    if hasattr(model, "transform"):
        found["transform"] = model.transform(X)
        found["one"] = model.transform(X[:1])
    if hasattr(model, "place") and not (
        isinstance(model, NoveltyDetector) and model.extension_ is None
    ):
        found |= model.place(X)._asdict()
    if isinstance(model, NoveltyDetector):
        found["p_values"] = model.p_values(X)
        found["score"] = model.decision_function(X)
        told = model.explain(X[:2])
        found["told"] = np.array([one.abnormality for one in told])
        assert all(str(one) for one in told)
    if isinstance(model, StreamingExtension):
        learned = model.learn(X)
        found["accepted"] = learned.accepted
        found |= {f"then {name}": part for name, part in model.place(X)._asdict().items()}
        assert str(model.drift_)
    assert repr(model) and model.get_params() is not None
    return {name: np.asarray(values) for name, values in found.items()}


# Mutants of the bytes: always refused.


def broken_bytes(data: bytes, rng: random.Random) -> bytes:
    mutant = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 3])):
        at, other = rng.randrange(len(mutant)), rng.randrange(len(mutant))
        start, stop = min(at, other), max(at, other) + 1
        if rng.random() < 0.3:
            at = rng.randrange(min(len(mutant), 64))
        match rng.randrange(7):
            case 0:
                mutant[at] ^= 1 << rng.randrange(8)
            case 1:
                mutant[at] = rng.randrange(256)
            case 2:
                del mutant[start:]
            case 3:
                del mutant[start:stop]
            case 4:
                mutant[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 20)))
            case 5:
                mutant[start:start] = mutant[start:stop]
            case 6:
                mutant[start:stop] = mutant[start:stop][::-1]
        if not mutant:
            break
    return bytes(mutant)


# Mutants that know the format and put the checksums right again.


def hostile(data: bytes, rng: random.Random) -> bytes:
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    texts = header.pop("__metadata__")
    arrays = {
        name: np.frombuffer(
            data[8 + length + told["data_offsets"][0] : 8 + length + told["data_offsets"][1]],
            layout.DTYPES[told["dtype"]],
        ).reshape(told["shape"]).copy()
        for name, told in header.items()
    }  # fmt: skip
    sums = None
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        if arrays and rng.random() < 0.45:
            hostile_array(arrays, rng)
        else:
            name = rng.choice(TEXTS)
            if name == "sha256":
                sums = {key: rng.choice(["", "0" * 64]) for key in arrays}
            elif name == "class":
                texts[name] = rng.choice([*outsample.__all__, "LocalPlacer", "", "os.system"])
            else:
                texts[name] = json.dumps(hostile_tree(json.loads(texts[name]), arrays, rng))
    if rng.random() < 0.08:
        return hostile_header(texts, arrays, rng)
    return written(texts, arrays, sums)


def written(texts: dict[str, str], arrays: dict[str, np.ndarray], sums: Any = None) -> bytes:
    """Bytes of a file with right checksums."""
    kept = {key: text for key, text in texts.items() if key not in ("sha256", "header_sha256")}
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    sums = sums or {name: layout.digest(array) for name, array in arrays.items()}
    names = sorted(arrays, key=lambda name: -arrays[name].itemsize)
    header: dict[str, Any] = {}
    at = 0
    for name in names:
        place = [at, at + arrays[name].nbytes]
        kind = layout.NAMES[arrays[name].dtype]
        header[name] = {"dtype": kind, "shape": list(arrays[name].shape), "data_offsets": place}
        at = place[1]
    return sealed(header, kept | {"sha256": json.dumps(sums)}, [arrays[name] for name in names])


def sealed(header: Any, texts: dict[str, str], arrays: list[np.ndarray]) -> bytes:
    texts = texts | {"header_sha256": "0" * 64}
    raw = json.dumps({"__metadata__": texts, **header}, separators=(",", ":")).encode()
    raw += b" " * (-(len(raw) + 8) % 64)
    own = hashlib.sha256(raw).hexdigest().encode()
    raw = raw.replace(b'"header_sha256":"' + b"0" * 64, b'"header_sha256":"' + own)
    return len(raw).to_bytes(8, "little") + raw + b"".join(array.tobytes() for array in arrays)


def hostile_header(texts: dict[str, str], arrays: dict[str, np.ndarray], rng: Any) -> bytes:
    """A header whose arrays overlap, are huge, negative, elsewhere or nothing at all."""
    data = written(texts, arrays)
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    texts = header.pop("__metadata__")
    texts.pop("header_sha256")
    header = hostile_tree(header, arrays, rng)
    if not isinstance(header, dict):
        header = {"a": header}
    body = np.frombuffer(data[8 + length :], np.uint8)
    return sealed(header, texts, [body])


def hostile_array(arrays: dict[str, np.ndarray], rng: random.Random) -> None:
    name = rng.choice(sorted(arrays))
    array = arrays[name]
    match rng.randrange(9):
        case 0 | 1 | 2:
            if array.size:
                flat = array.reshape(-1)
                for _ in range(rng.choice([1, 1, 5])):
                    with np.errstate(all="ignore"), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        value = np.array(rng.choice(ENTRIES)).astype(array.dtype)
                    flat[rng.randrange(flat.size)] = value
        case 3:
            dtype = np.dtype(rng.choice(DTYPES))
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                arrays[name] = array.astype(dtype)
        case 4:
            arrays[name] = array.reshape(rng.choice([(-1,), (1, -1), (-1, 1), (1, 1, -1)]))
        case 5:
            arrays[name] = array.T.copy()
        case 6:
            if array.ndim:
                arrays[name] = rng.choice([array[:-1], array[:0], np.repeat(array, 2, axis=0)])
        case 7:
            arrays[name] = arrays[rng.choice(sorted(arrays))]
        case 8:
            np.random.default_rng(rng.randrange(99)).shuffle(array.reshape(-1))


def places(tree: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every place in a tree, as what holds it and where."""
    if isinstance(tree, dict | list):
        keys = list(tree) if isinstance(tree, dict) else range(len(tree))
        for key in keys:
            found.append((tree, key))
            places(tree[key], found)
    return found


def hostile_tree(tree: Any, arrays: dict[str, np.ndarray], rng: random.Random) -> Any:
    found = places(tree, [])
    if not found or rng.random() < 0.01:
        return rng.choice(OTHERS)
    numbers = [(held, key) for held, key in found if type(held[key]) in (int, float)]
    holder, key = rng.choice(numbers if numbers and rng.random() < 0.4 else found)
    value = holder[key]
    match rng.randrange(9):
        case 0 | 1:
            holder[key] = rng.choice(NUMBERS)
        case 2:
            holder[key] = rng.choice(OTHERS)
        case 3:
            other, place = rng.choice(found)
            holder[key], other[place] = other[place], value
        case 4:
            other, place = rng.choice(found)
            holder[key] = other[place]
        case 5:
            if isinstance(holder, dict):
                del holder[key]
            else:
                holder[key:key] = [value] * rng.choice([1, 1, 3, 100])
        case 6:
            number = isinstance(value, int | float) and not isinstance(value, bool)
            other = {"object": rng.randrange(40)}
            holder[key] = value * rng.choice([-1, 2, 1.5, 1e9, 1e-9]) if number else other
        case 7:
            kind = rng.choice(["array", "columns", "words"])
            holder[key] = {kind: rng.choice([*sorted(arrays), "nothing"])}
        case 8:
            number = isinstance(value, int | float) and not isinstance(value, bool)
            holder[key] = value + rng.choice([1, -1, 3]) if number else rng.choice(NUMBERS)
    try:
        json.dumps(tree)
    except (ValueError, RecursionError):  # it holds itself now
        return rng.choice(OTHERS)
    return tree


def mutant(number: int, files: list[Path]) -> tuple[str, bytes, bool]:
    """Name, bytes, and whether they must be refused, of the mutant with this number."""
    rng = random.Random(number)
    path = files[number % len(files)]
    data = path.read_bytes()
    if rng.random() < 0.3:
        changed = broken_bytes(data, rng)
        return path.stem, changed, changed != data
    return path.stem, hostile(data, rng), False


def escape(number: int, files: list[Path], scratch: Path) -> str | None:
    """Say how a mutant escapes; None if it is refused, or answers with numbers."""
    name, data, must_fail = mutant(number, files)
    scratch.write_bytes(data)
    try:
        for read in (describe, read_columns):
            try:
                read(scratch)
            except ModelFileError:
                pass
        # Half of them are read when they are first used, as large files are.
        model_file.MAX_EAGER_BYTES = 2**26 if number % 2 else 0
        try:
            model = outsample.load(scratch)
            told = answers(model)
        except ModelFileError as error:
            assert str(scratch) in str(error)
            return None
        except ValueError as error:
            print(f"  {number} {name}: {error}"[:200], file=sys.stderr)
            return None
        if must_fail:
            return f"{number} {name}: changed bytes were not noticed"
        wrong = [key for key, values in told.items() if not np.isfinite(values).all()]
        return f"{number} {name}: {wrong} are not finite" if wrong else None
    except Exception as error:
        return f"{number} {name}: {type(error).__name__} {error}"


def main(folder: str, start: str, stop: str) -> None:
    warnings.simplefilter("ignore")
    files = sorted(Path(folder).glob("*.outsample"))
    scratch = Path(folder) / f"mutant-{start}.tmp"
    for path in files:
        answers(outsample.load(path))  # what all kernels take is taken before
    before = peak_bytes()
    for number in range(int(start), int(stop)):
        print(f"at {number}", flush=True)
        faulthandler.dump_traceback_later(MOST_SECONDS, exit=True)
        found = escape(number, files, scratch)
        if found:
            print(f"escape {found}"[:400], flush=True)
    faulthandler.cancel_dump_traceback_later()
    print(f"memory {peak_bytes() - before}", flush=True)


def peak_bytes() -> int:
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main(*sys.argv[1:])
