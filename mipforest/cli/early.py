"""What a command refuses before the modules are imported that would do the work: it answers at once."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from pathlib import Path

from mipforest.errors import known_name, no_file, unknown_formulation

#: Group of entry points of formulations, as in :mod:`mipforest.problem.registry`, which takes long to import.
FORMULATIONS = "mipforest.formulations"

#: Ends of the names of files of data, as in :mod:`mipforest.data.loading`.
SUFFIXES = (
    *(f"{text}{packed}" for text in (".csv", ".tsv", ".txt", ".data") for packed in ("", ".gz")),
    ".arff",
    ".parquet",
)


def refuse_unknown(model: str | None, data: str | None) -> None:
    """Refuse a model that there is not, and a file of data that there is not.

    Raises
    ------
    UnknownFormulation, DataError
        As the registry and the loading of data do.
    """
    # Where the registry is there already, nothing is gained, and programs may have added models to it.
    if model is not None and "mipforest.problem.registry" not in sys.modules:
        names = entry_points(group=FORMULATIONS).names
        if known_name(model, names) not in names:
            raise unknown_formulation(model, names)
    if data is not None and data.endswith(SUFFIXES) and ":" not in data and not Path(data).exists():
        raise no_file(Path(data))
