"""Threads in which SCIP solves, kept for the life of the process.

SCIP's library for derivatives (CppAD, used for quadratic objectives) numbers the threads that it sees and
has room for 64: the 64th new thread ends the process with a segmentation fault, even if all earlier ones have
ended. So a thread that has solved is used again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

Result = TypeVar("Result")

#: Solves at the same time; others wait for their turn. Well below the 64 threads that SCIP can tell apart,
#: a few of which the threads of other packages may take.
AT_ONCE = 16


def submit(work: Callable[[], Result]) -> Future[Result]:
    """Call ``work`` in one of the kept threads; a new one is begun only if all are busy."""
    return _threads(os.getpid()).submit(work)


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """Threads of a process: a forked one inherits the object, but not its threads."""
    return ThreadPoolExecutor(AT_ONCE, thread_name_prefix=f"mipforest-scip-{process}")
