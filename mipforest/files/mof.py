r"""MathOptFormat: models as JSON, for JuMP and whatever reads JSON.

The format is that of B. Legat, O. Dowson, J. Dias Garcia and M. Lubin, *MathOptInterface: a data structure for
mathematical optimization problems*, INFORMS Journal on Computing 34, 2022. A model is a list of variables, an
objective, and constraints, each of them a function in a set:

- A row is a ``ScalarAffineFunction`` in ``LessThan``, ``GreaterThan``, ``EqualTo`` or ``Interval``. A row without sides
  is left out: no set has none.
- A bound is the function ``Variable`` in such a set; whole columns are in ``Integer``, binary ones in ``ZeroOne``.
- The quadratic objective :math:`\frac12 x^\top Q x` has a term for each entry of the upper triangle of Q: by the
  format's convention, those of the diagonal are halved.
- An indicator row is a ``VectorAffineFunction`` of its binary column and its row, in the set ``Indicator``.

Numbers are the shortest decimals that read back as the same float64, and names those of MPS files: what was written
reads back as the same arrays, but for rows without sides.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from mipforest.arrays import FloatArray, SparseMatrix
from mipforest.errors import MipforestError
from mipforest.files.layout import canonical, check_writable, named_block, safe_names
from mipforest.files.streams import file_blocks, number_text, split_suffix, write_lines
from mipforest.model.matrix import IndicatorRows, MatrixForm
from mipforest.unpacking import UnpackingError

#: Version of the format that is written.
VERSION = (1, 7)

T = TypeVar("T")


class MofError(MipforestError, ValueError):
    """A MathOptFormat file that is malformed, or has what a model cannot hold.

    Attributes
    ----------
    path
        The file.
    reason
        What is wrong, and where.
    """

    def __init__(self, path: str | os.PathLike[str], reason: str) -> None:
        super().__init__(f"{os.fspath(path)}: {reason}")
        self.path, self.reason = Path(path), reason


# ---------------------------------------------------------------------- writing


def write_mof(form: MatrixForm, path: str | os.PathLike[str]) -> None:
    """Write a model to a MathOptFormat file, which appears complete or not at all.

    Parameters
    ----------
    form
        The model.
    path
        ``*.mof.json``, or ``*.mof.json.gz`` for a compressed file.

    Raises
    ------
    ValueError
        If the suffix is another, or the model has a part that no file tells: NaN, an infinite coefficient, crossing
        sides, a matrix ``Q`` that is not symmetric, an indicator row without sides or without a binary column.
    OSError
        As the system reports it.
    """
    _, compressed = split_suffix(path, (".mof.json",))
    check_writable(form)
    write_lines(path, _text(form), compressed=compressed)


def _text(form: MatrixForm) -> Iterator[bytes]:
    """Yield the text of the file, a line for each variable and each constraint."""
    names = [json.dumps(name) for name in safe_names(form.column_names)]
    yield b'{"name": %s,\n' % json.dumps(form.name).encode()
    yield b'"version": {"major": %d, "minor": %d},\n"variables": [\n' % VERSION
    yield from _listed(f'{{"name": {name}}}' for name in names)
    sense = "max" if form.maximize else "min"
    yield f'],\n"objective": {{"sense": "{sense}", "function": {_objective(form, names)}}},\n'.encode()
    yield b'"constraints": [\n'
    yield from _listed(_constraints(form, names))
    yield b"]}\n"


def _listed(entries: Iterator[str]) -> Iterator[bytes]:
    """Yield entries of a list, each on its line."""
    comma = b""
    for entry in entries:
        yield comma + entry.encode()
        comma = b",\n"
    yield b"\n"


def _numbers(values: FloatArray) -> list[str]:
    return [text.decode() for text in number_text(np.asarray(values, dtype=np.float64)).tolist()]


def _number(value: float) -> str:
    return _numbers(np.array([value]))[0]


def _objective(form: MatrixForm, names: list[str]) -> str:
    """Return the objective as a function, with a term for each column that has a cost."""
    used = np.flatnonzero(form.c)
    terms = ", ".join(_terms(_numbers(form.c[used]), [names[j] for j in used]))
    constant = _numbers(np.array([form.offset]))[0]
    if form.Q is None or not form.Q.nnz:
        return f'{{"type": "ScalarAffineFunction", "terms": [{terms}], "constant": {constant}}}'
    triangle = sparse.triu(form.Q, format="csr").tocoo()
    products = ", ".join(
        f'{{"coefficient": {q}, "variable_1": {names[i]}, "variable_2": {names[j]}}}'
        for q, i, j in zip(_numbers(triangle.data), triangle.row, triangle.col, strict=True)
    )
    return (
        f'{{"type": "ScalarQuadraticFunction", "affine_terms": [{terms}], "quadratic_terms": [{products}], '
        f'"constant": {constant}}}'
    )


def _terms(coefficients: list[str], variables: list[str]) -> list[str]:
    pairs = zip(coefficients, variables, strict=True)
    return [f'{{"coefficient": {a}, "variable": {name}}}' for a, name in pairs]


def _constraints(form: MatrixForm, names: list[str]) -> Iterator[str]:
    """Yield bounds, integrality, rows and indicator rows."""
    binary = form.integer & (form.col_lower == 0) & (form.col_upper == 1)
    bounds = _sets(form.col_lower, form.col_upper)
    for j, name in enumerate(names):
        function = f'"function": {{"type": "Variable", "name": {name}}}'
        if bounds[j] and not binary[j]:
            yield f'{{{function}, "set": {bounds[j]}}}'
        if form.integer[j]:
            yield f'{{{function}, "set": {{"type": "{"ZeroOne" if binary[j] else "Integer"}"}}}}'
    for name, sides, terms in _rows(
        safe_names(form.row_names), form.A, form.row_lower, form.row_upper, names
    ):
        if sides:
            yield (
                f'{{"name": {name}, "function": {{"type": "ScalarAffineFunction", "terms": [{", ".join(terms)}], '
                f'"constant": 0}}, "set": {sides}}}'
            )
    own = form.indicators
    own_names = safe_names([name for block in own.rows for name in block.names()], reserved=form.row_names)
    for row, (name, sides, terms) in enumerate(_rows(own_names, own.A, own.lower, own.upper, names)):
        binary_term = f'{{"coefficient": 1, "variable": {names[own.binary[row]]}}}'
        outputs = [f'{{"output_index": 1, "scalar_term": {binary_term}}}']
        outputs += [f'{{"output_index": 2, "scalar_term": {term}}}' for term in terms]
        yield (
            f'{{"name": {name}, "function": {{"type": "VectorAffineFunction", "terms": [{", ".join(outputs)}], '
            f'"constants": [0, 0]}}, "set": {{"type": "Indicator", "set": {sides}, '
            f'"activate_on": "{"one" if own.value[row] == 1 else "zero"}"}}}}'
        )


def _rows(
    row_names: list[str], A: SparseMatrix, lower: FloatArray, upper: FloatArray, names: list[str]
) -> Iterator[tuple[str, str, list[str]]]:
    """Yield name, set and terms of each row; an empty set where it has no side."""
    coefficients, columns = _numbers(A.data), A.indices.tolist()
    for row, (name, sides) in enumerate(zip(row_names, _sets(lower, upper), strict=True)):
        part = slice(A.indptr[row], A.indptr[row + 1])
        yield json.dumps(name), sides, _terms(coefficients[part], [names[j] for j in columns[part]])


def _sets(lower: FloatArray, upper: FloatArray) -> list[str]:
    """Return the set of each pair of sides; empty where both are infinite."""
    below, above = np.isfinite(lower), np.isfinite(upper)
    low, high = _numbers(np.where(below, lower, 0.0)), _numbers(np.where(above, upper, 0.0))
    sets = []
    for k, kind in enumerate(np.select([lower == upper, below & above, below, above], [1, 2, 3, 4], 0)):
        sets.append(
            (
                "",
                f'{{"type": "EqualTo", "value": {low[k]}}}',
                f'{{"type": "Interval", "lower": {low[k]}, "upper": {high[k]}}}',
                f'{{"type": "GreaterThan", "lower": {low[k]}}}',
                f'{{"type": "LessThan", "upper": {high[k]}}}',
            )[kind]
        )
    return sets


# ---------------------------------------------------------------------- reading


def read_mof(path: str | os.PathLike[str]) -> MatrixForm:
    """Read a model from a MathOptFormat file.

    What a model cannot hold is refused by name: quadratic rows, cones, special ordered sets, semi-continuous variables,
    nonlinear functions. A constant in the function of a row moves to its sides. Terms that repeat are added up.

    Parameters
    ----------
    path
        ``*.mof.json``, or ``*.mof.json.gz`` (compressed).

    Returns
    -------
    MatrixForm
        With one block ``columns`` and one block ``rows`` that hold the names.

    Raises
    ------
    MofError
        If the file is malformed, or has what a model cannot hold.
    ValueError
        If the suffix is another.
    OSError
        As the system reports it.
    """
    _, compressed = split_suffix(path, (".mof.json",))
    try:
        content = b"".join(file_blocks(path, compressed=compressed))
        return _Reader(path).model(json.loads(content, parse_constant=_no_number))
    except UnpackingError as damage:
        raise MofError(path, str(damage)) from damage
    except RecursionError:
        raise MofError(path, "its lists are nested too deeply: no such file") from None
    except (json.JSONDecodeError, UnicodeDecodeError, _Unreadable) as error:
        raise MofError(path, f"{error}; is this a MathOptFormat file, and whole?") from None


class _Unreadable(MipforestError, ValueError):
    """A part that the format does not have."""


def _no_number(text: str) -> float:
    raise _Unreadable(f"{text} is no number of JSON")


class _Sides:
    """Lower and upper side of a column or a row: each set narrows them."""

    def __init__(self) -> None:
        self.lower, self.upper = -np.inf, np.inf


class _Rows:
    """Rows that are read one by one."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.row: list[int] = []
        self.column: list[int] = []
        self.coefficient: list[float] = []
        self.lower: list[float] = []
        self.upper: list[float] = []

    def add(self, name: str, terms: list[tuple[int, float]], lower: float, upper: float) -> None:
        self.row += [len(self.names)] * len(terms)
        self.column += [j for j, _ in terms]
        self.coefficient += [a for _, a in terms]
        self.names.append(name)
        self.lower.append(lower)
        self.upper.append(upper)

    def matrix(self, n: int) -> SparseMatrix:
        return _matrix(self.coefficient, self.row, self.column, (len(self.names), n))


class _Reader:
    """The parts of one file, each checked where it is read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self.number_of: dict[str, int] = {}

    def model(self, content: Any) -> MatrixForm:
        version = _part(_object(content, "the file"), "version", dict)
        if (major := version.get("major")) != VERSION[0]:
            raise MofError(self.path, f"its version is {major!r}; version {VERSION[0]} of the format is read")
        names = [
            _part(_object(each, "a variable"), "name", str) for each in _part(content, "variables", list)
        ]
        self.number_of = {name: j for j, name in enumerate(names)}
        n = len(names)
        self._check_names("variable", names)
        bounds, integer = [_Sides() for _ in names], np.zeros(n, dtype=bool)
        rows, conditional = _Rows(), _Rows()
        switches: list[tuple[int, int]] = []
        for k, each in enumerate(_part(content, "constraints", list)):
            function = _part(_object(each, "a constraint"), "function", dict)
            wanted, name = _part(each, "set", dict), str(each.get("name") or f"c{k}")
            kind, domain = _part(function, "type", str), _part(wanted, "type", str)
            if kind == "Variable":
                column = self._column(function, "name")
                if domain in ("ZeroOne", "Integer"):
                    integer[column] = True
                if domain != "Integer":
                    self._narrow(bounds[column], wanted, 0.0, f"of variable {names[column]!r}")
            elif kind == "ScalarAffineFunction":
                sides = _Sides()
                self._narrow(sides, wanted, _value(function, "constant"), f"of constraint {name!r}")
                rows.add(name, self._terms(_part(function, "terms", list)), sides.lower, sides.upper)
            elif kind == "VectorAffineFunction" and domain == "Indicator":
                switches.append(self._indicator(conditional, name, function, wanted))
            else:
                raise MofError(
                    self.path,
                    f"constraint {name!r} is a {kind} in {domain}; models here have affine rows, indicator rows, "
                    "bounds, and whole or binary variables",
                )
        self._check_names("constraint", rows.names + conditional.names)
        c, offset, Q = self._objective(content, n)
        return MatrixForm(
            c=c,
            A=rows.matrix(n),
            row_lower=np.array(rows.lower),
            row_upper=np.array(rows.upper),
            col_lower=np.array([own.lower for own in bounds]),
            col_upper=np.array([own.upper for own in bounds]),
            integer=integer,
            indicators=IndicatorRows(
                np.array([column for column, _ in switches], dtype=np.int64),
                np.array([value for _, value in switches], dtype=np.int64),
                conditional.matrix(n),
                np.array(conditional.lower),
                np.array(conditional.upper),
                named_block("indicators", conditional.names),
            ),
            Q=Q,
            offset=offset,
            columns=named_block("columns", names),
            rows=named_block("rows", rows.names),
            maximize=_part(_part(content, "objective", dict), "sense", str) == "max",
            name=str(content.get("name") or ""),
        )

    def _check_names(self, kind: str, names: list[str]) -> None:
        """Refuse names that repeat or do not print."""
        if len(set(names)) < len(names):
            seen: set[str] = set()
            twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            raise MofError(self.path, f"the {kind} {twice!r} comes twice; rename one of them")
        for name in names:
            if not name or not name.isprintable():
                raise MofError(self.path, f"the {kind} {name!r} is empty or does not print; rename it")

    def _column(self, given: dict[str, Any], key: str) -> int:
        name = _part(given, key, str)
        if name not in self.number_of:
            raise MofError(self.path, f"there is no variable {name!r} in its list of variables")
        return self.number_of[name]

    def _terms(self, given: list[Any]) -> list[tuple[int, float]]:
        return [
            (self._column(_object(term, "a term"), "variable"), _value(term, "coefficient")) for term in given
        ]

    def _narrow(self, sides: _Sides, wanted: dict[str, Any], constant: float, whose: str) -> None:
        """Narrow two sides, those of a function without its constant."""
        keys = {
            "LessThan": (None, "upper"),
            "GreaterThan": ("lower", None),
            "EqualTo": ("value", "value"),
            "Interval": ("lower", "upper"),
            "ZeroOne": (None, None),
        }
        domain = wanted["type"]
        if domain not in keys:
            raise MofError(self.path, f"the set {whose} is {domain}, which a model here cannot hold")
        below, above = keys[domain]
        low, high = (0.0, 1.0) if domain == "ZeroOne" else (-np.inf, np.inf)
        low = low if below is None else _value(wanted, below) - constant
        high = high if above is None else _value(wanted, above) - constant
        sides.lower, sides.upper = max(sides.lower, low), min(sides.upper, high)
        if sides.lower > sides.upper:
            raise MofError(self.path, f"the sides {whose} cross: {sides.lower:g} and {sides.upper:g}")

    def _indicator(
        self, rows: _Rows, name: str, function: dict[str, Any], wanted: dict[str, Any]
    ) -> tuple[int, int]:
        """Add an indicator row; return the column and the value that switch it on."""
        outputs: dict[int, list[tuple[int, float]]] = {1: [], 2: []}
        for term in _part(function, "terms", list):
            output = _part(_object(term, "a term"), "output_index", int)
            outputs.get(output, []).extend(self._terms([_part(term, "scalar_term", dict)]))
        constants = _part(function, "constants", list)
        value = {"one": 1, "zero": 0}.get(_part(wanted, "activate_on", str))
        if len(outputs[1]) != 1 or outputs[1][0][1] != 1.0 or len(constants) != 2 or constants[0] != 0:
            raise MofError(self.path, f"the first part of indicator row {name!r} is no binary variable alone")
        if value is None:
            raise MofError(self.path, f"indicator row {name!r} is activated neither on one nor on zero")
        sides = _Sides()
        constant = _value({"constant": constants[1]}, "constant")
        self._narrow(sides, _part(wanted, "set", dict), constant, f"of indicator row {name!r}")
        rows.add(name, outputs[2], sides.lower, sides.upper)
        return outputs[1][0][0], value

    def _objective(self, content: dict[str, Any], n: int) -> tuple[FloatArray, float, SparseMatrix | None]:
        """Return (n,) costs, the constant and Q."""
        objective = _part(content, "objective", dict)
        c = np.zeros(n)
        if (sense := _part(objective, "sense", str)) == "feasibility":
            return c, 0.0, None
        if sense not in ("min", "max"):
            raise MofError(self.path, f"the sense of its objective is {sense!r}, neither min nor max")
        function = _part(objective, "function", dict)
        kind = _part(function, "type", str)
        if kind == "Variable":
            c[self._column(function, "name")] = 1.0
            return c, 0.0, None
        if kind not in ("ScalarAffineFunction", "ScalarQuadraticFunction"):
            raise MofError(self.path, f"its objective is a {kind}; models here have affine or quadratic ones")
        is_quadratic = kind == "ScalarQuadraticFunction"
        for column, cost in self._terms(_part(function, "affine_terms" if is_quadratic else "terms", list)):
            c[column] += cost
        offset = _value(function, "constant")
        if not is_quadratic:
            return c, offset, None
        value, first, second = [], [], []
        for term in _part(function, "quadratic_terms", list):
            value.append(_value(_object(term, "a term"), "coefficient"))
            first.append(self._column(term, "variable_1"))
            second.append(self._column(term, "variable_2"))
        one_way = _matrix(value, np.minimum(first, second), np.maximum(first, second), (n, n))
        Q = sparse.csr_array(one_way + sparse.triu(one_way, 1).T)
        Q.sort_indices()
        return c, offset, Q if Q.nnz else None


def _part(given: dict[str, Any], key: str, kind: type[T]) -> T:
    """Return a part of an object by its key."""
    if key not in given:
        raise _Unreadable(f"{_shortened(given)} has no {key!r}")
    if not isinstance(given[key], kind) or isinstance(given[key], bool):
        raise _Unreadable(f"{key!r} of {_shortened(given)} is no {_KINDS[kind]}")
    value: T = given[key]
    return value


_KINDS: dict[type, str] = {dict: "object", list: "list", str: "text", int: "whole number"}


def _object(given: Any, what: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise _Unreadable(f"{what} is {_shortened(given)}, which is no object")
    return given


def _value(given: dict[str, Any], key: str) -> float:
    """Return a finite number of an object by its key."""
    number = given.get(key)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise _Unreadable(f"{key!r} of {_shortened(given)} is no number")
    try:
        value = float(number)
    except OverflowError:
        value = np.inf
    if not np.isfinite(value):
        raise _Unreadable(f"{key!r} of {_shortened(given)} is no finite number")
    return value


def _shortened(given: Any) -> str:
    text = json.dumps(given)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _matrix(value: Any, row: Any, column: Any, shape: tuple[int, int]) -> SparseMatrix:
    return canonical(sparse.csr_array((np.asarray(value, dtype=float), (row, column)), shape=shape))
