"""Models and results as files."""

from __future__ import annotations

import os

from mipforest.files.lp import write_lp
from mipforest.files.lp_reader import LpError, read_lp
from mipforest.files.mof import MofError, read_mof, write_mof
from mipforest.files.mps import MpsError, read_mps, write_mps
from mipforest.files.streams import split_suffix
from mipforest.model.matrix import MatrixForm

__all__ = [
    "LpError",
    "MofError",
    "MpsError",
    "read_lp",
    "read_model",
    "read_mof",
    "read_mps",
    "write_lp",
    "write_model",
    "write_mof",
    "write_mps",
]

_WRITERS = {".mps": write_mps, ".lp": write_lp, ".mof.json": write_mof}
_READERS = {".mps": read_mps, ".lp": read_lp, ".mof.json": read_mof}


def read_model(path: str | os.PathLike[str]) -> MatrixForm:
    """Read a model from an MPS, LP or MathOptFormat file.

    Parameters
    ----------
    path
        ``*.mps`` (:func:`read_mps`), ``*.lp`` (:func:`read_lp`) or ``*.mof.json`` (:func:`read_mof`), with ``.gz``
        behind it where it is compressed.

    Raises
    ------
    MpsError, LpError, MofError
        If the file is malformed, or has a part that a model cannot hold; with line and reason.
    ValueError
        If the suffix is another.
    OSError
        As the system reports it.
    """
    suffix, _ = split_suffix(path)
    return _READERS[suffix](path)


def write_model(form: MatrixForm, path: str | os.PathLike[str]) -> None:
    """Write a model to an MPS, LP or MathOptFormat file, which appears complete or not at all.

    Parameters
    ----------
    form
        The model.
    path
        ``*.mps`` (exact, read back by :func:`mipforest.files.read_mps`), ``*.lp`` (for people, and solvers that
        prefer it) or ``*.mof.json`` (for JuMP and what reads JSON), with ``.gz`` behind it to compress.

    Raises
    ------
    ValueError
        If the suffix is another, or the model has a part that the format does not tell.
    OSError
        As the system reports it.
    """
    suffix, _ = split_suffix(path)
    _WRITERS[suffix](form, path)
