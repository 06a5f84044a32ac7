"""Models and results as files."""

from __future__ import annotations

import os

from mipforest.files.lp import write_lp
from mipforest.files.lp_reader import LpError, read_lp
from mipforest.files.mps import MpsError, read_mps, write_mps
from mipforest.files.streams import split_suffix
from mipforest.model.matrix import MatrixForm

__all__ = ["LpError", "MpsError", "read_lp", "read_model", "read_mps", "write_lp", "write_model", "write_mps"]

_WRITERS = {".mps": write_mps, ".lp": write_lp}
_READERS = {".mps": read_mps, ".lp": read_lp}


def read_model(path: str | os.PathLike[str]) -> MatrixForm:
    """Read a model from an MPS or LP file.

    Parameters
    ----------
    path
        ``*.mps`` (:func:`read_mps`) or ``*.lp`` (:func:`read_lp`), with ``.gz`` behind it where it is compressed.

    Raises
    ------
    MpsError, LpError
        If the file is malformed, or has a part that a model cannot hold; with line and reason.
    ValueError
        If the suffix is another.
    OSError
        As the system reports it.
    """
    suffix, _ = split_suffix(path)
    return _READERS[suffix](path)


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
