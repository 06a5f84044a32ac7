"""The contract of formulations as tests: what every formulation must hold, whatever its paper.

A package that brings a formulation runs them with three lines in a test file::

    @pytest.mark.parametrize("contract", formulation_tests(MyFormulation), ids=str)
    def test_contract(contract):
        contract()

The tests rest on small data and random trees, and take a second or two. They vouch for the contract between the
operations of a formulation, not for its mathematics: an optimum needs a witness of its own, enumeration or an
independent model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mipforest.data import Dataset
from mipforest.problem.formulation import Formulation
from mipforest.testing.formulation_checks import CHECKS, variants_agree
from mipforest.testing.formulation_trial import (
    TreeMaker,
    all_trials,
    few_samples,
    random_tree,
    small_data,
)


@dataclass(frozen=True, eq=False)
class FormulationTest:
    """One test of a formulation: call it, and it raises an AssertionError that names the defect.

    Attributes
    ----------
    name
        What holds where it passes, and for which variant and hyperparameters.
    """

    name: str
    _run: Callable[[], None]
    _why_not: str = ""

    def __str__(self) -> str:
        return self.name

    def __call__(self) -> None:
        """Run the test; one that was opted out of fails when it passes."""
        if not self._why_not:
            self._run()
            return
        try:
            self._run()
        except Exception:  # announced
            return
        raise AssertionError(
            f"{self.name} passes, and was opted out of ({self._why_not}): remove the opt-out"
        )


def formulation_tests(
    formulation: type[Formulation],
    *,
    settings: Sequence[Mapping[str, Any]] = ({},),
    data: Dataset | None = None,
    depths: Sequence[int] = (1, 2),
    trees: TreeMaker = random_tree,
    n_trees: int = 6,
    n_solved: int = 7,
    exact_leaves: bool = True,
    same_optimum: Sequence[str] | None = None,
    opt_out: Mapping[str, str] | None = None,
) -> list[FormulationTest]:
    """Return the tests of a formulation, for every variant.

    Parameters
    ----------
    formulation
        The class.
    settings
        Hyperparameters to test with, one mapping for each round; the defaults alone unless given.
    data
        Training samples; :func:`~mipforest.testing.formulation_trial.small_data` unless given.
    depths
        Depths of the trees. Solves take the first one.
    trees
        Draws a tree within the formulation's limits; univariate ones, polished, unless given. Trees that
        ``evaluate`` calls infinite are left out.
    n_trees
        How many trees are drawn for each depth.
    n_solved
        How many samples the models that are solved have.
    exact_leaves
        Whether ``decode(encode(tree))`` must keep the numbers of the leaves. Where the model may reflect a tree, the
        samples of a leaf must still stay together, and their predictions stay.
    same_optimum
        Variants that have the same optimal value; all of them unless given.
    opt_out
        Reasons by name of a test, ``{"encode is feasible [paper]": "..."}``: it is expected to fail.

    Returns
    -------
    list of FormulationTest
        To be called, or parametrised over with ``ids=str``.

    Raises
    ------
    ValueError
        If an opt-out names no test.
    """
    known = data or small_data(formulation)
    trials = all_trials(
        formulation,
        settings,
        data=known,
        few=few_samples(known, n_solved),
        depths=tuple(depths),
        make_tree=trees,
        n_trees=n_trees,
        exact_leaves=exact_leaves,
    )
    opted_out = dict(opt_out or {})
    tests = []
    for values, variants in zip(settings, trials, strict=True):
        label = "".join(f" {name}={value}" for name, value in values.items())
        for trial in variants:
            for name, check in CHECKS.items():
                full = f"{name} [{trial.formulation.variant}{label}]"
                tests.append(FormulationTest(full, _bound(check, trial), opted_out.pop(full, "")))
        alike = [
            trial for trial in variants if trial.formulation.variant in (same_optimum or formulation.variants)
        ]
        if len(alike) > 1:
            full = f"variants agree [{' '.join(trial.formulation.variant for trial in alike)}{label}]"
            tests.append(FormulationTest(full, _bound(variants_agree, alike), opted_out.pop(full, "")))
    if opted_out:
        raise ValueError(
            f"opt_out: no test {next(iter(opted_out))!r}; there are {', '.join(map(str, tests))}"
        )
    return tests


def _bound(check: Callable[[Any], None], argument: Any) -> Callable[[], None]:
    return lambda: check(argument)
