"""How kernels are compiled: by numba at first use, kept on disk where a folder can be written.

Numba keeps what it compiled beside the source, or in the user's cache folder. Where neither can be
written (a container with a read-only file system) it refuses to import; here a private folder
among the temporary files is taken, and without that nothing is kept. What is lost is time.

The hooks that this needs are private to numba. Under a version on which they were not tried,
kernels are compiled by numba's public options alone.
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

# The last version of numba whose caches were tried.
TRIED_NUMBA = (0, 68)
HAS_TRIED_CACHES = tuple(numba.version_info[:2]) <= TRIED_NUMBA
if HAS_TRIED_CACHES:
    from numba.core.caching import FunctionCache, NullCache
else:
    FunctionCache = NullCache = object  # type: ignore[misc, assignment]

SET_A_FOLDER = "set the environment variable NUMBA_CACHE_DIR to a folder that can be written"


class Notice:
    """Says a sentence once: a line on a terminal, else a warning."""

    def __init__(self):
        self.said, self.lock = False, Lock()

    def say(self, sentence, terminal=False):
        """Warn once a process, or write a line if ``terminal`` is asked for and there is one."""
        with self.lock:
            if self.said:
                return
            self.said = True
        if terminal and sys.stderr is not None and sys.stderr.isatty():
            print(f"outsample: {sentence}", file=sys.stderr, flush=True)
        else:
            warnings.warn(f"outsample {sentence}", UserWarning, stacklevel=2)


FIRST_USE, NOT_KEPT = Notice(), Notice()


class Counter:
    """How many kernels this process has compiled."""

    def __init__(self):
        self.count = 0


COMPILED = Counter()


class Announced:
    """Before a kernel is compiled, which takes seconds, says so once."""

    def load_overload(self, sig, target_context):
        """Compiled code from the disk, or None: numba compiles then."""
        found = super().load_overload(sig, target_context)
        if found is None:
            COMPILED.count += 1
            FIRST_USE.say(
                "is compiling for its first use, which can take half a minute; "
                + ("later uses start at once." if self.cache_path else "nothing is kept."),
                terminal=True,
            )
        return found


class KernelCache(Announced, FunctionCache):
    """Numba's cache; a full disk costs the time of compiling again, not the answer."""

    def __init__(self, function):
        super().__init__(function)
        # Numba looks at the kernel's own file only, but kernels of other files are compiled into
        # it: after an update it would go on running their old code.
        self._cache_file._source_stamp = self._cache_file._source_stamp, kernel_sources()

    def save_overload(self, sig, data):
        """Keep compiled code on the disk if that is possible."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            NOT_KEPT.say(f"cannot keep what it compiled ({error}); {SET_A_FOLDER}.")


class NoCache(Announced, NullCache):
    """Keeps nothing: every process compiles what it uses."""


def kept_in():
    """Folder where compiled code is kept, or None."""
    return cache_of(njit).cache_path if HAS_TRIED_CACHES else plain_folder()


def njit(function=None, **options):
    """Compile a kernel at its first call, without the interpreter lock; options are numba's."""
    if function is None:
        return lambda function: njit(function, **options)
    if not HAS_TRIED_CACHES:
        return plain_kernel(function, options)
    kernel = numba.njit(nogil=True, **options)(function)
    if kernel is not function:  # else numba is switched off
        kernel._cache = cache_of(function)
    return kernel


def cache_of(function):
    """Cache of a kernel: where numba wants it, else among the temporary files, else none."""
    try:
        return KernelCache(function)
    except RuntimeError:  # no folder that numba knows can be written
        pass
    given = numba.config.CACHE_DIR
    try:
        folder = numba.config.CACHE_DIR = private_folder()
        kept: KernelCache | NoCache = KernelCache(function)
        where = f"keeps what it compiled in {folder}, for as long as that lasts"
    except (OSError, RuntimeError):
        kept = NoCache()
        where = "compiles again in every process, which takes up to half a minute"
    finally:
        numba.config.CACHE_DIR = given
    NOT_KEPT.say(f"cannot write to its own folder nor to the user's: it {where}; {SET_A_FOLDER}.")
    return kept


def plain_kernel(function, options):
    """Kernel compiled and kept by numba's public options; not kept where no folder is writable."""
    before = numba.config.CACHE_DIR
    try:
        numba.config.CACHE_DIR = plain_folder() or before
        return numba.njit(nogil=True, cache=True, **options)(function)
    except RuntimeError:  # no folder that numba knows can be written
        return numba.njit(nogil=True, **options)(function)
    finally:
        numba.config.CACHE_DIR = before


def plain_folder():
    """Folder named after the sources of all kernels, so that no old code is run; or None."""
    try:
        return str(Path(numba.config.CACHE_DIR or private_folder()) / kernel_sources())
    except OSError:
        return None


@cache
def kernel_sources():
    """Digest of the sources of all kernels."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def private_folder():
    """Folder among the temporary files that nobody else can write to: compiled code is run."""
    owner = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"outsample-{owner}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    shared = hasattr(os, "getuid") and (found.st_uid != owner or found.st_mode & 0o077)
    if shared or not stat.S_ISDIR(found.st_mode):
        raise PermissionError(f"{folder} belongs to somebody else")
    return str(folder)
