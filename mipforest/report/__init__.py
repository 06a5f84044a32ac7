"""A run as one HTML page that needs nothing else: no network, no other files, and no scripts to be read.

The page has what a reader wants to know first, a navigation, and all sections. This module has the outcome, what was
checked, which model was solved by which solver, and the command that repeats it.
"""

from __future__ import annotations

import shlex
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from mipforest.formatting import duration, number, percent, value_text
from mipforest.problem.constraints import as_options, constraint_of
from mipforest.problem.parameters import ensemble_parameter_of
from mipforest.problem.registry import formulation_classes
from mipforest.problem.result import (
    held_in_words,
    proof_in_words,
    provers_in_words,
    search_in_words,
    status_in_words,
    time_in_words,
)
from mipforest.problem.worth import MIND, worth_in_words
from mipforest.report.card_section import card_sections
from mipforest.report.content import Content, content_of
from mipforest.report.markup import (
    LONGEST,
    PARTS,
    Chart,
    Part,
    Point,
    description_list,
    details,
    document,
    element,
    legend,
    measure,
    plain,
    section,
    short,
    shown,
    span,
    table,
    thinned,
    title,
    verbatim,
)
from mipforest.report.near_section import near_section
from mipforest.report.quality import quality_section, tuning_section
from mipforest.report.randomized import randomized_section
from mipforest.report.tree_section import features_section, tree_section
from mipforest.solvers.solution import gap_in_words, relative_gap

__all__ = ["Content", "content_of", "report_page"]

#: What a target is called that has no name of its own.
UNNAMED = "target"

#: Most classes that the title of a page lists.
NAMED_CLASSES = 3

_TITLES = {
    "tree": "Tree",
    "probabilities": "Probabilities",
    "intervals": "Intervals",
    "worth": "Worth",
    "explanation": "Local explanation",
    "card": "Score card",
    "features": "Features",
    "near": "Trees near the optimum",
    "quality": "Quality",
    "tuning": "Tuning",
    "numbers": "Numbers",
    "constraints": "Constraints",
    "progress": "Progress",
    "verification": "Verification",
    "reported": "Reported",
    "solve": "Model and solver",
    "reproduce": "Reproduce",
}


def report_page(content: Content) -> bytes:
    """Write the page of a run; the same run and samples give the same bytes.

    The page forbids itself every connection; of styles and scripts it allows the two that it brings. Without
    scripts, the tree can be read as a list, and its picture scrolled.

    Parameters
    ----------
    content
        What to show.

    Raises
    ------
    LookupError, TypeError, ValueError, AttributeError, OverflowError
        If ``result.json`` is not as ``mipforest solve`` writes it.
    """
    # Numbers in a changed file may be too large for sums of them; they are shown as they come out.
    with np.errstate(over="ignore", invalid="ignore"):
        sections = _sections(content)
    body = element(
        "body",
        element("a", "Skip to the content", href="#content", class_="skip"),
        overview(content),
        _navigation(sections),
        element("main", *sections, id="content"),
        class_=None if content.card is None else "of-card",
    )
    style, script = _asset("page.css"), _asset("page.js")
    body.append(verbatim("script", script))
    return document(element("html", _head(content, style, script), body, lang="en"))


def _sections(content: Content) -> list[Element]:
    result, fitted = content.result, content.fitted
    of_tree = (
        []
        if fitted is None
        else [
            tree_section(content, fitted),
            *randomized_section(content, fitted),
            features_section(fitted),
            *near_section(content),
            quality_section(content, fitted),
        ]
    )
    of_card = [] if content.card is None else card_sections(content, content.card)
    shown, *rest = [*of_tree, *of_card, *tuning_section(content), numbers_section(result)]
    return [
        shown,
        worth_section(result),
        *rest,
        *constraints_section(result),
        progress_section(result),
        verification_section(result),
        *reported_section(result),
        solve_section(result),
        reproduction_section(result),
    ]


def _navigation(sections: list[Element]) -> Element:
    names = [section.get("aria-labelledby", "") for section in sections]
    links = [element("li", element("a", _TITLES[name], href=f"#{name}")) for name in names]
    return element("nav", element("ul", *links), aria_label="Sections")


def _head(content: Content, style: str, script: str) -> Element:
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{heading(content)} – mipforest report"),
        verbatim("style", style),
    )


def _asset(name: str) -> str:
    return files("mipforest.report").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def heading(content: Content) -> str:
    """Return the title of the page: what is predicted, or the model and the data where nothing was found."""
    target = content.result["data"].get("target")
    if content.card is not None:
        return f"Risk of {short(content.card.card.outcome)}"
    if content.fitted is None:
        return f"{short(plain(content.result['model']))} on {short(plain(content.result['data']['name']))}"
    classes = content.fitted.tree.classes or ()
    if target in (None, UNNAMED) and 0 < len(classes) <= NAMED_CLASSES:
        return " or ".join(short(name) for name in classes)
    return short(plain(target or UNNAMED))


def overview(content: Content) -> Element:
    """Return title, outcome, and what was checked."""
    result = content.result
    data = result["data"]
    what = f"Decision tree of depth {plain(result['depth'])}"
    if result.get("finds"):
        what = short(plain(result["finds"])).capitalize()
    line = (
        f"{what} for {short(plain(data['name']))}: model {short(plain(result['model']))} (variant "
        f"{short(plain(result['variant']))}), {plain(data['n'])} training samples, {plain(data['p'])} features."
    )
    return element(
        "header",
        element("p", "mipforest report", class_="faint"),
        element("h1", heading(content)),
        element("p", line),
        element("p", *_verdict(result), class_="verdict"),
        *_in_short(result),
        *(element("p", gap, class_="notice", role="note") for gap in content.gaps),
        *_without_tree(content),
    )


def _in_short(result: Mapping[str, Any]) -> list[Element]:
    """Return the errors, and what speaks against the tree."""
    known = worth_in_words(result)
    errors = [element("p", f"{name}: {plain(text)}.") for name, text in known[:1] if name != MIND]
    remarks = [plain(text) for name, text in known if name == MIND]
    return errors + [
        element("p", f"{text[:1].upper()}{text[1:]}.", class_="notice", role="note") for text in remarks
    ]


def worth_section(result: Mapping[str, Any]) -> Element:
    """Return the section on what was searched and proven, and what the tree is worth beside others."""
    pairs: list[tuple[str, Part]] = [
        ("Searched", plain(search_in_words(result))),
        ("Took", time_in_words(result)),
        ("Proven", proof_in_words(result)),
        *((name, plain(text)) for name, text in worth_in_words(result)),
    ]
    return section("What it is worth", description_list(pairs), id_="worth")


def numbers_section(result: Mapping[str, Any]) -> Element:
    """Return the section of the solver's numbers and the measures."""
    tiles = [
        element("div", element("dt", name), element("dd", value), class_="tile")
        for name, value in _numbers(result)
    ]
    return section("Numbers", element("dl", *tiles, class_="tiles"), id_="numbers")


def _verdict(result: Mapping[str, Any]) -> list[Element]:
    status = element("span", status_in_words(result), class_="badge")
    if result["objective"] is None:
        return [status]
    if result["verified"] is True:
        return [status, element("span", "✓ verified", class_="badge good")]
    return [status, element("span", "✗ not verified", class_="badge bad")]


def _numbers(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = [
        (name, value_text(result[key], result["objective"], result["bound"]))
        for name, key in (("Objective", "objective"), ("Bound", "bound"))
        if result[key] is not None
    ]
    if None not in (result["gap"], result["objective"], result["bound"]):
        found.append(("Gap", gap_in_words(result["objective"], result["bound"])))
    for part, words in (("train", "training"), ("test", "test")):
        if result.get(f"{part}_accuracy") is not None:
            found.append((f"Accuracy, {words}", percent(result[f"{part}_accuracy"])))
        if result.get("finds") and result.get(f"{part}_auc") is not None:
            found.append((f"AUC, {words}", number(result[f"{part}_auc"])))
        if result.get(f"{part}_prescribed_outcome") is not None:
            found.append((f"Outcome prescribed, {words}", number(result[f"{part}_prescribed_outcome"])))
        if result.get(f"{part}_r2") is not None:
            found.append((f"R², {words}", number(result[f"{part}_r2"])))
    if result["objective"] is not None:
        found.append(("Features used", f"{len(result['features_used'])} of {plain(result['data']['p'])}"))
    return [*found, ("Time to solve", duration(result["seconds"]))]


def _without_tree(content: Content) -> list[Element]:
    if content.fitted is not None or content.card is not None:
        return []
    text = (
        "This run has no tree: its solver ended without a solution. The sections below say what was asked and "
        "what the solver found out."
    )
    return [element("p", text, class_="notice", role="note")]


#: Most issues, warnings and notes that are listed.
MAX_LINES = 50

#: Name of the file in the command that has constraints which no option can say.
CONSTRAINTS = "constraints.toml"

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
        (
            name.replace("the tree", f"the {found}"),
            number(result[key])
            if key == "max_violation"
            else value_text(result[key], result["objective"], result["bound"]),
        )
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


def constraints_section(result: Mapping[str, Any]) -> list[Element]:
    """Show each constraint of the run: what the tree has on the training samples, whether it binds, what it costs."""
    if not result.get("constraints"):
        return []
    rows: list[list[Part]] = [
        [short(held["words"]), *held_in_words(held)] for held in result["constraints"][:MAX_LINES]
    ]
    text = (
        "A constraint binds where one training sample or one feature more would break it. Its cost is the objective of "
        "the tree, less that of the best tree without this constraint and with all others."
    )
    return [
        section(
            "Constraints",
            element("p", text),
            table(
                ["Constraint", "On the training samples", "Binds", "Cost"], rows, "Constraints on the tree"
            ),
            id_="constraints",
        )
    ]


def reported_section(result: Mapping[str, Any]) -> list[Element]:
    """Show what the formulation alone measures and reports, whatever it is."""
    pairs: list[tuple[str, Part]] = []
    for name in result["reported"]:
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
        ("mipforest", plain(result["mipforest_version"])),
    ]
    counted = result["model_statistics"]
    sizes = [(_STATISTICS.get(name, title(name)), plain(value)) for name, value in counted.items()]
    return section(
        "Model and solver",
        description_list(pairs[:MAX_LINES]),
        element("h3", "Size of the model"),
        description_list([*sizes[:MAX_LINES]]),
        id_="solve",
    )


def reproduction_section(result: Mapping[str, Any]) -> Element:
    """Return the section with the data, their checksums, and the command."""
    data, test = result["data"], result.get("test_data")
    pairs: list[tuple[str, Part]] = [
        ("Data", _samples(data)),
        ("Target", plain(data["target"])),
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
    _, in_file = as_options(map(constraint_of, (result.get("options") or {}).get("constraints", ())))
    file = (
        [element("p", f"{CONSTRAINTS}:"), element("pre", element("code", in_file), tabindex="0")]
        if in_file
        else []
    )
    return section(
        "How to reproduce",
        description_list(pairs),
        *_lines("Notes on the data", data["notes"]),
        what,
        *file,
        element("p", text),
        id_="reproduce",
    )


def _samples(data: Mapping[str, Any]) -> str:
    scaling = f", scaling {plain(data['scaling'])}" if "scaling" in data else ""
    return f"{plain(data['name'])}, {plain(data['n'])} samples{scaling}"


def _times(result: Mapping[str, Any]) -> str:
    phases, text = result["phase_seconds"], time_in_words(result)
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
    treatment = source.get("treatment")  # what is as usual is not stated
    yield from _option("data", source["data"])
    yield from _option("target" if treatment is None else "outcome", source["target"])
    yield from _option("treatment", treatment)
    for name in ("positive", "task", "missing", "scaling", "test_size", "test"):
        yield from _option(name, source[name])
    for name in (
        *("event", "scores", "better", "weight", "drop", "keep", "categorical", "decimal", "thousands"),
        *("encoding", "dates", "date_order", "skip_lines"),
    ):
        yield from _option(name, source.get(name))
    for name in ("rewards", "targets", "missing_values", "keep_words", "names"):
        yield from _option(name, ",".join(source.get(name) or ()) or None)
    if source.get("balanced"):
        yield "--balanced"
    if source.get("header") is False:
        yield "--no-header"
    yield from _option("sep", "tab" if source.get("sep") == "\t" else source.get("sep"))
    constraints, in_file = as_options(map(constraint_of, options.get("constraints", ())))
    for kind, words in constraints:
        yield from _option(kind, words)
    yield from _option("constraints", CONSTRAINTS if in_file else None)
    yield from _option("solver", result["solver"])
    for name in ("start", "time_limit", "gap", "threads", "seed"):
        value = "inf" if name == "time_limit" and options[name] is None else options[name]
        yield from _option(name, value)
    for name, value in options["solver_options"].items():
        yield from _option("solver_option", f"{name}={_word(value)}")
    yield from _option("bridge", options.get("bridges", []))
    for name in ("keep_trees", "within"):
        yield from _option(name, options.get(name))


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


#: Most events that the table lists.
MAX_ROWS = 100

#: Bounds that lie this many times as far from the final incumbent as all incumbents and the final bound are drawn
#: at the edge: the first bounds of a solver may be without meaning, and would flatten all that follows.
FARTHEST = 4.0

#: Percent of a gap that no chart shows.
CLOSED = 0.01

#: Most percent on the axis of the gap.
FULL = 100.0


@dataclass(frozen=True)
class Moment:
    """Where a solve stood: seconds, incumbent, bound, gap; ``None`` for what was not known."""

    seconds: float
    objective: float | None
    bound: float | None
    nodes: int

    @property
    def gap(self) -> float | None:
        """Relative gap."""
        return (
            None if self.objective is None or self.bound is None else relative_gap(self.objective, self.bound)
        )


def progress_section(result: Mapping[str, Any]) -> Element:
    """Draw the events of ``result.json``."""
    moments = [_moment(event) for event in result["events"]]
    if not any(moment.objective is not None or moment.bound is not None for moment in moments):
        return section("Progress", element("p", "The solver reported no progress."), id_="progress")
    drawn = [moments[i] for i in thinned(len(moments))]
    end = max(drawn[-1].seconds, float(result["seconds"]), 1e-3)
    first = moments[0].gap
    if len({m.objective for m in moments}) == 1 and first is not None and 100 * first <= CLOSED:
        at = duration(moments[0].seconds)
        text = f"The gap was closed at once, {at} after the start: there is no curve to draw."
        return section("Progress", element("p", text), _events(moments), id_="progress")
    charts = [_values(drawn, end, str(result.get("finds", "tree"))), *_gap(drawn, end)]
    return section("Progress", element("div", *charts, class_="beside"), _events(moments), id_="progress")


def _moment(event: Mapping[str, Any]) -> Moment:
    """Read an event; TypeError or ValueError if an entry is not a number."""
    objective, bound = (
        None if event[name] is None else float(event[name]) for name in ("objective", "bound")
    )
    return Moment(float(event["seconds"]), objective, bound, int(event["nodes"]))


def _values(moments: Sequence[Moment], end: float, found: str) -> Element:
    incumbent = [(m.seconds, m.objective) for m in moments if m.objective is not None]
    bound = [(m.seconds, m.bound) for m in moments if m.bound is not None]
    chart = Chart((0.0, end), _range(incumbent, bound), "seconds", "objective")
    named = (
        ("incumbent", f"incumbent: best {found} so far", incumbent),
        ("bound", "bound: proven", bound),
    )
    drawn = [(class_, words, points) for class_, words, points in named if points]
    marks = [
        mark
        for class_, _, points in drawn
        for mark in (
            chart.steps([*points, (end, points[-1][1])], class_),
            chart.dots([(end, points[-1][1])], class_, triangles=class_ == "bound"),
        )
    ]
    last = ", ".join(f"{class_} {number(points[-1][1])}" for class_, _, points in drawn)
    what = " and ".join(class_ for class_, _, _ in drawn).capitalize()
    summary = f"{what} over time; at the end {last}."
    entries = legend(*((class_, "line", words) for class_, words, _ in drawn))
    return element("figure", chart.drawn(summary, *marks), element("figcaption", entries))


def _range(incumbent: Sequence[Point], bound: Sequence[Point]) -> tuple[float, float]:
    """Return the range of the objective's axis."""
    values = [value for _, value in incumbent] + [bound[-1][1] for _ in bound[-1:]]
    last = values[len(incumbent) - 1] if incumbent else values[-1]
    reach = FARTHEST * max(abs(value - last) for value in values)
    return span(values + [value for _, value in bound if not incumbent or abs(value - last) <= reach])


def _gap(moments: Sequence[Moment], end: float) -> list[Element]:
    points = [(m.seconds, min(100 * m.gap, FULL)) for m in moments if m.gap is not None]
    if not points:
        return []
    if max(gap for _, gap in points) <= CLOSED:
        at = duration(points[0][0])
        return [
            element(
                "p", f"The gap was closed at once, {at} after the start: there is no curve of it to draw."
            )
        ]
    chart = Chart(
        (0.0, end), (0.0, max(1.05 * max(gap for _, gap in points), 1.0)), "seconds", "gap in percent"
    )
    known = [m.gap for m in moments if m.gap is not None]
    summary = f"Relative gap over time; at the end {percent(known[-1])}."
    entries = legend(("gap-line", "line", f"gap between incumbent and bound, cut at {FULL:g}%"))
    line = chart.steps([*points, (end, points[-1][1])], "gap-line")
    return [element("figure", chart.drawn(summary, line), element("figcaption", entries))]


def _events(moments: Sequence[Moment]) -> Element:
    chosen = thinned(len(moments), MAX_ROWS)
    rows: list[list[Part]] = [
        [
            f"{m.seconds:.2f}",
            value_text(m.objective, m.bound),
            value_text(m.bound, m.objective),
            percent(m.gap),
            plain(m.nodes),
        ]
        for m in (moments[i] for i in chosen)
    ]
    shown = (
        f"{len(chosen)} of {len(moments)} events" if len(chosen) < len(moments) else f"{len(moments)} events"
    )
    caption = f"Progress of the solver, {shown}"
    return details(
        f"Table of {shown}", table(["Seconds", "Incumbent", "Bound", "Gap", "Nodes"], rows, caption)
    )
