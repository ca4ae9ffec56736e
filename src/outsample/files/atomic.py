"""The one way to write a file: under a temporary name, locked, synced, then renamed.

A reader never sees half a file, two writers never mix, and a failed write leaves the old file.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

FilePath = str | os.PathLike[str]
# Files that the running command reads, by device and inode; None outside of a command.
_INPUTS: ContextVar[set[tuple[int, int]] | None] = ContextVar("inputs", default=None)


class OutputError(ValueError):
    """A file that must not be written: an input, in use, or left by an interrupted run."""


@contextmanager
def protected_inputs() -> Iterator[None]:
    """Reject writing, until the end of the block, to files passed to `protect_input`."""
    token = _INPUTS.set(set())
    try:
        yield
    finally:
        _INPUTS.reset(token)


def protect_input(file: FilePath | int) -> None:
    """Protect a file, under every name; one that is missing or not regular is ignored."""
    inputs = _INPUTS.get()
    with suppress(OSError, ValueError):
        if inputs is not None and stat.S_ISREG(os.stat(file).st_mode):
            inputs.add(_identity(os.stat(file)))


def is_input(file: FilePath | int) -> bool:
    """Return whether a path or descriptor is a file passed to `protect_input`."""
    try:
        return _identity(os.stat(file)) in (_INPUTS.get() or ())
    except OSError:
        return False


def check_target(path: FilePath) -> Path:
    """Return the file to write, symbolic links followed; raise if it cannot be written."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(target.parent))
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target.parent))
    if target.is_dir():
        reason = "is a folder; give the name of a file"
        raise IsADirectoryError(errno.EISDIR, reason, str(path))
    if target.exists() and not target.is_file():  # a device would be replaced by a file
        reason = "is not a regular file; give the name of a file"
        raise OSError(errno.EINVAL, reason, str(path))
    if is_input(target):
        raise OutputError(f"{path}: is an input of this command; write to another file")
    return target


@contextmanager
def atomic_write(path: FilePath) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its name when the block ends without an error.

    Symbolic links are followed. An existing file keeps its permissions, a new one has those of the
    umask.

    Raises
    ------
    OutputError
        If the file is an input of the running command, or another process is writing it.
    OSError
        If it cannot be written, with its name; then nothing has changed.
    """
    target = check_target(path)
    name = target.name
    unique = f"{zlib.crc32(os.fsencode(name)):08x}"
    if sys.platform == "win32":  # no locks
        unique += f".{os.getpid()}"
    temporary = target.with_name(f".{name[:40]}.{unique}.tmp")
    with errors_of(path), open_locked(temporary, target, keep=False) as stream:
        try:
            yield stream
            move_into_place(stream, temporary, target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise


@contextmanager
def errors_of(path: FilePath) -> Iterator[None]:
    """Name the file in errors of the system: a full disk does not say which file."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        reason = error.strerror or str(error)
        raise OSError(error.errno or errno.EIO, reason, str(path)) from error


def open_locked(path: Path, target: Path, *, keep: bool) -> BinaryIO:
    """Open or create a file that only this process may write, until it is closed.

    What an earlier process left there is kept or removed. ``target`` is the file that the bytes
    are for, to name in an error.
    """
    check_target(path)
    flags = os.O_RDWR | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    while True:
        leftover = False
        try:
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            leftover = True
            try:
                descriptor = os.open(path, flags)
            except FileNotFoundError:  # its owner has just finished
                continue
        try:
            _lock(descriptor, target)
            # Its owner may have renamed or removed it before the lock was free.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    if keep or not leftover:
                        return os.fdopen(descriptor, "r+b")
                    os.unlink(path)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def move_into_place(stream: BinaryIO, temporary: Path, target: Path) -> None:
    """Sync a complete file and give it the name of its target."""
    stream.flush()
    with suppress(FileNotFoundError):
        os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
    os.fsync(stream.fileno())
    if sys.platform == "win32":  # an open file cannot be renamed there
        stream.close()
    os.replace(temporary, target)
    if os.name == "posix":  # the name itself is on the disk when the folder is
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            with suppress(OSError):  # some network folders cannot be synced
                os.fsync(folder)
        finally:
            os.close(folder)


def _lock(descriptor: int, target: Path) -> None:
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OutputError(
            f"{target}: another process is writing it; wait for it, or write to another file"
        ) from None
    except OSError:  # some network folders have no locks
        pass


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
