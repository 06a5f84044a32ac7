"""``mipforest show``: the outcome of a run in words."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING, Any

from mipforest.cli import options as o
from mipforest.cli.output import print_json, print_text, terminal_width
from mipforest.formatting import duration, entry_name, number, percent
from mipforest.settings import FEASIBILITY_TOLERANCE

if TYPE_CHECKING:
    from mipforest.runs import Saved


#: Whatever a changed file may cause.
_CHANGED = (LookupError, TypeError, ValueError, AttributeError, OverflowError)


#: Features that are named; of more, the rest is counted.
NAMED_FEATURES = 8

#: Terms of an oblique split that are written out; of more, the rest is counted.
SHOWN_TERMS = 4

#: Longest text that a formulation reports and that is shown.
LONGEST_TEXT = 60

#: Measures of single formulations that are shares, told in percent.
SHARES = frozenset({"fidelity", "ensemble_accuracy", "close_pairs_together"})

_PARTS = (("train", "in training"), ("test", "in the test"))

#: Label, name in ``result.json`` and significant digits.
_MEASURES = (
    ("Outcome observed", "observed_outcome", 4),
    ("Outcome prescribed", "prescribed_outcome", 4),
    ("R2", "r2", 4),
    ("MSE", "mse", 6),
    ("MAE", "mae", 6),
    ("AUC", "auc", 4),
    ("Brier score", "brier_score", 4),
    ("Log loss", "log_loss", 4),
)


def show(run: o.RunPath, as_json: o.Json = False) -> None:
    """Show the outcome of a run, and its tree."""
    from mipforest.runs import RunError, read_run

    found = read_run(run)
    if as_json:
        print_json(found.result | found_as_json(found.saved))
        return
    try:
        print_text(summary(found.result, found.saved, terminal_width()))
    except _CHANGED as error:
        kind = "lacks" if isinstance(error, KeyError) else "was changed:"
        raise RunError(f"{run}/result.json {kind} {error}; solve again") from error


def summary(result: Mapping[str, Any], saved: Saved | None, width: int | None = None) -> str:
    """Describe the outcome of a run.

    Parameters
    ----------
    result
        The content of ``result.json``.
    saved
        The tree, or ``None``.
    width
        Length of lines; ``None`` breaks none.
    """
    from mipforest.problem.result import status_in_words

    facts = [("Status", status_in_words(result)), *_objective(result), ("Verified", _verified(result))]
    facts += [*_accuracy(result), *_measures(result), *_reported(result), *_features(result)]
    facts += [("Time", _time(result))]
    facts += [("Note", text) for text in result.get("warnings", ())]
    facts += [("Data", text) for text in result["data"].get("notes", ())]
    indent = max(len(name) for name, _ in facts) + 2
    lines = [_headline(result), ""]
    lines += [_wrapped(f"{name:<{indent}}{text}", indent, width) for name, text in facts]
    if saved is not None:
        lines += ["", saved.text(SHOWN_TERMS)]
    return "\n".join(lines)


def found_as_json(saved: Saved | None) -> dict[str, Any]:
    """Return the entry of a tree, or of a score card; that of a tree is null where nothing was found."""
    if saved is not None and not saved.fitted.is_tree:
        return {"card": saved.to_dict()}
    return {"tree": None if saved is None else saved.to_dict()}


def _wrapped(text: str, indent: int, width: int | None) -> str:
    return text if width is None else fill(text, width, subsequent_indent=" " * indent)


def _headline(result: Mapping[str, Any]) -> str:
    data = result["data"]
    values = {name: value for name, value in result["parameters"].items() if value is not None}
    given = ", ".join(f"{name}={_plain(value)}" for name, value in values.items())
    depth = "" if noun_of(result) != "tree" else f", depth {result['depth']}"
    # Runs of older versions do not tell their scaling here.
    scaling = f", scaling {data['scaling']}" if "scaling" in data else ""
    return (
        f"{result['model']} (variant {result['variant']}){depth}, {given}\n"
        f"{data['name']}: {data['n']} samples, {data['p']} features{scaling}"
    )


def noun_of(result: Mapping[str, Any]) -> str:
    """Return what a run looks for: a tree, unless its result names something else."""
    return str(result.get("finds", "tree"))


def _plain(value: Any) -> str:
    values = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(part, list | tuple) for part in values):
        return ";".join(map(_plain, values))
    return ",".join(f"{part:g}" if isinstance(part, float) else str(part) for part in values)


def _objective(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    objective, start = result["objective"], result["warm_start_objective"]
    facts = []
    if objective is not None:
        facts.append(("Objective", number(objective) + _against_start(objective, start)))
    if result["bound"] is not None:
        only = " (for the paper's constants)" if result.get("bound_for") == "constants" else ""
        facts.append(("Bound", number(result["bound"]) + only))
    return facts


def _against_start(objective: float, start: float | None) -> str:
    if start is None:
        return ""
    gained = abs(start - objective) / max(abs(start), 1e-12)
    if gained <= FEASIBILITY_TOLERANCE:
        return " (that of the start)"
    return f" (start {number(start)}, improved by {percent(gained)})"


def _verified(result: Mapping[str, Any]) -> str:
    if result["verified"]:
        from mipforest.problem.result import provers_in_words

        by = provers_in_words(result)
        found = noun_of(result)
        return f"yes: the {found}, applied to the samples, has the solver's objective" + (
            f"; {by}" if by else ""
        )
    if result["objective"] is None:
        return f"no: there is no {noun_of(result)}"
    return f"NO: {'; '.join(result['doubts'])}"


def _accuracy(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    parts = [
        f"{result[f'{part}_accuracy']:.1%} {words} (balanced {result[f'{part}_balanced_accuracy']:.1%})"
        for part, words in _PARTS
        if result.get(f"{part}_accuracy") is not None
    ]
    return [("Accuracy", ", ".join(parts))] if parts else []


def _measures(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Describe outcomes of prescriptions, R2, MSE and MAE of values, Brier score and log loss of probabilities."""
    facts = []
    for label, measure, digits in _MEASURES:
        parts = [
            f"{result[f'{part}_{measure}']:.{digits}g} {words}"
            for part, words in _PARTS
            if result.get(f"{part}_{measure}") is not None
        ]
        facts += [(label, ", ".join(parts))] if parts else []
    return facts


def _reported(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Describe what this formulation alone measures and reports, as far as it fits on a line."""
    facts = []
    for name in result.get("reported", ()):
        say = _share if name in SHARES else _short
        values = [(say(result.get(f"{part}_{name}")), words) for part, words in _PARTS]
        parts = [f"{value} {words}" for value, words in values if value]
        alone = _short(result.get(name))
        told = ", ".join([alone] if alone else parts)
        facts += [(entry_name(name), told)] if told else []
    return facts


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _short(value: Any) -> str:
    """Write a number, a truth value or a short text; nothing for what is longer, nested or unknown."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number(value)
    return value if isinstance(value, str) and len(value) <= LONGEST_TEXT else ""


def _features(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    if result["objective"] is None:
        return []
    used, p = result["features_used"], result["data"]["p"]
    named = ", ".join(used[:NAMED_FEATURES]) + (", ..." if len(used) > NAMED_FEATURES else "")
    return [("Features", f"{len(used)} of {p} used" + (f": {named}" if named else ""))]


def _time(result: Mapping[str, Any]) -> str:
    before = result["prepare_seconds"] + result["build_seconds"]
    if result["status"] == "imported":
        return f"{duration(before)} building the model; the solution is from {result['solver']}"
    via = f" via {' and '.join(result['bridges'])}" if result["bridges"] else ""
    return (
        f"{duration(result['seconds'])} in {result['solver']} {result['solver_version']}{via}, "
        f"{duration(before)} building the model; {result['nodes']} nodes"
    )
