"""Certificates of univariate trees state their constraints; both checkers refuse whatever is changed, or it is true."""

import gzip
import json
from functools import cache
from itertools import product
from random import Random

import numpy as np
import pandas as pd
import pytest
from certificate_files import bound_of, lines_of, mutated, reason_of, written
from tolerance import at_most, same
from typer.testing import CliRunner
from univariate_cases import cost_in_file, hold_for_all

import mipforest
import mipforest.problem.constraints as c
from mipforest.certificates import CertificateError, certify
from mipforest.cli.main import app
from mipforest.data import Dataset
from mipforest.errors import DataError, Unsupported

#: Random cases by default, and of the slow tests; mutants of each.
FEW, MANY = 14, 600

#: What a proof may miss of the optimum, as a share of what one leaf loses; see the tests without constraints.
MISSED = 1e-7

RANGES = [None, (0.5, None), (None, 0.7), (1.0, 1.5), (1.2, 2.5)]


@pytest.fixture(autouse=True)
def no_explanation(monkeypatch):
    """Do not look for constraints that contradict each other: that solves each problem without a tree again."""
    for name in ("CONFLICT_TIME_LIMIT", "FEW_SECONDS"):
        monkeypatch.setattr(f"mipforest.problem.problem.{name}", 0.0)


# ---------------------------------------------------------------------- an enumeration of what a file states


def splits_of(found):
    """Return all trees that keep the constraints of a file: feature and rank of each node, -1 where it is a leaf."""
    own, B = found.constraints, 2**found.depth - 1
    choices = []
    for t in range(B):
        ranges = zip(own.first[t].tolist(), own.last[t].tolist(), strict=True)
        splits = [(f, k) for f, (low, high) in enumerate(ranges) for k in range(low, high + 1)]
        choices.append(splits if own.must[t] else [(-1, 0), *splits])
    for tree in product(*choices):
        if any(tree[t][0] >= 0 and tree[(t - 1) // 2][0] < 0 for t in range(1, B)):
            continue
        if not any(_is_again(own.group, tree, t) for t in range(1, B)) and _keeps_limits(own, tree):
            yield tree


def _is_again(group, tree, t):
    """Return whether a node splits on a group that comes once on a path, as a node above it does."""
    mine, above = group[tree[t][0]], set()
    if tree[t][0] < 0 or mine < 0:
        return False
    while t:
        t = (t - 1) // 2
        above.add(group[tree[t][0]])
    return mine in above


def _keeps_limits(own, tree):
    used = {f for f, _ in tree if f >= 0}
    return (
        all(
            sum(cost for group, cost in zip(limit.groups, limit.costs, strict=True) if group & used)
            <= limit.most
            for limit in own.used
        )
        and all(group & used for group in own.required)
        and all(
            sum(w for w, (f, _) in zip(limit.weights, tree, strict=True) if f >= 0) <= limit.most
            for limit in own.splits
        )
    )


def enumerated(found):
    """Return the least objective of a tree that keeps what a file states, and that of one leaf."""
    problem = found.problem
    rank = np.array([np.unique(x, return_inverse=True)[1] for x in problem.X.T])
    cost_of, y = cost_in_file(problem), problem.y
    cost = cache(lambda rows: cost_of(np.array(rows)))
    best, everything = np.inf, tuple(range(len(y)))
    for tree in splits_of(found):
        here, leaves = {0: everything}, []
        for t in range(2 * len(tree) + 1):
            if t not in here:
                continue
            f, k = tree[t] if t < len(tree) else (-1, 0)
            if f < 0:
                leaves.append(here[t])
                continue
            here[2 * t + 1] = tuple(i for i in here[t] if rank[f, i] < k)
            here[2 * t + 2] = tuple(i for i in here[t] if rank[f, i] >= k)
        # A leaf may be empty where some node may have to split.
        least = 0 if found.constraints.empties or problem.N_min <= 1 else problem.N_min
        if all(len(leaf) >= (problem.N_min if leaf else least) for leaf in leaves):
            splits = sum(f >= 0 for f, _ in tree)
            best = min(best, sum(cost(leaf) for leaf in leaves if leaf) + splits * problem.split_cost)
    return best / problem.unit, cost(everything) / problem.unit


# ---------------------------------------------------------------------- drawn problems


def drawn_constraint(rng, names, B):
    pick = lambda: str(rng.choice(names))  # noqa: E731
    kinds = [
        lambda: c.Forbid((pick(),)),
        lambda: c.Forbid((pick(),), tuple(sorted({int(t) for t in rng.integers(0, B, 2)}))),
        lambda: c.OncePerPath(None if rng.integers(2) else (pick(),)),
        lambda: c.Require((pick(),)),
        lambda: c.Split(pick(), float(rng.choice([0.5, 1.5])), int(rng.integers(B))),
        lambda: c.Split(pick(), RANGES[rng.integers(len(RANGES))], int(rng.integers(B))),
        lambda: c.AtMostSplits(int(rng.integers(0, B))),
        lambda: c.AtMostSplits(2, tuple(rng.integers(0, 3, B).tolist())),
        lambda: c.AtMostFeatures(int(rng.integers(0, len(names)))),
        lambda: c.FeatureBudget(
            float(rng.integers(0, 5)), {name: float(rng.integers(0, 4)) for name in names}
        ),
        lambda: c.MinLeaf(int(rng.integers(2, 4))),
    ]
    return kinds[rng.integers(len(kinds))]()


def drawn(seed):
    """Return a small problem of any loss within one to three constraints, and these; ``None`` where one cannot hold."""
    rng = np.random.default_rng(seed)
    depth, kind = int(rng.choice([1, 2, 2, 3])), int(rng.integers(4))
    n, p, U = int(rng.integers(6, 13)), 2 if depth == 3 else int(rng.integers(2, 4)), 2 if depth == 3 else 4
    X = rng.integers(0, int(rng.integers(2, U + 1)), (n, p)).astype(float)
    X[:2] = [[0.0] * p, [2.0] * p]
    weight = None if rng.random() < 0.5 else rng.choice([1.0, 2.0, 0.5], n)
    parameters = {"alpha": float(rng.choice([0.0, 0.05, 0.3])), "N_min": int(rng.choice([1, 1, 1, 2, 3]))}
    names = [f"x{j}" for j in range(p)]
    if kind < 2:
        y, model, task = rng.integers(0, 2 + kind, n), "oct", "classification"
        y[: 2 + kind] = np.arange(2 + kind)
    else:
        y, task = rng.integers(0, 6, n) / 2.0, "regression"
        y[:2] = 0.0, 1.0
        others = (("ort", {}), ("ort", {"loss": "absolute"}), ("quantile", {"tau": 0.8}), ("poisson", {}))
        model, more = others[2 * int(rng.integers(2)) + kind - 2]
        parameters |= more
    data = Dataset.from_arrays(X, y, features=names, task=task, weights=weight)
    asked = [drawn_constraint(rng, names, 2**depth - 1) for _ in range(int(rng.integers(1, 4)))]
    try:
        problem = mipforest.get_formulation(model)(**parameters).build(data, depth)
        problem.constrain(*asked)
    except (DataError, mipforest.errors.ModelError):
        return None
    return problem, asked


def check_case(seed, path, second):
    if (case := drawn(seed)) is None:
        return
    problem, asked = case
    result = problem.solve("exact-search", certificate=path, gap=0.0)
    if result.tree is None:
        assert not path.exists(), seed
        return
    found = certify(path)
    best, leaf = enumerated(found)
    said = seed, list(map(str, asked)), found.bound, found.objective, best
    assert result.status == "optimal", said
    assert same(found.objective, best), said
    assert at_most(found.bound, best), said
    assert at_most(best, found.bound + MISSED * leaf), said
    assert same(second(lines_of(path)), found.bound), said
    assert [one["kind"] for one in found.words.constraints] == [one.kind for one in asked]
    path.unlink()


def test_the_optimum_within_constraints_is_proven_and_no_more(tmp_path, second):
    for seed in range(FEW):
        check_case(seed, tmp_path / "proof.gz", second)


@pytest.mark.slow
def test_many_optima_within_constraints_are_proven_and_no_more(tmp_path, second):
    hold_for_all(lambda seed: check_case(seed, tmp_path / "proof.gz", second), range(FEW, FEW + MANY))


# ---------------------------------------------------------------------- limits on labels


def labelled(found):
    """Return the least objective of a tree and labels within what a file states, and the relaxation by its prices."""
    problem, own = found.problem, found.constraints
    rank = np.array([np.unique(x, return_inverse=True)[1] for x in problem.X.T])
    n, K = own.labels[0].use.shape
    cost = problem.weight[:, None] * problem.costs[0, problem.y[:, 0].astype(int)]
    priced = cost + sum(limit.price * limit.use for limit in own.labels)
    best, relaxed = np.inf, np.inf
    for tree in splits_of(found):
        at = np.zeros(n, int)
        for _ in range(found.depth):
            for i in range(n):
                f, k = tree[at[i]] if at[i] < len(tree) else (-1, 0)
                at[i] = at[i] if f < 0 else 2 * at[i] + 1 + (rank[f, i] >= k)
        leaves, of = np.unique(at, return_inverse=True)
        if (np.bincount(of) < problem.N_min).any():
            continue
        splits = sum(f >= 0 for f, _ in tree) * problem.split_cost
        charges = np.array([[priced[of == leaf, k].sum() for k in range(K)] for leaf in range(len(leaves))])
        constant = sum(limit.price * limit.most for limit in own.labels)
        relaxed = min(relaxed, charges.min(axis=1).sum() + splits - constant)
        for labels in product(range(K), repeat=len(leaves)):
            label = np.array(labels)[of]
            if all(limit.use[np.arange(n), label].sum() <= limit.most for limit in own.labels):
                best = min(best, cost[np.arange(n), label].sum() + splits)
    return best / problem.unit, relaxed / problem.unit


def drawn_labels(seed):
    """Return a small problem within limits on labels, and others."""
    rng = np.random.default_rng([seed, 1])
    depth, n, K = int(rng.choice([1, 2])), int(rng.integers(6, 12)), int(rng.choice([2, 2, 3]))
    X = rng.integers(0, 3, (n, 2)).astype(float)
    X[:2] = [[0.0, 0.0], [2.0, 2.0]]
    y = rng.integers(0, K, n)
    y[:K] = np.arange(K)
    weight = None if rng.random() < 0.5 else rng.choice([1.0, 2.0, 0.5], n)
    data = Dataset.from_arrays(X, y, features=["x0", "x1"], weights=weight)
    label = str(data.classes[int(rng.integers(K))])
    kinds = [
        lambda: c.Recall(label, float(rng.choice([0.5, 0.9, 1.0]))),
        lambda: c.Precision(label, float(rng.choice([0.5, 0.9]))),
        lambda: c.LimitLabel(label, float(rng.choice([0.0, 0.2, 0.5]))),
        lambda: c.Parity("x0", float(rng.choice([0.1, 0.4]))),
    ]
    asked = [kinds[rng.integers(4)]() for _ in range(int(rng.integers(1, 3)))]
    if rng.random() < 0.5:
        asked.append(drawn_constraint(rng, ["x0", "x1"], 2**depth - 1))
    alpha = float(rng.choice([0.0, 0.05, 0.3]))
    try:
        problem = mipforest.get_formulation("oct")(alpha=alpha).build(data, depth)
        problem.constrain(*asked)
    except (DataError, mipforest.errors.ModelError):
        return None
    return problem, asked


def check_labels(seed, path, second):
    if (case := drawn_labels(seed)) is None:
        return None
    problem, asked = case
    result = problem.solve("exact-search", certificate=path, gap=0.0)
    if result.tree is None:
        assert not path.exists(), seed
        return None
    found = certify(path)
    best, relaxed = labelled(found)
    said = seed, list(map(str, asked)), found.bound, found.objective, best, relaxed, result.bound
    assert same(found.objective, best), said
    assert at_most(found.bound, best), said
    assert at_most(min(relaxed, best, result.bound), found.bound + MISSED * max(1.0, best)), said
    assert same(second(lines_of(path)), found.bound), said
    proves_less = any("the certificate proves the bound" in one for one in result.solution.warnings)
    assert proves_less or at_most(result.bound, found.bound + MISSED * max(1.0, best)), said
    lines = lines_of(path)
    path.unlink()
    return lines


def test_bounds_within_limits_on_labels_are_those_of_their_prices(tmp_path, second):
    for seed in range(FEW):
        check_labels(seed, tmp_path / "proof.gz", second)


@pytest.mark.slow
def test_many_bounds_within_limits_on_labels_are_those_of_their_prices(tmp_path, second):
    hold_for_all(lambda seed: check_labels(seed, tmp_path / "proof.gz", second), range(FEW, FEW + MANY))


@pytest.mark.parametrize("n", [30, pytest.param(1500, marks=pytest.mark.slow)])
def test_whatever_is_changed_of_limits_on_labels_is_refused_or_true(tmp_path, second, n):
    chance, path, accepted, known = Random(n), tmp_path / "proof.gz", 0, {}
    proofs = [lines for seed in range(12) if (lines := check_labels(seed, path, second))]
    for k in range(n):
        lines = mutated(proofs[k % len(proofs)], chance)
        rows = [
            i for i, line in enumerate(lines) if line.split(" ")[0] in ("labels", "use", "leaves", "bound")
        ]
        if rows and chance.random() < 0.6:
            i = chance.choice(rows)
            words = lines[i].split(" ")
            words[chance.randrange(1, len(words))] = chance.choice(
                ["0x0p+0", "0x1p+0", "-0x1p+0", "0x1p-1", "0", "1"]
            )
            lines[i] = " ".join(words)
        found, other = bound_of(written(path, lines)), second(lines)
        if found is not None:
            accepted += 1
            key = "\n".join(lines[1 : [line.split(" ")[0] for line in lines].index("tree")])
            if key not in known:
                known[key] = labelled(found)[0] if found.constraints.labels else enumerated(found)[0]
            assert found.bound <= known[key] + 1e-9 * max(1.0, known[key]), (
                k,
                found.bound,
                known[key],
                lines,
            )
            assert other is not None, (k, lines)
            assert same(other, found.bound)
        elif other is not None:
            assert reason_of(path) in ("names", "samples"), (k, lines)
    assert 0 < accepted < n


@pytest.fixture(scope="module")
def proofs(tmp_path_factory):
    """Lines of certificates under constraints of every kind."""
    path, found = tmp_path_factory.mktemp("proofs") / "proof.gz", []
    for seed in range(40):
        case = drawn(seed)
        if case is not None and case[0].solve("exact-search", certificate=path, gap=0.0).tree is not None:
            found.append(lines_of(path))
    assert {"node", "once", "used", "require", "splits", "branch", "none"} <= {
        line.split(" ")[0] for lines in found for line in lines
    }
    return found


@pytest.mark.parametrize("n", [50, pytest.param(2000, marks=pytest.mark.slow)])
def test_whatever_is_changed_is_refused_or_true(tmp_path, proofs, second, n):
    chance, path, accepted, known = Random(n), tmp_path / "proof.gz", 0, {}
    for k in range(n):
        lines = mutated(proofs[k % len(proofs)], chance)
        if chance.random() < 0.4:  # at what is said of constraints, and at boxes
            rows = [i for i, line in enumerate(lines) if line.split(" ")[0] in STATED]
            if rows:
                i = chance.choice(rows)
                words = lines[i].split(" ")
                words[-1] = str(chance.randrange(3)) if words[-1].lstrip("-").isdigit() else words[-1]
                lines[i : i + 1] = [] if chance.random() < 0.3 else [" ".join(words)]
        found, other = bound_of(written(path, lines)), second(lines)
        if found is not None:
            accepted += 1
            key = "\n".join(lines[1 : [line.split(" ")[0] for line in lines].index("grid")])
            if key not in known:
                known[key] = enumerated(found)
            best, leaf = known[key]
            assert found.bound <= best + 1e-9 * leaf, (k, found.bound, best, lines)
            assert lines[1].startswith("problem squared") or other is not None, (k, lines)
        if other is not None and found is not None:
            assert same(other, found.bound)
        if other is not None and found is None:
            assert reason_of(path) in ("names", "samples"), (k, lines)
    assert 0 < accepted < n // 2


#: Lines that say what is proven.
STATED = ("node", "once", "used", "group", "require", "splits", "branch", "none", "claim")


@pytest.mark.parametrize("kind", ["node", "once", "used", "require", "splits"])
def test_a_constraint_that_is_left_out_is_missed(tmp_path, proofs, second, kind):
    """A file whose proof needs a constraint proves nothing without the line that states it."""
    refused, path = 0, tmp_path / "proof.gz"
    for lines in proofs:
        at = [i for i, line in enumerate(lines) if line.split(" ")[0] == kind]
        if at:
            own = [line for i, line in enumerate(lines) if i != at[0]]
            while kind == "used" and own[at[0]].startswith("group"):
                del own[at[0]]
            found = bound_of(written(path, own))
            assert (found is None) == (second(own) is None)
            refused += found is None
            if found is not None:
                assert found.bound <= enumerated(found)[0] + 1e-9
    assert refused


# ---------------------------------------------------------------------- by hand


@pytest.fixture(scope="module")
def hand(tmp_path_factory):
    """Six samples of two features, two errors where the root may split on the second one alone."""
    path = tmp_path_factory.mktemp("hand") / "proof.gz"
    X = np.array([[0, 0], [1, 0], [2, 0], [3, 1], [4, 1], [5, 1]], dtype=float)
    problem = mipforest.get_formulation("oct")().build(
        Dataset.from_arrays(X, [0, 1, 0, 1, 1, 0], features=["a", "b"]), 2
    )
    problem.constrain(c.Split("b", None, 0), c.OncePerPath(("b",)), c.AtMostFeatures(2), c.Require(("a",)))
    problem.solve("exact-search", certificate=path, gap=0.0)
    return lines_of(path)


@pytest.mark.parametrize(
    ("key", "line", "told"),
    [
        ("node", "node 0 1 1 1", "a line 'node' has no node, mark and ranges"),
        ("node", "node 3 1 1 1 1", "a node is 3"),
        ("node", "node 0 2 1 1 1", "whether a node has to split is 2"),
        ("node", "node 0 1 1 1 2", "a threshold of a node is 2"),
        ("node", "node 0 1 1 1 1\nnode 0 1 1 1 1", "a node is 0"),
        ("node", "node 0 1 0 1 1", "node 0 of the claimed tree splits feature 1 at 1, where it may not"),
        ("once", "once 0", "the line 'once' has 1 numbers for 2 features"),
        ("once", "once 2 0", "a group is 2"),
        ("require", "require", "a set of features is empty"),
        ("require", "require 1 1", "a set of features is empty, or has one twice"),
        ("used", "used 0x1.0p+0", "the line 'used' has no limit and number of groups"),
        ("used", "used 0x1.0p+0 2", "what the claimed tree uses costs more than a limit"),
        ("used", "used 0x1.0p+1 3", "no line 'group' in its place"),
        ("branch", "branch 0 0", ""),
        ("branch", "none", "a box is said to have no tree, and keeps every limit"),
        ("branch", "claims", "no line 'branch', 'none' or 'claim' but 'claims'"),
        ("branch", "branch 0", "a line 'branch' has no node and features"),
    ],
)
def test_what_is_wrong_is_refused_with_its_reason(hand, tmp_path, second, key, line, told):
    at = next((i for i, own in enumerate(hand) if own.split(" ")[0] == key), None)
    if at is None and key == "branch":
        at = next(i for i, own in enumerate(hand) if own == "claim")
    lines = [*hand[:at], *line.split("\n"), *hand[at + 1 :]]
    with pytest.raises(CertificateError) as caught:
        certify(written(tmp_path / "proof.gz", lines))
    assert told in str(caught.value)
    assert second(lines) is None


# ---------------------------------------------------------------------- what the search and the command line say


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (40, 4)).astype(float)
    y = (X[:, 0] + X[:, 1] + rng.integers(0, 5, 40) > 7).astype(int)
    path = tmp_path / "drawn.csv"
    pd.DataFrame(X, columns=list("abcd")).assign(target=y).to_csv(path, index=False)
    return path


def test_constraints_that_are_not_stated_are_named_before_the_search(table, tmp_path):
    data = mipforest.load(table)
    problem, by_hand = (mipforest.get_formulation("oct")().build(data, 2) for _ in range(2))
    problem.constrain(c.Forbid(("a",)), c.Monotone("b"))
    predicted = by_hand.formulation.expressions(by_hand.model, by_hand.instance).predicted(1)
    by_hand.model.add("few", predicted.sum() <= 9)
    for asked, told in ((problem, "monotone b"), (by_hand, "few")):
        with pytest.raises(Unsupported, match=f"and not: .*{told}.*; leave the certificate out"):
            asked.solve("exact-search", certificate=tmp_path / "proof.gz")
    assert not (tmp_path / "proof.gz").exists()


def test_limits_on_labels_are_compared_with_what_is_named(table, tmp_path):
    run, path = CliRunner().invoke, tmp_path / "proof.gz"
    asked = ["--data", str(table), "--model", "oct", "--depth", "2"]
    done = run(app, ["solve", *asked, "--recall", "1=90%", "--parity", "c=50%", "--certificate", str(path)])
    assert done.exit_code == 0, done.output
    done = run(app, ["certify", str(path), *asked])
    assert done.exit_code == 0, done.output
    assert "recall 1=90%" in " ".join(done.output.split())
    first, *lines = gzip.decompress(path.read_bytes()).splitlines()
    header = json.loads(first)
    for recall in (0.8, None):
        own = [
            {**one, "least": recall} for one in header["constraints"] if one["kind"] == "recall" and recall
        ]
        own += [one for one in header["constraints"] if one["kind"] != "recall"]
        changed = json.dumps(header | {"constraints": own}).encode()
        path.write_bytes(gzip.compress(b"\n".join([changed, *lines]) + b"\n"))
        done = run(app, ["certify", str(path), *asked])
        assert done.exit_code == 3, done.output
        assert "the proof is of others than the file names" in " ".join(done.output.split())


@pytest.mark.parametrize("least", ["3", "7.5%"])
def test_the_command_line_compares_what_is_stated_with_what_is_named(table, tmp_path, least):
    run, path = CliRunner().invoke, tmp_path / "proof.gz"
    constraints = ["--forbid", "a", "--min-leaf", least, "--at-most-features", "2"]
    asked = ["--data", str(table), "--model", "oct", "--depth", "2"]
    done = run(app, ["solve", *asked, *constraints, "--quiet", "--certificate", str(path)])
    assert done.exit_code == 0, done.output
    done = run(app, ["certify", str(path), *asked])
    assert done.exit_code == 0, done.output
    assert f"forbid a; at-most-features 2; min-leaf {least}" in " ".join(done.output.split())
    told = json.loads(run(app, ["certify", str(path), *asked, "--json"]).output)
    assert [one["kind"] for one in told["constraints"]] == ["forbid", "at-most-features", "min-leaf"]
    first, *lines = gzip.decompress(path.read_bytes()).splitlines()
    header = json.loads(first)
    for constraints, reason in (
        ([], "N_min: 3 in the proof, 1"),
        (
            header["constraints"][1:],
            "the proof is of others than the file names (at-most-features 2; min-leaf",
        ),
        ([{"kind": "for-bid", "features": ["a"]}], "it names constraints that are not known here"),
        ([{"features": ["a"]}], "constraints are no list of objects with a kind"),
    ):
        changed = json.dumps(header | {"constraints": constraints}).encode()
        path.write_bytes(gzip.compress(b"\n".join([changed, *lines]) + b"\n"))
        done = run(app, ["certify", str(path), *asked])
        assert done.exit_code == 3, done.output
        assert reason in " ".join(done.output.split())


def test_without_a_tree_no_certificate_is_written(table, tmp_path):
    problem = mipforest.get_formulation("oct")().build(mipforest.load(table), 1)
    problem.constrain(c.Require(("a",)), c.Require(("b",)), c.AtMostSplits(1))
    result = problem.solve("exact-search", certificate=tmp_path / "proof.gz")
    assert result.tree is None
    assert not (tmp_path / "proof.gz").exists()
    assert any("no certificate is written" in told for told in result.solution.warnings)
