"""Solver plug-ins that end their process, and one that does not."""

import os
import time

import numpy as np

from mipforest.solvers.base import Answer, PlainSolver
from mipforest.solvers.highs import Highs
from mipforest.solvers.solution import Status


class Aborting(Highs):
    """Aborts once it has told an incumbent, if it finds one."""

    name = "aborting"

    def solve(self, form, settings, **given):
        print("what native code prints")
        os.write(1, b"straight to the standard output\n")
        told = given.pop("on_progress")
        found = super().solve(form, settings, on_progress=told, **given)
        if found.x is not None and told is not None:
            told(found.events[-1].__class__(0.1, found.objective, -np.inf, 1, found.x))
        os.abort()


class KnownToAbort(Aborting):
    """Gets a process of its own, as it is known to abort."""

    name = "known-to-abort"

    def aborts_on(self, form):
        return True


class AbortingHere(Highs):
    """Aborts the process that hands it over, as a search in native code may."""

    name = "aborting-here"

    def __reduce__(self):
        os.abort()


class Endless(PlainSolver):
    """Hears nothing for a minute."""

    name, package, install = "endless", "numpy", "numpy"
    features = Highs.features

    def run(self, form, settings, worker):
        time.sleep(60)
        return Answer(Status.OPTIMAL)
