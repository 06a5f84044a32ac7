"""What a certificate is of, in words, and how it differs from a problem that it is compared with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mipforest.errors import MipforestError

if TYPE_CHECKING:
    from mipforest.certificates import Certified
    from mipforest.data import Dataset
    from mipforest.problem.formulation import Formulation

#: Characters of a digest, and values of a list, that messages show.
_DIGITS, _SHOWN = 16, 6


@dataclass(frozen=True, eq=False)
class Asked:
    """What a certificate is to be of; ``None`` where nothing was asked.

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


def numbers_of(found: Certified) -> dict[str, Any]:
    """Return the numbers that a proof was checked with, of its nodes."""
    charges = found.charges
    return {
        "C": list(found.C),
        "epsilon": found.epsilon,
        "kinks": [[float(part) for part in kink] for kink in charges.kinks],
        "norm": "l1" if charges.l1 else "l2",
        "free": None if charges.free is None else list(charges.free),
        "alpha": None if charges.alpha is None else float(charges.alpha),
    }


def in_words(found: Certified) -> Iterator[tuple[str, str]]:
    """Yield labels and texts: what the file calls the model, the numbers of the proof, and its samples."""
    words, numbers = found.words, numbers_of(found)
    if words.model:
        given = ", ".join(
            f"{name}={_shown(value)}" for name, value in words.parameters.items() if value is not None
        )
        yield (
            "model",
            f"{words.model} (variant {words.variant or 'not told'}), {given or 'no parameters told'}",
        )
    hinge = numbers["kinks"] == [[1.0, 1.0]]
    loss = "hinge" if hinge else f"of {len(numbers['kinks'])} kinks"
    free = numbers["free"]
    cost = "forbidden" if numbers["alpha"] is None else f"for {numbers['alpha']:g} each"
    chosen = "all features free" if free is None else f"features free {_shown(free)}, more {cost}"
    yield (
        "numbers",
        f"C {_shown(numbers['C'])}; epsilon {numbers['epsilon']:g}; loss {loss}; norm {numbers['norm']}; {chosen}",
    )
    rows = "" if words.rows is None else f"{words.rows} samples, "
    weigh = f"{len(found.X)} different ones that weigh {found.weight.sum():g}, {found.X.shape[1]} features"
    yield "data", f"{rows}{weigh}, as the file has them; it calls them {found.data!r}"
    yield "sha256", f"{found.sha256} of the samples"


def differences(found: Certified, asked: Asked) -> tuple[list[str], str]:
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
        differing += _against_names(found, asked.formulation)
        differing += _against_numbers(found, asked.formulation, "as asked")
    if asked.depth is not None and asked.depth != found.depth:
        differing.append(f"depth: {found.depth} in the proof, {asked.depth} asked")
    if asked.data is not None:
        differing += _against_data(found, asked.data)
    return list(dict.fromkeys(differing)), untold


def _against_its_names(found: Certified) -> tuple[list[str], str]:
    """Compare the numbers of a proof with those of the model that its first line names."""
    from mipforest.problem.parameters import plain_parameters_of
    from mipforest.problem.registry import formulation_classes, make_formulation

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
        formulation = make_formulation(words.model, dict(words.parameters), words.variant or None)
        return _against_numbers(found, formulation, "by the file's own parameters"), ""
    except (MipforestError, ValueError, TypeError) as error:
        return [f"the file names {words.model} with parameters that it does not take ({error})"], ""


def _against_names(found: Certified, wanted: Formulation) -> list[str]:
    words = found.words
    if not words.model:
        return []
    if words.model != wanted.name:
        return [f"model: {words.model} in the file, {wanted.name} asked"]
    texts = []
    if words.variant and words.variant != wanted.variant:
        texts.append(f"variant: {words.variant} in the file, {wanted.variant} asked")
    parameters: Mapping[str, Any] = json.loads(json.dumps(wanted.parameters()))  # lists, as files have them
    # Of files of older versions, which name no parameters, the numbers alone are compared.
    for name in dict.fromkeys([*words.parameters, *parameters]) if words.parameters else ():
        has, asked = words.parameters.get(name), parameters.get(name)
        if has != asked:
            texts.append(f"{name}: {_shown(has)} in the file, {_shown(asked)} asked")
    return texts


def _against_numbers(found: Certified, formulation: Formulation, whose: str) -> list[str]:
    import numpy as np

    from mipforest.data import Dataset
    from mipforest.heuristics.node_problems import NodeProblems, numbers_of_nodes
    from mipforest.problem.operations import Instance
    from mipforest.trees import Topology

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


def _against_data(found: Certified, data: Dataset) -> list[str]:
    from mipforest.heuristics.node_problems import digest_of_data

    texts, rows = [], found.words.rows
    if rows is not None and rows != data.n:
        texts.append(f"samples: {rows} in the file, {data.n} in {data.name}")
    if found.X.shape[1] != data.p:
        texts.append(f"features: {found.X.shape[1]} in the file, {data.p} in {data.name}")
    digest = digest_of_data(data)
    if digest != found.sha256:
        texts.append(
            f"sha256 of samples, classes and weights: {found.sha256[:_DIGITS]}... in the file, "
            f"{digest[:_DIGITS]}... of {data.name}{_which_part(found, data)}"
        )
    return texts


def _which_part(found: Certified, data: Dataset) -> str:
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
