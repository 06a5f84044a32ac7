"""What a certificate speaks of: the numbers that its check uses, and the words that the file has for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.certificates.arithmetic import require, whole

#: Longest text and most entries of the words of a certificate.
_LONGEST, _MOST_ENTRIES = 200, 2000


@dataclass(frozen=True)
class Words:
    """What a certificate calls its problem; a check cannot tell whether the names are right.

    Attributes
    ----------
    model, variant, data, program
        Names of the model, its variant, the data, and of what wrote the file; empty where it has none.
    parameters
        The model's parameters by name; empty where the file has none.
    rows
        How many samples the data have, equal ones included; ``None`` where it does not say.
    """

    model: str = ""
    variant: str = ""
    data: str = ""
    program: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    rows: int | None = None

    @classmethod
    def read(cls, header: Mapping[str, Any]) -> Words:
        """Return what the first line of a certificate says, or refuse it."""
        texts = {name: header.get(name, "") for name in ("model", "variant", "data", "program")}
        for name, text in texts.items():
            require(isinstance(text, str) and len(text) <= _LONGEST, f"{name} is no text, or a long one")
        parameters, rows = header.get("parameters", {}), header.get("rows")
        require(isinstance(parameters, dict), "parameters is no object")
        for name, value in parameters.items():
            require(len(name) <= _LONGEST and _is_plain(value, 2), f"parameter {name[:40]} is no plain value")
        return cls(
            **texts, parameters=parameters, rows=None if rows is None else whole(rows, "rows", 1, 1 << 53)
        )


def _is_plain(value: object, levels: int) -> bool:
    """Return whether a value is a number, a short text, or a list of such, of some levels."""
    if isinstance(value, list):
        return levels > 0 and len(value) <= _MOST_ENTRIES and all(_is_plain(e, levels - 1) for e in value)
    if isinstance(value, float):
        return bool(np.isfinite(value))
    if isinstance(value, int):
        return abs(value) < 1 << 63
    return value is None or (isinstance(value, str) and len(value) <= _LONGEST)


def digest_of_samples(X: FloatArray, weight: FloatArray) -> str:
    """Return the SHA-256 of the samples of a proof, whatever their order.

    It is that of these little-endian numbers: how many different samples there are and how many features (64-bit whole
    numbers), then for each sample, in the order of their features, its features and its weights in class -1 and +1
    (doubles, 0 without a sign).

    Parameters
    ----------
    X, weight
        (G, p) different samples as the model has them, and (G, 2) what those of class -1 and +1 weigh together.
    """
    table = np.hstack([X, weight]) + 0.0  # -0 becomes 0
    table = table[np.lexsort(table.T[::-1])]
    digest = sha256(np.array(X.shape, dtype="<i8").tobytes())
    digest.update(np.ascontiguousarray(table, dtype="<f8").tobytes())
    return digest.hexdigest()
