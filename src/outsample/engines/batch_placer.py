"""A picklable callable that places batches in any engine and opens its model once per process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any, NamedTuple

from outsample.engines.batches import place_batch
from outsample.files.layout import OWN_CHECKSUM, ModelFileError, open_file, read_header
from outsample.files.matching import check_apart
from outsample.opened_model import OpenedModel

# Models that a process keeps open.
MAX_OPEN_MODELS = 8
SPARK_TYPES = {"float64": "double", "int64": "long"}


class CachedModel(NamedTuple):
    """A model file that this process has open."""

    file_state: tuple[int, int, int]  # modification time, size, inode
    checksum: str
    opened: OpenedModel


_OPEN: dict[str, CachedModel] = {}
_LOCK = Lock()


class BatchPlacer:
    """Place batches of rows with a saved model, in any engine that calls a function on batches.

    A pickled placer contains the path of the file, not the model. Each process memory-maps the
    file once, and all its threads share it. If the file has been replaced by another model since
    the placer was created, calls raise an error.

    Calling the placer returns

    - for a pandas or polars data frame, an Arrow record batch or table, or a dict of arrays (Ray):
      the same type with the columns of the placement;
    - for an array: what ``place`` of the model returns;
    - for an iterator of these (Spark's ``mapInArrow`` and ``mapInPandas``): an iterator of results.

    Parameters
    ----------
    path : path-like
        Model file written by `save`; every worker must be able to read it under this path.
    columns : list of str, default=None
        Names of the features, in the order of the model. The default is the names that the model
        was fitted with or, if it has none, all columns that are not in `keep`.
    keep : list of str, default=()
        Columns to copy to the result, before those of the placement.

    Attributes
    ----------
    checksum : str
        SHA-256 of the contents of the file.

    Raises
    ------
    ModelFileError
        If the file is missing, damaged, not a model file, or was replaced by another model.

    See Also
    --------
    place_batches : A loop in one process.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import outsample
    >>> X = np.random.default_rng(0).random((200, 2))
    >>> path = os.path.join(tempfile.mkdtemp(), "squares.outsample")
    >>> model = outsample.PCAExtension(n_neighbors=5, order=0, loss="squared").fit(X, X**2)
    >>> outsample.save(model, path)
    >>> placer = outsample.BatchPlacer(path, keep=["id"])
    >>> placed = placer({"id": np.array([7]), "x": np.array([0.5]), "y": np.array([0.5])})
    >>> list(placed)
    ['id', 'map_1', 'map_2', 'error_bar', 'bound', 'n_neighbors']
    >>> placer.ddl
    'map_1 double, map_2 double, error_bar double, bound double, n_neighbors long'
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        columns: Sequence[str] | None = None,
        keep: Sequence[str] = (),
    ) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.columns = None if columns is None else list(columns)
        self.keep = list(keep)
        self.checksum = _checksum(self.path)
        check_apart(self.keep, list(self._opened().empty()))  # raises here, not in a worker

    def __repr__(self) -> str:
        return f"BatchPlacer({self.path!r}, columns={self.columns}, keep={self.keep})"

    def __call__(self, batch: Any, partition_info: Any = None) -> Any:
        """Place a batch, or an iterator of batches.

        Parameters
        ----------
        batch : data frame, record batch, table, dict, array or iterator of these
            Rows with the features, and the columns to keep.
        partition_info : dict, default=None
            Passed by Dask; error messages contain the number of the partition.

        Returns
        -------
        object
            Of the type of `batch`; for an array, the placement.
        """
        if hasattr(batch, "__next__"):
            return self._each(batch)
        where = "Batch" if partition_info is None else f"Partition {partition_info['number']}"
        return self._place(batch, where)

    def _each(self, batches: Iterator[Any]) -> Iterator[Any]:
        for at, batch in enumerate(batches):
            yield self._place(batch, f"Batch {at}")

    def _place(self, batch: Any, where: str) -> Any:
        return place_batch(self._opened(), batch, where, self.columns, self.keep)

    @property
    def meta(self) -> Any:
        """The columns of the placement as an empty pandas frame, for Dask's ``meta=``.

        With columns to keep, use ``placer(frame._meta)``, which includes them.
        """
        import pandas

        return pandas.DataFrame(self._opened().empty())

    @property
    def schema(self) -> Any:
        """The columns of the placement as a `pyarrow.Schema`."""
        import pyarrow

        return pyarrow.Schema.from_pandas(self.meta, preserve_index=False).remove_metadata()

    @property
    def ddl(self) -> str:
        """The columns of the placement as a Spark DDL string; prepend the columns to keep."""
        empty = self._opened().empty()
        return ", ".join(f"{name} {SPARK_TYPES[str(array.dtype)]}" for name, array in empty.items())

    def _opened(self) -> OpenedModel:
        return cached_model(self.path, self.checksum).opened


def cached_model(path: str, checksum: str | None = None) -> CachedModel:
    """Return a model file, opened now or before by this process.

    Raises `ModelFileError` if the file does not have the checksum.
    """
    with _LOCK:
        cached, file_state = _OPEN.get(path), _file_state(path)
        if cached is None or cached.file_state != file_state:
            cached = CachedModel(file_state, _checksum(path), OpenedModel.open(path))
            if _file_state(path) == file_state:  # otherwise it was replaced during reading
                _OPEN[path] = cached
            while len(_OPEN) > MAX_OPEN_MODELS:
                del _OPEN[next(iter(_OPEN))]
    if checksum not in (None, cached.checksum):
        raise ModelFileError(
            f"{path}: the model was replaced by another one after the placer was created; create "
            "a new placer, and save each model to its own file."
        )
    return cached


def _file_state(path: str) -> tuple[int, int, int]:
    with open_file(path) as stream:
        status = os.fstat(stream.fileno())
    return status.st_mtime_ns, status.st_size, status.st_ino


def _checksum(path: str) -> str:
    with open_file(path) as stream:
        return read_header(path, stream, lambda texts: None).texts[OWN_CHECKSUM]
