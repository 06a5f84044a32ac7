"""Finds tests that compare computed numbers by ``==``, ``<=`` or ``<`` as if they had no rounding errors.

Which digits come last depends on the processor: such a test passes on one machine and fails on another. It takes the
comparisons of ``tolerance.py``, ``pytest.approx``, or a margin (``<= bound + 1e-6``). Where a comparison is meant as it
stands, a comment says why: ``# exact: a copy``.

``python tests/float_comparisons.py`` lists what it finds; ``.ci/run`` does so as a part of lint.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

#: Names, attributes, keys and functions whose values are computed numbers, wherever they are.
COMPUTED = re.compile(
    r"(?!class_values|col_cost)(\w+_)?"
    r"(objectives?|bounds?|gap|loss|losses|risk|deviance|error_rate|r2|auc|brier|accuracy|rewards?|scores?|proba"
    r"|decision_function|violation|values?|proximity|optimum|cost|bias|M|M_\w+|of_margin|evaluate|\w+_mean)_?"
)
#: Functions that compute, whose names mean something else where nothing is called.
CALLS = re.compile(r"mean|std|var|norm|median|average|quantile|percentile|trapezoid|exp|log|log1p|expit|sqrt")
#: Calls that give computed numbers where they are given some.
PASSING = {
    "sum",
    "min",
    "max",
    "abs",
    "float",
    "sorted",
    "list",
    "array",
    "diff",
    "cumsum",
    "reversed",
    "to_numpy",
}
#: Orders of numbers, and their equality.
ORDERS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
#: A comment of the statement, beside it or above; alone at the top of a file, for all of it.
EXACT, ALL_EXACT = re.compile(r"# exact: \S+"), re.compile(r"^# exact throughout: \S+", re.MULTILINE)


def exact_comparisons(source: str) -> Iterator[tuple[int, str]]:
    """Yield line number and text of every comparison of computed numbers without a tolerance."""
    if ALL_EXACT.search(source):
        return
    tree, lines = ast.parse(source), source.splitlines()
    for scope in ast.walk(tree):
        if not isinstance(scope, ast.FunctionDef):
            continue
        computed = computed_names(scope)
        for statement in ast.walk(scope):
            if not isinstance(statement, ast.Assert | ast.Expr):
                continue
            if EXACT.search("\n".join(lines[max(statement.lineno - 2, 0) : statement.end_lineno])):
                continue
            for compared in comparisons(statement):
                if is_exact(compared, computed):
                    yield statement.lineno, ast.unparse(compared)


def comparisons(statement: ast.Assert | ast.Expr) -> Iterator[ast.Compare]:
    """Comparisons that an assertion makes, and those of numpy's functions."""
    for node in ast.walk(statement):
        match node:
            case ast.Compare() if isinstance(statement, ast.Assert):
                yield node
            case ast.Call(func=ast.Attribute(attr="assert_array_equal" | "array_equal"), args=[left, right]):
                yield ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])


def computed_names(scope: ast.FunctionDef) -> set[str]:
    """Names that the function gives to computed numbers."""
    names: set[str] = set()
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and is_computed(node.value, names):
            names |= {name.id for name in node.targets if isinstance(name, ast.Name)}
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            values = (
                node.value.elts
                if isinstance(node.value, ast.Tuple)
                else [node.value] * len(node.targets[0].elts)
            )
            pairs = zip(node.targets[0].elts, values, strict=False)
            names |= {
                name.id for name, value in pairs if isinstance(name, ast.Name) and is_computed(value, names)
            }
    return names


def is_exact(compared: ast.Compare, computed: set[str]) -> bool:
    """Whether numbers are compared of which one is computed, without a tolerance."""
    sides = [compared.left, *compared.comparators]
    for operator, left, right in zip(compared.ops, sides, sides[1:], strict=False):
        pairs = [(left, right)]
        if isinstance(left, ast.Tuple) and isinstance(right, ast.Tuple) and len(left.elts) == len(right.elts):
            pairs = list(zip(left.elts, right.elts, strict=True))
        for pair in pairs:
            if not isinstance(operator, ORDERS) or not any(is_computed(side, computed) for side in pair):
                continue
            if any(has_tolerance(side) for side in pair):
                continue
            limit = next((side for side in pair if is_literal(side)), None)
            if limit is None or (isinstance(operator, ast.Eq) and fractional(limit)):
                return True
    return False


def is_computed(node: ast.AST, computed: set[str]) -> bool:
    """Whether an expression is a computed number, or several."""

    def inside(*parts: ast.AST) -> bool:
        return any(is_computed(part, computed) for part in parts)

    match node:
        case ast.Name(id=name):
            return name in computed or bool(COMPUTED.fullmatch(name))
        case ast.Attribute(attr=name):
            return bool(COMPUTED.fullmatch(name))
        case ast.Subscript(value=value, slice=ast.Constant(value=str() as key)):
            return bool(COMPUTED.fullmatch(key)) or inside(value)
        case ast.Subscript(value=value):
            return inside(value)
        case ast.Call(func=ast.Attribute(attr=name, value=value), args=arguments):
            return computes(name) or (name in PASSING and inside(value, *arguments))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return computes(name) or (name in PASSING and inside(*arguments))
        case ast.BinOp(op=ast.Div()):
            return not is_literal(node)
        case ast.BinOp(left=left, right=right):
            return isinstance(node.op, ast.MatMult) or inside(left, right)
        case ast.UnaryOp(operand=operand):
            return not isinstance(node.op, ast.Not) and inside(operand)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return inside(*elements)
        case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
            return inside(element)
        case ast.IfExp(body=body, orelse=other):
            return inside(body, other)
    return False


def computes(name: str) -> bool:
    """Whether what is called is a function that computes numbers."""
    return bool(COMPUTED.fullmatch(name) or CALLS.fullmatch(name))


def is_literal(node: ast.AST) -> bool:
    """Whether an expression is written out: numbers, texts, infinity, constants."""
    match node:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name.isupper()
        case ast.Attribute(value=ast.Name(id="np"), attr="inf"):
            return True
        case ast.UnaryOp(operand=operand):
            return is_literal(operand)
        case ast.BinOp(left=left, right=right):
            return is_literal(left) and is_literal(right)
        case ast.IfExp(body=body, orelse=other):
            return is_literal(body) and is_literal(other)
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            return all(map(is_literal, elements))
        case ast.Dict(keys=keys, values=values):
            return all(key is not None and is_literal(key) for key in keys) and all(map(is_literal, values))
    return False


def fractional(literal: ast.AST, deep: bool = True) -> bool:
    """Whether a literal is, or has among its parts, a number that is not whole."""
    values = [
        part.value for part in (ast.walk(literal) if deep else [literal]) if isinstance(part, ast.Constant)
    ]
    return any(isinstance(value, float) and not value.is_integer() for value in values)


def has_tolerance(node: ast.AST) -> bool:
    """Whether an expression is approximate, or has a written margin: ``+ 1e-6``, ``0.9 *``, ``- TOLERANCE``."""
    for part in ast.walk(node):
        match part:
            case ast.Attribute(attr="approx"):
                return True
            case ast.Name(id=name) if re.search("tolerance|rounding|slack", name, re.IGNORECASE):
                return True
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult(), left=left, right=right):
                if fractional(left, deep=False) or fractional(right, deep=False):
                    return True
    return False


def main() -> int:
    """List what is found in the tests; the number of it, at most 1, is the exit code."""
    folder = Path(__file__).parent
    found = [
        f"{path.relative_to(folder.parent)}:{line}: {text}"
        for path in sorted(folder.rglob("*.py"))
        for line, text in exact_comparisons(path.read_text())
    ]
    print(*found, sep="\n", end="\n" if found else "")
    return min(len(found), 1)


if __name__ == "__main__":
    sys.exit(main())
