"""The instance library: which instances there are, what is known of each, and what each solver reached on them."""

from mipforest.instances.distributions import Distribution, read_distribution, shipped
from mipforest.instances.generate import Generated, Generation, generate
from mipforest.instances.library import (
    BuiltInstance,
    CatalogueError,
    Entry,
    Finding,
    InstanceSpec,
    Library,
    SuiteError,
    build_instance,
    build_problem,
    improve,
    pack,
    read_catalogue,
    read_suite,
    verify,
    write_catalogue,
)
from mipforest.instances.race import Race, run_race, write_race
from mipforest.instances.results import Run, fault_of, read_results, write_results
from mipforest.instances.scores import Scores, scores

__all__ = [
    "BuiltInstance",
    "CatalogueError",
    "Distribution",
    "Entry",
    "Finding",
    "Generated",
    "Generation",
    "InstanceSpec",
    "Library",
    "Race",
    "Run",
    "Scores",
    "SuiteError",
    "build_instance",
    "build_problem",
    "fault_of",
    "generate",
    "improve",
    "pack",
    "read_catalogue",
    "read_distribution",
    "read_results",
    "read_suite",
    "run_race",
    "scores",
    "shipped",
    "verify",
    "write_catalogue",
    "write_race",
    "write_results",
]
