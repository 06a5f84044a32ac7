"""``mipforest predict``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from mipforest.cli import options as o
from mipforest.cli.errors import CommandError
from mipforest.cli.output import print_json, print_text

if TYPE_CHECKING:
    from mipforest.runs import SavedTree

#: Name of the column that is added.
PREDICTION = "prediction"


def predict(
    run: o.RunPath,
    table: Annotated[
        Path,
        Argument(
            metavar="CSV",
            help="Samples in original units (.csv, .csv.gz, .parquet), with the training data's columns.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the table with a column 'prediction' to this .csv file, instead of printing.",
            show_default=False,
        ),
    ] = None,
    as_json: o.Json = False,
) -> None:
    """Predict with the tree of a run.

    Prints one prediction per row, or writes the table with the predictions. If the target column is there
    too, says how many are right (accuracy), or how far off values are (R2, MSE, MAE).
    """
    from mipforest.data.files import read_file
    from mipforest.runs import read_run

    saved = read_run(run).found
    if output is not None and output.suffix.lower() != ".csv":
        raise CommandError(f"{output} does not end in .csv; predictions are written as .csv")
    frame = read_file(table)
    _refuse_gaps(frame, saved, table)
    predicted = _labels(saved, frame)
    quality = _quality(saved, frame)
    if output is not None:
        _write(frame, predicted, output)
    if as_json:
        print_json({"n": len(predicted), "predictions": predicted, **quality})
        return
    if output is None:
        print_text("\n".join(map(str, predicted)))
    else:
        print_text(f"{output}: {len(predicted)} predictions in the column {_free_name(frame)!r}")
    for name, value in quality.items():
        # Predictions on standard output stay alone there.
        told = f"{name}: {value:.1%}" if saved.tree.is_classifier else f"{name}: {value:.6g}"
        print(told, file=sys.stderr if output is None else sys.stdout)


def _refuse_gaps(frame: Any, saved: SavedTree, table: Path) -> None:
    """Name the first sample that lacks a value: unlike in training, no sample can be left out."""
    for column in saved.encoding.columns:
        if column.name in frame.columns and frame[column.name].isna().any():
            row = int(frame[column.name].isna().to_numpy().argmax())
            raise CommandError(
                f"{table}: sample {row + 1} has no value in column {column.name!r}; "
                "fill it in, or remove the sample"
            )


def _labels(saved: SavedTree, frame: Any) -> list[str] | list[float]:
    """Give class names, or values."""
    predicted = saved.predict(frame).tolist()
    return [saved.tree.classes[k] for k in predicted] if saved.tree.is_classifier else predicted


def _quality(saved: SavedTree, frame: Any) -> dict[str, float]:
    """Compare with the target column, if it is there."""
    if saved.target not in frame.columns or frame[saved.target].isna().any():
        return {}
    import numpy as np

    from mipforest.trees import class_measures, regression_measures

    predicted, stated = saved.predict(frame), saved.targets(frame[saved.target])
    if not saved.tree.is_classifier:
        return regression_measures(np.asarray(stated), np.asarray(predicted))._asdict()
    return class_measures(np.asarray(stated, np.int64), np.asarray(predicted, np.int64))._asdict()


def _free_name(frame: Any) -> str:
    name, number = PREDICTION, 1
    while name in frame.columns:
        number += 1
        name = f"{PREDICTION}_{number}"
    return name


def _write(frame: Any, predicted: list[str] | list[float], output: Path) -> None:
    from mipforest.files import atomic_write

    table = frame.assign(**{_free_name(frame): predicted})
    with atomic_write(output, "w") as file:
        table.to_csv(file, index=False)
