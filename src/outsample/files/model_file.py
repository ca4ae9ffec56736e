"""Save, load and describe models in files that contain no executable code.

`docs/files.md` has the format. Arrays have the layout of safetensors (`layout`). The objects that
they belong to are JSON (`encoding`), and nothing of it is trusted before `schema` has checked it.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import outsample
from outsample.files import layout
from outsample.files.layout import (
    Mapped,
    ModelFileError,
    content_errors,
    damaged,
    open_file,
    parse_json,
    parse_strings,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FORMAT, FORMAT_VERSION = "outsample model", 1
# Files up to this size are read and verified by `load`, larger ones at first use.
MAX_EAGER_BYTES = 2**26


class ModelInfo(NamedTuple):
    """Summary of a model file.

    Attributes
    ----------
    format_version : int
        Version of the format.
    package_version : str
        Version of outsample that wrote it.
    class_name : str
        Class of the estimator.
    parameters : dict of str to str
        Representations of its parameters.
    n_points, n_features : int
        Rows and columns of the training data.
    n_coordinates : int or None
        Columns of the map; None without a map.
    feature_names, map_names : list of str or None
        Names of the columns of X and of the map.
    columns : list of str
        Names of the additional columns, one value per training row.
    arrays : list of (name, dtype, shape, bytes)
        Contents of the file.
    file_bytes : int
        Size of the file.
    notes : list of str
        What of the model is not saved.
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
    """Save a fitted estimator to a file that contains no pickle and no other executable code.

    The complete file replaces an existing file at once. After an error the existing file is
    unchanged.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library. The embedding of an `Extended`, which can be any code,
        and random generators are not saved.
    path : path-like
        File to write; the usual extension is ``.outsample``.
    columns : dict of str to array-like of shape (n,), default=None
        Additional columns of the training rows, such as ids and labels: numbers or strings.
    map_names : list of str, default=None
        Names of the columns of the map.

    Raises
    ------
    TypeError
        If a file cannot contain the model, for example because of a function as ``weighting``.
    sklearn.exceptions.NotFittedError
        If the estimator is not fitted.

    See Also
    --------
    load : Load the model.

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
    from outsample.files.contents import encode_model

    texts, arrays = encode_model(model, columns or {}, map_names)
    texts |= {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "package_version": outsample.__version__,
    }
    layout.write(os.fspath(path), texts, arrays.arrays, arrays.checksums)


def load(path: str | os.PathLike[str]) -> Any:
    """Load an estimator that `save` has written; its results are bit-identical.

    Nothing in the file is imported or executed. Arrays are memory-mapped, so that processes share
    them. Files of up to 64 MB are verified here, larger ones when the model is first used.

    Parameters
    ----------
    path : path-like
        File to read.

    Returns
    -------
    estimator

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged, was changed, or has a newer format.

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
    from outsample.files.contents import decode_model

    mapped = _open(path)
    return decode_model(mapped, at_once=mapped.header.file_bytes <= MAX_EAGER_BYTES)


def describe(path: str | os.PathLike[str]) -> ModelInfo:
    """Return a summary of a model file; its arrays are neither read nor verified.

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
    mapped = _open(path)
    header = mapped.header
    with content_errors(path):
        summary = parse_json(header.texts["summary"])
        for name in ("feature_names", "map_names"):
            if summary[name] is not None:
                summary[name] = _read_strings(mapped, summary[name])
        info = ModelInfo(
            format_version=FORMAT_VERSION,
            package_version=header.texts["package_version"],
            class_name=header.texts["class"],
            columns=[column[0] for column in parse_json(header.texts["columns"])],
            arrays=[
                (name, str(entry.dtype), entry.shape, entry.stop - entry.start)
                for name, entry in header.entries.items()
            ],
            file_bytes=header.file_bytes,
            **summary,
        )
        sizes = info.n_points, info.n_features, info.n_coordinates or 0
        texts = [*info.columns, *info.parameters, *info.parameters.values(), *info.notes]
        if not all(type(size) is int for size in sizes):
            raise ValueError("its summary has no sizes")
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("its summary has names that are not strings")
    return info


def read_columns(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the additional columns of the training rows by name; strings are objects.

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
    mapped, columns = _open(path), dict[str, np.ndarray]()
    with content_errors(path):
        for name, tag, array in parse_json(mapped.header.texts["columns"]):
            if tag == "words":
                values = np.array(_read_strings(mapped, array), dtype=object)
            else:
                mapped.verify([array])
                values = mapped.array(array).copy()
            if values.ndim != 1:
                raise ValueError("a column has more than one dimension")
            columns[name] = values
    return columns


def identity(path: str | os.PathLike[str]) -> str:
    """Return a digest that identifies a model: its header has the checksum of every array."""
    digest = hashlib.sha256(str(os.path.getsize(path)).encode())
    with open(path, "rb") as file:
        digest.update(file.read(8 + layout.MAX_HEADER_BYTES))
    return digest.hexdigest()


def _open(path: str | os.PathLike[str]) -> Mapped:
    with open_file(path) as stream:
        header = layout.read_header(path, stream, lambda texts: _check_version(path, texts))
        return Mapped(header, stream)


def _check_version(path: str | os.PathLike[str], texts: dict[str, str]) -> None:
    version, package = texts.get("format_version", ""), texts.get("package_version", "?")
    if texts.get("format") != FORMAT:
        raise ModelFileError(f"{path}: contains arrays, but is not a model of outsample.")
    if not version.isascii() or not version.isdigit() or len(version) > 9 or int(version) < 1:
        raise damaged(path, f"its format has the version {version[:20]!r}")
    if int(version) > FORMAT_VERSION:
        raise ModelFileError(
            f"{path}: was written by a newer outsample, version {package[:40]} (format {version}); "
            f"this is version {outsample.__version__}, which reads formats up to {FORMAT_VERSION}. "
            "Install the newer version."
        )


def _read_strings(mapped: Mapped, name: str) -> list[str]:
    mapped.verify([name])
    return parse_strings(mapped.array(name))
