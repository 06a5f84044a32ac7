"""Runs on disk: what was asked, what came out, and the tree, ready to predict."""

from mipforest.runs.data_source import DataSource, LoadedData
from mipforest.runs.folder import RunError, RunFolder
from mipforest.runs.instance import instance_files, write_instance
from mipforest.runs.run import (
    Imported,
    Run,
    Saved,
    SavedCard,
    SavedTree,
    import_solution,
    load_saved_card,
    load_saved_tree,
    network_data,
    read_run,
    samples_of,
    saved_of,
)

__all__ = [
    "DataSource",
    "Imported",
    "LoadedData",
    "Run",
    "RunError",
    "RunFolder",
    "Saved",
    "SavedCard",
    "SavedTree",
    "import_solution",
    "instance_files",
    "load_saved_card",
    "load_saved_tree",
    "network_data",
    "read_run",
    "samples_of",
    "saved_of",
    "write_instance",
]
