"""The toolkit knows no formulation by name: a third party's has what the built-in ones have."""

import ast
from importlib.metadata import entry_points
from pathlib import Path

import mipforest

PACKAGE = Path(mipforest.__file__).parent

#: The estimators of the papers are their models by other names; the doctor tries solvers on one.
ALLOWED = ("estimators/", "cli/doctor.py")


def names_in(path, known):
    """Return the lines of a module whose text constants are names of formulations."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {node.value}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in known
    ]


def test_no_formulation_is_named_in_the_toolkit():
    known = entry_points(group="mipforest.formulations").names
    assert len(known) >= 24
    modules = [
        path
        for path in sorted(PACKAGE.rglob("*.py"))
        if not path.relative_to(PACKAGE).as_posix().startswith(ALLOWED)
    ]
    assert len(modules) > 100
    assert [line for path in modules for line in names_in(path, known)] == []


def test_names_are_found(tmp_path, monkeypatch):
    """Else the test above would hold for a search that finds nothing."""
    monkeypatch.setattr("test_formulation_names.PACKAGE", tmp_path)
    (tmp_path / "one.py").write_text('"""Of margot."""\nMODELS = ("margot",)\n')
    assert names_in(tmp_path / "one.py", {"margot"}) == ["one.py:2: margot"]
