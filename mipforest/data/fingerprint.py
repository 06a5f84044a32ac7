"""A hash that tells whether two data sets are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from mipforest.arrays import FloatArray, IntArray


def fingerprint(names: Iterable[str], *arrays: FloatArray | IntArray) -> str:
    """Hash names and arrays (shape and little-endian 64-bit values, C order) with SHA-256.

    Returns
    -------
    str
        64 hexadecimal digits, the same on every machine.
    """
    digest = hashlib.sha256("".join(f"{len(name)}:{name}" for name in names).encode())
    for array in arrays:
        kind = "<f8" if array.dtype.kind == "f" else "<i8"
        digest.update(f"{kind}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array, dtype=kind).tobytes())
    return digest.hexdigest()
