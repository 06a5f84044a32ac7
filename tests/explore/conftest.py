"""Explorers of small problems."""

import pytest

from mipforest.edits import EditSession
from mipforest.explore.explorer import Explorer


@pytest.fixture
def explorers():
    """Makes explorers, and closes them."""
    made = []

    def make(problem, **more):
        made.append(Explorer(EditSession(problem, gap=0.0), **more))
        return made[-1]

    yield make
    for explorer in made:
        explorer.close()
