"""``mipforest vite``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from mipforest.cli import options as o
from mipforest.cli.errors import CommandError
from mipforest.cli.inputs import check_depth, source_of
from mipforest.cli.output import print_json, print_text
from mipforest.cli.pictures import check_picture

if TYPE_CHECKING:
    from mipforest.vite import Vite

#: Features that are printed per level.
PRINTED = 5


def vite(
    ensemble: Annotated[
        str,
        Argument(
            metavar="ENSEMBLE",
            help="random-forest, extra-trees, gradient-boosting or xgboost, fitted here (options behind a colon: "
            "random-forest:trees=100,seed=100); or a .joblib file with a fitted classifier, whose loading runs code "
            "that it contains.",
            show_default=False,
        ),
    ],
    *,
    depth: Annotated[
        int,
        Option(
            metavar="D",
            help="Levels to show, 1 to 10, and depth of trees that are fitted here.",
            show_default=False,
        ),
    ],
    data: o.DataName,
    target: o.Target = None,
    positive: o.Positive = None,
    task: o.TaskOption = None,
    drop: o.Drop = None,
    keep: o.Keep = None,
    missing: o.MissingOption = o.Missing.error,
    test_size: o.TestSize = None,
    seed: Annotated[
        int,
        Option(min=0, metavar="N", help="Seed of the split, and of generated data.", rich_help_panel="Data"),
    ] = 0,
    output: Annotated[
        Path | None,
        Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Draw a picture: .svg, .png or .pdf.",
            show_default=False,
            rich_help_panel="Output",
        ),
    ] = None,
    csv: Annotated[
        Path | None,
        Option(
            "--csv",
            metavar="FOLDER",
            help="Write the numbers to .csv files in this folder.",
            show_default=False,
            rich_help_panel="Output",
        ),
    ] = None,
    max_features: Annotated[
        int,
        Option(
            min=1,
            metavar="N",
            help="Most features to list per node of the picture.",
            rich_help_panel="Output",
        ),
    ] = 6,
    as_json: o.Json = False,
) -> None:
    """Look into a tree ensemble of two classes: which features it splits on, and where.

    Prints the most used features of every level. The picture (-o) adds the nodes with their ranges of split
    values, which samples the trees keep together, and how sure the ensemble is. With --test-size, all this is
    about the training part.

    A .joblib file must hold a scikit-learn or XGBoost classifier that was fitted on the features of the data in
    original units. **Loading such a file runs code that it contains: use only files you trust.**

    Example: mipforest vite random-forest --depth 3 --data breast_cancer -o vite.svg
    """
    check_depth(depth)
    _check_outputs(output, csv)
    source = source_of(
        data,
        target=target,
        positive=positive,
        task=task,
        scaling="none",
        missing=missing,
        drop=drop,
        keep=keep,
        seed=seed,
        test_size=test_size,
    )
    from mipforest.vite import vite as inspect

    seen = inspect(ensemble, source.load().train, depth)
    written = []
    if output is not None:
        seen.save(output, max_features=max_features)
        written.append(output)
    if csv is not None:
        written += seen.write_tables(csv)
    if as_json:
        print_json(_summary(seen) | {"written": [str(path) for path in written]})
    else:
        _tell(seen)
        for path in written:
            print_text(str(path))


def _check_outputs(output: Path | None, csv: Path | None) -> None:
    """Refuse before anything is fitted what cannot be written."""
    if output is not None:
        check_picture(output)
    for path in (output, csv):
        if path is not None and not path.parent.is_dir():
            raise CommandError(f"there is no folder {path.parent}; make it first, or write elsewhere")
    if csv is not None and csv.exists() and not csv.is_dir():
        raise CommandError(f"{csv} is a file; --csv takes the name of a folder")


def _summary(seen: Vite) -> dict[str, Any]:
    return {
        "kind": seen.ensemble.kind,
        "ensemble": seen.ensemble.description,
        "trees": len(seen.ensemble.members),
        "ensemble_depth": seen.ensemble.depth,
        "data": seen.data.name,
        "samples": seen.data.n,
        "accuracy": seen.accuracy,
        "levels": [seen.levels[level].to_dict() for level in seen.levels],
    }


def _tell(seen: Vite) -> None:
    print_text(f"{seen.ensemble.description}; {seen.data.n} samples, accuracy {seen.accuracy:.1%}")
    for level, shares in seen.levels.items():
        most = shares[shares > 0].sort_values(ascending=False, kind="stable")
        shown = ", ".join(f"{name} {share:.0f}%" for name, share in most[:PRINTED].items())
        more = f", {len(most) - PRINTED} more" if len(most) > PRINTED else ""
        print_text(f"level {level}: {shown}{more}" if len(most) else f"level {level}: no tree splits")
