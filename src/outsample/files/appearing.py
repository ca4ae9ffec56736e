"""Files that appear when they are complete: a reader never sees half of one."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def appearing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Stream to a file that takes its name at the end; nothing is left of it on any failure."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path}: is a folder; give the name of a file.")
    if target.exists() and not target.is_file():  # a device would be replaced by a file
        raise OSError(f"{path}: is no plain file; give the name of a file.")
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    if os.name == "posix":  # the name itself is on the disk when the folder is
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            with suppress(OSError):  # some network folders cannot be synced
                os.fsync(folder)
        finally:
            os.close(folder)
