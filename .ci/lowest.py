"""Print the lowest version that pyproject.toml admits of every dependency, as constraints for pip."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
groups = [project["dependencies"], *project["optional-dependencies"].values()]
for requirement in map(Requirement, sorted({line for group in groups for line in group})):
    if requirement.name != project["name"]:
        (lowest,) = (bound.version for bound in requirement.specifier if bound.operator == ">=")
        print(f"{requirement.name}=={lowest}")
