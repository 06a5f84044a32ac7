"""What came out of a solve: on disk, as JSON, and in words, which ``mipforest show`` prints, too."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from typer import Exit

import mipforest
from mipforest.cli import options as o
from mipforest.cli.errors import NO_ANSWER, SUCCESS, report_of
from mipforest.cli.options import RunOptions
from mipforest.cli.output import print_json, print_note, print_text, terminal_width
from mipforest.formatting import entry_name, number

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from mipforest.problem.result import Result
    from mipforest.runs import DataSource, LoadedData, RunError, RunFolder, Saved

#: Whatever a changed file may cause.
_CHANGED = (LookupError, TypeError, ValueError, AttributeError, OverflowError)


#: Features that are named; of more, the rest is counted.
NAMED_FEATURES = 8

#: Terms of an oblique split that are written out; of more, the rest is counted.
SHOWN_TERMS = 4

#: Longest text that a formulation reports and that is shown.
LONGEST_TEXT = 60

#: Measures of single formulations that are shares, shown in percent.
SHARES = frozenset({"fidelity", "ensemble_accuracy", "close_pairs_together"})

_PARTS = (("train", "in training"), ("test", "in the test"))

#: Label, name in ``result.json`` and significant digits.
_MEASURES = (
    ("Mean reward", "mean_reward", 6),
    ("Standard error", "mean_reward_error", 3),
    ("Best single decision", "best_single_reward", 6),
    ("Outcome observed", "observed_outcome", 4),
    ("Outcome prescribed", "prescribed_outcome", 4),
    ("Harrell's C", "concordance", 4),
    ("Integrated Brier score", "integrated_brier_score", 4),
    ("R2", "r2", 4),
    ("MSE", "mse", 6),
    ("MAE", "mae", 6),
    ("Labels right", "label_accuracy", 4),
    ("All labels right", "exact_match", 4),
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
    from mipforest.problem.result import proof_in_words, search_in_words, status_in_words, time_in_words
    from mipforest.problem.worth import worth_in_words

    facts = [("Status", status_in_words(result)), ("Searched", search_in_words(result))]
    facts += [("Took", time_in_words(result)), ("Proven", proof_in_words(result))]
    facts += [("Verified", _verified(result)), *worth_in_words(result)]
    facts += [*_accuracy(result), *_measures(result), *_reported(result), *_features(result)]
    facts += [("Constraint", text) for text in _constraints(result)]
    facts += [("Trees", result["trees"]["in_words"])] if "trees" in result else []
    facts += [("Conflict", result["conflict"])] if "conflict" in result else []
    facts += [("Note", text) for text in result.get("warnings", ())]
    facts += [("Data", text) for text in result["data"].get("notes", ())]
    indent = max(len(name) for name, _ in facts) + 2
    lines = [_headline(result), ""]
    for name, text in facts:
        line = f"{name:<{indent}}{text}"
        lines.append(line if width is None else fill(line, width, subsequent_indent=" " * indent))
    if saved is not None:
        lines += ["", saved.text(SHOWN_TERMS)]
    return "\n".join(lines)


def found_as_json(saved: Saved | None) -> dict[str, Any]:
    """Return the entry of a tree, or of a score card; that of a tree is null where nothing was found."""
    if saved is not None and not saved.fitted.is_tree:
        return {"card": saved.to_dict()}
    return {"tree": None if saved is None else saved.to_dict()}


def _headline(result: Mapping[str, Any]) -> str:
    data = result["data"]
    values = {name: value for name, value in result["parameters"].items() if value is not None}
    given = ", ".join(f"{name}={_plain(value)}" for name, value in values.items())
    depth = "" if noun_of(result) != "tree" else f", depth {result['depth']}"
    return (
        f"{result['model']} (variant {result['variant']}){depth}, {given}\n"
        f"{data['name']}: {data['n']} samples, {data['p']} features, scaling {data['scaling']}"
    )


def noun_of(result: Mapping[str, Any]) -> str:
    """Return what a run looks for: a tree, unless its result names something else."""
    return str(result.get("finds", "tree"))


def _plain(value: Any) -> str:
    values = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(part, list | tuple) for part in values):
        return ";".join(map(_plain, values))
    return ",".join(f"{part:g}" if isinstance(part, float) else str(part) for part in values)


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
        text = ", ".join([alone] if alone else parts)
        facts += [(entry_name(name), text)] if text else []
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


def _constraints(result: Mapping[str, Any]) -> list[str]:
    """Say of each constraint what the tree has, what is allowed, whether it binds, and what it costs."""
    from mipforest.problem.result import held_in_words

    return [
        f"{held['words']}: {'; '.join(filter(None, held_in_words(held)))}"
        for held in result.get("constraints", ())
    ]


class Request(Protocol):
    """What was asked for."""

    @property
    def source(self) -> DataSource:
        """Where the data come from."""

    def to_dict(self) -> dict[str, Any]:
        """Return the options as JSON takes them."""


@dataclass(frozen=True, eq=False)
class JobResult:
    """The outcome of a job.

    Attributes
    ----------
    result
        The content of ``result.json``.
    saved
        The tree with all it takes to predict, or ``None``.
    data
        What it was fitted on.
    tables
        Further files of the run folder: name and text.
    """

    result: dict[str, Any]
    saved: Saved | None
    data: LoadedData
    tables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, job: Request, data: LoadedData, result: Result) -> JobResult:
        """Collect what is worth keeping."""
        from mipforest.runs import saved_of

        found = result.to_dict(data.test)
        found["data"] |= {"target": data.train.target, "notes": list(data.train.notes)}
        if data.test is not None:
            found["test_data"] = {"name": data.test.name, "n": data.test.n, "sha256": data.test.sha256}
        found |= {
            "mipforest_version": mipforest.__version__,
            "options": job.to_dict(),
            "data_source": job.source.as_found(data.train).to_dict(),
        }
        if result.tree is not None:
            found["worth"] = result.worth(data.test)
        saved = None if result.tree is None else saved_of(result.tree, data)
        # The events are by far the longest part: they stand at the end.
        found["events"] = found.pop("events")
        tables = {}
        if result.trees is not None:
            from mipforest.runs.folder import TREES
            from mipforest.runs.text_files import json_text

            tables[TREES] = json_text(result.trees.to_dict())
        return cls(found, saved, data, tables)

    @property
    def exit_code(self) -> int:
        """0 for a verified tree, else 3."""
        return SUCCESS if self.result["verified"] else NO_ANSWER

    def write(self, folder: RunFolder) -> None:
        """Write the run folder.

        Raises
        ------
        OSError
            If the disk is full, or anything else comes in between; nothing is left then.
        """
        # Whoever removed the folder during the solve has not removed what was found.
        folder.staging.mkdir(parents=True, exist_ok=True)
        self.write_files(folder.staging)
        folder.commit()

    def write_files(self, place: Path) -> None:
        """Write the files of a run into a folder; OSError if that is impossible."""
        from mipforest.runs import SavedTree
        from mipforest.runs.folder import CARD, CARD_PICTURE, LOG, PICTURE, RESULT, TREE, with_digests
        from mipforest.runs.text_files import json_text

        (place / LOG).touch()
        of_tree = isinstance(self.saved, SavedTree)
        found = {} if self.saved is None else {(TREE if of_tree else CARD): self.saved.to_dict()}
        texts = {RESULT: json_text(with_digests(self.result, found)), **self.tables}
        for name, text in (texts | {name: json_text(file) for name, file in found.items()}).items():
            (place / name).write_text(text, encoding="utf-8")
        if self.saved is not None:
            from mipforest.trees import save_figure

            drawn = self.saved.fitted.plot(self.data.train.X_raw, self.data.train.labels, training=True)
            save_figure(drawn, place / (PICTURE if of_tree else CARD_PICTURE))

    def as_json(self, folder: RunFolder | None) -> dict[str, Any]:
        """Return everything in one object, the tree included."""
        return self.result | {
            **found_as_json(self.saved),
            "out": None if folder is None else str(folder.path),
            "exit_code": self.exit_code,
        }

    def print_summary(self, out: Path | None, *, failed: bool) -> None:
        """Print the outcome in words, and what can be done next.

        Parameters
        ----------
        out
            The run folder as the user named it, or ``None``.
        failed
            Whether it could not be written: the error will say so.
        """
        print_text(summary(self.result, self.saved, terminal_width()))
        if failed:
            return
        print_text()
        if out is None:
            print_text(
                "Nothing was written; --out DIR keeps the result, the tree, a picture and the solver's log."
            )
            return
        run = shlex.quote(str(out))
        print_text(f"Written to {out}: {', '.join(sorted(entry.name for entry in out.iterdir()))}")
        if self.saved is None:
            return
        name = self.saved.fitted.noun.split()[-1]
        print_text(f"Next: mipforest predict {run} NEW.csv    mipforest plot {run} -o {name}.png")
        stopped = self.result["status"] in ("time_limit", "interrupted")
        if stopped and "tuning" not in self.result:  # a tuning takes no --start
            print_text(
                f"To go on from this tree: the same command with --start {run}, more time and another --out."
            )


def run_folder(run_options: RunOptions) -> AbstractContextManager[RunFolder | None]:
    """Refuse a folder that cannot be written before any work is done."""
    from mipforest.runs import RunFolder

    return (
        nullcontext()
        if run_options.out is None
        else RunFolder(run_options.out.expanduser(), replace=run_options.force)
    )


def write_outcome(outcome: JobResult, folder: RunFolder | None) -> OSError | RunError | None:
    """Write the run folder; a failure must not keep the user from seeing what was found."""
    from mipforest.runs import RunError

    try:
        if folder is not None:
            outcome.write(folder)
    except RunError as error:
        return error
    except OSError as error:
        error.filename = folder and str(folder.path)
        return error
    return None


def end(
    outcome: JobResult,
    folder: RunFolder | None,
    failure: OSError | RunError | None,
    run_options: RunOptions,
    more: Mapping[str, Any] | None = None,
) -> NoReturn:
    """Print the outcome and end the command with its exit code, or with that of a failure to write it.

    Parameters
    ----------
    outcome, folder, failure
        What came out, the run folder or ``None``, and what :func:`write_outcome` gave.
    run_options
        The run folder as the user named it, and how to print.
    more
        Further entries of the JSON object.
    """
    if failure is None:
        reported, code = {}, outcome.exit_code
    else:
        report = report_of(failure)
        reported, code = report.to_dict(), report.exit_code
    try:
        if run_options.as_json:
            print_json(outcome.as_json(folder if failure is None else None) | dict(more or {}) | reported)
        elif not run_options.quiet:
            outcome.print_summary(run_options.out, failed=failure is not None)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:
        if folder is None and failure is None:  # then it stands nowhere else
            _keep_elsewhere(outcome)
        raise
    if failure is not None and not run_options.as_json:
        _keep_elsewhere(outcome)
        raise failure
    raise Exit(code)


def _keep_elsewhere(outcome: JobResult) -> None:
    """Keep what cannot be written where it belongs: in a temporary folder, or on standard output."""
    from mipforest.runs.text_files import json_text

    place = None
    try:
        place = Path(tempfile.mkdtemp(prefix="mipforest-run-"))
        outcome.write_files(place)
    except OSError:
        if place is not None:
            shutil.rmtree(place, ignore_errors=True)
        if outcome.saved is not None:
            print_text(f"The {outcome.saved.fitted.noun}, as its file would have been:")
            print_text(json_text(outcome.saved.to_dict()))
        return
    print_note(f"the run could not be written where it belongs; its files are in {place}")
