"""A process that is killed before its k-th operation on files, for every k."""

from __future__ import annotations

import builtins
import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import mipforest.campaigns.store as store

#: Exit code of a process that was killed here, and of one in which something else went wrong.
KILLED, FAILED = 9, 1

#: What the interpreter tells of before it is done, besides files that are opened to be written.
TOLD = (
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.truncate",
    "os.link",
    "os.symlink",
    "shutil.copyfile",
)

#: More operations than any of the tests has.
MOST = 500


def kills(work: Callable[[], object]) -> Iterator[int]:
    """Do a work in forked processes, of which the k-th is killed before its k-th operation; ends with one that is not.

    Operations are: to make, rename or remove a file or folder, to open a file for writing, to write to it (the first
    half of what is written is on the disk then), to flush it, and to execute a statement of SQLite that
    writes.
    """
    for k in range(MOST):
        process = os.fork()
        if not process:
            _child(work, k)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        assert code in (0, KILLED), f"the process that was to be killed at {k} ended with {code}"
        if not code:
            return
        yield k
    raise AssertionError(f"more than {MOST} operations")


def _child(work: Callable[[], object], k: int) -> None:
    """Do the work until the k-th operation; never return."""
    left = k

    def count() -> bool:
        """Count an operation; whether it is the one before which the process is killed."""
        nonlocal left
        left -= 1
        return left < 0

    def before(*_: object) -> None:
        if count():
            os._exit(KILLED)

    class Half(io.BufferedWriter):
        """A file of which a kill leaves the first half of what is written."""

        def write(self, content: Any, /) -> int:
            if count():
                super().write(memoryview(content)[: len(content) // 2])
                self.flush()
                os._exit(KILLED)
            return super().write(content)

    def opened(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if not set(mode) & set("wxa+"):
            return real_open(file, mode, *arguments, **options)
        before()
        half = Half(io.FileIO(file, mode.replace("b", "").replace("t", "")))
        return half if "b" in mode else io.TextIOWrapper(half, *arguments, **options)

    def executed(held: Any, statement: str, *values: Any) -> Any:
        if not statement.lstrip().startswith(("SELECT", "PRAGMA table_info")):
            before()
        return real_execute(held, statement, *values)

    def hook(event: str, _: tuple[Any, ...]) -> None:
        if event in TOLD:
            before()

    try:
        real_open, real_execute = builtins.open, store.Store._execute
        builtins.open = opened
        os.fsync = before  # no power is lost here
        store.Store._execute = executed  # type: ignore[method-assign]
        sys.addaudithook(hook)
        work()
    except BaseException as error:
        print(f"in the process that was to be killed at {k}: {error!r}", file=sys.stderr)
        os._exit(FAILED)
    os._exit(0)
