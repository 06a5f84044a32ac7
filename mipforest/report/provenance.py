"""What was checked, what was solved with what, and how to do it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import Element

from mipforest.formatting import duration, number
from mipforest.report.command import command_of
from mipforest.report.markup import LONGEST, Part, element, facts, section, short
from mipforest.report.values import PARTS, measure, plain, shown, title
from mipforest.runs import status_in_words

#: Most doubts, warnings and notes that are listed.
MOST_LINES = 50

#: What is told of the check, and its name in ``result.json``.
_CHECKED = (
    ("Objective by the solver", "objective"),
    ("Objective of the tree, by definition", "evaluated_objective"),
    ("Proven bound", "bound"),
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
    """Tell what was checked, and what came of it."""
    if result["objective"] is None:
        text = "There is no tree to check."
    elif result["verified"] is True:
        text = (
            "Verified: the solver's point satisfies the model, and the tree read off it, applied to the training "
            "samples by plain arithmetic, has the objective that the solver states."
        )
    else:
        text = "Not verified: the doubts below were not cleared. Do not rely on this tree."
    known = [(name, number(result[key])) for name, key in _CHECKED if result[key] is not None]
    pairs: list[tuple[str, Part]] = [("Status", status_in_words(result)), *known]
    return section(
        "Verification",
        element("p", text),
        facts(pairs),
        *_lines("Doubts", result["doubts"]),
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
                told = measure(name, value) if isinstance(value, float) else shown(value)
                pairs.append((f"{title(name)}{words}", told))
    heading = f"Reported by {plain(result['model'])}"
    return [section(heading, facts(pairs[:MOST_LINES]), id_="reported")] if pairs else []


def solve_section(result: Mapping[str, Any]) -> Element:
    """Tell model, solver and versions."""
    bridges = [plain(bridge) for bridge in result["bridges"][:MOST_LINES]]
    pairs: list[tuple[str, Part]] = [
        (
            "Model",
            f"{plain(result['model'])}, variant {plain(result['variant'])}, depth {plain(result['depth'])}",
        ),
        *((short(name), shown(value)) for name, value in result["parameters"].items()),
        ("Solver", f"{plain(result['solver'])} {plain(result['solver_version'])}"),
        ("Rewritten for the solver by", ", ".join(bridges) or "nothing, it takes the model as it is"),
        ("Time", _times(result)),
        ("Branch-and-bound nodes", plain(result["nodes"])),
        ("mipforest", plain(result.get("mipforest_version"))),
    ]
    counted = result.get("model_statistics") or {}
    sizes = [(_STATISTICS.get(name, title(name)), plain(value)) for name, value in counted.items()]
    size = (
        facts([*sizes[:MOST_LINES]])
        if sizes
        else element("p", "The run did not note down the size of its model.")
    )
    return section(
        "Model and solver",
        facts(pairs[:MOST_LINES]),
        element("h3", "Size of the model"),
        size,
        id_="solve",
    )


def reproduction_section(result: Mapping[str, Any]) -> Element:
    """Give the data with their checksums, and the command."""
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
        "it stops a solve may differ. The checksums tell whether the samples are the same."
    )
    return section(
        "How to reproduce",
        facts(pairs),
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
    return f"{duration(result['seconds'])} solving, {before} building the model"


def _lines(heading: str, lines: list[Any]) -> list[Element]:
    if not lines:
        return []
    items = [element("li", plain(line)) for line in lines[:MOST_LINES]]
    hidden = len(lines) - len(items)
    rest = [element("li", f"and {hidden} more")] if hidden > 0 else []
    return [element("h3", heading), element("ul", *items, *rest)]
