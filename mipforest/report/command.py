"""The command that repeats a run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def command_of(result: Mapping[str, Any]) -> str | None:
    """Give the command line that repeats a run, quoted for a POSIX shell.

    Returns
    -------
    str or None
        ``None`` if a value holds characters that do not print: what one reads would not be what one runs.

    Raises
    ------
    KeyError, TypeError
        If ``result.json`` lacks a part of the command.
    """
    words = list(_import(result) if result["status"] == "imported" else _solve(result))
    if not all(word.isprintable() for word in words):
        return None
    return shlex.join(["mipforest", *words])


def _solve(result: Mapping[str, Any]) -> Iterator[str]:
    options, source = result["options"], result["data_source"]
    yield "solve"
    yield from _option("model", result["model"])
    yield from _option("variant", result["variant"])
    yield from _option("depth", result["depth"])
    for name, value in result["parameters"].items():
        if name == "ensemble":
            yield from _option("ensemble", value)
        elif value is not None:
            yield from _option("param", f"{name}={_word(value)}")
    for name in ("data", "target", "positive", "task", "missing", "scaling", "test_size", "test"):
        yield from _option(name, source[name])
    yield from _option("solver", result["solver"])
    for name in ("start", "time_limit", "gap", "threads", "seed"):
        value = "inf" if name == "time_limit" and options[name] is None else options[name]
        yield from _option(name, value)
    for name, value in options["solver_options"].items():
        yield from _option("solver_option", f"{name}={_word(value)}")
    yield from _option("bridge", options.get("bridges", []))


def _import(result: Mapping[str, Any]) -> Iterator[str]:
    options = result["options"]
    yield "import"
    yield from _option("instance", options["instance"])
    yield from _option("data", result["data_source"]["data"])
    yield from ("--", str(options["solution"]))  # the name of a file must not be taken for an option


def _option(name: str, value: Any) -> Iterator[str]:
    """Give an option once per value; none where there is no value."""
    for one in value if isinstance(value, Sequence) and not isinstance(value, str) else [value]:
        if one is not None:
            word, option = _word(one), f"--{name.replace('_', '-')}"
            # A value that looks like an option must not be taken for one.
            yield from [f"{option}={word}"] if word.startswith("-") else [option, word]


def _word(value: Any) -> str:
    """Write a value as the command line takes it: several numbers with commas between them."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(map(_word, value))
    return str(value)
