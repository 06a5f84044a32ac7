"""A library on disk: where its suite, catalogue, models, starts and solutions are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mipforest.errors import did_you_mean
from mipforest.instances.catalogue import Entry, read_catalogue, write_catalogue
from mipforest.instances.suite import InstanceSpec, SuiteError, read_suite


@dataclass(frozen=True)
class Library:
    """A folder with ``suite.toml``, ``catalogue.csv``, and one folder per family.

    A family's folder holds, for each instance, ``NAME.mps.gz`` (the model), ``NAME.json`` (its metadata),
    ``NAME.mst`` (a start) and ``NAME.sol`` (the best known solution).

    Attributes
    ----------
    folder
        The folder.
    """

    folder: Path

    @property
    def catalogue_path(self) -> Path:
        """The catalogue's file."""
        return self.folder / "catalogue.csv"

    @cached_property
    def suite(self) -> dict[str, InstanceSpec]:
        """Instances by name.

        Raises
        ------
        SuiteError
            If there is no suite, or it is malformed.
        """
        path = self.folder / "suite.toml"
        if not path.is_file():
            raise SuiteError(
                f"there is no instance library in {self.folder} (no file {path}); give its folder with --library"
            )
        return read_suite(path)

    def chosen(self, only: tuple[str, ...]) -> list[InstanceSpec]:
        """Return the instances whose name, family or model is listed; all if nothing is.

        Raises
        ------
        SuiteError
            If a word names none.
        """
        chosen = [s for s in self.suite.values() if not only or {s.name, s.family, s.model} & set(only)]
        known = {word for s in self.suite.values() for word in (s.name, s.family, s.model)}
        for word in only:
            if word not in known:
                hint = did_you_mean(word, sorted(known))
                raise SuiteError(f"no instance, family or model is called {word!r}{hint}")
        return chosen

    def entries(self) -> dict[str, Entry]:
        """Read the catalogue."""
        return read_catalogue(self.catalogue_path)

    def record(self, entry: Entry) -> None:
        """Record an entry in the catalogue, in the suite's order; entries that left the suite come last."""
        entries = {**self.entries(), entry.name: entry}
        names = [*(name for name in self.suite if name in entries), *(entries.keys() - self.suite.keys())]
        write_catalogue({name: entries[name] for name in names}, self.catalogue_path)

    def model_path(self, spec: InstanceSpec) -> Path:
        """Return the model's file."""
        return self.folder / spec.family / f"{spec.name}.mps.gz"

    def start_path(self, spec: InstanceSpec) -> Path:
        """Return the start's file."""
        return self.folder / spec.family / f"{spec.name}.mst"

    def solution_path(self, spec: InstanceSpec) -> Path:
        """Return the best known solution's file."""
        return self.folder / spec.family / f"{spec.name}.sol"
