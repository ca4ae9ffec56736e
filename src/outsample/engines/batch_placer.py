"""One callable for all engines: rows in, places out, the model opened once per process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any, NamedTuple

from outsample.engines.batches import BatchAnswers, answers_of
from outsample.files.layout import OWN_CHECKSUM, ModelFileError, opened, read_header

# Models that a process keeps open.
MOST_OPEN = 8
# Spark's words for the types of the columns.
SPARK = {"float64": "double", "int64": "long"}


class Opened(NamedTuple):
    """Answers by a model file: as it was found on the disk, what it holds, and how it is asked."""

    on_disk: tuple[int, int, int]
    checksum: str
    answers: BatchAnswers


_OPEN: dict[tuple[Any, ...], Opened] = {}
_LOCK = Lock()


class BatchPlacer:
    """Place batches of rows by a saved model, in any engine that calls a function on batches.

    It is pickled as the path of the file: the model is never sent. Every process opens the file
    once, mapped into memory, and all its threads share it. A file that holds another model than it
    did when the placer was made is refused: no result comes from two models.

    It is called with, and answers by,

    - a data frame of pandas or polars, an Arrow record batch or table, a dict of arrays (Ray):
      the same with the columns of the placement;
    - an array: what ``place`` of the model returns;
    - an iterator of such (Spark's ``mapInArrow`` and ``mapInPandas``): an iterator of the answers.

    Parameters
    ----------
    path : path-like
        A file that `save` has written, where every worker finds it under that name.
    columns : list of str, default=None
        The features, in the order of the model. None: by the names that the model was fitted with;
        if it has none, all columns that are not kept.
    keep : list of str, default=()
        Columns that go along into the answer, before those of the placement.

    Attributes
    ----------
    checksum : str
        SHA-256 of what the file holds.

    Raises
    ------
    ModelFileError
        If the file is missing, no model, damaged, or was replaced by another model meanwhile.

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
        self._answers()  # refuses now what it would refuse later

    def __repr__(self) -> str:
        return f"BatchPlacer({self.path!r}, columns={self.columns}, keep={self.keep})"

    def __call__(self, batch: Any, partition_info: Any = None) -> Any:
        """Place a batch, or an iterator of them.

        Parameters
        ----------
        batch : data frame, record batch, table, dict, array or iterator of such
            Rows with the features, and the columns to keep.
        partition_info : dict, default=None
            Which partition it is: Dask says so by itself, and errors tell it.

        Returns
        -------
        object
            Of the kind that came in; of an array, the placement.
        """
        if hasattr(batch, "__next__"):
            return self._each(batch)
        where = "Batch" if partition_info is None else f"Partition {partition_info['number']}"
        return self._answers()(batch, where)

    def _each(self, batches: Iterator[Any]) -> Iterator[Any]:
        for at, batch in enumerate(batches):
            yield self._answers()(batch, f"Batch {at}")

    @property
    def meta(self) -> Any:
        """The columns of the placement as an empty pandas frame, for Dask's ``meta=``.

        With columns to keep, ``placer(frame._meta)`` has these too.
        """
        import pandas

        return pandas.DataFrame(self._answers().placing.empty())

    @property
    def schema(self) -> Any:
        """The columns of the placement as a `pyarrow.Schema`."""
        import pyarrow

        return pyarrow.Schema.from_pandas(self.meta, preserve_index=False).remove_metadata()

    @property
    def ddl(self) -> str:
        """The columns of the placement in Spark's words; put those to keep before."""
        empty = self._answers().placing.empty()
        return ", ".join(f"{name} {SPARK[str(array.dtype)]}" for name, array in empty.items())

    def _answers(self) -> BatchAnswers:
        options = tuple(self.columns) if self.columns else None, tuple(self.keep)
        return opened_model(self.path, self.checksum, *options).answers


def opened_model(
    path: str,
    checksum: str | None = None,
    columns: tuple[str, ...] | None = None,
    keep: tuple[str, ...] = (),
) -> Opened:
    """Open a model file, or take what this process has open already, if the file is the same.

    One that holds something else than the checksum says is refused.
    """
    key = path, columns, keep
    with _LOCK:
        found, on_disk = _OPEN.get(key), _on_disk(path)
        if found is None or found.on_disk != on_disk:
            answers = answers_of(path, columns=columns, keep=keep)
            found = Opened(on_disk, _checksum(path), answers)
            if _on_disk(path) == on_disk:  # else it was replaced while it was read
                _OPEN[key] = found
            while len(_OPEN) > MOST_OPEN:
                del _OPEN[next(iter(_OPEN))]
    if checksum not in (None, found.checksum):
        raise ModelFileError(
            f"{path}: holds another model than it did at first; begin again, and give every model "
            "a file of its own."
        )
    return found


def _on_disk(path: str) -> tuple[int, int, int]:
    with opened(path) as stream:
        told = os.fstat(stream.fileno())
    return told.st_mtime_ns, told.st_size, told.st_ino


def _checksum(path: str) -> str:
    with opened(path) as stream:
        return read_header(path, stream, lambda texts: None).texts[OWN_CHECKSUM]
