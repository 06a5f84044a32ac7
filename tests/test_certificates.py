"""The checker of certificates on proofs written by hand, and on what may be wrong with them."""

import copy
import gzip
import json
from fractions import Fraction
from itertools import chain, combinations

import numpy as np
import pytest
from tolerance import same

from mipforest.certificates import CertificateError, certify
from mipforest.certificates.nodes import Charges, Exact, Outward, Points
from mipforest.unpacking import UnpackingError

#: Samples 0 (class -1) and 1 (class +1) with C = 10: w = 2, b = -1 is best, and the margins' dual point is (2, 2).
#: Variables of a node: 0 to 3 are the margins of sample 0 and 1 by class, 4 and 5 their sides.
HEADER = {
    "mipforest_certificate": 1,
    "data": "by hand",
    "depth": 2,
    "epsilon": 0.001,
    "C": [10.0, 10.0, 10.0],
    "samples": 2,
    "features": 1,
}
SAMPLES = [{"x": [0.0], "n": [1.0, 0.0]}, {"x": [1.0], "n": [0.0, 1.0]}]
POINT = [[0, 4, 3, 4], [], []]
PROOF = [
    {"branch": 0, "sample": 0, "left": 1, "right": 2},
    {"leaf": 1, "unit": -1, "dual": POINT},
    # With sample 0 on the right and 1 on the left, (10, 10) for the margins and (8, 8) for the sides prove 18.008.
    {"screen": 2, "unit": -1, "dual": POINT, "out": [[1, 0, [[0, [0, 20, 3, 20, 4, 16, 5, 16]]]]], "then": 7},
    {"leaf": 7, "unit": 0, "dual": [[0, 2, 3, 2], [], []]},
]
CLAIM = {"claim": {"objective": 2.0, "bound": 1.99, "w": [[2.0], [0.0], [0.0]], "b": [-1.0, -1.0, 1.0]}}
LINES = [HEADER, *SAMPLES, *PROOF, CLAIM]


def written(path, lines):
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return path


@pytest.fixture
def refused(tmp_path):
    """Return what is said of a proof by hand after a change of its lines."""

    def told(change, lines=LINES):
        lines = copy.deepcopy(lines)
        change(lines)
        path = written(tmp_path / "proof.gz", lines)
        messages = []
        for exact in (False, True):
            with pytest.raises(CertificateError) as caught:
                certify(path, exact=exact)
            messages.append(str(caught.value))
        assert messages[0].split(":")[-1] == messages[1].split(":")[-1]
        assert messages[0].startswith(str(path))
        return messages[0].removeprefix(str(path))

    return told


@pytest.mark.parametrize("exact", [False, True])
def test_a_proof_by_hand_is_certified(tmp_path, exact):
    found = certify(written(tmp_path / "proof.gz", LINES), exact=exact)
    assert found.objective == pytest.approx(2.0, abs=1e-15)
    assert same(found.bound, 1.99)
    assert found.gap == pytest.approx(0.005)
    assert (found.branchings, found.leaves) == (2, 3)
    assert found.data == "by hand"
    assert found.X.tolist() == [[0.0], [1.0]]


def at(*place):
    """Return a change of one entry of the lines; the last of ``place`` is its value."""

    def change(lines):
        *way, key, value = place
        for step in way:
            lines = lines[step]
        lines[key] = value

    return change


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (at(4, "dual", 0, 1, 5), ", line 5: leaf 1: the dual point of node 0 is out of balance by -1 units"),
        (
            at(4, "dual", 0, [0, 40, 3, 40]),
            ", line 5: leaf 1: variable 0 of node 0 is 40, and its capacity is 20",
        ),
        (
            at(4, "dual", 0, [0, 4, 5, 4]),
            ", line 5: leaf 1: variable 5 of node 0 is 4, and the routing has no such",
        ),
        (
            at(4, "dual", 2, [0, 4, 1, 4]),
            ", line 5: leaf 1: variable 0 of node 2 is 4, and the routing has no such",
        ),
        (at(4, "dual", [[], [], []]), ": line 5, leaf 1: proven is 0, claimed 1.99"),
        (at(4, "unit", -2), ": line 5, leaf 1: proven is 1.5, claimed 1.99"),
        (
            at(5, "out", 0, 2, 0, 1, [4, 16]),
            "leaf 'sample 1 to the left at 0' of node 2: the dual point of node 0",
        ),
        (
            at(5, "out", 0, 2, [[0, [0, 2, 3, 2]]]),
            "leaf 'sample 1 to the left at 0' of node 2: proven is 1.5",
        ),
        (at(5, "out", 0, 1, 1), "leaf 'sample 1 to the right at 0' of node 2: the dual point of node 0"),
        (at(1, "n", [0.0, 1.0]), ", line 5: leaf 1: variable 0 of node 0 is 4, and its capacity is 0"),
        (at(2, "x", [2.0]), ": line 7, leaf 7: proven is -4, claimed 1.99"),
        (at(2, "x", [0.9]), "the claimed tree has the value 4"),
        (at(0, "C", [0.5, 1.0, 1.0]), "and its capacity is 1"),
        (at(0, "epsilon", 2.0), "the claimed tree has a score of -1 at node 0"),
        (lambda lines: lines.pop(4), "leaf 1 is missing, of 1 nodes never closed"),
        (lambda lines: lines.insert(5, lines[4]), ", line 6: node 1 is not open"),
        (at(3, "right", 1), ", line 4: node 1 is open already"),
        (at(5, "then", 8), ", line 7: node 7 is not open"),
        (
            lambda lines: lines.insert(4, {**PROOF[0], "branch": 1}),
            ", line 5: sample 0 stands at node 1, below which",
        ),
        (at(7, "claim", "bound", 2.5), "proven is 2, claimed 2.5"),
        (at(7, "claim", "objective", 1.9), "the claimed tree has the value 2, not 1.9"),
        (at(7, "claim", "b", 0, -0.0005), "the claimed tree has a score of -0.0005 at node 0"),
        (at(7, "claim", "w", [[2.0]]), "w is no list of 3"),
        (lambda lines: lines.pop(), "the file ends without a claim"),
        (lambda lines: lines.append({"leaf": 9}), ", line 9: a line after the claim"),
        (lambda lines: lines.clear(), "the file ends without a claim"),
        (at(0, "mipforest_certificate", 4), ", line 1: no certificate of format 1, 2 or 3"),
        (at(0, "depth", 99), ", line 1: depth is 99"),
        (at(0, "C", [1.0, -1.0, 1.0]), ", line 1: epsilon is negative, or a C is"),
        (at(0, "epsilon", float("nan")), ", line 1: epsilon is nan, no number"),
        (at(1, "n", [-1.0, 0.0]), ", line 2: n is negative"),
        (at(1, "x", []), ", line 2: x is no list of 1"),
        (at(3, "sample", 2), ", line 4: sample is 2; it is a whole number from 0 to 1"),
        (at(3, "sample", True), ", line 4: sample is True"),
        (at(4, "dual", 0, 1, 4.0), ", line 5: variables and units are no pairs of whole numbers"),
        (at(4, "dual", 0, [0, 4, 3]), ", line 5: variables and units are no pairs of whole numbers"),
        (at(4, "dual", 0, [-1, 4, 3, 4]), ", line 5: variables and units are no pairs of whole numbers"),
        (at(4, "dual", 0, [6, 4, 3, 4]), ", line 5: there are 6 variables only"),
        (at(4, "unit", 10**6), ", line 5: unit is 1000000"),
        (at(4, "dual", []), ", line 5: dual is no list of 3"),
        (at(5, "out", [[1, 0]]), ", line 6: an entry of out is no list of 3"),
        (at(3, "no object"), ", line 4: no JSON object"),
        (at(3, {"trunk": 0}), ", line 4: neither branch, leaf, screen nor claim"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(refused, change, told):
    assert told in refused(change)


def test_a_variable_listed_twice_counts_once(refused):
    # The capacity is 20 units: twice 15 of the same variable must not pass as 30.
    assert "out of balance" in refused(at(4, "dual", 0, [0, 15, 0, 15, 3, 20]))


def test_damaged_files_are_refused(tmp_path):
    whole = written(tmp_path / "whole.gz", LINES).read_bytes()
    path = tmp_path / "proof.gz"
    for content, told in (
        (whole[:-20], "damaged or cut off"),
        (b"plain text", "damaged or cut off"),
        (gzip.compress(b"[" * 100_000 + b"\n", mtime=0), "line 1: no JSON object"),
        (gzip.compress(b"9" * 5000 + b"\n", mtime=0), "line 1: no JSON object"),
        (gzip.compress(b" " * 10_000_000, mtime=0), "expand to more than"),
        (gzip.compress(b"\xff\n", mtime=0), "line 1: no JSON object"),
    ):
        path.write_bytes(content)
        with pytest.raises((CertificateError, UnpackingError), match=told) as caught:
            certify(path)
        assert str(path) in str(caught.value)


def test_norms_are_rounded_outward():
    rng = np.random.default_rng(0)
    for trial in range(50):
        n, p = int(rng.integers(1, 60)), int(rng.integers(1, 5))
        X = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-8, 8, (n, p))
        amounts = rng.integers(-(1 << 52), 1 << 52, n)
        if trial % 2:
            amounts[-1] -= amounts.sum() % (1 << 52)  # sums that nearly cancel
            X = 1.0 + 1e-12 * X
        exact, outward = Exact(X).squared(np.arange(n), amounts), Outward(X).squared(np.arange(n), amounts)
        assert outward >= exact
        size = (np.abs(amounts) @ np.abs(X)).astype(float)
        assert float(outward - exact) <= 1e-12 * (1.0 + float(size @ size))


def test_numbers_beyond_doubles_are_left_to_the_exact_check():
    X = np.array([[1e300], [-1e300]])
    amounts = np.array([1 << 50, -(1 << 50)])
    with pytest.raises(CertificateError, match="check it exactly"):
        Outward(X).squared(np.arange(2), amounts)
    assert Exact(X).squared(np.arange(2), amounts) == 4 * int(1e300) ** 2 * (1 << 100)


#: The same samples with two equal features, of which one may be used. Variables of a node: 0 to 3 as above, 4 and 5 the
#: left sides, 6 and 7 the right ones. Sample 0 on the right at the root costs 10.
NODES = [
    HEADER
    | {"mipforest_certificate": 2, "features": 2, "kinks": [[1.0, 1.0]], "norm": "l2"}
    | {"free": [1, 1, 1], "alpha": None},
    {"x": [0.0, 0.0], "n": [1.0, 0.0]},
    {"x": [1.0, 1.0], "n": [0.0, 1.0]},
    {"branch": 0, "at": 0, "feature": 1, "in": 1, "out": 2},
    {"point": 3, "at": 0, "unit": 0, "dual": [0, 2, 3, 2]},
    {"leaf": 1, "nodes": [3, None, None]},
    {"branch": 2, "sample": 0, "left": 4, "right": 5},
    {"leaf": 4, "nodes": [[0, 3, 3], None, None]},
    {"point": 6, "at": 0, "unit": 0, "dual": [0, 10, 6, 10]},
    {"leaf": 5, "nodes": [6, None, None]},
    {"claim": CLAIM["claim"] | {"w": [[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]]}},
]

#: At one node, both features are used for 0.5, or the l1 norm is 2, which the point 1, 1 proves.
SOFT = [
    NODES[0] | {"depth": 1, "C": [10.0], "free": [1], "alpha": 0.5},
    *NODES[1:3],
    {"point": 1, "at": 0, "unit": 0, "dual": [0, 1, 3, 1]},
    {"leaf": 0, "nodes": [1]},
    {"claim": {"objective": 1.5, "bound": 1.5, "w": [[1.0, 1.0]], "b": [-1.0]}},
]
L1 = [
    SOFT[0] | {"norm": "l1", "free": None, "alpha": None},
    *SOFT[1:3],
    {"point": 1, "at": 0, "unit": 0, "dual": [0, 7, 3, 7]},
    {"leaf": 0, "nodes": [1]},
    {"claim": {"objective": 2.0, "bound": 2 - 1e-15, "w": [[2.0, 0.0]], "b": [-1.0]}},
]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("lines", [NODES, SOFT, L1])
def test_proofs_by_hand_of_other_nodes_are_certified(tmp_path, lines, exact):
    lines = copy.deepcopy(lines)
    lines[-1]["claim"]["bound"] -= 1e-14  # rounded outward, 1.5 is not quite reached
    found = certify(written(tmp_path / "proof.gz", lines), exact=exact)
    assert found.objective == pytest.approx(lines[-1]["claim"]["objective"], abs=1e-15)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            at(10, "claim", "w", 0, [1.0, 1.0]),
            "the claimed tree uses 2 features at node 0, and 1 are allowed",
        ),
        (at(4, "dual", [0, 2, 3, 3]), ", line 5: point 3 is out of balance by 1 units"),
        (at(4, "dual", [0, 40, 3, 40]), ", line 5: point 3: variable 0 is 40, and its capacity is 10"),
        (at(4, "dual", [8, 1]), ", line 5: there are 8 variables only"),
        (at(4, "at", 1), ", line 6: leaf 1: there is no point 3 of node 0 before it"),
        (at(8, "point", 3), ", line 9: point 3 was given before"),
        (at(5, "nodes", [9, None, None]), ", line 6: leaf 1: there is no point 9 of node 0 before it"),
        (at(5, "nodes", [None, None, None]), ": line 6, leaf 1: proven is 0, claimed 1.99"),
        (at(5, "nodes", [3, None]), ", line 6: nodes is no list of 3"),
        (at(7, "nodes", [[1, 3, 3], None, None]), ", line 8: feature 1 of node 0 was decided before"),
        (at(7, "nodes", [[0, 3], None, None]), ", line 8: a choice of a feature is no list of 3"),
        (at(7, "nodes", [[0, None, 3], None, None]), ": line 8, leaf 4: proven is 0, claimed 1.99"),
        (at(7, "nodes", [[2, 3, 3], None, None]), ", line 8: feature is 2; it is a whole number from 0 to 1"),
        (at(8, "dual", [0, 10, 4, 10]), ", line 9: point 6 is out of balance by -20 units"),
        (at(8, "dual", [3, 10, 4, 10]), ", line 10: leaf 5: point 6 has variable 4, and the routing has no"),
        (at(0, "C", [1.0, 1.0, 1.0]), ", line 5: point 3: variable 0 is 2, and its capacity is 1"),
        (at(0, "free", None), ", line 4: all features are free: none is decided"),
        (at(0, "alpha", -1.0), ", line 1: alpha is negative"),
        (at(0, "norm", "l3"), ", line 1: norm is neither"),
        (at(0, "kinks", []), ", line 1: a loss has kinks"),
        (at(0, "kinks", [[1.0, -1.0]]), ", line 1: a loss has kinks"),
        (at(0, "kinks", [[0.75, 1.0]]), "leaf 1: proven is 1, claimed 1.99"),
        (at(3, "in", 2), ", line 4: node 2 is open already"),
        (at(9, {"screen": 5}), ", line 10: neither branch, leaf, point nor claim"),
        (lambda lines: lines.pop(7), "leaf 4 is missing, of 1 nodes never closed"),
    ],
)
def test_what_is_wrong_with_other_nodes_is_refused_with_its_place(refused, change, told):
    assert told in refused(change, NODES)


@pytest.mark.parametrize("l1", [False, True])
@pytest.mark.parametrize("alpha", [None, 0.3])
@pytest.mark.parametrize("kind", [Exact, Outward])
def test_a_point_proves_no_more_than_it_does_for_any_choice_of_features(kind, alpha, l1):
    rng, p = np.random.default_rng(5), 4
    X = rng.normal(size=(2, p)) * [0.1, 1.0, 1.0, 3.0]
    alpha = None if alpha is None else Fraction(alpha)
    charges = Charges(l1=l1, free=(2,), alpha=alpha)
    points = Points(charges, [Fraction(10)], Fraction(0), np.eye(2), kind(X))
    points.add({"point": 0, "at": 0, "unit": 0, "dual": [0, 1, 3, 1]})
    u = np.abs(X[1] - X[0])
    choices = list(chain.from_iterable(combinations(range(p), k) for k in range(p + 1)))
    for decided in ({}, {3: True}, {3: False, 0: True}, {1: True, 2: True}, {0: True, 1: True, 2: True}):
        of_choices = []
        for used in map(set, choices):
            if all((j in used) == is_in for j, is_in in decided.items()) and (
                len(used) <= 2 or alpha is not None
            ):
                size = max(1.0, max((u[j] for j in used), default=0.0))
                value = 2.0 / size if l1 else 2.0 - sum(0.5 * u[j] ** 2 for j in used)
                of_choices.append(value + float(alpha or 0) * max(0, len(used) - 2))
        proven = float(points.least(0, 0, decided, np.full(2, 2), "leaf"))
        assert proven <= min(of_choices, default=np.inf) + 1e-12
        if not l1:
            assert proven == pytest.approx(min(of_choices, default=np.inf), rel=1e-12)
