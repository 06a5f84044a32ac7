"""Machine code of the searches, kept in a folder for later processes.

The compiler's own cache knows the file of the function that Python calls, and nothing of the functions that this one
calls: after a change there it would run the old machine code on. So the folder here is named after all that machine
code depends on - the sources of all searches, the versions of what compiles them, the processor - and other sources
have another folder. A file begins with a hash of its content: what is damaged is removed and compiled anew. Files
appear whole or not at all, and one that is missing is compiled, so that several processes may use a folder, and remove
others. What is read here is run: a folder or a file that others than the user and root own, or may write, is not read.
"""

from __future__ import annotations

import errno
import os
import pickle
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from mipforest.atomic import atomic_write

#: Folders kept: those that were used last. Several versions, or environments, may share the cache of a user.
KEPT = 5

#: What our folders are called.
_PREFIX = "mipforest-kernels-"
_OURS = re.compile(rf"{_PREFIX}[0-9a-f]{{24}}")

#: What our files end in, and what a process that was killed while it wrote has left.
_SUFFIX = ".kernel"
_SUFFIXES = (_SUFFIX, ".part")

#: Settings of the compiler that change what it makes of the same source.
_OPTIONS = (
    "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX", "BOUNDSCHECK", "DEBUGINFO_DEFAULT",
)  # fmt: skip

#: Files that neither hold compiled functions nor anything that they use: a change there compiles nothing.
_WITHOUT_KERNELS = ("plugin.py", "constrained.py", "leaf_limits.py")

#: Only the user reads and writes folders and files that are made here.
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600

#: Whether files have owners here, as on all systems but Windows.
_HAS_OWNERS = hasattr(os, "geteuid")

#: Length of the hash in front of the content of a file.
_DIGEST = 32


def fingerprint(sources: Path) -> str:
    """Return a name for all that machine code depends on: sources, compiler, Python, processor.

    Parameters
    ----------
    sources
        Folder of the Python files whose functions are compiled; empty where it has none, as in an archive.
    """
    files = sorted(_python_files(sources))
    if not files:
        return ""
    import llvmlite
    import numba
    import numpy as np
    from llvmlite.binding import get_host_cpu_features, get_host_cpu_name
    from numba import config

    digest = sha256()
    features = (
        config.CPU_FEATURES
    )  # NUMBA_CPU_FEATURES and NUMBA_CPU_NAME take the place of what the processor says
    versions = (sys.version, sys.implementation.cache_tag, numba.__version__, llvmlite.__version__)
    processor = (
        config.CPU_NAME or get_host_cpu_name(),
        get_host_cpu_features().flatten() if features is None else features,
    )
    options = [str(getattr(config, name, None)) for name in _OPTIONS]
    for part in (*versions, np.__version__, *processor, *options):
        digest.update(f"{part}\0".encode())
    for path in files:
        content = Path(path).read_bytes()
        digest.update(f"{os.path.relpath(path, sources)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:24]


def _python_files(folder: Path) -> Iterator[str]:
    for parent, _, names in os.walk(folder):
        yield from (
            os.path.join(parent, name)
            for name in names
            if name.endswith(".py") and name not in _WITHOUT_KERNELS
        )


class KernelFolder:
    """The folder of the machine code of some sources.

    Parameters
    ----------
    sources
        Folder of the Python files whose functions are compiled.
    base
        Folder to be in, as :func:`cache_folder` returns it; ``None`` where there is none.

    Attributes
    ----------
    obstacle
        Why machine code is not kept, as far as is known: the folder, and what the system says, or whose it is. Empty
        where it is kept.
    """

    def __init__(self, sources: Path, base: Path | None) -> None:
        self.sources, self._fingerprint = sources, fingerprint(sources)
        self.path: Path | None = None
        self.obstacle, self._checked, self._used = "", False, False
        if base is None:
            self.obstacle = "the user has no folder for a cache (no home, HOME is not set)"
        elif not self._fingerprint:
            self.obstacle = (
                f"the sources in {sources} are no files, so that a change of them would not be seen"
            )
        else:
            self.path = base / f"{_PREFIX}{self._fingerprint}"

    def check(self) -> str:
        """Return why machine code cannot be kept here; empty where it can. The folder is made for that."""
        if self.path is not None and not self._checked:
            self._checked = True
            try:
                self._make()
                TemporaryFile(dir=self.path).close()
            except OSError as error:
                self._refused(error)
        return self.obstacle

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; ``None`` where there is none, or none of the user's own.

        A damaged one is removed.
        """
        if self.path is None:
            return None
        try:
            content = _content(self.path, name)
        except FileNotFoundError:
            return None
        except OSError as error:  # it is not for us to read
            if error.filename == str(self.path):
                self._refused(error)
            return None
        if sha256(content[_DIGEST:]).digest() != content[:_DIGEST]:
            self.remove(name)
            return None
        if not self._used:
            self._used = True
            with suppress(OSError):
                os.utime(self.path)  # the time of its last use: those not used for long are removed
        return content[_DIGEST:]

    def write(self, name: str, content: bytes) -> None:
        """Keep a file, if that is possible, and the sources have not changed since they were imported."""
        if self.path is None or fingerprint(self.sources) != self._fingerprint:
            return
        for last in (False, True):
            try:
                self._make()
                with atomic_write(self.path / name) as file:
                    if hasattr(os, "fchmod"):
                        os.fchmod(file.fileno(), _FILE_MODE)
                    file.write(sha256(content).digest() + content)
                return
            except OSError as error:
                # Another process may have removed the folder just now, as one that nobody used.
                if last or not isinstance(error, FileNotFoundError):
                    self._refused(error)
                    return

    def remove(self, name: str) -> None:
        """Remove a file that is of no use."""
        if self.path is not None:
            with suppress(OSError):
                (self.path / name).unlink(missing_ok=True)

    def _make(self) -> None:
        assert self.path is not None
        if not self.path.is_dir():
            if not self.path.parent.exists():
                self.path.parent.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
            self.path.mkdir(_FOLDER_MODE, exist_ok=True)
            remove_unused(self.path)
        if _HAS_OWNERS:
            os.close(_opened_folder(self.path))

    def _refused(self, error: OSError) -> None:
        assert self.path is not None
        where = self.path if error.errno == errno.EPERM else self.path.parent
        self.obstacle = f"{where}: {error.strerror or error}"


def _content(folder: Path, name: str) -> bytes:
    """Return the content of a file, if it and its folder are the user's or root's own."""
    if not _HAS_OWNERS:
        return (folder / name).read_bytes()
    at = _opened_folder(folder)
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
    finally:
        os.close(at)
    with os.fdopen(file, "rb") as opened:
        _require_own(os.fstat(file), folder / name)
        return opened.read()


def _opened_folder(folder: Path) -> int:
    """Open a folder that is the user's or root's own; what is opened by its descriptor is in no other one."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
    try:
        _require_own(os.fstat(descriptor), folder)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _require_own(status: os.stat_result, path: Path) -> None:
    """Raise ``PermissionError`` where others than the user and root own a file or folder, or may write it."""
    why = ""
    if status.st_uid not in (os.geteuid(), 0):
        why = f"user {status.st_uid} owns it, who could have this process run any code"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        why = f"others may write it (mode {stat.S_IMODE(status.st_mode):o}), and could have this process run any code"
    if why:
        advice = "remove it, or set NUMBA_CACHE_DIR to a folder of your own"
        raise PermissionError(errno.EPERM, f"{why}: {advice}", str(path))


def remove_unused(folder: Path) -> None:
    """Remove the folders beside one that were not used for the longest time, all but :data:`KEPT` with it.

    Only folders of our names, and only files of our kinds: a folder with anything else in it stays.
    """
    with suppress(OSError):
        others = [
            (entry.stat().st_mtime, entry.path)
            for entry in os.scandir(folder.parent)
            if _OURS.fullmatch(entry.name)
            and entry.is_dir(follow_symlinks=False)
            and entry.name != folder.name
        ]
        for _, path in sorted(others, reverse=True)[KEPT - 1 :]:
            with suppress(OSError):  # another process may remove it at the same time, or use it again
                for file in os.scandir(path):
                    if file.name.endswith(_SUFFIXES) and file.is_file(follow_symlinks=False):
                        os.unlink(file.path)
                os.rmdir(path)


def cache_folder() -> Path | None:
    """Return the folder for caches: that of ``NUMBA_CACHE_DIR``, or the user's own; ``None`` where there is none."""
    from numba import config
    from numba.misc.appdirs import user_cache_dir

    if config.CACHE_DIR:
        return Path(os.path.abspath(config.CACHE_DIR))
    # Not the compiler's own place beside the source: what a package manager did not write keeps it from removing the
    # package, and what is left of it stands in the way of another installation.
    own = Path(user_cache_dir("mipforest", appauthor=False))
    # Without a home it is "~/.cache" below the working directory.
    return own if own.is_absolute() else None


@cache
def kernel_folder() -> KernelFolder:
    """Return the folder of this process: that of the searches as they are when the first of them is imported."""
    return KernelFolder(Path(__file__).parent, cache_folder())


class KernelCache:
    """What a compiled function asks for machine code, and hands it to: the interface of the compiler's own cache.

    Parameters
    ----------
    function
        The function that is compiled. One that was made within another is compiled anew in each process. Of one from
        elsewhere, the Python files of its own folder count as sources too.
    folder
        Where machine code is kept.
    kinds
        The types that one that was made within another rests on: it is kept by them.
    is_linked_only
        Whether it has no machine code of its own (:mod:`mipforest.searches.kernel_compiler`).
    """

    def __init__(
        self,
        function: Callable[..., Any],
        folder: KernelFolder,
        kinds: tuple[Any, ...] = (),
        *,
        is_linked_only: bool = False,
    ) -> None:
        self._function, self._folder, self._kinds = function, folder, kinds
        self._is_linked_only = is_linked_only
        file = Path(function.__code__.co_filename)
        is_unknown = function.__closure__ and not kinds
        self._source = b"" if is_unknown else _source_of(file, folder.sources)

    @property
    def cache_path(self) -> str | None:
        """Folder of the machine code."""
        return None if self._folder.path is None else str(self._folder.path)

    def enable(self) -> None:
        """Do nothing: it is always on."""

    def disable(self) -> None:
        """Do nothing: it is always on."""

    def flush(self) -> None:
        """Do nothing: other sources have another folder."""

    def load_overload(self, types: Any, target_context: Any) -> Any:
        """Return what was compiled for these types of the arguments; ``None`` where nothing is of use."""
        if not self._source:
            return None
        from numba.core.compiler import CompileResult

        target_context.refresh()
        name = self._name(types, target_context.codegen())
        content = self._folder.read(name)
        if content is None:
            return None
        try:
            if self._is_linked_only:
                from mipforest.searches.kernel_compiler import context_of_kernels

                target_context = context_of_kernels(target_context)
            return CompileResult._rebuild(target_context, *pickle.loads(content))
        except Exception:  # whatever it is that another installation has left there: it is compiled anew
            self._folder.remove(name)
            return None

    def save_overload(self, types: Any, compiled: Any) -> None:
        """Keep what was compiled for these types of the arguments, if that is possible."""
        # Addresses of this process are no use to another one.
        if not self._source or compiled.library.has_dynamic_globals:
            return
        from numba.core.serialize import dumps

        self._folder.write(self._name(types, compiled.codegen), dumps(compiled._reduce()))

    def _name(self, types: Any, codegen: Any) -> str:
        code = self._function.__code__
        parts = (
            self._function.__module__,
            self._function.__qualname__,
            code.co_firstlineno,
            types,
            *self._kinds,
            codegen.magic_tuple(),
        )
        digest = sha256("\0".join(map(str, parts)).encode() + self._source).hexdigest()[:24]
        readable = re.sub(r"\W+", "_", f"{self._function.__module__}_{self._function.__name__}")[-80:]
        return f"{readable}-{digest}{_SUFFIX}"


def _source_of(file: Path, sources: Path) -> bytes:
    """Return a hash of what a function rests on besides the sources that name the folder; empty if that is unknown."""
    inside = file.is_relative_to(sources)
    files: Iterable[Path] = [file] if inside else sorted(file.parent.glob("*.py"))
    try:
        parts = [path.read_bytes() for path in files]
    except OSError:
        return b""
    return sha256(b"\0".join(parts)).digest() if parts and file.is_file() else b""
