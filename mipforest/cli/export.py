"""``mipforest export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from mipforest.cli import options as o
from mipforest.cli.errors import CommandError
from mipforest.cli.inputs import build, check_depth, formulation_of, scaling_of, source_of, start_of
from mipforest.cli.output import print_json, print_note, print_text
from mipforest.formatting import number


def export(
    *,
    model: o.ModelName,
    depth: o.Depth,
    data: o.DataName,
    target: o.Target = None,
    param: o.Parameters = None,
    variant: o.Variant = None,
    ensemble: o.Ensemble = None,
    positive: o.Positive = None,
    task: o.TaskOption = None,
    missing: o.MissingOption = o.Missing.error,
    scaling: o.ScalingOption = None,
    test_size: o.TestSize = None,
    start: o.Start = "default",
    seed: o.Seed = 0,
    output: Annotated[
        Path,
        Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Instance to write: .mps or .lp, with .gz behind it to compress.",
            rich_help_panel="Output",
        ),
    ],
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Write an instance: the model (.mps or .lp), a start (.mst) and what they are (.json).

    With --test-size the model is of the training part. Existing files are replaced.

    Example: mipforest export --model margot --depth 2 --data breast_cancer -o margot-d2.mps.gz
    """
    import mipforest
    from mipforest.runs import instance_files, write_instance

    try:
        instance_files(output)
    except ValueError as error:
        raise CommandError(str(error)) from None
    if not output.parent.is_dir():
        raise CommandError(f"there is no folder {output.parent}; make it first, or write elsewhere")
    source = source_of(
        data,
        target=target,
        positive=positive,
        task=task,
        scaling=scaling_of(scaling, model),
        missing=missing,
        seed=seed,
        test_size=test_size,
    )
    formulation = formulation_of(model, param, variant, ensemble)
    check_depth(depth)
    wanted = start_of(start, formulation)
    problem = build(formulation, source.load().train, depth)
    metadata = write_instance(problem, output, source, start=wanted, seed=seed, version=mipforest.__version__)
    if as_json:
        print_json(metadata)
    elif not quiet:
        _tell(output, metadata, str(problem.model.stats()))


def _tell(output: Path, metadata: dict[str, Any], statistics: str) -> None:
    from mipforest.runs import instance_files

    start, description = instance_files(output)
    print_text(f"{output}: {statistics}")
    if metadata["start"]:
        print_text(f"{start}: a start of objective {number(metadata['start_objective'])}")
    print_text(f"{description}: model, parameters, data and checksums")
    for warning in metadata["warnings"]:
        print_note(warning)
    if metadata["start"] and ".mps" in output.suffixes:
        print_text(f"Next: mipforest check {output} {start}")
    print_text(f"Once it is solved: mipforest import SOLUTION --instance {output}")
