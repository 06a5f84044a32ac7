"""A formulation that ends its process; apart from the tests, whose imports the process would repeat."""

import os
from dataclasses import dataclass

from mipforest.problem.registry import get_formulation


@dataclass(frozen=True, kw_only=True)
class Dying(get_formulation("margot")):
    """Takes its process down."""

    def bind(self, data, topology, budget=None):
        os._exit(1)
