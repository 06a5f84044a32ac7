"""The instance library: a declarative suite, its catalogue, and how both are built, checked and improved."""

from mipforest.instances.build import Built, Finding, build_instance, build_problem, improve, verify
from mipforest.instances.catalogue import CatalogueError, Entry, Library, read_catalogue, write_catalogue
from mipforest.instances.suite import InstanceSpec, SuiteError, read_suite

__all__ = [
    "Built",
    "CatalogueError",
    "Entry",
    "Finding",
    "InstanceSpec",
    "Library",
    "SuiteError",
    "build_instance",
    "build_problem",
    "improve",
    "read_catalogue",
    "read_suite",
    "verify",
    "write_catalogue",
]
