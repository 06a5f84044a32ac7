"""What pages and docstrings name by its path exists: modules, classes and functions, and files of the project.

The closures of models in the design notes are those of the code.
"""

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: The changelog names what was renamed.
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
MODULES = [file for folder in ("mipforest", "formulations") for file in (ROOT / folder).rglob("*.py")]

#: ``mipforest.trees.Tree``; not a part of a longer word.
DOTTED = re.compile(r"(?<![\w./-])(?:mipforest|formulations)(?:\.[A-Za-z_]\w*)+")

#: ``docs/tools/closure.py``; not a part of an address.
FILE = re.compile(
    r"(?<![\w./:-])(?:mipforest|formulations|benchmarks|tests|docs)/[\w/.-]*\w\.(?:py|md|svg|toml)\b"
)

#: Endings of files, which look like attributes of a package.
ENDINGS = {"egg", "md", "toml", "json", "mps", "html"}

#: Most files in the closure of a model.
MAX_FILES = {"oct": 7, "margot": 8, "ort": 9, "olct": 10, "miret": 10}


def docstrings(file):
    """Return the docstrings of a module, of its classes and of its functions."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    return "\n".join(ast.get_docstring(node) or "" for node in nodes if isinstance(node, kinds))


@cache
def texts():
    """Return the prose of every page and module, by its name."""
    pages = {file: file.read_text(encoding="utf-8") for file in PAGES}
    return {
        str(file.relative_to(ROOT)): text
        for file, text in (pages | {file: docstrings(file) for file in MODULES}).items()
    }


@cache
def groups():
    """Return the groups of entry points, which are named as modules are."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return set(project["entry-points"])


@cache
def exists(name):
    """Return whether a dotted name leads to a module, or to what is reached from one by attributes."""
    parts = name.split(".")
    if name in groups() or parts[1] in ENDINGS:
        return True
    for k in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                return True  # it needs a package that is not installed
            continue
        for part in parts[k:]:
            if part in getattr(found, "__annotations__", {}):  # a field without a default
                return True
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def test_named_modules_classes_and_functions_exist():
    missing = [
        (where, name)
        for where, text in texts().items()
        for name in sorted(set(DOTTED.findall(text)))
        if not exists(name)
    ]
    assert not missing, "\n".join(f"{where}: {name}" for where, name in missing)


def test_named_files_exist():
    missing = [
        (where, name)
        for where, text in texts().items()
        for name in sorted(set(FILE.findall(text)))
        if not (ROOT / name).exists() and not ((ROOT / where).parent / name).exists()  # a link of a page
    ]
    assert not missing, "\n".join(f"{where}: {name}" for where, name in missing)


def test_names_are_found():
    """Else the tests above would hold for patterns that match nothing."""
    dotted = {name for text in texts().values() for name in DOTTED.findall(text)}
    assert "mipforest.problem.tree_search.TreeSearch" in dotted
    assert not exists("mipforest.no_such_module")
    assert not exists("mipforest.trees.NoSuchTree")
    files = {name for text in texts().values() for name in FILE.findall(text)}
    assert "docs/tools/closure.py" in files


@pytest.mark.slow
def test_closures_of_models_are_small():
    """Few files have to be read to know a model; the table is in the design notes."""
    counted = json.loads(
        subprocess.run(
            [sys.executable, str(ROOT / "docs" / "tools" / "closure.py"), "--json"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )["models"]
    notes = (ROOT / "docs" / "design-notes.md").read_text(encoding="utf-8")
    for model, most in MAX_FILES.items():
        assert counted[model]["files"] <= most
        assert f"| {model.upper()} | {counted[model]['files']} |" in notes
