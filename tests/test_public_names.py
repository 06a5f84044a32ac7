"""Every public name is there, and most of the package without optional ones."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import mipforest

PACKAGES = Path(mipforest.__file__).parent
#: What extras bring; the core does without.
OPTIONAL = (
    "gurobipy",
    "pyscipopt",
    "pyomo",
    "pycontree",
    "xgboost",
    "distributed",
    "dask",
    "cyipopt",
    "pyarrow",
)


def public_modules():
    for path in sorted(PACKAGES.rglob("*.py")):
        if "__all__ =" in path.read_text(encoding="utf-8"):
            parts = path.relative_to(PACKAGES.parent).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_every_name_of_every_all_is_there():
    modules = list(public_modules())
    assert {"mipforest", "mipforest.problem", "mipforest.model"} <= set(modules)
    missing = [
        f"{module}.{name}"
        for module in modules
        for name in import_module(module).__all__
        if not hasattr(import_module(module), name)
    ]
    assert not missing


def test_all_names_import_without_extras():
    script = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
from mipforest import *
assert Model and MargotClassifier and to_pyomo
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
