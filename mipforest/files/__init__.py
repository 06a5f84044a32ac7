"""Models and results as files."""

from mipforest.files.atomic import atomic_write
from mipforest.files.lp import write_lp
from mipforest.files.models import write_model
from mipforest.files.mps import MpsError, read_mps, write_mps

__all__ = ["MpsError", "atomic_write", "read_mps", "write_lp", "write_model", "write_mps"]
