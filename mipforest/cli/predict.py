"""``mipforest predict``."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

from typer import Argument, Option

from mipforest.cli import options as o
from mipforest.cli.errors import CommandError
from mipforest.cli.output import print_json, print_text
from mipforest.errors import DataError, did_you_mean

if TYPE_CHECKING:
    from mipforest.data.loading import TextFormat
    from mipforest.runs import DataSource, Saved

#: Name of the column that is added.
PREDICTION = "prediction"

#: Beginning of the names of the columns of probabilities; the class follows.
PROBABILITY = "probability_"

#: Beginning of the names of the columns of outcomes that a prescriptive tree estimates; the treatment follows.
OUTCOME = "outcome_"

#: Name of the column of explanations.
EXPLANATION = "explanation"

#: Names of the columns of a score card: its points, and the probability of the second class.
TOTAL, RISK = "total", "risk"

#: Name of the column that says which values are missing, where some are.
NOTE = "note"

#: Measures that are printed in per cent.
_SHARES = (
    "accuracy",
    "balanced_accuracy",
    "sensitivity",
    "specificity",
    "followed",
    "label_accuracy",
    "exact_match",
)


def predict(
    run: o.RunPath,
    table: Annotated[
        Path,
        Argument(
            metavar="CSV",
            help="Samples in original units (.csv, .csv.gz, .parquet), with the columns that the tree or card reads.",
        ),
    ],
    output: Annotated[
        Path | None,
        o.output_file(
            "Write the table with a column 'prediction', and 'probability_CLASS' of a logistic tree, "
            "'outcome_TREATMENT' of a prescriptive one, or 'total' and 'risk' of a score card, to this .csv file, "
            "instead of printing."
        ),
    ] = None,
    proba: Annotated[
        bool,
        Option(
            "--proba",
            help="Give the probabilities of the classes: those of a logistic tree's model, or the shares of the "
            "classes among the training samples in the leaf.",
        ),
    ] = False,
    explain: Annotated[
        bool,
        Option(
            "--explain",
            help="Say why each row is predicted as it is, in a column 'explanation': its path through the tree, or the "
            "rules of a card that hold, with their points.",
        ),
    ] = False,
    weight: Annotated[
        str | None,
        Option(
            metavar="COLUMN",
            help="Column of weights: accuracy and all other measures weigh rows; each counts once without it.",
        ),
    ] = None,
    unseen: Annotated[
        o.Unseen,
        Option(help="A level of text that the training data do not have: an error, or none of theirs."),
    ] = o.Unseen.error,
    sep: Annotated[
        str | None,
        Option(
            "--sep", metavar="SIGN", help="Separator of the values, or 'tab'; by default that of the run."
        ),
    ] = None,
    decimal: Annotated[
        str | None, Option("--decimal", metavar="SIGN", help="Decimal sign; by default that of the run.")
    ] = None,
    encoding: Annotated[
        str | None,
        Option("--encoding", metavar="NAME", help="Encoding of the file; by default that of the run."),
    ] = None,
    thousands: Annotated[
        str | None,
        Option(
            "--thousands",
            metavar="SIGN",
            help="Sign between thousands in numbers; by default that of the run.",
        ),
    ] = None,
    header: Annotated[
        bool | None,
        Option(
            "--header/--no-header",
            help="Whether the first line holds names of columns; by default as in the file of the run.",
        ),
    ] = None,
    names: Annotated[
        str | None,
        Option(
            metavar="COLUMN,COLUMN,...", help="Names of all columns; by default those of the run's --names."
        ),
    ] = None,
    missing_values: Annotated[
        str | None,
        Option(
            metavar="WORD,WORD,...",
            help="Words and numbers that stand for missing values; by default those of the run.",
        ),
    ] = None,
    keep_words: Annotated[
        str | None,
        Option(
            metavar="WORD,WORD,...",
            help="Words such as None that do not stand for missing values; by default those of the run.",
        ),
    ] = None,
    spreadsheet: Annotated[
        bool,
        Option(
            "--spreadsheet",
            help="Write texts that a spreadsheet would take for formulas, such as a class '=1+1', with an apostrophe "
            "in front.",
        ),
    ] = False,
    as_json: o.Json = False,
) -> None:
    """Predict with the tree of a run.

    The command prints one prediction per row, or with -o writes the table with the predictions. With --proba, and for
    a logistic tree, there are also the probabilities: a column 'probability_CLASS' for each class in the written
    table, and 'probabilities' by class in --json. A score card also gives the columns 'total' and 'risk', the
    probability of the second class. Messages name the lines of a .csv file as an editor counts them.

    Where a value is missing that the training data tell to fill in, or that a split sends to a side, a column 'note'
    ('notes' in --json) says so. Columns that the tree or card does not read may be absent.

    Where the table has the target column, the predictions are measured. For classes: accuracy; of two classes also
    sensitivity (the share of the second class that is right) and specificity (that of the first). For values: R2, MSE
    and MAE. For probabilities: Brier score and log loss.

    With --explain there is a column 'explanation', and 'explanations' in --json.

    A prescriptive tree predicts the treatment, and the outcome under each; --json has 'outcomes' by treatment.

    A tree of several targets adds a column for each, 'prediction_NAME'; --json has 'predictions' by target. Of numbers
    R2, MSE and MAE are means over the targets; of labels there are the share that is right, and that of the rows of
    which all are.
    """
    from mipforest.runs import DataSource, read_run

    solved = read_run(run)
    saved = solved.found
    if saved.fitted.prescribes and proba:
        raise CommandError("--proba: a prescriptive tree estimates outcomes, no probabilities; leave it out")
    if output is not None and output.suffix.lower() != ".csv":
        raise CommandError(f"{output} does not end in .csv; predictions are written as .csv")
    try:
        of_run = DataSource.from_dict(solved.result.get("data_source", {}))
    except TypeError as error:
        raise CommandError(f"{run}: the entry 'data_source' of result.json is malformed ({error})") from error
    source = _source_like(
        of_run,
        {"sep": sep, "decimal": decimal, "encoding": encoding, "thousands": thousands, "header": header},
        {"names": names, "missing_values": missing_values, "keep_words": keep_words},
    )
    given = _read(table, source, saved, renamed=names is not None)
    try:
        frame = _as_trained(given, source, saved, weight)
        _refuse_gaps(frame, saved, table)
        found = Predictions.of(saved, frame, unseen, proba=proba, explain=explain)
        quality = _quality(saved, frame, unseen, weight)
    except DataError as error:
        raise error.located(str(table)) from error
    if output is not None:
        added = _write(given, found.columns | found.more, output, spreadsheet=spreadsheet)
    if as_json:
        print_json(found.content | quality)
        return
    if output is not None:
        print_text(f"{output}: {found.count} predictions in {found.where(added)}")
    elif proba or explain or found.outcomes or found.card or len(found.columns) > 1:
        printed = _with_columns(frame.iloc[:, :0], found.columns | found.more)[0]
        printed = for_spreadsheets(printed) if spreadsheet else printed
        print_text(printed.to_csv(index=False).rstrip("\n"))
    else:
        (predicted,) = found.columns.values()
        print_text("\n".join(str(_no_formula(name) if spreadsheet else name) for name in predicted))
        _print_first_note(found.notes, frame)
    # Predictions on standard output stay alone there.
    _print_quality(quality, saved, sys.stderr if output is None else sys.stdout)


@dataclass(frozen=True)
class Predictions:
    """What is predicted of the rows of a table, and said of them.

    Attributes
    ----------
    columns
        Class names, or values, by the names that their columns are to have.
    targets
        Names of the targets, in the same order.
    probabilities, card, outcomes
        Probabilities by class, totals and risks of a score card, and outcomes by treatment; empty where there are none.
    explanations
        Why each row is predicted as it is; ``None`` where that was not asked.
    notes
        Which values are missing.
    """

    columns: dict[str, list[Any]]
    targets: Collection[str]
    probabilities: dict[str, list[float]]
    card: dict[str, list[Any]]
    outcomes: dict[str, list[float]]
    explanations: list[str] | None
    notes: list[str]

    @classmethod
    def of(cls, saved: Saved, frame: Any, unseen: o.Unseen, *, proba: bool, explain: bool) -> Predictions:
        """Predict the rows of a table as trees and cards read it."""
        proba = proba or (saved.fitted.gives_probabilities and saved.fitted.is_tree)
        return cls(
            _predictions(saved, frame, unseen),
            saved.target_columns,
            _probabilities(saved, frame, unseen) if proba else {},
            _card(saved, frame, unseen),
            _outcomes(saved, frame, unseen) if saved.fitted.prescribes else {},
            _explanations(saved, frame, unseen) if explain else None,
            saved.missing_notes(frame),
        )

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.notes)

    @property
    def more(self) -> dict[str, list[Any]]:
        """Columns beside the predictions, by the names that they are to have."""
        more: dict[str, list[Any]] = dict(self.card)
        more |= {PROBABILITY + name: values for name, values in self.probabilities.items()}
        more |= {OUTCOME + name: values for name, values in self.outcomes.items()}
        more |= {} if self.explanations is None else {EXPLANATION: self.explanations}
        return more | ({NOTE: self.notes} if any(self.notes) else {})

    @property
    def content(self) -> dict[str, Any]:
        """What ``--json`` prints of them."""
        predicted = list(self.columns.values())
        by_target = dict(zip(self.targets, predicted, strict=True)) if len(predicted) > 1 else predicted[0]
        content: dict[str, Any] = {"n": self.count, "predictions": by_target}
        content |= {"probabilities": self.probabilities} if self.probabilities else {}
        content |= {"outcomes": self.outcomes} if self.outcomes else {}
        content |= {f"{name}s": values for name, values in self.card.items()}
        content |= {} if self.explanations is None else {"explanations": self.explanations}
        return content | ({"notes": self.notes} if any(self.notes) else {})

    def where(self, added: list[str]) -> str:
        """Say in which columns of a written table the predictions are, and all else, by the names that they have."""
        n = len(self.columns)
        own = f"the column{'s' if n > 1 else ''} {' and '.join(map(repr, added[:n]))}"
        return own + _others_text(dict(zip(self.more, added[n:], strict=True)))


def _read(table: Path, source: DataSource, saved: Saved, *, renamed: bool) -> Any:
    """Return the table as it stands, read like the file of the run; the user may have given names to its columns."""
    from mipforest.data.loading import PLAIN, first_line, is_text_file, read_file

    if not is_text_file(table):
        return read_file(table, PLAIN)
    written = source.written
    if not renamed and written.names is not None:
        written = _with_names_of(table, written, saved.target_columns)
    if written.skip_lines and written.header:
        # The run's file had a title; this one may begin with the names of its columns.
        whole = replace(written, skip_lines=0)
        if {column.name for column in saved.encoding.columns} & set(first_line(table, whole)):
            written = whole
    # What the run left out before names were checked is left out here, too; all else is written again.
    counts = Counter(first_line(table, written) if written.header and written.names is None else ())
    return read_file(table, written, [name for name in source.drop if counts[name] > 1])


def _as_trained(given: Any, source: DataSource, saved: Saved, weight: str | None) -> Any:
    """Return a table with its columns as the run's data had them."""
    from mipforest.data.loading import WRITTEN
    from mipforest.data.table import with_text_names

    told = given.attrs[WRITTEN]
    convention = replace(source.convention, decimal=told.decimal, thousands=told.thousands)
    no_features = (*saved.target_columns, saved.treatment, weight)
    return saved.encoding.as_written(with_text_names(given), convention, no_features, saved.needed)


def _print_first_note(notes: list[str], frame: Any) -> None:
    """Say on standard error how many rows lack a value."""
    from mipforest.data.lines import row_text

    if any(notes):
        count, first = sum(map(bool, notes)), next(k for k, note in enumerate(notes) if note)
        note = (
            f"{count} of {len(notes)} rows lack a value, the first is {row_text(frame, frame.index[first])}"
        )
        print(f"{note}: {notes[first]}; -o FILE notes all", file=sys.stderr)


def _print_quality(quality: Mapping[str, float], saved: Saved, file: TextIO) -> None:
    """Print measures, and why some are not known."""
    for name, value in quality.items():
        shown = f"{value:.1%}" if name in _SHARES else f"{value:.6g}"
        if math.isnan(value):
            classes = dict(zip(("specificity", "sensitivity"), saved.fitted.classes, strict=False))
            lacks = f"no row has the class {classes[name]}" if name in classes else "the rows do not tell"
            shown = f"not known, {lacks}"
        print(f"{name}: {shown}", file=file)


def _refuse_gaps(frame: Any, saved: Saved, table: Path) -> None:
    """Name the first sample that lacks a value: unlike in training, no sample can be left out."""
    from mipforest.data.lines import row_text

    for column in saved.encoding.columns_of(saved.needed):
        if (
            column.fill is None
            and not column.branch
            and column.name in frame.columns
            and frame[column.name].isna().any()
        ):
            row = int(frame[column.name].isna().to_numpy().argmax())
            raise CommandError(
                f"{table}: {row_text(frame, frame.index[row])} has no value in column {column.name!r}, which the tree "
                "or card reads; fill it in, or remove the row"
            )


def _source_like(source: DataSource, said: Mapping[str, Any], lists: Mapping[str, str | None]) -> DataSource:
    """Return the source of a run with what the user says of a new file."""
    changes = {name: value for name, value in said.items() if value is not None}
    changes |= {name: o.listed(value) for name, value in lists.items() if value is not None}
    if "decimal" in changes and "thousands" not in changes and source.thousands == changes["decimal"]:
        changes["thousands"] = None
    if changes.get("header") and "names" not in changes:
        changes["names"] = None  # those of the first line
    return replace(source, **changes)


def _with_names_of(table: Path, written: TextFormat, targets: Collection[str]) -> TextFormat:
    """Return how a new file is read whose run's file got names for its columns: its targets may be absent.

    A first line that holds these names is a line of names.
    """
    from mipforest.data.loading import first_line, is_text_file

    names = written.names
    if names is None or not is_text_file(table):
        return written
    found = first_line(table, written)
    without = tuple(name for name in names if name not in targets)
    if found in (names, without):
        return replace(written, header=True, names=None)
    return replace(written, names=without) if len(found) == len(without) else written


def _predictions(saved: Saved, frame: Any, unseen: o.Unseen) -> dict[str, list[Any]]:
    """Return class names, or values, by the names of their columns: one, or one for each of several targets."""
    predicted = saved.predict(frame, unseen=unseen.value)
    if predicted.ndim == 1:
        values = predicted.tolist()
        return {
            PREDICTION: [saved.fitted.classes[k] for k in values] if saved.fitted.is_classifier else values
        }
    from mipforest.trees import Tree

    names = [f"{PREDICTION}_{name}" for name in saved.target_columns]
    classes = saved.fitted.target_classes if isinstance(saved.fitted, Tree) else ()
    columns = predicted.T.tolist()
    if classes:
        columns = [[of[k] for k in column] for of, column in zip(classes, columns, strict=True)]
    return dict(zip(names, columns, strict=True))


def _probabilities(saved: Saved, frame: Any, unseen: o.Unseen) -> dict[str, list[float]]:
    """Return the probabilities by class."""
    if not saved.fitted.is_classifier:
        raise CommandError("--proba: a regression tree predicts values, no classes; leave it out")
    by_class = saved.predict_proba(frame, unseen=unseen.value).T.tolist()
    return dict(zip(saved.fitted.classes, by_class, strict=True))


def _card(saved: Saved, frame: Any, unseen: o.Unseen) -> dict[str, list[Any]]:
    """Return the totals and risks of a score card; nothing of a tree."""
    from mipforest.cards import ScoreCard

    if not isinstance(saved.fitted, ScoreCard):
        return {}
    totals = saved.fitted.totals(saved.encode(frame, unseen=unseen.value))
    return {TOTAL: totals.tolist(), RISK: saved.fitted.risk_of(totals).tolist()}


def _others_text(columns: Mapping[str, str]) -> str:
    """Name the columns beside the predictions, by what they hold."""
    kinds = {PROBABILITY: "probabilities", OUTCOME: "outcomes"}
    said = ""
    for beginning, what in kinds.items():
        names = [repr(name) for wanted, name in columns.items() if wanted.startswith(beginning)]
        said += f", {what} in {' and '.join(names)}" if names else ""
    others = [repr(name) for wanted, name in columns.items() if wanted in (TOTAL, RISK, EXPLANATION, NOTE)]
    listed = f"{', '.join(others[:-1])} and {others[-1]}" if len(others) > 1 else "".join(others)
    return said + (f"; more in {listed}" if others else "")


def _explanations(saved: Saved, frame: Any, unseen: o.Unseen) -> list[str]:
    """Return why each row is predicted as it is."""
    try:
        return saved.fitted.explanations(saved.encode(frame, unseen=unseen.value))
    except DataError:
        raise
    except ValueError as error:
        raise CommandError(f"--explain: {error}") from error


def _outcomes(saved: Saved, frame: Any, unseen: o.Unseen) -> dict[str, list[float]]:
    """Return the estimated outcomes by treatment."""
    by_treatment = saved.predict_outcomes(frame, unseen=unseen.value).T.tolist()
    return dict(zip(saved.fitted.classes, by_treatment, strict=True))


def _quality(saved: Saved, frame: Any, unseen: o.Unseen, weight: str | None) -> dict[str, float]:
    """Compare with the target column, if it is there."""
    if weight is not None and weight not in frame.columns:
        hint = did_you_mean(weight, list(map(str, frame.columns)))
        raise CommandError(f"--weight: the table has no column {weight!r}{hint}")
    targets = list(saved.target_columns)
    if not set(targets) <= set(frame.columns) or frame[targets].isna().any(axis=None):
        return {}
    import numpy as np

    from mipforest.data.table import checked_weights
    from mipforest.data.target import read_targets_like
    from mipforest.trees import (
        Tree,
        calibration_measures,
        class_measures,
        diagnostic_measures,
        measures_of_targets,
        regression_measures,
    )

    given = None if weight is None else frame[weight]
    weights = checked_weights(given, len(frame), f"column {weight!r}")
    predicted = saved.predict(frame, unseen=unseen.value)
    if isinstance(saved.fitted, Tree) and saved.fitted.targets:
        classes = saved.fitted.target_classes
        stated = read_targets_like(frame[targets], classes).y
        return measures_of_targets(stated, predicted, weights, labels=bool(classes))._asdict()
    stated = saved.targets(frame[saved.target])
    if saved.fitted.prescribes:
        return _of_prescriptions(saved, frame, unseen, stated, weights)
    if not saved.fitted.is_classifier:
        return regression_measures(np.asarray(stated), np.asarray(predicted), weights)._asdict()
    numbered = np.asarray(stated, np.int64), np.asarray(predicted, np.int64)
    found = class_measures(*numbered, weights)._asdict()
    if len(saved.fitted.classes) == 2:
        diagnostic = diagnostic_measures(*numbered, weights)
        found |= {"sensitivity": diagnostic.sensitivity, "specificity": diagnostic.specificity}
    if saved.fitted.gives_probabilities and len(saved.fitted.classes) == 2:
        calibration = calibration_measures(stated, saved.predict_proba(frame, unseen=unseen.value), weights)
        found |= {name: getattr(calibration, name) for name in ("auc", "brier_score", "log_loss")}
    return found


def _of_prescriptions(
    saved: Saved, frame: Any, unseen: o.Unseen, outcomes: Any, weights: Any
) -> dict[str, float]:
    """Compare with the columns of treatments and outcomes, if both are there."""
    if saved.treatment is None or saved.treatment not in frame.columns or frame[saved.treatment].isna().any():
        return {}
    from mipforest.trees import prescription_measures

    had = saved.classes_of(frame[saved.treatment], saved.treatment)
    prescribed = saved.predict(frame, unseen=unseen.value).astype(int)
    estimates = saved.predict_outcomes(frame, unseen=unseen.value)
    return prescription_measures(outcomes, had, prescribed, estimates, weights)._asdict()


#: What a text begins with that spreadsheets take for a formula (OWASP, CSV injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def _no_formula(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would compute; numbers stay."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def for_spreadsheets(frame: Any) -> Any:
    """Return a table whose texts, names of columns included, no spreadsheet takes for formulas."""
    return frame.map(_no_formula).rename(columns=_no_formula)


def _write(
    frame: Any,
    columns: Mapping[str, list[Any]],
    output: Path,
    *,
    spreadsheet: bool,
) -> list[str]:
    """Write the table with the columns added; give their names."""
    from mipforest.atomic import atomic_write

    frame, added = _with_columns(frame, columns)
    frame = for_spreadsheets(frame) if spreadsheet else frame
    with atomic_write(output, "w") as file:
        frame.to_csv(file, index=False)
    return added


def _with_columns(frame: Any, columns: Mapping[str, list[Any]]) -> tuple[Any, list[str]]:
    """Add predictions and other columns to a table; give it and the names of the columns."""
    added = list[str]()
    for wanted, values in columns.items():
        added.append(_free_name(frame, wanted))
        frame = frame.assign(**{added[-1]: values})
    return frame, added


def _free_name(frame: Any, wanted: str) -> str:
    name, number = wanted, 1
    while name in frame.columns:
        number += 1
        name = f"{wanted}_{number}"
    return name
