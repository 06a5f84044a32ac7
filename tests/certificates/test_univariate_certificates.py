"""Certificates of univariate trees prove the optimum; two checkers refuse whatever is changed, or it is true."""

import json
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from certificate_files import bound_of, lines_of, mutated, reason_of, written
from enumerate_trees import best_tree_value
from tolerance import at_least, at_most, same
from typer.testing import CliRunner
from univariate_cases import Case, CaseOfTargets, cost_in_file, hold_for_all

import mipforest
from formulations.oct import Oct
from formulations.ort import Ort
from formulations.poisson import Poisson
from formulations.quantile import Quantile
from mipforest.certificates import CertificateError, certify, losses, univariate
from mipforest.certificates.univariate import Lines, read_problem
from mipforest.cli.main import app
from mipforest.data import Dataset
from mipforest.errors import Unsupported
from mipforest.objectives.leaf_losses import PrescriptionLoss
from mipforest.searches.exact.certificate_writer import Proof, compiled_proof
from mipforest.time_budget import TimeBudget

#: What a proof may miss of the optimum, as a share of what one leaf loses: weights of 30 bits with the absolute loss,
#: and what walks of the squared loss are lowered by.
MISSED = 1e-7


def proof_of(case, path, *, walks=True, bound=None):
    """Write the proof of a bound for a case, with a tree that is one leaf; return the bound."""
    proof = Proof(case.problem, case.depth, walks=walks)
    leaf = [(-1, 0.0)] * (2**case.depth - 1)
    rows = np.arange(case.data.n)
    proven = proof.prove(optimum_of(case) if bound is None else bound)
    proof.write(path, {}, float(case.cost(rows)), leaf, proven)
    return proven


def optimum_of(case):
    return float(case.enumerated(np.arange(case.data.n), case.depth))


def check_case(case, folder):
    path = folder / "proof.gz"
    best, scale = optimum_of(case), float(case.cost(np.arange(case.data.n)))
    for walks in (True, False) if case.loss in ("classes", "squared") else (True,):
        # More than the optimum cannot be proven, and all of it can.
        for asked in (best, 2.0 * best + 1.0):
            proven = proof_of(case, path, walks=walks, bound=asked)
            assert at_least(proven + MISSED * scale, best), (walks, asked, proven)
            assert at_most(proven, best), (walks, asked, proven)
            found = certify(path)
            assert found.bound == proven  # exact: a copy
        half = proof_of(case, path, walks=walks, bound=0.5 * best)
        assert same(certify(path).bound, half)
        # Numbers of errors are whole: half of an odd one is rounded up.
        assert at_least(half + MISSED * scale, 0.5 * best)
        assert at_most(half, best)


@pytest.mark.parametrize(
    "seed",
    [1, 3, 5, 6, 7, 11, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 9, 13, 14, 21, 24))],
)
def test_the_optimum_is_proven_and_no_more(seed, tmp_path):
    check_case(Case(seed), tmp_path)


@pytest.mark.parametrize("seed", [0, 1, 2, 7])
def test_the_optimum_of_several_targets_is_proven_and_no_more(seed, tmp_path):
    check_case(CaseOfTargets(seed), tmp_path)


@pytest.mark.slow
def test_the_optimum_is_proven_and_no_more_of_many(tmp_path):
    hold_for_all(lambda seed: check_case(Case(seed), tmp_path), range(25, 350))
    hold_for_all(lambda seed: check_case(CaseOfTargets(seed), tmp_path), range(8, 150))


@pytest.fixture(scope="module")
def flowers():
    rng = np.random.default_rng(3)
    X = np.round(rng.random((60, 3)), 2)
    y = (X[:, 0] + X[:, 1] > 0.9).astype(int) + (rng.random(60) < 0.3)
    return X, y, np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2]


@pytest.mark.parametrize(
    ("formulation", "depth"),
    [
        (Oct(), 2),
        (Oct(), 3),
        (Oct(alpha=0.01, N_min=4), 3),
        (Oct(costs=[[0, 1, 2], [0.5, 0, 1], [1, 1, 0]]), 2),
        (Ort(alpha=0.01), 3),
        (Ort(loss="absolute", N_min=3), 2),
        (Quantile(tau=0.8, N_min=3), 2),
        (Poisson(alpha=0.01), 2),
    ],
)
def test_the_search_certifies_its_bound(flowers, tmp_path, formulation, depth):
    X, y, target = flowers
    data = Dataset.from_arrays(X, y if formulation.task == "classification" else target - target.min())
    path = tmp_path / "proof.gz"
    result = formulation.build(data, depth).solve("exact-search", certificate=path, gap=0.0)
    found = certify(path)
    assert result.status == "optimal"
    assert at_most(found.bound, result.bound)
    assert found.gap <= MISSED
    assert same(found.objective, result.objective)
    assert (found.words.model, found.words.rows, found.depth) == (formulation.name, 60, depth)


@pytest.mark.parametrize("formulation", [Ort(), Quantile(tau=0.3), Poisson()])
def test_a_search_without_time_certifies_what_is_known(flowers, tmp_path, formulation):
    X, _, target = flowers
    problem = formulation.build(Dataset.from_arrays(X, target - target.min()), 3)
    result = problem.solve("exact-search", time_limit=0, certificate=tmp_path / "proof.gz")
    found = certify(tmp_path / "proof.gz", exact=True)
    assert at_most(found.bound, result.bound)
    assert at_most(found.bound, found.objective)


def test_a_loss_that_certificates_do_not_state_is_refused_by_name(flowers):
    case = Case(7)
    with pytest.raises(
        Unsupported, match="errors, squared, absolute, deviance, and not the prescription loss"
    ):
        compiled_proof(TimeBudget(), replace(case.problem, loss=PrescriptionLoss(case.problem.y)), 2)


@pytest.mark.slow
def test_a_search_that_was_stopped_certifies_what_it_had(tmp_path):
    rng = np.random.default_rng(0)
    data = Dataset.from_arrays(rng.random((400, 6)), rng.integers(0, 2, 400))
    path = tmp_path / "proof.gz"
    result = Oct().build(data, 4).solve("exact-search", time_limit=0.3, certificate=path)
    found = certify(path)
    # That of the result may be one that was known before the search.
    assert at_most(found.bound, result.bound)
    assert at_most(found.bound, result.objective)


def test_a_problem_beyond_certificates_is_refused_before_the_search(flowers, tmp_path, monkeypatch):
    X, _, target = flowers
    problem = Ort(loss="absolute").build(Dataset.from_arrays(X, target), 2)
    monkeypatch.setattr(losses, "MAX_CELLS", 3000)
    with pytest.raises(
        Unsupported, match="60 samples have 60 targets: too many for the check; solve it without"
    ):
        problem.solve("exact-search", certificate=tmp_path / "proof.gz")
    assert list(tmp_path.iterdir()) == []


def test_a_tree_without_loss_leaves_no_gap(tmp_path):
    data = Dataset.from_arrays([[0.0], [1.0], [2.0]], [0, 1, 0])
    Oct().build(data, 2).solve("exact-search", certificate=tmp_path / "proof.gz")
    found = certify(tmp_path / "proof.gz")
    assert (found.objective, found.bound, found.gap) == (0.0, 0.0, 0.0)  # exact: nothing is added up
    target = [0.0, 0, 0, 0, 1, 1, 2, 2]
    steps = Dataset.from_arrays([[k, k % 2] for k in range(8)], target, task="regression")
    for formulation in (Ort(), Quantile(tau=0.9), Poisson()):
        result = formulation.build(steps, 2).solve("exact-search", certificate=tmp_path / "proof.gz")
        assert same(certify(tmp_path / "proof.gz").objective, result.objective)


# ---------------------------------------------------------------------- what is wrong is refused


@pytest.fixture(scope="module")
def hand(tmp_path_factory):
    """Two features, six samples, one error at depth two; the proof as a search would write it, by hand."""
    X = [[0, 0], [1, 0], [2, 0], [3, 1], [4, 1], [5, 1]]
    samples = [
        f"sample {float(y).hex()} 0x1.0p+0 {' '.join(float(x).hex() for x in row)}"
        for y, row in zip("010110", X, strict=True)
    ]
    head = [
        "problem errors 2 6 2 1 2 1 0x0.0p+0 0x1.0p+0 0x1.0p-1",
        "cost 0x0.0p+0 0x1.0p+0",
        "cost 0x1.0p+0 0x0.0p+0",
    ]
    tree = "tree 0x1.0p+0 0 0x1.0p+0 -1 0x0.0p+0 0 0x1.4p+2"
    rest = ["grid 0 0 0 0x0.0p+0 0", tree, "bound 1 0x1.0p+0", "1 2 3 4 5", "1"]
    digest = read_problem(Lines(line.encode() for line in [*head, *samples])).digest()
    return [
        json.dumps({"mipforest_certificate": 3, "data": "by hand", "sha256": digest}),
        *head,
        *samples,
        *rest,
    ]


def test_a_proof_by_hand_is_certified(hand, tmp_path):
    found = certify(written(tmp_path / "proof.gz", hand))
    assert (found.claims, found.intervals, found.data) == (1, 6, "by hand")
    assert same(found.bound, 1.0)
    assert same(found.gap, 0.0)


@pytest.mark.parametrize(
    ("k", "line", "told"),
    [
        (0, '{"mipforest_certificate": 4}', "line 1: no certificate of format 1, 2 or 3"),
        (0, '{"mipforest_certificate": 3}', "not those of the digest"),
        (1, "problem errors 2 6 2 1 2 1 0x0.0p+0", "line 2: the line 'problem' has no ten entries"),
        (
            1,
            "problem errors 2 6 2 1 2 1 0x0.0p+0 0x1.0p+0 0x1.8p-1",
            "the errors loss has no quantile of level 0.75",
        ),
        (
            1,
            "problem absolute 2 6 2 1 0 1 0x0.0p+0 0x1.0p+0 0x1.0p+0",
            "the level of a quantile is 1, and not between",
        ),
        (1, "problem hinge 2 6 2 1 2 1 0x0.0p+0 0x1.0p+0 0x1.0p-1", "loss 'hinge' is none of"),
        (1, "problem errors 11 6 2 1 2 1 0x0.0p+0 0x1.0p+0 0x1.0p-1", "depth is 11"),
        (
            1,
            "problem errors 2 6 2 1 2 1 -0x1.0p+0 0x1.0p+0 0x1.0p-1",
            "the cost of a split is -1, less than 0",
        ),
        (1, "problem errors 2 6 2 1 2 1 0x0.0p+0 0x0.0p+0 0x1.0p-1", "the unit is 0"),
        (1, "problem errors 2 6 2 1 2 1 0.5 0x1.0p+0 0x1.0p-1", "'0.5', and no double"),
        (1, f"problem errors 2 {2**30} 2 1 2 1 0x0.0p+0 0x1.0p+0 0x1.0p-1", "too many for the check"),
        (2, "cost 0x0.0p+0", "1 entries for 2 classes"),
        (4, "sample 0x1.0p+1 0x1.0p+0 0x0.0p+0 0x0.0p+0", "the class of a sample is none of 0 to 1"),
        (4, "sample 0x0.0p+0 0x0.0p+0 0x0.0p+0 0x0.0p+0", "a weight is not above 0"),
        (4, "sample 0x0.0p+0 0x1.0p+9999 0x0.0p+0 0x0.0p+0", "beyond the check"),
        (4, "sample 0x1.0p+0 0x1.0p+0 0x0.0p+0 0x0.0p+0", "not those of the digest"),
        (10, "grid 60 0 0 0x0.0p+0 0", "units of the grid"),
        (10, "grid 0 0 0 0x1.0p+0 0", "targets of the errors loss have no centre, and it is 1"),
        (11, "tree 0x0.0p+0 0 0x1.0p+0 -1 0x0.0p+0 0 0x1.4p+2", "the claimed tree has the value 1, not 0"),
        (11, "tree 0x1.0p+0 0 0x1.0p+0 -1 0x0.0p+0 0 0x1.4p+3", "a leaf of the claimed tree has 0 samples"),
        (12, "bound 1 0x1.1p+0", "the losses prove 1, claimed 1.0625"),
        (12, "bound 2 0x1.0p+1", "line 14: thresholds 1 to 1 of feature 0: proven is 1, claimed 2"),
        (13, "5", "line 14: thresholds 1 to 5 of feature 0: proven is 0, claimed 1"),
        (13, "1 2 3 4", "the intervals of feature 0 are not those of all 5 thresholds"),
        (13, "1 2 2 3 4 5", "the intervals of feature 0 are not those of all 5 thresholds"),
        (13, "1 two", "no whole numbers in a line of the proof"),
        (14, None, "the file ends before the proof does"),
        (14, "1\n1", "line 16: a line after the end of the proof"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(hand, tmp_path, k, line, told):
    lines = [*hand[:k], *([] if line is None else [line]), *hand[k + 1 :]]
    with pytest.raises(CertificateError) as caught:
        certify(written(tmp_path / "proof.gz", lines))
    assert told in str(caught.value)


# ---------------------------------------------------------------------- mutants


@pytest.fixture(scope="module")
def proofs(tmp_path_factory):
    """Lines of certificates of every loss, with costs of splits and classes, weights, leaf sizes, and depth 1 to 4."""
    folder, found = tmp_path_factory.mktemp("proofs"), []
    cases = [Case(seed) for seed in (1, 3, 4, 5, 6, 7, 9, 11, 13, 14, 16, 20, 21, 23, 24, 30, 33, 36)]
    for case in (*cases, *map(CaseOfTargets, range(6))):
        path = folder / f"{len(found)}.gz"
        proof_of(case, path)
        found.append(lines_of(path))
    return found


def enumerated(problem, known):
    """Least objective of a tree of the problem of a certificate, and that of one leaf."""
    key = (
        problem.digest(),
        problem.loss,
        problem.n_targets,
        problem.depth,
        problem.N_min,
        problem.split_cost,
        problem.level,
        problem.costs.tobytes(),
    )
    if key not in known:
        cost = cost_in_file(problem)
        with np.errstate(over="ignore", invalid="ignore"):
            best = best_tree_value(
                problem.X, lambda rows: cost(np.array(rows)), problem.depth, problem.split_cost, problem.N_min
            )
            known[key] = float(best), float(cost(np.arange(len(problem.y))))
    best, leaf = known[key]
    return best / problem.unit, leaf / problem.unit


@pytest.mark.parametrize("n", [300, pytest.param(6000, marks=pytest.mark.slow)])
def test_whatever_is_changed_is_refused_or_true(tmp_path, proofs, n):
    chance, path, known, codes = Random(n), tmp_path / "proof.gz", {}, []
    for k in range(n):
        raw = bytearray(written(path, mutated(proofs[k % len(proofs)], chance)).read_bytes())
        if chance.random() < 0.05:
            raw[chance.randrange(len(raw))] = chance.randrange(256)
            path.write_bytes(raw)
        found = bound_of(path)
        codes.append(found is None)
        if found is not None:
            optimum, leaf = enumerated(found.problem, known)
            assert found.bound <= optimum + 1e-9 * leaf, (k, found.bound, optimum)
            assert found.bound <= found.objective * (1 + 1e-9)
    assert codes.count(True) > n // 2


@pytest.mark.parametrize("n", [50, pytest.param(3000, marks=pytest.mark.slow)])
def test_both_checkers_agree(tmp_path, proofs, second, n):
    """They agree on all proofs, and on mutants of tables, which are whole numbers; losses by sums they round apart."""
    chance, path, accepted = Random(n + 1), tmp_path / "proof.gz", 0
    for lines in proofs:
        assert same(second(lines), certify(written(path, lines)).bound)
    for k in range(n):
        lines = mutated(proofs[k % len(proofs)], chance)
        found, other = bound_of(written(path, lines)), second(lines)
        if found is not None:
            accepted += 1
            rounded = lines[1].startswith(("problem squared", "problem deviance"))
            assert rounded or other is not None, lines
        if other is not None and found is not None:
            assert same(other, found.bound)
        if other is not None and found is None:
            # The names and the digest are not read by the second one.
            assert reason_of(path) in ("names", "samples"), (k, lines)
    assert accepted > 0


@pytest.mark.parametrize("seed", [0, 1])
def test_both_checkers_refuse_the_same_intervals(tmp_path, second, seed):
    """Each two neighbouring intervals of a proof are joined; the last ones are as weak as any."""
    rng, path = np.random.default_rng(seed), tmp_path / "proof.gz"
    X = rng.integers(0, 12, (60, 3)).astype(float)
    y = (X[:, 0] + X[:, 1] * (seed + 1) + rng.integers(0, 9, 60) > 15).astype(int)
    mipforest.get_formulation("oct")(alpha=0.01).build(Dataset.from_arrays(X, y), 2).solve(
        "exact-search", certificate=path, gap=0.0
    )
    lines, refused, held = lines_of(path), 0, 0
    for k in range(next(k for k, line in enumerate(lines) if line.startswith("bound")) + 1, len(lines)):
        ends = lines[k].split(" ")
        for q in range(len(ends) - 1):
            joined = [*lines[:k], " ".join(ends[:q] + ends[q + 1 :]), *lines[k + 1 :]]
            found, other = bound_of(written(path, joined)), second(joined)
            assert (found is None) == (other is None), (k, q)
            refused, held = refused + (found is None), held + (found is not None)
    assert refused > 3, (refused, held)


def test_sums_that_do_not_fit_are_taken_in_blocks(proofs, tmp_path, monkeypatch):
    monkeypatch.setattr(univariate, "BLOCK", 1)
    for lines in proofs:
        certify(written(tmp_path / "proof.gz", lines))


# ---------------------------------------------------------------------- on the command line


@pytest.fixture(scope="module")
def of_oct(tmp_path_factory):
    folder = tmp_path_factory.mktemp("oct")
    rows = "".join(f"{k % 7},{k % 3},{'abc'[(k % 4 + k % 5) % 3]}\n" for k in range(40))
    (folder / "few.csv").write_text(f"x,z,target\n{rows}")
    solve = [
        "solve",
        "--model",
        "oct",
        "--depth",
        "2",
        "--data",
        str(folder / "few.csv"),
        "--param",
        "alpha=0.02",
    ]
    done = CliRunner().invoke(app, [*solve, "--quiet", "--certificate", str(folder / "proof.gz")])
    assert done.exit_code == 0, done.output
    return folder


def test_what_is_certified_is_said(of_oct):
    shown = CliRunner().invoke(app, ["certify", str(of_oct / "proof.gz")])
    assert shown.exit_code == 0
    for words in (
        "claims",
        "intervals, in whole numbers",
        "oct (variant tight), alpha=0.02",
        "loss errors; N_min 1",
    ):
        assert words in shown.output
    options = [
        "--data",
        str(of_oct / "few.csv"),
        "--model",
        "oct",
        "--param",
        "alpha=0.02",
        "--depth",
        "2",
        "--json",
    ]
    told = json.loads(CliRunner().invoke(app, ["certify", str(of_oct / "proof.gz"), *options]).output)
    assert told["compared"] == ["model", "depth", "data"]
    assert (told["loss"], told["N_min"], told["exact"], told["samples"]) == ("errors", 1, True, 40)
    assert 0 <= told["gap"] <= MISSED


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--model", "oct"), "alpha: 0.02 in the file, 0 asked; cost of a split: "),
        (
            ("--model", "oct", "--param", "alpha=0.02", "--param", "N_min=2"),
            "N_min: 1 in the proof, 2 as asked",
        ),
        (("--model", "ort"), "model: oct in the file, ort asked"),
        (("--model", "margot"), "no univariate trees"),
        (("--depth", "3"), "depth: 2 in the proof, 3 asked"),
        (("--data", "few.csv", "--test-size", "0.25"), "samples: 40 in the file, 30 in"),
        (("--data", "few.csv", "--scaling", "none"), "features, or their scaling, differ"),
    ],
)
def test_all_that_differs_is_told(of_oct, monkeypatch, options, told):
    monkeypatch.chdir(of_oct)
    done = CliRunner().invoke(app, ["certify", "proof.gz", *options])
    assert done.exit_code == 3
    assert told in " ".join(done.output.split())


def test_names_that_do_not_fit_the_numbers_are_refused(of_oct, tmp_path):
    lines = lines_of(of_oct / "proof.gz")
    header = json.loads(lines[0])
    header["parameters"]["alpha"] = 0.5
    done = CliRunner().invoke(
        app, ["certify", str(written(tmp_path / "p.gz", [json.dumps(header), *lines[1:]]))]
    )
    assert done.exit_code == 3
    assert "by the file's own parameters" in " ".join(done.output.split())
