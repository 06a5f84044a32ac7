"""``mipforest certify``: what a certificate proves, in words, and how it differs from a problem that is named."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from mipforest.cli import options as o
from mipforest.cli.errors import SUCCESS, CommandError
from mipforest.cli.output import print_json, print_note, print_text
from mipforest.errors import MipforestError

if TYPE_CHECKING:
    from mipforest.certificates import Certified, CertifiedUnivariate, Words
    from mipforest.data import Dataset
    from mipforest.data.target import Task
    from mipforest.problem.constraints import Constraint
    from mipforest.problem.formulation import Formulation
    from mipforest.problem.structure import UnivariateProblem

#: Characters of a digest, and values of a list, that messages show.
_DIGITS, _SHOWN = 16, 6


#: Share by which sums of the same weights may differ: their order is that of the samples.
SUMS = 1e-12

_PROBLEM = "Compare with a problem"


@o.grouped
def certify(
    certificate: Annotated[
        Path,
        Argument(
            metavar="FILE", help="Certificate that 'mipforest solve --certificate' wrote.", show_default=False
        ),
    ],
    *,
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
            help="Data that the certificate should be of, with the same options as for 'solve'.",
            rich_help_panel=_PROBLEM,
        ),
    ] = None,
    model: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="Model that the certificate should be of, with --param and --variant.",
            rich_help_panel=_PROBLEM,
        ),
    ] = None,
    model_options: Annotated[o.ModelOptions, o.Without("ensemble")],
    data_options: Annotated[o.DataOptions, o.Without("treatment", "outcomes")],
    seed: o.Seed = 0,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Check the proof that a tree is optimal, or how far from it, without the search that found it.

    A certificate has the samples, a tree, and the proof of a bound: all branchings of the search with a dual point for
    each leaf of the branchings; of univariate trees, intervals of thresholds with what both sides lose at least. The
    check shares no code with the search. It checks that the proof leaves out no tree, that every part of it proves the
    stated bound, and that the tree has the stated value. docs/certificates.md has the formats and the proofs.

    The model and parameters that the file names must have the numbers that the proof was checked with. The options
    --data, --model, --param and --depth name a problem; the file is compared with it, to the last bit of every sample.

    Exit code: 0 certified; 3 refused, with the line and the leaf, or with all that differs; 2 wrong usage, or no such
    file.

    Example: mipforest certify proof.gz --model margot --depth 2 --data breast_cancer --param C=1
    """
    from mipforest.certificates import CertificateError
    from mipforest.certificates import certify as checked

    found = checked(certificate, exact=exact)
    name = model or found.words.model
    named = model is not None or bool(model_options.param) or model_options.variant is not None
    if named and not name:
        raise CommandError("--model is missing: the file names none; give that of --param and --variant")
    formulation = model_options.formulation(name) if named else None
    samples: Dataset | None = None
    if data is not None:
        if data_options.scaling is None and not name:
            raise CommandError(
                "--model or --scaling is missing: the file does not say how its samples are scaled"
            )
        samples = data_options.source(data, model=name or None, seed=seed).load().train
    elif data_options != o.DataOptions(missing=data_options.missing):
        raise CommandError("--data is missing: the other options of data say how to read it")
    asked = Asked(formulation, model_options.depth, samples)
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
    found: Certified | CertifiedUnivariate, certificate: Path, asked: Asked, untold: str, *, exact: bool
) -> dict[str, Any]:
    words = found.words
    return {
        "certificate": str(certificate),
        "model": words.model or None,
        "variant": words.variant or None,
        "parameters": dict(words.parameters),
        "forbidden": dict(words.forbidden),
        "constraints": [dict(constraint) for constraint in words.constraints],
        "names_agree": not untold,
        "data": found.data,
        "rows": words.rows,
        "samples": weight_of(found),
        "features": found.X.shape[1],
        "sha256": found.sha256,
        "depth": found.depth,
        **numbers_of(found),
        "objective": found.objective,
        "bound": found.bound,
        "gap": found.gap,
        **sizes_of(found),
        "exact": exact or _is_whole(found),
        "compared": asked.compared,
        "exit_code": SUCCESS,
    }


def _print(found: Certified | CertifiedUnivariate, certificate: Path, asked: Asked, *, exact: bool) -> None:
    steps = ", ".join(f"{count} {name}" for name, count in sizes_of(found).items())
    how = "in whole numbers" if exact or _is_whole(found) else f"{_rounded_part(found)} rounded outward"
    print_text(f"certified  {certificate}")
    print_text(f"value      {found.objective:.12g} of the tree in it, depth {found.depth}, by the definition")
    print_text(f"bound      {found.bound:.12g} for every such tree; gap {100 * found.gap:.3g}%")
    print_text(f"proof      {steps}, {how}")
    for label, text in in_words(found):
        print_text(f"{label:<10} {text}")
    compared = ", ".join(asked.compared)
    print_text(
        f"compared   {compared}: the same"
        if compared
        else "compared   with nothing: --data, --model and --param do"
    )


def _is_whole(found: Certified | CertifiedUnivariate) -> bool:
    """Return whether a proof is checked in whole numbers anyway."""
    return _rounded_part(found) == ""


def _rounded_part(found: Certified | CertifiedUnivariate) -> str:
    """Return what a check computes in doubles; empty for nothing."""
    from mipforest.certificates import Certified

    if isinstance(found, Certified):
        return "norms"
    return {"squared": "quotients", "deviance": "logarithms"}.get(found.problem.loss, "")


@dataclass(frozen=True, eq=False)
class Asked:
    """The problem that a certificate is compared with; ``None`` where the user names nothing.

    Attributes
    ----------
    formulation, depth, data
        The model with its parameters, the levels of branch nodes, and the training samples as the model has them.
    """

    formulation: Formulation | None
    depth: int | None
    data: Dataset | None

    @property
    def compared(self) -> list[str]:
        """What is compared, by name."""
        parts = {"model": self.formulation, "depth": self.depth, "data": self.data}
        return [name for name, part in parts.items() if part is not None]


def sizes_of(found: Certified | CertifiedUnivariate) -> dict[str, int]:
    """Return how many parts a proof has, by what they are called."""
    from mipforest.certificates import Certified

    if isinstance(found, Certified):
        return {"branchings": found.branchings, "leaves": found.leaves}
    return {"claims": found.claims, "intervals": found.intervals}


def weight_of(found: Certified | CertifiedUnivariate) -> float:
    """Return what all samples weigh together."""
    from mipforest.certificates import Certified

    return float((found.weight if isinstance(found, Certified) else found.problem.weight).sum())


def numbers_of(found: Certified | CertifiedUnivariate) -> dict[str, Any]:
    """Return the numbers that a proof was checked with, of its nodes."""
    from mipforest.certificates import Certified

    if not isinstance(found, Certified):
        problem = found.problem
        return {
            "loss": problem.loss,
            "level": problem.level,
            "N_min": problem.N_min,
            "split_cost": problem.split_cost,
            "unit": problem.unit,
            "costs": problem.costs.tolist(),
        }
    charges = found.charges
    return {
        "C": list(found.C),
        "epsilon": found.epsilon,
        "kinks": [[float(part) for part in kink] for kink in charges.kinks],
        "norm": "l1" if charges.l1 else "l2",
        "free": None if charges.free is None else list(charges.free),
        "alpha": None if charges.alpha is None else float(charges.alpha),
    }


def in_words(found: Certified | CertifiedUnivariate) -> Iterator[tuple[str, str]]:
    """Yield labels and texts: what the file calls the model, the numbers of the proof, and its samples."""
    words, numbers = found.words, numbers_of(found)
    if words.model:
        given = ", ".join(
            f"{name}={_shown(value)}" for name, value in words.parameters.items() if value is not None
        )
        yield (
            "model",
            f"{words.model} (variant {words.variant or 'not given'}), {given or 'no parameters given'}",
        )
    from mipforest.certificates import Certified

    rows = "" if words.rows is None else f"{words.rows} samples, "
    if words.forbidden:
        yield "forbidden", f"{', '.join(words.forbidden)}: of the trees that use none of these"
    if words.constraints:
        yield "within", "; ".join(map(str, constraints_in(words)))
    if not isinstance(found, Certified):
        zero_one = all(
            cost == (i != k)
            for costs in numbers["costs"]
            for i, row in enumerate(costs)
            for k, cost in enumerate(row)
        )
        loss = f"{numbers['loss']}{'' if zero_one else ' with costs of classes'}"
        if numbers["loss"] == "absolute":
            loss += f" around the quantile of level {numbers['level']:g}"
        yield (
            "numbers",
            f"loss {loss}; N_min {numbers['N_min']}; {numbers['split_cost']:g} for a split; "
            f"all divided by {numbers['unit']:g}",
        )
        weigh = f"{len(found.X)} samples that weigh {weight_of(found):g}, {found.X.shape[1]} features"
        yield "data", f"{weigh}, as the file has them; it calls them {found.data!r}"
        yield "sha256", f"{found.sha256} of the samples"
        return
    hinge = numbers["kinks"] == [[1.0, 1.0]]
    loss = "hinge" if hinge else f"of {len(numbers['kinks'])} kinks"
    free = numbers["free"]
    cost = "forbidden" if numbers["alpha"] is None else f"for {numbers['alpha']:g} each"
    chosen = "all features free" if free is None else f"features free {_shown(free)}, more {cost}"
    yield (
        "numbers",
        f"C {_shown(numbers['C'])}; epsilon {numbers['epsilon']:g}; loss {loss}; norm {numbers['norm']}; {chosen}",
    )
    weigh = f"{len(found.X)} different ones that weigh {found.weight.sum():g}, {found.X.shape[1]} features"
    yield "data", f"{rows}{weigh}, as the file has them; it calls them {found.data!r}"
    yield "sha256", f"{found.sha256} of the samples"


def constraints_in(words: Words) -> list[Constraint]:
    """Return the constraints that a certificate names.

    Raises
    ------
    CertificateError
        If it names others than this version knows.
    """
    from mipforest.certificates import CertificateError
    from mipforest.errors import DataError
    from mipforest.problem.constraints import constraint_of

    try:
        return [constraint_of(constraint) for constraint in words.constraints]
    except DataError as error:
        raise CertificateError(f"it names constraints that are not known here: {error}") from None


def differences(found: Certified | CertifiedUnivariate, asked: Asked) -> tuple[list[str], str]:
    """Compare a certificate with the names in it, and with what was asked.

    Returns
    -------
    differing
        A text for everything that differs.
    untold
        Why names and numbers of the file were not compared; empty where they were.
    """
    differing, untold = _against_its_names(found)
    if asked.formulation is not None:
        wanted = _for_samples(asked.formulation, found)
        differing += _against_names(found, wanted)
        differing += _against_numbers(found, wanted, "as asked")
    if asked.depth is not None and asked.depth != found.depth:
        differing.append(f"depth: {found.depth} in the proof, {asked.depth} asked")
    if asked.data is not None:
        differing += _against_data(found, asked.data, asked.formulation)
        if not differing:
            differing += _against_constraints(found, asked.data, asked.formulation)
    return list(dict.fromkeys(differing)), untold


def _against_its_names(found: Certified | CertifiedUnivariate) -> tuple[list[str], str]:
    """Compare the numbers of a proof with those of the model that its first line names."""
    from mipforest.problem.parameters import plain_parameters_of
    from mipforest.problem.registry import formulation_classes

    words = found.words
    if not words.model:
        return [], "the file names no model: see the numbers above for what is certified"
    cls = formulation_classes().get(words.model)
    if cls is None:
        return (
            [],
            f"no model {words.model!r} is installed here: its name was not compared with the numbers above",
        )
    known = plain_parameters_of(cls)
    odd = [
        name
        for name, value in words.parameters.items()
        if name not in known or known[name].may_name_file(value)
    ]
    if odd:
        return [f"{words.model} has no parameter {odd[0]!r} such as the file names"], ""
    try:
        return _against_numbers(found, _named(words), "by the file's own parameters"), ""
    except (MipforestError, ValueError, TypeError) as error:
        return [f"the file names {words.model} with parameters that it does not take ({error})"], ""


def _for_samples(wanted: Formulation, found: Certified | CertifiedUnivariate) -> Formulation:
    """Return the formulation with the numbers that hyperparameters have for the samples in the file."""
    import numpy as np

    from mipforest.data import Dataset

    data = Dataset.from_arrays(found.X, np.arange(len(found.X)) % 2, scaling="none")
    return wanted.for_data(data)[0]


def _against_names(found: Certified | CertifiedUnivariate, wanted: Formulation) -> list[str]:
    words = found.words
    if not words.model:
        return []
    if words.model != wanted.name:
        return [f"model: {words.model} in the file, {wanted.name} asked"]
    texts = []
    if words.variant and words.variant != wanted.variant:
        texts.append(f"variant: {words.variant} in the file, {wanted.variant} asked")
    parameters: Mapping[str, Any] = json.loads(json.dumps(wanted.parameters()))  # lists, as files have them
    for name in dict.fromkeys([*words.parameters, *parameters]):
        has, asked = words.parameters.get(name), parameters.get(name)
        if has != asked:
            texts.append(f"{name}: {_shown(has)} in the file, {_shown(asked)} asked")
    return texts


def _against_numbers(
    found: Certified | CertifiedUnivariate, formulation: Formulation, whose: str
) -> list[str]:
    import numpy as np

    from mipforest.certificates import Certified
    from mipforest.data import Dataset
    from mipforest.heuristics.node_problems import NodeProblems, numbers_of_nodes
    from mipforest.problem.operations import Instance
    from mipforest.trees import Topology

    if not isinstance(found, Certified):
        return _against_charges(found, formulation, whose)
    structure = None
    if (kind := formulation.structure_type) is not None and issubclass(kind, NodeProblems):
        # Of a problem of this depth: numbers of nodes do not depend on the samples.
        two = Dataset.from_arrays(np.eye(2), [0, 1], scaling="none")
        structure = formulation.structure(Instance(data=two, topology=Topology(found.depth)))
    wanted = numbers_of_nodes(structure) if isinstance(structure, NodeProblems) else None
    if wanted is None or formulation.variant == "paper":
        return [
            f"model: {formulation.name} (variant {formulation.variant}) {whose}, of which there are no certificates"
        ]
    has = numbers_of(found)
    labels = {"free": "features free of cost", "kinks": "kinks of the loss"}
    return [
        f"{labels.get(name, name)}: {_shown(value)} in the proof, {_shown(wanted[name])} {whose}"
        for name, value in has.items()
        if value != wanted[name]
    ]


def _against_charges(found: CertifiedUnivariate, formulation: Formulation, whose: str) -> list[str]:
    """Compare what univariate trees are charged with what a model charges them for the samples of the file."""
    import numpy as np

    from mipforest.data import Dataset
    from mipforest.data.target import SEVERAL
    from mipforest.searches.exact.certificate_writer import loss_in_file

    problem, several = found.problem, formulation.task == SEVERAL
    task: Task = "classification" if problem.loss == "errors" else "regression"
    numbers_of_classes = [len(np.unique(y)) for y in problem.y.T]
    if task == "classification" and (
        max(numbers_of_classes) < problem.n_classes or (problem.y.max(axis=0) >= numbers_of_classes).any()
    ):
        return [f"classes: {problem.n_classes} in the proof, of which some have no samples"]
    if not several and (problem.n_targets > 1 or formulation.task != task):
        return [
            f"model: {formulation.name} {whose}, which has no univariate trees with constant leaves, or other targets"
        ]
    data = Dataset.from_arrays(
        problem.X,
        problem.y if several else problem.y[:, 0],
        weights=problem.weight,
        scaling="none",
        task=task,
        targets=[f"y{t}" for t in range(problem.n_targets)] if several else None,
        name=found.data,
    )
    wanted = _charged(formulation.for_scaled_targets() if task == "regression" else formulation, data)
    if wanted is None:
        return [f"model: {formulation.name} {whose}, which has no univariate trees with constant leaves"]
    loss, costs = loss_in_file(wanted.loss, wanted.y)
    numbers = {
        "loss": loss,
        "level": wanted.loss.level,
        "N_min": max([wanted.N_min, *_sizes_of_leaves(found.words, data)]),
        "split_cost": float(wanted.split_cost),
        "unit": float(wanted.unit),
        "costs": costs.tolist(),
    }
    labels = {
        "level": "level of the quantile",
        "split_cost": "cost of a split",
        "costs": "costs of classes",
    }
    return [
        f"{labels.get(name, name)}: {_shown(value)} in the proof, {_shown(numbers[name])} {whose}"
        for name, value in numbers_of(found).items()
        if not _near(value, numbers[name])
    ]


def _against_constraints(
    found: Certified | CertifiedUnivariate, data: Dataset, formulation: Formulation | None
) -> list[str]:
    """Compare what the proof says of constraints with the ones that the file names, on the data that are asked."""
    import numpy as np

    from mipforest.certificates import Certified
    from mipforest.model import Model
    from mipforest.problem.problem_data import ProblemData
    from mipforest.problem.structure import UnivariateProblem
    from mipforest.searches.univariate.certified import constraints_of
    from mipforest.trees import Topology

    words = found.words
    if isinstance(found, Certified) or not (words.model or formulation):
        return []
    formulation = formulation or _named(words)
    instance = formulation.bind(data, Topology(found.depth))
    named = tuple(constraints_in(words))
    problem = ProblemData(formulation, instance, Model(), 0.0, 0.0, unfinished=True, constraints=named)
    charged = problem.structure
    if not isinstance(charged, UnivariateProblem):
        return []
    own, stated = found.constraints, constraints_of(problem.restrictions, charged.thresholds)
    same = all(
        np.array_equal(getattr(own, name), getattr(stated, name))
        for name in ("first", "last", "must", "group")
    ) and all(getattr(own, name) == getattr(stated, name) for name in ("used", "required", "splits"))
    same = same and len(own.labels) == len(stated.labels)
    same = same and all(
        here.most == there.most
        and np.array_equal(here.use, there.use)  # exact: computed alike from the same data
        for here, there in zip(own.labels, stated.labels, strict=True)
    )
    if same and problem.restrictions.N_min == found.problem.N_min:
        return []
    texts = "; ".join(map(str, named)) or "none"
    return [f"constraints: the proof is of others than the file names ({texts})"]


def _named(words: Words) -> Formulation:
    """Return the formulation that a certificate names."""
    from mipforest.problem.registry import make_formulation

    return make_formulation(words.model, dict(words.parameters), words.variant or None)


def _sizes_of_leaves(words: Words, data: Dataset) -> list[int]:
    """Return the least numbers of samples in a leaf by the constraints that a certificate names."""
    from mipforest.problem.constraints import MinLeaf

    sizes = [one.samples(data) for one in constraints_in(words) if isinstance(one, MinLeaf)]
    return [size for size in sizes if size is not None]


def _near(stated: Any, computed: Any) -> bool:
    """Return whether numbers are the same, up to what the order of the samples makes of a sum."""
    import numpy as np

    if isinstance(stated, float):
        return bool(np.isclose(stated, computed, rtol=SUMS, atol=0.0))
    return bool(stated == computed)


def _charged(formulation: Formulation, data: Dataset) -> UnivariateProblem | None:
    """Return what a model charges univariate trees on data; ``None`` where it has others."""
    from mipforest.problem.registry import make_formulation
    from mipforest.problem.structure import UnivariateProblem
    from mipforest.trees import Topology

    if formulation.structure_type is None or not issubclass(formulation.structure_type, UnivariateProblem):
        return None
    # The charges are those of any variant, and the last one prepares nothing by a search.
    formulation = make_formulation(formulation.name, dict(formulation.parameters()), formulation.variants[-1])
    structure = formulation.structure(formulation.bind(data, Topology(1)))
    return structure if isinstance(structure, UnivariateProblem) else None


def _digest(found: Certified | CertifiedUnivariate, data: Dataset, formulation: Formulation | None) -> str:
    """Return the digest that a certificate of data has."""
    import numpy as np

    from mipforest.certificates import Certified
    from mipforest.heuristics.node_problems import digest_of_data

    data = _without_forbidden(data, found.words.forbidden)
    if isinstance(found, Certified):
        return digest_of_data(data)
    words = found.words
    if formulation is None and words.model:
        formulation = _named(words)
    charged = None if formulation is None else _charged(formulation, data)
    y = np.asarray(data.y if charged is None else charged.y, dtype=np.float64)
    return found.problem._replace(X=data.X, y=y.reshape(data.n, -1), weight=data.weights).digest()


def _without_forbidden(data: Dataset, forbidden: Mapping[str, int]) -> Dataset:
    """Return data with the value 0 in features that are forbidden, as a certificate has them."""
    X = data.X.copy()
    X[:, [number for number in forbidden.values() if number < data.p]] = 0.0
    return replace(data, X=X)


def _against_data(
    found: Certified | CertifiedUnivariate, data: Dataset, formulation: Formulation | None
) -> list[str]:
    texts, rows = [], found.words.rows
    if rows is not None and rows != data.n:
        texts.append(f"samples: {rows} in the file, {data.n} in {data.name}")
    if found.X.shape[1] != data.p:
        texts.append(f"features: {found.X.shape[1]} in the file, {data.p} in {data.name}")
    for name, number in found.words.forbidden.items():
        if number >= data.p or data.features.labels[number] != name:
            texts.append(f"forbidden: {name} is feature {number} in the file, and not in {data.name}")
    digest = _digest(found, data, formulation)
    if digest != found.sha256:
        texts.append(
            f"sha256 of samples, classes and weights: {found.sha256[:_DIGITS]}... in the file, "
            f"{digest[:_DIGITS]}... of {data.name}{_which_part(found, data)}"
        )
    return texts


def _which_part(found: Certified | CertifiedUnivariate, data: Dataset) -> str:
    """Say whether features differ, or classes and weights alone."""
    import numpy as np

    if found.X.shape[1] != data.p:
        return ""
    same = np.array_equal(np.unique(found.X + 0.0, axis=0), np.unique(data.X + 0.0, axis=0))
    part = "classes or weights" if same else "features, or their scaling,"
    return f": {part} differ"


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        more = ", ..." if len(value) > _SHOWN else ""
        return f"({', '.join(map(_shown, value[:_SHOWN]))}{more})"
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)[:60]
