"""Models in files: saved, loaded, described; no code, nothing that runs.

`docs/files.md` has the format. Arrays are in the layout of safetensors (`layout`); what they belong
to is a tree of JSON (`tree`), of which nothing is believed before `estimator_schema` has looked.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import outsample
from outsample.files import layout
from outsample.files.layout import Header, Mapped, ModelFileError, damaged, opened, parsed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KIND = "outsample model"
VERSION = 1
# Files up to this size are read and verified when they are loaded, larger ones at first use.
VERIFIED_BYTES = 2**26


class ModelInfo(NamedTuple):
    """What a model file says of itself.

    Attributes
    ----------
    format_version : int
        Version of the format.
    package_version : str
        The outsample that wrote it.
    class_name : str
        Estimator.
    parameters : dict of str to str
        Its parameters, as they are printed.
    n_points, n_features : int
        Rows it learnt from, and their columns.
    n_coordinates : int or None
        Columns of the map; None if there is no map.
    feature_names, map_names : list of str or None
        Names of the columns of X and of the map.
    columns : list of str
        Names of what is carried along about the training rows.
    arrays : list of (name, dtype, shape, bytes)
        What is in the file.
    file_bytes : int
        Its size.
    notes : list of str
        What the file does not keep of the model.
    """

    format_version: int
    package_version: str
    class_name: str
    parameters: dict[str, str]
    n_points: int
    n_features: int
    n_coordinates: int | None
    feature_names: list[str] | None
    map_names: list[str] | None
    columns: list[str]
    arrays: list[tuple[str, str, tuple[int, ...], int]]
    file_bytes: int
    notes: list[str]


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, Any] | None = None,
    map_names: Sequence[str] | None = None,
) -> None:
    """Save a fitted estimator to a file, without code and without pickle.

    The file appears under its name when it is complete, and replaces what was there; if anything
    goes wrong before, the old file stays as it is.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library. Of an `Extended` the map and the extension are kept,
        not the embedding, which may be any code; random generators are not kept either.
    path : path-like
        Where to; ``.outsample`` is the usual ending.
    columns : dict of str to array-like of shape (n,), default=None
        What is known of the training rows and wanted back: ids, labels. Numbers or texts.
    map_names : list of str, default=None
        Names of the columns of the map.

    Raises
    ------
    TypeError
        For what a file cannot hold, such as a function as ``weighting``.
    sklearn.exceptions.NotFittedError
        For an estimator that has not been fitted.

    See Also
    --------
    load : Get the model back.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import outsample
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> detector = outsample.NoveltyDetector().fit(X)
    >>> path = os.path.join(tempfile.mkdtemp(), "normal.outsample")
    >>> outsample.save(detector, path)
    >>> outsample.load(path).predict([[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]])
    array([ 1, -1])
    """
    from outsample.files.saving import texts_and_arrays

    texts, arrays = texts_and_arrays(model, columns or {}, map_names)
    told = {
        "format": KIND, "format_version": str(VERSION), "package_version": outsample.__version__
    }  # fmt: skip
    layout.write(os.fspath(path), {**told, **texts}, arrays.arrays, arrays.checksums)


def load(path: str | os.PathLike[str]) -> Any:
    """Load an estimator that `save` has written; it answers as it did, bit for bit.

    Nothing that the file names is imported or run. Arrays are mapped, not copied, so that many
    processes share them. A file of up to 64 MB is verified here; a larger one when the model is
    first used, before it answers.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    estimator

    Raises
    ------
    ModelFileError
        If the file is no model, is damaged, was tampered with, or is of a newer version.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import outsample
    >>> X = np.random.default_rng(0).random((100, 2))
    >>> extension = outsample.PCAExtension().fit(X, X**2)
    >>> path = os.path.join(tempfile.mkdtemp(), "squares.outsample")
    >>> outsample.save(extension, path)
    >>> again = outsample.load(path)
    >>> bool((again.transform(X) == extension.transform(X)).all())
    True
    """
    from outsample.files.loading import loaded

    with opened(path) as stream:
        mapped = Mapped(_header(path, stream), stream)
    return loaded(mapped, at_once=mapped.header.file_bytes <= VERIFIED_BYTES)


def describe(path: str | os.PathLike[str]) -> ModelInfo:
    """Say what is in a model file; its arrays are neither read nor verified.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import outsample
    >>> from outsample.files.model_file import describe
    >>> path = os.path.join(tempfile.mkdtemp(), "normal.outsample")
    >>> outsample.save(outsample.NoveltyDetector().fit(np.eye(5)), path, columns={"id": range(5)})
    >>> info = describe(path)
    >>> info.class_name, info.n_points, info.n_features, info.columns
    ('NoveltyDetector', 5, 5, ['id'])
    """
    with opened(path) as stream:
        mapped = Mapped(_header(path, stream), stream)
    header = mapped.header
    try:
        told = parsed(header.texts["summary"])
        columns = [column[0] for column in parsed(header.texts["columns"])]
        names = {
            name: None if told[name] is None else _words(mapped, told[name])
            for name in ("feature_names", "map_names")
        }
        info = ModelInfo(
            VERSION, header.texts["package_version"], header.texts["class"], told["parameters"],
            told["n_points"], told["n_features"], told["n_coordinates"], names["feature_names"],
            names["map_names"], columns,
            [
                (name, str(entry.dtype), entry.shape, entry.stop - entry.start)
                for name, entry in header.entries.items()
            ],
            header.file_bytes, told["notes"],
        )  # fmt: skip
        numbers = info.n_points, info.n_features, info.n_coordinates or 0
        texts = [*info.columns, *info.parameters, *info.parameters.values(), *info.notes]
        if not all(type(number) is int for number in numbers):
            raise ValueError("it does not tell its size")
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("it is not described")
        return info
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, RecursionError) as error:
        raise _told(header, error) from None


def read_columns(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read what was carried along about the training rows, by name; texts are objects.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import outsample
    >>> from outsample.files.model_file import read_columns
    >>> path = os.path.join(tempfile.mkdtemp(), "normal.outsample")
    >>> outsample.save(outsample.NoveltyDetector().fit(np.eye(3)), path, columns={"id": [7, 8, 9]})
    >>> read_columns(path)
    {'id': array([7, 8, 9])}
    """
    with opened(path) as stream:
        mapped = Mapped(_header(path, stream), stream)
    header, found = mapped.header, dict[str, np.ndarray]()
    try:
        for name, kind, array in parsed(header.texts["columns"]):
            mapped.verify([array])
            if kind == "words":
                found[name] = np.array(_words(mapped, array), dtype=object)
            else:
                found[name] = mapped.array(array).copy()
            if found[name].ndim != 1:
                raise ValueError("a column has more than one side")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise _told(header, error) from None
    return found


def identity(path: str | os.PathLike[str]) -> str:
    """Tell one model file from another: its header has the checksum of every array."""
    digest = hashlib.sha256(str(os.path.getsize(path)).encode())
    with open(path, "rb") as file:
        digest.update(file.read(8 + 2**20))
    return digest.hexdigest()


def _header(path: str | os.PathLike[str], stream: Any) -> Header:
    return layout.read_header(path, stream, lambda texts: _check_version(path, texts))


def _check_version(path: str | os.PathLike[str], texts: dict[str, str]) -> None:
    version, maker = texts.get("format_version", ""), texts.get("package_version", "?")
    if texts.get("format") != KIND:
        raise ModelFileError(f"{path}: holds arrays, but is no model of outsample's.")
    if not version.isascii() or not version.isdigit() or len(version) > 9 or int(version) < 1:
        raise damaged(path, f"its format has the version {version[:20]!r}")
    if int(version) > VERSION:
        raise ModelFileError(
            f"{path}: was made by a newer outsample, version {maker[:40]} (format {version}); this "
            f"is version {outsample.__version__}, which reads formats up to {VERSION}. Install "
            "the newer version."
        )


def _told(header: Header, error: Exception) -> ModelFileError:
    if isinstance(error, ModelFileError):
        return error
    reason = f"{type(error).__name__} {error}" if isinstance(error, KeyError) else str(error)
    return damaged(header.path, reason)


def _words(mapped: Mapped, name: str) -> list[str]:
    if mapped.header.entries[name].dtype != np.uint8:
        raise ValueError("words are not bytes")
    mapped.verify([name])
    words = parsed(mapped.array(name).tobytes().decode())
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError("words are no list of texts")
    return words
