"""Certificates of trees within constraints: what a file states of them, and boxes that divide the trees within limits.

The proof is made after the search, as without constraints (:mod:`mipforest.searches.exact.certificate_writer`). A box
whose best tree below the bound breaks a limit is divided as the search divides it, by what this tree uses; of any other
box the file has a claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.certificates import CertificateError
from mipforest.certificates.constraints import Box, Constraints, LabelLimit, SplitLimit, UsedLimit
from mipforest.errors import Unsupported
from mipforest.heuristics.thresholds import Thresholds
from mipforest.problem.constraints import LabelRows, NodeRows, TreeRows
from mipforest.problem.problem_data import ProblemData
from mipforest.problem.restrictions import Restrictions
from mipforest.problem.structure import UnivariateProblem
from mipforest.searches.lagrangian.limited import LimitedTrees, widening
from mipforest.searches.univariate.constrained import given_to_nodes

if TYPE_CHECKING:
    from mipforest.searches.exact.certificate_writer import Proof
    from mipforest.searches.univariate.constrained import Constrained


def check_stated(problem: ProblemData) -> None:
    """Refuse constraints that certificates do not state: any of trees, by hand on labels, labels of several targets.

    Raises
    ------
    Unsupported
        Naming them.
    """
    charged = problem.structure
    assert isinstance(charged, UnivariateProblem)
    others = []
    for constraint in problem.constraints:
        nothing = Restrictions.none(problem.topology.n_branches, problem.data.p, charged.N_min)
        own = constraint.restrict(nothing, problem, charged.thresholds)
        of_several = bool(problem.data.targets) and own.sums is not None
        if (
            own.effects
            or own.asked
            or own.choices
            or of_several
            or isinstance(constraint, LabelRows | NodeRows | TreeRows)
        ):
            others.append(str(constraint))
    if others:
        raise Unsupported(
            "a certificate states what nodes may split on, sizes of leaves, and limits on features, splits and labels, "
            f"and not: {'; '.join(others)}; leave the certificate out, or these constraints"
        )


def constraints_of(
    own: Restrictions,
    thresholds: Thresholds,
    limited: LimitedTrees | None = None,
    prices: FloatArray | None = None,
) -> Constraints:
    """Return restrictions of trees over some thresholds as a certificate states them.

    Parameters
    ----------
    own, thresholds
        The restrictions, and the thresholds.
    limited, prices
        Trees within limits on labels, and the (r,) prices of their limits; 0 unless given.

    Raises
    ------
    CertificateError
        If the nodes and features are too many for the check.
    """
    widths = np.diff(thresholds.first)
    found = Constraints.none(len(own.allowed).bit_length(), widths + 1)
    found.last[~own.allowed] = 0
    for t, given in given_to_nodes(own.fixed).items():
        found.must[t] = True
        allowed, found.last[t] = own.allowed[t], 0
        for f in np.unique(thresholds.feature[given]).tolist():
            # They lie side by side: a split is given with its threshold, or with the least and the greatest one.
            numbers = given[thresholds.feature[given] == f] - thresholds.first[f] + 1
            if allowed[f]:
                found.first[t, f], found.last[t, f] = numbers.min(), numbers.max()
    used = (
        UsedLimit(
            tuple(frozenset(group.tolist()) for group in row.groups),
            tuple(row.cost.tolist()),
            float(row.limit),
        )
        for row in own.budgets
    )
    return replace(
        found,
        group=found.group if own.once is None else _numbered(own.once),
        used=tuple(used),
        required=tuple(frozenset(group.tolist()) for group in own.required),
        splits=tuple(SplitLimit(tuple(map(float, row.weights)), float(row.limit)) for row in own.splits),
        labels=_label_limits(own, limited, prices),
    )


def _label_limits(
    own: Restrictions, limited: LimitedTrees | None, prices: FloatArray | None
) -> tuple[LabelLimit, ...]:
    """Return limits on labels with their prices.

    A limit that no sample has room for under some label is worth more than all costs: the search forbids that label.
    """
    if own.sums is None:
        return ()
    _, use, most = own.sums.from_above()
    widened = most + widening(use, most)
    price = np.zeros(len(most))
    if limited is not None and prices is not None:
        price[limited.kept] = prices / limited.size
        tight = (use >= 0).all(axis=(1, 2)) & (widened <= widening(use, most)) & use.any(axis=(1, 2))
        for r in np.flatnonzero(tight):
            price[r] = 2.0 * limited.spread / use[r][use[r] > 0].min()
    return tuple(LabelLimit(*row) for row in zip(use, widened.tolist(), price.tolist(), strict=True))


def _numbered(once: IntArray) -> IntArray:
    """Return groups (p,) with numbers from 0 on, and -1 for none."""
    found = np.full(len(once), -1)
    found[once >= 0] = np.unique(once[once >= 0], return_inverse=True)[1]
    return found


def divide(proof: Proof, search: Constrained, bound: float) -> None:
    """Divide the trees within limits into boxes of which a bound can be proven, and write the steps to a proof.

    Parameters
    ----------
    proof
        A proof for the constraints of the search.
    search
        Finds the best tree of a box.
    bound
        The bound on the objective.
    """
    from mipforest.searches.exact.certificate_writer import Step

    constraints = proof.constraints
    if not constraints.has_limits:
        return
    steps, boxes = list[Step](), [constraints.box()]
    charged, below = proof.priced(search.charged, bound)
    with search.driver.without_limit():  # writing a proof is no part of the time limit
        while boxes:
            box = boxes.pop()
            if constraints.excludes(box):
                steps.append(Step("none"))
                continue
            found = _without_room(constraints, box)
            if found is None:
                best = search.best_of(box.allowed, box.must, below, charged)
                found = None if best is None else _broken(constraints, box, best)
            if found is None:
                steps.append(Step("claim", box))
                continue
            node, features = found
            steps.append(Step(" ".join(map(str, ("branch", node, *features)))))
            without, among = box.divided(node, features)
            boxes += [among, without]
    proof.steps = steps


def _without_room(constraints: Constraints, box: Box) -> tuple[int, list[int]] | None:
    """Return a node, or -1, and features that no tree within limits splits on, and that the box has; ``None``: none."""
    known, here = box.uses, np.asarray(box.allowed.any(axis=0))
    for limit in constraints.used:
        paid = [any(some <= group for some in known) for group in limit.groups]
        for k, group in enumerate(limit.groups):
            own = sorted(group)
            if not paid[k] and here[own].any() and limit.excess([*paid[:k], True, *paid[k + 1 :]]) > 0:
                return -1, own
    for split in constraints.splits:
        for t in np.flatnonzero(~box.must & box.allowed.any(axis=1)).tolist():
            if split.excess([*box.must[:t], True, *box.must[t + 1 :]]) > 0:
                return t, np.flatnonzero(box.allowed[t]).tolist()
    return None


def _broken(constraints: Constraints, box: Box, best: IntArray) -> tuple[int, list[int]] | None:
    """Return a node, or -1, and features by which to divide a box whose best tree breaks a limit; ``None``: none is.

    Of groups that cost most, it is the one that is used nearest to the root, as without it most of the tree changes.
    """
    known, used = box.uses, frozenset(best[best >= 0].tolist())
    for limit in constraints.used:
        if limit.excess([bool(group & used) for group in limit.groups]) > 0:
            dearest = [
                (limit.costs[k], -int(np.isin(best, sorted(group)).argmax()), sorted(group))
                for k, group in enumerate(limit.groups)
                if group & used and not any(some <= group for some in known) and limit.costs[k] > 0
            ]
            return -1, max(dearest)[2]  # there is one: what is known to be used is within the limit
    for group in constraints.required:
        if not group & used:
            own = sorted(group)
            others = np.setdiff1d(np.arange(box.allowed.shape[1]), own)
            free = box.allowed[:, own].any(axis=1) & (~box.must | box.allowed[:, others].any(axis=1))
            return int(np.flatnonzero(free)[0]), own
    for split in constraints.splits:
        if split.excess((best >= 0).tolist()) > 0:
            weights = np.array(split.weights)
            t = int(np.flatnonzero((best >= 0) & ~box.must & (weights > 0))[0])
            return t, np.flatnonzero(box.allowed[t]).tolist()
    return None


def compiled_proof_of(search: Constrained) -> Proof:
    """Return a proof of the constraints of a search, with what writing it runs loaded or compiled.

    Raises
    ------
    Unsupported
        If certificates do not state them, or the problem is beyond certificates.
    """
    from mipforest.searches.exact.certificate_writer import compiled_proof, no_certificate

    problem = search.problem
    check_stated(problem)
    charged = problem.structure
    assert isinstance(charged, UnivariateProblem)
    sized = replace(charged, N_min=search.restrictions.N_min)
    try:
        stated = constraints_of(search.restrictions, charged.thresholds)
    except CertificateError as error:
        raise no_certificate(error) from None
    return compiled_proof(problem.budget, sized, problem.topology.depth, stated)


def write_certificate(
    proof: Proof, search: Constrained, path: Path, names: Mapping[str, Any], bound: float
) -> float:
    """Write a certificate of what a search has found; return the bound that it proves.

    Parameters
    ----------
    proof, search
        As :func:`compiled_proof_of` has made it, and the search, which has found a tree.
    path, names
        The file, and what its first line calls the problem.
    bound
        The bound of the search.
    """
    from mipforest.searches.exact.certificate_writer import Proof

    best, value = search.incumbent.tree, search.incumbent.value
    assert best is not None
    own = search.restrictions
    if own.sums is not None:
        priced = constraints_of(own, proof.charged.thresholds, search.limited(), search.prices)
        proof = Proof(proof.charged, search.problem.topology.depth, priced)
    divide(proof, search, proof.wanted(value, bound))
    stated = {"constraints": [constraint.to_dict() for constraint in search.problem.constraints]}
    return proof.write_found(path, {**names, **stated}, best, value, bound)
