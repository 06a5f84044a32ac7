"""What was checked, which model was solved by which solver, and the command that repeats it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element

from mipforest.formatting import duration, number
from mipforest.problem.parameters import ensemble_parameter_of
from mipforest.problem.registry import formulation_classes
from mipforest.problem.result import provers_in_words, status_in_words
from mipforest.report.markup import (
    LONGEST,
    PARTS,
    Part,
    description_list,
    element,
    measure,
    plain,
    section,
    short,
    shown,
    title,
)

#: Most issues, warnings and notes that are listed.
MAX_LINES = 50

PROVEN_BOUND = "Proven bound"

#: What is said of the check, and its name in ``result.json``.
_CHECKED = (
    ("Objective by the solver", "objective"),
    ("Objective of the tree, by definition", "evaluated_objective"),
    (PROVEN_BOUND, "bound"),
    ("Largest violation of the model", "max_violation"),
    ("Objective of the start", "warm_start_objective"),
)

#: What the counts of a model are called.
_STATISTICS = {
    "columns": "Variables",
    "integer": "Integer, not binary",
    "smallest": "Smallest coefficient",
    "largest": "Largest coefficient",
}


def verification_section(result: Mapping[str, Any]) -> Element:
    """Return the section on what was checked, and with what result."""
    found = short(plain(result.get("finds", "tree")))
    if result["objective"] is None:
        text = f"There is no {found} to check."
    elif result["verified"] is True:
        text = (
            f"Verified: the solver's point satisfies the model, and the {found} read off it, applied to the training "
            "samples by plain arithmetic, has the objective that the solver states."
        )
        if by := provers_in_words(result):
            text += f" {by[0].upper()}{by[1:]}."
    else:
        text = f"Not verified: the issues below are open. Do not rely on this {found}."
    known = [
        (name.replace("the tree", f"the {found}"), number(result[key]))
        for name, key in _CHECKED
        if result[key] is not None
    ]
    if result.get("bound_for") == "constants":
        known = [
            (f"{name}, for the paper's constants" if name == PROVEN_BOUND else name, value)
            for name, value in known
        ]
    pairs: list[tuple[str, Part]] = [("Status", status_in_words(result)), *known]
    return section(
        "Verification",
        element("p", text),
        description_list(pairs),
        *_lines("Issues", result["doubts"]),
        *_lines("Warnings", result["warnings"]),
        id_="verification",
    )


def reported_section(result: Mapping[str, Any]) -> list[Element]:
    """Show what the formulation alone measures and reports, whatever it is."""
    pairs: list[tuple[str, Part]] = []
    for name in result.get("reported") or ():
        for key, words in ((name, ""), *((f"{part}_{name}", f", {words.lower()}") for part, words in PARTS)):
            if result.get(key) is not None:
                value = result[key]
                text = measure(name, value) if isinstance(value, float) else shown(value)
                pairs.append((f"{title(name)}{words}", text))
    heading = f"Reported by {plain(result['model'])}"
    return [section(heading, description_list(pairs[:MAX_LINES]), id_="reported")] if pairs else []


def solve_section(result: Mapping[str, Any]) -> Element:
    """Return the section on model, solver and versions."""
    bridges = [plain(bridge) for bridge in result["bridges"][:MAX_LINES]]
    pairs: list[tuple[str, Part]] = [
        (
            "Model",
            f"{plain(result['model'])}, variant {plain(result['variant'])}"
            + ("" if result.get("finds") else f", depth {plain(result['depth'])}"),
        ),
        *((short(name), shown(value)) for name, value in result["parameters"].items() if value is not None),
        ("Solver", f"{plain(result['solver'])} {plain(result['solver_version'])}"),
        ("Rewritten for the solver by", ", ".join(bridges) or "nothing, it takes the model as it is"),
        ("Time", _times(result)),
        ("Branch-and-bound nodes", plain(result["nodes"])),
        ("mipforest", plain(result.get("mipforest_version"))),
    ]
    counted = result.get("model_statistics") or {}
    sizes = [(_STATISTICS.get(name, title(name)), plain(value)) for name, value in counted.items()]
    size = (
        description_list([*sizes[:MAX_LINES]])
        if sizes
        else element("p", "The run did not note down the size of its model.")
    )
    return section(
        "Model and solver",
        description_list(pairs[:MAX_LINES]),
        element("h3", "Size of the model"),
        size,
        id_="solve",
    )


def reproduction_section(result: Mapping[str, Any]) -> Element:
    """Return the section with the data, their checksums, and the command."""
    data, test = result["data"], result.get("test_data")
    pairs: list[tuple[str, Part]] = [
        ("Data", _samples(data)),
        ("Target", plain(data.get("target"))),
        ("SHA-256 of the training samples", element("code", plain(data["sha256"]))),
    ]
    if test:
        pairs += [
            ("Test data", _samples(test)),
            ("SHA-256 of the test samples", element("code", plain(test["sha256"]))),
        ]
    command = command_of(result)
    if command is None or len(command) > LONGEST:
        what = element(
            "p",
            "No command is given: it would be too long, or a name in it holds characters that do not print, and "
            "what you would copy is not what you would read.",
            class_="notice",
        )
    else:
        what = element("pre", element("code", command), tabindex="0", role="region", aria_label="Command")
    text = (
        "The same versions, seed and number of threads take the same way; a time limit is of wall time, so where "
        "it stops a solve may differ. The checksums show whether the samples are the same."
    )
    return section(
        "How to reproduce",
        description_list(pairs),
        *_lines("Notes on the data", data.get("notes") or []),
        what,
        element("p", text),
        id_="reproduce",
    )


def _samples(data: Mapping[str, Any]) -> str:
    scaling = f", scaling {plain(data['scaling'])}" if "scaling" in data else ""
    return f"{plain(data['name'])}, {plain(data['n'])} samples{scaling}"


def _times(result: Mapping[str, Any]) -> str:
    before = duration(result["prepare_seconds"] + result["build_seconds"])
    phases = result.get("phase_seconds")
    text = f"{duration(result['seconds'])} solving, {before} building the model"
    if not isinstance(phases, dict) or not phases:
        return text
    seconds = [(plain(name), spent) for name, spent in phases.items() if isinstance(spent, int | float)]
    return f"{text}; by phase: {', '.join(f'{name} {duration(spent)}' for name, spent in seconds)}"


def _lines(heading: str, lines: list[Any]) -> list[Element]:
    if not lines:
        return []
    items = [element("li", plain(line)) for line in lines[:MAX_LINES]]
    hidden = len(lines) - len(items)
    rest = [element("li", f"and {hidden} more")] if hidden > 0 else []
    return [element("h3", heading), element("ul", *items, *rest)]


def command_of(result: Mapping[str, Any]) -> str | None:
    """Return the command line that repeats a run, quoted for a POSIX shell.

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
    if not result.get("finds"):  # a score card has no depth
        yield from _option("depth", result["depth"])
    cls = formulation_classes().get(result["model"])
    target = None if cls is None else ensemble_parameter_of(cls)
    for name, value in result["parameters"].items():
        if target is not None and name == target.name:
            yield from _option("ensemble", value)
        elif value is not None:
            yield from _option("param", f"{name}={_word(value)}")
    # Sources of older versions have no columns of treatments, none to leave out, and none to keep as text.
    treatment = source.get("treatment")
    yield from _option("data", source["data"])
    yield from _option("target" if treatment is None else "outcome", source["target"])
    yield from _option("treatment", treatment)
    for name in ("positive", "task", "missing", "scaling", "test_size", "test"):
        yield from _option(name, source[name])
    for name in ("weight", "drop", "keep"):
        yield from _option(name, source.get(name))
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
    """Yield an option once per value, and nothing if there is no value."""
    for one in value if isinstance(value, Sequence) and not isinstance(value, str) else [value]:
        if one is not None:
            word, option = _word(one), f"--{name.replace('_', '-')}"
            # A value that looks like an option must not be taken for one.
            yield from [f"{option}={word}"] if word.startswith("-") else [option, word]


def _word(value: Any) -> str:
    """Write a value as the command line takes it: several numbers with commas between them, rows with semicolons."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return (";" if any(isinstance(part, list) for part in value) else ",").join(map(_word, value))
    return str(value)
