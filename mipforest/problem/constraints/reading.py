"""Constraints from options, from files and from what runs keep of them; the kinds that there are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mipforest.errors import DataError, did_you_mean
from mipforest.problem.constraints.changes import AtMostChanges
from mipforest.problem.constraints.constraint import Constraint
from mipforest.problem.constraints.features import (
    AtMostFeatures,
    AtMostOf,
    AtMostSplits,
    FeatureBudget,
    Forbid,
    GroupBudget,
    Monotone,
    OncePerPath,
    Require,
    Split,
    read_toml,
)
from mipforest.problem.constraints.labels import (
    F1,
    LimitLabel,
    MinLeaf,
    Parity,
    Precision,
    Recall,
    RegionLabel,
)

#: Every kind by the name of its option.
KINDS: dict[str, type[Constraint]] = {
    cls.kind: cls
    for cls in (
        Forbid,
        Require,
        AtMostFeatures,
        FeatureBudget,
        Monotone,
        OncePerPath,
        AtMostSplits,
        Split,
        MinLeaf,
        Parity,
        Recall,
        Precision,
        F1,
        LimitLabel,
        RegionLabel,
    )
}

#: Kinds that files have, and no option says.
WITHOUT_OPTION: dict[str, type[Constraint]] = {
    cls.kind: cls for cls in (AtMostOf, AtMostChanges, GroupBudget)
}


def read_constraints(path: Path) -> list[Constraint]:
    """Read a TOML file: a key for each kind, as in ``forbid = ["age", "sex"]`` or ``recall = {yes = "90%"}``.

    Raises
    ------
    DataError
        If the file cannot be read, or a key or value is none.
    """
    try:
        return constraints_of(read_toml(path))
    except DataError as error:
        raise error if str(path) in str(error) else error.located(str(path)) from None


def constraints_of(content: Mapping[str, Any], *, files: bool = True) -> list[Constraint]:
    """Read constraints by kind.

    Parameters
    ----------
    content
        By kind: a text as after the option, a number, a list of these, or a table: of the entries of one constraint
        (``{column = "sex", most = "3%"}``), or of shares by name (``{sex = "3%"}``).
    files
        Whether a feature budget may name a file; a suite, which may come from anyone, may not.

    Raises
    ------
    DataError
        If a key or value is none.
    """
    if not isinstance(content, Mapping):
        raise DataError(f"constraints are {content!r:.60}; give a table by kind, as in forbid = ['age']")
    found: list[Constraint] = []
    for key, value in content.items():
        cls = _kind(key.replace("_", "-"))
        if not files and cls is FeatureBudget and isinstance(value, str) and value.strip().endswith(".toml"):
            raise DataError(
                f"{key} names the file {value!r:.60}, which a suite may not; write budget and cost here"
            )
        are_tables = isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value)
        if issubclass(cls, Forbid | Require | OncePerPath) and isinstance(value, list) and not are_tables:
            found.append(cls.from_dict({"features": [_text(cls, name) for name in value]}))
            continue
        for part in value if isinstance(value, list) else [value]:
            found += _of(cls, part)
    return found


def _kind(name: str) -> type[Constraint]:
    known = KINDS | WITHOUT_OPTION
    if name not in known:
        raise DataError(
            f"there is no constraint {name!r}{did_you_mean(name, known)}; there are {', '.join(known)}"
        )
    return known[name]


def _text(cls: type[Constraint], given: Any) -> str:
    if not isinstance(given, str):
        raise DataError(f"{cls.kind}: {given!r:.60} is no text; write it in quotes")
    return given


def _of(cls: type[Constraint], given: Any) -> list[Constraint]:
    if isinstance(given, Mapping):
        known = set(cls.__dataclass_fields__)
        if given.keys() & known == given.keys():
            return [cls.from_dict(given)]
        if cls in (Parity, Recall, Precision, F1, LimitLabel):
            return [cls(name, value) for name, value in given.items()]
        return [cls.from_dict(given)]
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise DataError(
            f"{cls.kind}: {given!r:.60} is no constraint; write it as after the option --{cls.kind}"
        )
    return [*cls.parse(str(given))]


def constraint_of(entries: Any) -> Constraint:
    """Restore a constraint from what its ``to_dict`` returned.

    Raises
    ------
    DataError
        If it is none.
    """
    if not isinstance(entries, Mapping) or not isinstance(entries.get("kind"), str):
        raise DataError(f"{entries!r:.80} is no constraint: it has no kind")
    return _kind(entries["kind"]).from_dict(
        {name: value for name, value in entries.items() if name != "kind"}
    )


def as_options(constraints: Iterable[Constraint]) -> tuple[list[tuple[str, str]], str]:
    """Return options and their values, and the content of a file for constraints that options cannot say.

    Returns
    -------
    list, str
        Kinds with what stands after their options; the TOML text, empty where options say all.
    """
    options, text = [], ""
    for own in constraints:
        try:
            said = own.parse(own.words) == [own]
        except DataError:
            said = False
        if said:
            options.append((own.kind, own.words))
            continue
        lines = [f"{name} = {toml_of(value)}" for name, value in own.to_dict().items() if name != "kind"]
        text += "\n".join([f"[[{own.kind}]]", *lines, "", ""])
    return options, text


def toml_of(value: Any) -> str:
    """Write a value as TOML: texts, numbers and lists are as in JSON."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(name)} = {toml_of(part)}" for name, part in value.items()) + "}"
    return json.dumps(value)
