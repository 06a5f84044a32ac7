"""The instance library: a declarative suite, its catalogue, and how both are built, checked and improved."""

from mipforest.instances.build import BuiltInstance, Finding, build_instance, build_problem, improve, verify
from mipforest.instances.library import (
    CatalogueError,
    Entry,
    InstanceSpec,
    Library,
    SuiteError,
    read_catalogue,
    read_suite,
    write_catalogue,
)

__all__ = [
    "BuiltInstance",
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
