"""The checker that is extracted from a proof in Coq accepts what the others accept, and nothing that is not true."""

import shutil
import subprocess
from pathlib import Path
from random import Random

import numpy as np
import pytest
from certificate_files import bound_of, lines_of, mutated, written
from test_univariate_certificates import enumerated, proof_of
from tolerance import at_most, same
from univariate_cases import Case, CaseOfTargets

import mipforest
from mipforest.certificates import certify
from mipforest.problem.constraints import Forbid

SOURCES = Path(__file__).parents[2] / "proofs"


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The program, and what Coq said while it checked the proof."""
    missing = [tool for tool in ("coqc", "ocamlfind", "make") if shutil.which(tool) is None]
    if (
        missing
        or subprocess.run(["ocamlfind", "query", "zarith"], capture_output=True, check=False).returncode
    ):
        pytest.skip(f"there is no {', '.join(missing) or 'zarith'}")
    folder = tmp_path_factory.mktemp("proofs")
    done = subprocess.run(
        ["make", "-C", SOURCES, f"OUT={folder}"], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "verified_checker", done.stdout


@pytest.fixture
def verified(built):
    """The program, which returns the bound that it verifies, and why it refuses a file."""

    def checked(lines):
        text = "".join(f"{line}\n" for line in lines).encode()
        done = subprocess.run([built[0]], input=text, capture_output=True, timeout=300, check=False)
        words = done.stdout.decode()
        assert done.returncode in (0, 3), (done.returncode, words, done.stderr)
        assert words.startswith("refused: " if done.returncode else "verified bound ")
        return (None, words) if done.returncode else (float(words.split()[2]), words)

    return checked


def of_errors():
    """Small cases that lose errors or costs of classes."""
    return [case for seed in range(60) if (case := Case(seed)).loss == "classes"]


def test_the_proof_rests_on_no_axiom(built):
    """Both theorems are proven from Coq's own logic alone."""
    assert built[1].count("Closed under the global context") == 2
    text = "".join(path.read_text() for path in SOURCES.glob("*.v"))
    assert not any(word in text for word in ("Axiom", "Admitted", "admit.", "Parameter"))


def test_optima_are_verified(verified, tmp_path):
    for case in of_errors():
        bound = proof_of(case, tmp_path / "proof.gz")
        assert same(verified(lines_of(tmp_path / "proof.gz"))[0], bound)


@pytest.mark.parametrize(("depth", "parameters"), [(2, {}), (2, {"N_min": 7}), (3, {"alpha": 0.01})])
def test_what_the_search_proves_is_verified(verified, tmp_path, depth, parameters):
    path = tmp_path / "proof.gz"
    problem = mipforest.get_formulation("oct")(**parameters).build(mipforest.load("wine"), depth)
    result = problem.solve("exact-search", certificate=path)
    assert same(verified(lines_of(path))[0], result.bound)


def test_other_certificates_are_refused_by_what_they_state(verified, tmp_path):
    path = tmp_path / "proof.gz"
    proof_of(next(case for case in map(Case, range(30)) if case.loss == "squared"), path)
    assert "its loss is" in verified(lines_of(path))[1]
    proof_of(next(case for case in map(CaseOfTargets, range(9)) if case.data.target_classes), path)
    assert "several targets" in verified(lines_of(path))[1]
    problem = mipforest.get_formulation("oct")().build(mipforest.load("iris"), 2)
    problem.constrain(Forbid("petal width (cm)", nodes=[0]))
    problem.solve("exact-search", certificate=path)
    assert "constraints" in verified(lines_of(path))[1]


@pytest.mark.parametrize("n", [60, pytest.param(2000, marks=pytest.mark.slow)])
def test_no_mutant_is_above_the_truth(verified, tmp_path, n):
    """What is changed may be another problem: the optimum is that of the file."""
    chance, path, known, proofs, accepted = Random(n), tmp_path / "proof.gz", {}, [], 0
    for case in of_errors():
        proof_of(case, path)
        proofs.append(lines_of(path))
    for k in range(n):
        lines = mutated(proofs[k % len(proofs)], chance)
        bound, words = verified(lines)
        first = bound_of(written(path, lines))
        if first is not None:
            assert same(bound, first.bound), (k, words)
            optimum, _ = enumerated(first.problem, known)
            assert at_most(bound, optimum), (k, bound, optimum)
            accepted += 1
    assert accepted > 0


@pytest.mark.slow
def test_the_three_checkers_agree_on_proofs(verified, second, tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "proof.gz"
    for k in range(500):
        n, p, K = int(rng.integers(8, 40)), int(rng.integers(1, 5)), int(rng.integers(2, 4))
        X, y = rng.integers(0, 9, (n, p)) / 8, rng.integers(0, K, n)
        y[:K] = np.arange(K)
        weights = rng.choice([1.0, 2.0, 0.37], n) if k % 3 == 0 else None
        data = mipforest.Dataset.from_arrays(X, y, weights=weights)
        model = mipforest.get_formulation("oct")(
            alpha=float(rng.choice([0, 0.02])), N_min=int(rng.integers(1, 5))
        )
        model.build(data, int(rng.integers(1, 4))).solve("exact-search", certificate=path, gap=0.0)
        lines, bound = lines_of(path), certify(path).bound
        assert same(verified(lines)[0], bound), k
        assert same(second(lines), bound), k
