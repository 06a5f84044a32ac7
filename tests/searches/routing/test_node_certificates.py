"""Certificates of convex nodes other than support vector machines, and of nodes that select features."""

import gzip
import json
from functools import partial

import numpy as np
import pytest
from margin_data import random_data
from tolerance import same

from formulations.loss_optimal import LossOptimal
from formulations.margot import HfsMargot, Margot, SfsMargot
from formulations.olct import BudgetedOlct, Olct, UnivariateOlct
from mipforest.certificates import CertificateError, certify
from mipforest.data import Dataset
from mipforest.searches.routing import search as search_module
from mipforest.searches.routing.convex_relaxation import node_for, solve_finely
from mipforest.searches.routing.interior_point import EUCLIDEAN, L1, UNLIMITED

#: A formulation but for C.
MODELS = {
    "hard budget": partial(HfsMargot, B=1),
    "two features": partial(HfsMargot, B=2),
    "soft budget": partial(SfsMargot, B=1, alpha=0.7),
    "hinge, l1": partial(LossOptimal, loss="hinge"),
    "logistic, l2": partial(LossOptimal, loss="logistic", regulariser="l2"),
    "squared hinge, l2": partial(LossOptimal, loss="squared-hinge", tangents="V1", regulariser="l2"),
    "olct": partial(Olct, refinement=False),
    "budgeted olct": partial(BudgetedOlct, B=1, refinement=False),
    "univariate olct": partial(UnivariateOlct, refinement=False),
    "soft, l1": partial(LossOptimal, loss="hinge", selection="soft", B=1, alpha=0.7),
}

#: What the others already test in part.
ALIKE = ("two features", "univariate olct", "soft, l1")

CASES = [
    pytest.param(model, seed, depth, marks=[] if seed == 0 and model not in ALIKE else [pytest.mark.slow])
    for model in MODELS
    for seed, depth in ((0, 2), (1, 2), (2, 1), (3, 3), (4, 2))
]


def data_of(seed, n):
    """Random samples with weights, or few different ones, some of both classes and some equal in a feature."""
    rng = np.random.default_rng(seed)
    if seed % 2 == 0:
        return random_data(seed, n=n, p=3).with_weights(rng.choice([0.3, 1.0, 2.0], n))
    X, y = rng.integers(0, 3, (n, 3)) / 2.0, (rng.random(n) < 0.5).astype(int)
    y[:2] = [0, 1]
    return Dataset.from_arrays(X, y, name=f"tied{seed}", scaling="none")


def check(result, path):
    """Hold a result to its certificate in both modes."""
    for exact in (False, True):
        found = certify(path, exact=exact)
        assert same(found.bound, result.bound)
        assert found.objective == pytest.approx(result.objective, rel=1e-9)
    return found


@pytest.mark.first_cases(3)
@pytest.mark.parametrize(("model", "seed", "depth"), CASES)
def test_what_a_search_claims_is_certified(tmp_path, model, seed, depth):
    path = tmp_path / "proof.gz"
    problem = MODELS[model](C=tuple([3.0, 1.0, 10.0][:depth])).build(
        data_of(seed, 6 if depth == 3 else 8), depth
    )
    result = problem.solve("routing", threads=1, time_limit=60, certificate=path)
    assert result.status == "optimal"
    check(result, path)
    without = problem.solve("routing", threads=1, time_limit=60)
    assert result.objective == pytest.approx(without.objective, rel=2e-4)


#: Models with and without a certificate: how each is made but for C.
LARGE_C = {
    "margot": Margot,
    "olct": Olct,
    "hfs-margot": partial(HfsMargot, B=1),
    "sfs-margot": partial(SfsMargot, B=1),
}


def eight_samples(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.random((8, 2)), rng.integers(0, 2, 8)
    y[0] = 1 - y[1:].max() if len(set(y.tolist())) < 2 else y[0]
    return Dataset.from_arrays(X, y, name=f"eight{seed}")


@pytest.mark.first_cases(3)
@pytest.mark.parametrize(
    ("model", "seed"),
    [
        pytest.param(model, seed, marks=[] if seed in (2, 5) else [pytest.mark.slow])
        for model in LARGE_C
        for seed in range(30)
    ],
)
def test_with_a_certificate_the_same_optimum_is_proven_at_a_large_penalty(tmp_path, model, seed):
    # Sides that no hyperplane keeps were left with the value of an interior point, far below what was left to prove.
    path = tmp_path / "proof.gz"
    problem = LARGE_C[model](C=(20, 2000)).build(eight_samples(seed), 2)
    without = problem.solve("routing", threads=1, time_limit=60)
    result = problem.solve("routing", threads=1, time_limit=60, certificate=path)
    assert (without.status, result.status) == ("optimal", "optimal")
    assert result.objective == pytest.approx(without.objective, rel=2e-4)
    assert result.gap <= 1e-4
    check(result, path)


@pytest.mark.parametrize("norm", [EUCLIDEAN, L1])
def test_sides_that_no_hyperplane_keeps_are_shown_by_a_ray(norm):
    x = np.array([0.0, 0.1, 0.2])  # left, right, left
    d = np.array([-1.0, 1.0, -1.0])
    node = node_for(x[:, None] * d[:, None], d, np.array([1e-3, 0.0, 1e-3]), np.full(3, UNLIMITED), norm)
    solve_finely(node, bias_limit=10.0, stop=500.0)
    a = node.a
    assert node.result[0] >= 500.0
    assert a @ d == pytest.approx(0.0, abs=1e-9 * a.max())
    assert abs(a @ node.Z[:, 0]) <= 1.0 + 1e-6  # what the ray adds is 0; the rest is the point of the node


def test_a_node_is_solved_to_many_digits():
    rng = np.random.default_rng(3)
    X, y = rng.random((12, 2)), np.where(rng.random(12) < 0.5, -1.0, 1.0)
    y[:2] = [-1.0, 1.0]
    node = node_for(X * y[:, None], y, np.ones(12), np.full(12, 2000.0), EUCLIDEAN)
    solve_finely(node, bias_limit=100.0, stop=np.inf)
    w, b = node.w, node.result[1]
    value = 0.5 * w @ w + 2000.0 * np.maximum(0.0, 1.0 - y * (X @ w + b)).sum()
    assert node.result[0] == pytest.approx(value, rel=1e-7)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("model", ["two features", "olct"])
def test_a_stopped_search_certifies_its_bound(tmp_path, model, monkeypatch):
    monkeypatch.setattr(search_module, "STEPS", 5)  # so that it hears of the end before it has found one
    path = tmp_path / "proof.gz"
    problem = MODELS[model](C=20.0).build(data_of(4, 80), 2)
    result = problem.solve("routing", certificate=path, threads=1, on_progress=lambda event: event.bound > 0)
    assert result.status == "interrupted"
    assert 0 < result.bound < result.objective * (1 - 1e-4)
    check(result, path)


def test_any_change_is_refused_by_its_name(tmp_path):
    path = tmp_path / "proof.gz"
    MODELS["two features"](C=3.0).build(data_of(0, 8), 2).solve("routing", threads=1, certificate=path)
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    rng = np.random.default_rng(0)

    def refused(lines, words):
        changed = tmp_path / "changed.gz"
        changed.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
        with pytest.raises(CertificateError, match=words):
            certify(changed)

    for k in rng.choice([k for k, line in enumerate(lines) if line.startswith('{"point"')], 4, replace=False):
        point = json.loads(lines[k])
        point["dual"][1] += 1
        refused([*lines[:k], json.dumps(point), *lines[k + 1 :]], f"line {k + 1}: point {point['point']}")
        refused([*lines[:k], *lines[k + 1 :]], f"leaf .*: there is no point {point['point']} of node")
    for k in rng.choice([k for k, line in enumerate(lines) if line.startswith('{"leaf"')], 4, replace=False):
        refused([*lines[:k], *lines[k + 1 :]], f"leaf {json.loads(lines[k])['leaf']} is missing")
    refused([lines[0].replace("[2,2,2]", "[3,3,3]"), *lines[1:]], "leaf .*: proven is .*, claimed")
