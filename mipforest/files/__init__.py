"""Models and results as files."""

from __future__ import annotations

import os

from mipforest.files.lp import write_lp
from mipforest.files.mps import MpsError, read_mps, write_mps
from mipforest.files.streams import split_suffix
from mipforest.model.matrix import MatrixForm

__all__ = ["MpsError", "read_mps", "write_lp", "write_model", "write_mps"]

_WRITERS = {".mps": write_mps, ".lp": write_lp}


def write_model(form: MatrixForm, path: str | os.PathLike[str]) -> None:
    """Write a model to an MPS or LP file, which appears complete or not at all.

    Parameters
    ----------
    form
        The model.
    path
        ``*.mps`` (exact, read back by :func:`mipforest.files.read_mps`) or ``*.lp`` (for people, and solvers
        that prefer it), with ``.gz`` behind it to compress.

    Raises
    ------
    ValueError
        If the suffix is another, or the model has a part that the format does not tell.
    OSError
        As the system reports it.
    """
    suffix, _ = split_suffix(path)
    _WRITERS[suffix](form, path)
