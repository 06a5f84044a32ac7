"""Docstrings of estimators that list every parameter: its meaning, its default, and the values that it may have."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from itertools import groupby
from textwrap import fill

from mipforest.problem.parameters import Parameter, parameters_of
from mipforest.problem.registry import get_formulation

#: A heading of a section, with the line below it.
_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)

#: One or more names at the beginning of a line, and what stands indented below them.
_ENTRY = re.compile(r"^(\w+(?:, [\w ]+)*)\n((?:(?: {4}.*)?\n)+)", re.MULTILINE)

#: An entry that only refers to another class.
_REFERENCE = re.compile(r"^\s*As for :class:`~?(?:[\w.]+\.)?(\w+)`")

#: The entry for all parameters that a class does not describe.
_OTHERS = re.compile(r"^(?:\w+, )+and all others\n((?: {4}.*(?:\n|$))+)", re.MULTILINE)

#: An inherited attribute that a class does not have.
_WITHOUT = re.compile(r"(?:without|others but)\s+``(\w+)``")


class FullDocstring:
    """``__doc__`` of classes with their parameters and attributes in full, as :func:`help` shows it.

    A class describes only what is its own, and refers to others for the rest. What is inherited is looked up there, and
    ranges in the formulations (``_formulations``), when the docstring is first asked for: they are loaded no earlier.

    An attribute of the classes' type, because ``help`` reads the docstring of a class there.

    Parameters
    ----------
    own
        The docstring of the classes' type.
    """

    def __init__(self, own: str | None) -> None:
        self._own = own
        self._full: dict[type, str] = {}

    def __get__(self, owner: type | None, meta: type) -> str | None:
        if owner is None:
            return self._own
        written = _written(owner)
        # A class of a user, or one that is still being made, is as it is written.
        if not written or not _is_ours(owner):
            return written
        if owner not in self._full:
            self._full[owner] = _assembled(owner, inspect.cleandoc(written))
        return self._full[owner]

    def __set__(self, owner: type, value: str | None) -> None:
        self._full.pop(owner, None)
        type.__dict__["__doc__"].__set__(owner, value)


def _written(cls: type) -> str | None:
    """Return the docstring of a class as it is written."""
    found: str | None = cls.__dict__.get("__doc__")
    return found


def _is_ours(cls: type) -> bool:
    """Return whether a class is one of the package's estimators, and the package is loaded."""
    package = sys.modules.get("mipforest.estimators")
    return getattr(package, cls.__name__, None) is cls


def _assembled(owner: type, written: str) -> str:
    known: dict[str, Parameter] = {}
    for name in getattr(owner, "_formulations", ()):
        known = {**parameters_of(get_formulation(name)), **known}
    described, attributes = _entries(owner, "Parameters"), _entries(owner, "Attributes")
    signature = inspect.signature(owner.__init__).parameters  # type: ignore[misc] # of the class as it is
    # The depth, what the class describes itself, then what it has from others.
    order = ["depth", *described, *signature]
    names = sorted(set(signature) - {"self"}, key=order.index)
    parameters = [
        f"{_heading(signature[name], known.get(name))}\n{_text(name, described, known)}" for name in names
    ]
    sections = dict(_sections(written))
    for name in _WITHOUT.findall(written):
        attributes.pop(name, None)
    beginning = sections.pop("", "").rstrip()
    if more := _said_of_others(written):
        beginning += f"\n\n{more}"
    found = [beginning, _section("Parameters", "\n".join(parameters))]
    if attributes:
        shared = groupby(attributes, key=lambda name: attributes[name])
        parts = "\n".join(f"{', '.join(names)}\n{text}" for text, names in shared)
        found.append(_section("Attributes", parts))
    found += [
        _section(title, body) for title, body in sections.items() if title not in ("Parameters", "Attributes")
    ]
    return "\n\n".join(found) + "\n"


def _said_of_others(written: str) -> str:
    """Return what the entry for all other parameters says besides whose they are."""
    entry = _OTHERS.search(written)
    if entry is None:
        return ""
    text = " ".join(entry[1].split())
    # The first sentence or clause is the reference; names in it have dots.
    without_names = re.sub("`[^`]*`", lambda name: "x" * len(name[0]), text)
    end = re.search(r"[.;](?: |$)", without_names)
    more = text[end.end() :] if end else ""
    return fill(f"{more[:1].upper()}{more[1:]}", width=110)


def _heading(parameter: inspect.Parameter, known: Parameter | None) -> str:
    """Return name, kind of value with its range, and default, as numpydoc writes them."""
    kind = str(parameter.annotation)
    if known is not None:
        kind = f"{known.kind.label}, {known.range}" if known.range else known.kind.label
    default = getattr(parameter.default, "name", parameter.default)
    required = parameter.default is inspect.Parameter.empty
    return f"{parameter.name} : {kind}" if required else f"{parameter.name} : {kind}, default={default!r}"


def _text(name: str, described: Mapping[str, str], known: Mapping[str, Parameter]) -> str:
    """Return what a parameter means: by the docstrings, or by its formulation."""
    if name in described:
        return described[name]
    meaning = known[name].help if name in known else ""
    return f"    {meaning[:1].upper()}{meaning[1:]}."


def _section(title: str, body: str) -> str:
    return f"{title}\n{'-' * len(title)}\n{body.strip()}"


def _sections(written: str) -> list[tuple[str, str]]:
    """Return title and body of each section; the beginning has the title ''."""
    parts = _SECTION.split(written)
    return [("", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]


def _entries(owner: type, title: str) -> dict[str, str]:
    """Return the entries of a section by name: of a class, then of its bases, and of classes that these refer to."""
    found: dict[str, str] = {}
    for cls in owner.__mro__:
        for name, text in _own_entries(cls, title).items():
            reference = _REFERENCE.match(text)
            if reference and (other := _class_named(reference[1])) not in (None, owner):
                text = _entries(other, title).get(name, text)
            found.setdefault(name, text)
    return found


def _own_entries(cls: type, title: str) -> dict[str, str]:
    written = _written(cls)
    if not written or not cls.__module__.startswith("mipforest.estimators"):
        return {}
    body = dict(_sections(inspect.cleandoc(written))).get(title, "")
    return {
        name: text.rstrip()
        for names, text in _ENTRY.findall(f"{body}\n")
        for name in names.split(", ")
        if name.isidentifier()
    }


def _class_named(name: str) -> type | None:
    """Return the class of an estimators' module by its name."""
    for module in ("papers", "generic", "base", "forest_selector"):
        # Looked up, not imported: these modules import this one.
        cls = getattr(sys.modules.get(f"mipforest.estimators.{module}"), name, None)
        if isinstance(cls, type):
            return cls
    return None
