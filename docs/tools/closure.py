"""Count what has to be read to know each model: the files that its module imports, directly or through others.

``python docs/tools/closure.py [ROOT] [--json]`` prints, for every formulation that ROOT's pyproject.toml registers, the
files and lines of its module and of all that it imports within ``formulations`` and the folders ``objectives``,
``heuristics``, ``smooth`` and ``searches`` of ``mipforest``; and how many Python files and lines the product has. ROOT
is this checkout by default.

Imports are read from the syntax tree, those inside functions included; those for type checkers alone are not.
"""

import argparse
import ast
import json
import tomllib
from pathlib import Path

#: Packages whose modules a reader of a model has to open; what else they import is known by its interface.
COUNTED = (
    "formulations",
    "mipforest.objectives",
    "mipforest.heuristics",
    "mipforest.smooth",
    "mipforest.searches",
)

PRODUCT = ("formulations", "mipforest")


def is_counted(module):
    """Return whether a module belongs to the counted packages."""
    return any(module == package or module.startswith(f"{package}.") for package in COUNTED)


def file_of(root, module):
    """Return the file of a module or package, or ``None`` if there is none."""
    path = root.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def statements(node):
    """Yield all statements below a node but those for type checkers alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield other
                yield from statements(other)
        else:
            yield child
            yield from statements(child)


def imported(root, module):
    """Return the counted modules that a module imports itself."""
    path = file_of(root, module)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = set()
    for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*above, *filter(None, [node.module])])
            found |= {source, *(f"{source}.{alias.name}" for alias in node.names)}
    return {name for name in found if is_counted(name) and file_of(root, name) is not None}


def closure(root, module):
    """Return a module and all counted ones that it imports, directly or through others."""
    known, open_modules = set(), [module]
    while open_modules:
        name = open_modules.pop()
        if name not in known:
            known.add(name)
            open_modules += imported(root, name)
    return {name for name in known if defines_something(file_of(root, name))}


def defines_something(path):
    """Return whether there is anything to read: an ``__init__.py`` may only pass names on."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return path.name != "__init__.py" or any(
        isinstance(node, ast.ClassDef | ast.FunctionDef) for node in body
    )


def lines_of(path):
    """Return the number of lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def measured(root):
    """Return the closure of every registered formulation, and the size of the product."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    models = {}
    for name, entry in sorted(project["entry-points"]["mipforest.formulations"].items()):
        found = sorted(closure(root, entry.partition(":")[0]))
        lines = sum(lines_of(file_of(root, module)) for module in found)
        models[name] = {"files": len(found), "lines": lines, "modules": found}
    files = [path for package in PRODUCT for path in sorted((root / package).rglob("*.py"))]
    return {"models": models, "product": {"files": len(files), "lines": sum(map(lines_of, files))}}


def main():
    """Print the table, or its JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[2], metavar="ROOT")
    parser.add_argument("--json", action="store_true", help="print one JSON object, with the modules' names")
    options = parser.parse_args()
    result = measured(options.root)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    print(f"{'model':<16} {'files':>5} {'lines':>6}")
    for name, model in result["models"].items():
        print(f"{name:<16} {model['files']:>5} {model['lines']:>6}")
    print(f"{'product':<16} {result['product']['files']:>5} {result['product']['lines']:>6}")


if __name__ == "__main__":
    main()
