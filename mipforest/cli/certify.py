"""``mipforest certify``: what a certificate proves, and whether that is what one thinks it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from mipforest.cli import options as o
from mipforest.cli.certified import Asked, differences, in_words, numbers_of
from mipforest.cli.errors import SUCCESS, CommandError
from mipforest.cli.inputs import formulation_of, scaling_of, source_of
from mipforest.cli.output import print_json, print_note, print_text

if TYPE_CHECKING:
    from mipforest.certificates import Certified
    from mipforest.data import Dataset

_PROBLEM = "Compare with a problem"


def certify(
    certificate: Annotated[
        Path,
        Argument(
            metavar="FILE", help="What 'mipforest solve --certificate' has written.", show_default=False
        ),
    ],
    exact: Annotated[
        bool,
        Option(
            "--exact",
            help="Compute in whole numbers throughout, instead of doubles that are rounded outward.",
        ),
    ] = False,
    data: Annotated[
        str | None,
        Option(
            metavar="DATA",
            help="Data that it is to be of, as for 'solve'; with the options below as they were there.",
            show_default=False,
            rich_help_panel=_PROBLEM,
        ),
    ] = None,
    model: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="Model that it is to be of; with --param and --variant.",
            show_default=False,
            rich_help_panel=_PROBLEM,
        ),
    ] = None,
    depth: o.Depth = None,
    param: o.Parameters = None,
    variant: o.Variant = None,
    target: o.Target = None,
    positive: o.Positive = None,
    task: o.TaskOption = None,
    weight: o.Weight = None,
    drop: o.Drop = None,
    keep: o.Keep = None,
    missing: o.MissingOption = o.Missing.error,
    scaling: o.ScalingOption = None,
    test_size: o.TestSize = None,
    test: o.TestFile = None,
    seed: o.Seed = 0,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Check the proof that a tree is optimal, or how far from it, without the search that found it.

    A certificate has the samples, a tree, all branchings of the search, and a dual point for everything that
    branching has left. The check shares no code with the search: it sees to it that no routing of the samples is left
    out, that every dual point is feasible, that each proves the claimed bound, and that the tree has its value.
    docs/certificates.md has the format and the proof.

    The model and parameters that the file names must have the numbers that the proof was checked with. With --data,
    --model, --param or --depth, what they say is compared with the file, to the last bit of every sample.

    Exit code: 0 certified; 3 refused, with the line and the leaf, or with all that differs; 2 wrong usage, or no such
    file.

    Example: mipforest certify proof.gz --model margot --depth 2 --data breast_cancer --param C=1
    """
    from mipforest.certificates import CertificateError
    from mipforest.certificates import certify as checked

    found = checked(certificate, exact=exact)
    named, name = model is not None or bool(param) or variant is not None, model or found.words.model
    if named and not name:
        raise CommandError("--model is missing: the file names none; give that of --param and --variant")
    formulation = formulation_of(name, param, variant) if named else None
    samples: Dataset | None = None
    if data is not None:
        if scaling is None and not name:
            raise CommandError(
                "--model or --scaling is missing: the file does not say how its samples are scaled"
            )
        rule = "none" if not name and scaling is None else scaling_of(scaling, name)
        samples = (
            source_of(
                data, target=target, positive=positive, task=task, scaling=rule, missing=missing, seed=seed,
                test_size=test_size, test=test, weight=weight, drop=drop, keep=keep,
            )
            .load()
            .train
        )  # fmt: skip
    elif any((target, positive, task, weight, drop, keep, scaling, test_size, test)):
        raise CommandError("--data is missing: the other options of data say how to read it")
    asked = Asked(formulation, depth, samples)
    differing, untold = differences(found, asked)
    if differing:
        raise CertificateError(
            f"{certificate}: the proof holds, but of something else: {'; '.join(differing)}",
            hint="give the data, the model and the parameters that it was written for, or write it anew",
        )
    if as_json:
        print_json(_as_json(found, certificate, asked, untold, exact=exact))
    elif not quiet:
        _print(found, certificate, asked, exact=exact)
        if untold:
            print_note(untold)


def _as_json(
    found: Certified, certificate: Path, asked: Asked, untold: str, *, exact: bool
) -> dict[str, Any]:
    words = found.words
    return {
        "certificate": str(certificate),
        "model": words.model or None,
        "variant": words.variant or None,
        "parameters": dict(words.parameters),
        "names_agree": not untold,
        "data": found.data,
        "rows": words.rows,
        "samples": float(found.weight.sum()),
        "features": found.X.shape[1],
        "sha256": found.sha256,
        "depth": found.depth,
        **numbers_of(found),
        "objective": found.objective,
        "bound": found.bound,
        "gap": found.gap,
        "branchings": found.branchings,
        "leaves": found.leaves,
        "exact": exact,
        "compared": asked.compared,
        "exit_code": SUCCESS,
    }


def _print(found: Certified, certificate: Path, asked: Asked, *, exact: bool) -> None:
    how = "in whole numbers" if exact else "norms rounded outward"
    print_text(f"certified  {certificate}")
    print_text(f"value      {found.objective:.12g} of the tree in it, depth {found.depth}, by the definition")
    print_text(f"bound      {found.bound:.12g} for every such tree; gap {100 * found.gap:.3g}%")
    print_text(f"proof      {found.branchings} branchings, {found.leaves} leaves, {how}")
    for label, text in in_words(found):
        print_text(f"{label:<10} {text}")
    told = ", ".join(asked.compared)
    print_text(
        f"compared   {told}: the same" if told else "compared   with nothing: --data, --model and --param do"
    )
