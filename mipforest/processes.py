"""Other Pythons that are started here: they find modules where this one does, and nowhere else.

Python looks for modules in the working directory first, for ``-m`` and ``-c``, unless it is told not to: a file
``numpy.py`` there, beside a data file from elsewhere, would run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

#: Environment variable that keeps the working directory out of where a Python, and those it starts, find modules.
SAFE_PATH = "PYTHONSAFEPATH"


def python_of(module: str) -> list[str]:
    """Return the words that run a module as the main program of another Python.

    Parameters
    ----------
    module
        Name of the module.
    """
    return [sys.executable, "-P", "-m", module]


def environment_of_pythons() -> dict[str, str]:
    """Return an environment in which another Python finds the modules that this one finds, and no others.

    An entry of ``sys.path`` that is empty, as in an interactive session, stands for the working directory: modules of
    the session lie there, and this Python has run what is there already.
    """
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    return {**os.environ, "PYTHONPATH": path, SAFE_PATH: "1"}


@contextmanager
def safe_path() -> Iterator[None]:
    """Keep the working directory out of where Pythons find modules that are started within the block.

    ``multiprocessing`` takes no environment: it hands over that of this process.
    """
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before
