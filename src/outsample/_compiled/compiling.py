"""Compilation of kernels by numba at first use, with a cache on disk where one can be written.

Numba caches compiled code next to the source or in the user's cache folder. If it can write to
neither (a container with a read-only file system), it raises an error at import. Here a private
temporary folder is used instead, and without that no cache at all, which only costs time.

The hooks for this are private to numba. With a newer version than was tested, kernels are compiled
with numba's public options only.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path
from threading import Lock

import numba

# The latest version of numba whose private cache classes were tested.
TESTED_NUMBA = (0, 68)
HAS_TESTED_CACHES = tuple(numba.version_info[:2]) <= TESTED_NUMBA
if HAS_TESTED_CACHES:
    from numba.core.caching import FunctionCache, NullCache
else:
    FunctionCache = NullCache = object  # type: ignore[misc, assignment]

SET_A_FOLDER = "set the environment variable NUMBA_CACHE_DIR to a writable folder"


class Notice:
    """Message shown once per process: as a line on a terminal, otherwise as a warning."""

    def __init__(self):
        self.is_shown, self.lock = False, Lock()

    def show(self, sentence, terminal=False):
        """Warn, or write a line if ``terminal`` is true and standard error is a terminal."""
        with self.lock:
            if self.is_shown:
                return
            self.is_shown = True
        if terminal and sys.stderr is not None and sys.stderr.isatty():
            print(f"outsample: {sentence}", file=sys.stderr, flush=True)
        else:
            warnings.warn(f"outsample {sentence}", UserWarning, stacklevel=2)


FIRST_USE, NO_CACHE = Notice(), Notice()


class Counter:
    """Number of kernels that this process has compiled."""

    def __init__(self):
        self.count = 0


COMPILED = Counter()


class CompilationNoticeMixin:
    """Show a notice before the first kernel is compiled, which takes seconds."""

    def load_overload(self, sig, target_context):
        """Return compiled code from the disk, or None, which makes numba compile."""
        overload = super().load_overload(sig, target_context)
        if overload is None:
            COMPILED.count += 1
            FIRST_USE.show(
                "is compiling for its first use, which can take half a minute; "
                + ("later uses start at once." if self.cache_path else "no cache is written."),
                terminal=True,
            )
        return overload


class KernelCache(CompilationNoticeMixin, FunctionCache):
    """Numba's cache; on a full disk, kernels are compiled again instead of raising an error."""

    def __init__(self, function):
        super().__init__(function)
        # Numba checks the kernel's own file only, but kernels of other files are inlined into it:
        # after an update it would continue to run their old code.
        self._cache_file._source_stamp = self._cache_file._source_stamp, kernel_sources()

    def save_overload(self, sig, data):
        """Write compiled code to the disk if possible."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            NO_CACHE.show(f"cannot cache compiled code ({error}); {SET_A_FOLDER}.")


class NoCache(CompilationNoticeMixin, NullCache):
    """No cache: every process compiles what it uses."""


def cache_folder():
    """Return the folder of the compiled code, or None."""
    return cache_of(njit).cache_path if HAS_TESTED_CACHES else public_cache_folder()


def njit(function=None, **options):
    """Return a kernel that is compiled at its first call and releases the interpreter lock.

    Options are passed to numba.
    """
    if function is None:
        return lambda function: njit(function, **options)
    if not HAS_TESTED_CACHES:
        return plain_kernel(function, options)
    kernel = numba.njit(nogil=True, **options)(function)
    if kernel is not function:  # the same function if NUMBA_DISABLE_JIT is set
        kernel._cache = cache_of(function)
    return kernel


def cache_of(function):
    """Return a kernel's cache: in numba's folder, else in a temporary one, else none."""
    try:
        return KernelCache(function)
    except RuntimeError:  # numba cannot write to any of its folders
        pass
    configured = numba.config.CACHE_DIR
    try:
        folder = numba.config.CACHE_DIR = private_folder()
        kernel_cache: KernelCache | NoCache = KernelCache(function)
        consequence = f"caches compiled code in the temporary folder {folder}"
    except (OSError, RuntimeError):
        kernel_cache = NoCache()
        consequence = "compiles again in every process, which takes up to half a minute"
    finally:
        numba.config.CACHE_DIR = configured
    NO_CACHE.show(
        f"cannot write to its own folder or to the user's cache: it {consequence}; {SET_A_FOLDER}."
    )
    return kernel_cache


def plain_kernel(function, options):
    """Return a kernel compiled with public options; it is not cached if no folder is writable."""
    before = numba.config.CACHE_DIR
    try:
        numba.config.CACHE_DIR = public_cache_folder() or before
        return numba.njit(nogil=True, cache=True, **options)(function)
    except RuntimeError:  # numba cannot write to any of its folders
        return numba.njit(nogil=True, **options)(function)
    finally:
        numba.config.CACHE_DIR = before


def public_cache_folder():
    """Return a folder named after the sources of all kernels, so that no old code runs; or None."""
    try:
        return str(Path(numba.config.CACHE_DIR or private_folder()) / kernel_sources())
    except OSError:
        return None


@cache
def kernel_sources():
    """Return a digest of the sources of all kernels."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def private_folder():
    """Return a temporary folder that only this user can write to, since its code is executed."""
    owner = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"outsample-{owner}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    is_shared = hasattr(os, "getuid") and (status.st_uid != owner or status.st_mode & 0o077)
    if is_shared or not stat.S_ISDIR(status.st_mode):
        raise PermissionError(f"{folder} belongs to another user, or others can write to it")
    return str(folder)
