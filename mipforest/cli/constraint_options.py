"""Options of constraints on the tree, which become objects of :mod:`mipforest.problem.constraints`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from typer import Option

if TYPE_CHECKING:
    from mipforest.problem.constraints import Constraint


@dataclass(frozen=True, kw_only=True)
class ConstraintOptions:
    """What the tree has to satisfy on the training samples."""

    panel: ClassVar[str] = "Constraints"

    forbid: Annotated[
        list[str] | None,
        Option("--forbid", metavar="COLUMN,...", help="Columns or features that the tree may not use."),
    ] = None
    require: Annotated[
        list[str] | None,
        Option("--require", metavar="COLUMN,...", help="Columns or features that some split has to use."),
    ] = None
    at_most_features: Annotated[
        str | None, Option("--at-most-features", metavar="N", help="Use at most N columns.")
    ] = None
    feature_budget: Annotated[
        str | None,
        Option(
            "--feature-budget",
            metavar="FILE.toml|N",
            help="Most that the columns used may cost together: a file with 'budget = 25' and costs by name under "
            "[cost], or N where each costs 1.",
        ),
    ] = None
    monotone: Annotated[
        list[str] | None,
        Option(
            "--monotone",
            metavar="COLUMN+,...",
            help="Predictions rise (+) or fall (-) in these columns, as in 'age+,dose-': from the first class to the "
            "last.",
        ),
    ] = None
    once_per_path: Annotated[
        list[str] | None,
        Option(
            "--once-per-path",
            metavar="COLUMN,...|all",
            help="Columns that come at most once on the way from the root to a leaf.",
        ),
    ] = None
    at_most_splits: Annotated[
        str | None, Option("--at-most-splits", metavar="N", help="Use at most N splits.")
    ] = None
    split: Annotated[
        list[str] | None,
        Option(
            "--split",
            metavar="SPLIT",
            help="Fix the split at the root, as in 'age >= 60', or its feature with a range of thresholds, or any, "
            "as in 'age in 50..60' or 'age'; at another node as in '1: age >= 60'. The nodes below node t are 2t+1 "
            "(left, where the split does not hold) and 2t+2. Repeatable.",
        ),
    ] = None
    min_leaf: Annotated[
        str | None,
        Option("--min-leaf", metavar="N|SHARE", help="Least training samples in every leaf, as in 20 or 5%."),
    ] = None
    parity: Annotated[
        list[str] | None,
        Option(
            "--parity",
            metavar="COLUMN=SHARE",
            help="Shares predicted the last class differ by at most this between groups, as in sex=3%. The column may "
            "be one that --drop keeps out of the tree.",
        ),
    ] = None
    recall: Annotated[
        list[str] | None,
        Option("--recall", metavar="CLASS=SHARE", help="Least recall of a class, as in yes=90%."),
    ] = None
    precision: Annotated[
        list[str] | None,
        Option("--precision", metavar="CLASS=SHARE", help="Least precision of a class."),
    ] = None
    f1: Annotated[
        list[str] | None, Option("--f1", metavar="CLASS=SHARE", help="Least F1 score of a class.")
    ] = None
    limit_label: Annotated[
        list[str] | None,
        Option(
            "--limit-label",
            metavar="LABEL=SHARE",
            help="Largest share of samples that get a class, treatment or decision, as in drug=30%.",
        ),
    ] = None
    label: Annotated[
        list[str] | None,
        Option(
            "--label",
            metavar="LABEL:CONDITION,...",
            help="Samples that satisfy conditions get a class or decision, as in 'ill: age >= 60, dose < 2'.",
        ),
    ] = None
    constraints: Annotated[
        Path | None,
        Option(
            "--constraints",
            metavar="FILE.toml",
            help="All of these from a file, by the names of the options, as in forbid = ['age', 'sex'].",
        ),
    ] = None

    def read(self) -> tuple[Constraint, ...]:
        """Return the constraints of the options, then those of the file.

        Raises
        ------
        DataError
            If one is malformed.
        """
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        if all(value is None for value in given.values()):
            return ()
        from mipforest.problem.constraints import KINDS, read_constraints

        found: list[Constraint] = []
        for kind, cls in KINDS.items():
            asked: Any = given[kind.replace("-", "_")]
            for text in [asked] if isinstance(asked, str) else asked or ():
                found += cls.parse(text)
        if self.constraints is not None:
            found += read_constraints(self.constraints)
        return tuple(found)
