"""Versions of mipforest and of what it uses."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires, version

_NAME = re.compile(r"[A-Za-z0-9._-]+")

#: Extras whose packages the program uses; those for its development are left out.
_USED_EXTRAS = ("gurobi", "scip", "pyomo", "parquet", "dp", "xgboost", "dask")


def versions() -> dict[str, str | None]:
    """Version of mipforest and of every package it can use, by name; ``None`` where it is not installed."""
    names = ["mipforest"]
    for requirement in requires("mipforest") or ():
        name, _, marker = requirement.partition(";")
        if not marker or any(f'extra == "{extra}"' in marker.replace("'", '"') for extra in _USED_EXTRAS):
            match = _NAME.match(name)
            if match and match.group() not in names:
                names.append(match.group())
    return {name: _version(name) for name in names}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
