"""What results claim, over models, searches and options: value, bound, status and tree against enumeration.

A case draws a model on a few samples with ties, weights that may span eighteen orders of magnitude, a search, a gap, a
start that may be none of the model, and whether rows are declared. Enumeration knows nothing of the package.
"""

import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
from enumerate_trees import best_tree_value
from independent_routes import enumerated_margot
from searches.oblique.every_tree import loss_of_groups, optimum
from univariate_cases import hold_for_all, leaf_cost

import mipforest
from mipforest.data import Dataset
from mipforest.searches.oblique.problem import ObliqueProblem
from mipforest.solvers.solution import closed
from mipforest.trees import Topology, Tree

UNIVARIATE = ("oct", "ort", "policy")
HYPERPLANES = ("oct-h", "ort-h", "policy-h")
MARGINS = ("margot", "svm-leaves")
SEARCHES = {
    **dict.fromkeys(("oct", "ort"), ("exact-search", "exact-search", "local-search", "tao")),
    "policy": ("exact-search", "exact-search", "local-search"),
    **dict.fromkeys(HYPERPLANES, ("oblique-search", "oblique-search", "local-search")),
    **dict.fromkeys(MARGINS, ("routing", "routing", "local-search")),
}

#: A local search that ends soon: what it claims is asked for, and not how good its tree is.
FEW = {"local-search": {"starts": 2, "kicks": 2}}

#: What a value may differ from enumeration by, as a share: weights of unlike size are summed in another order.
SUMS = 1e-7

#: The same for margins: quadratic programmes are solved to this accuracy, and their sides kept to it.
PROGRAMMES = 1e-4


@dataclass
class Case:
    """One drawn problem, with the least value of its trees by enumeration."""

    seed: int

    def __post_init__(self):
        self.rng = rng = np.random.default_rng(self.seed)
        self.name = str(rng.choice([*UNIVARIATE, *UNIVARIATE, *HYPERPLANES, *MARGINS]))
        self.depth = int(rng.integers(1, 3)) if self.name not in MARGINS else 2
        self.search = str(rng.choice(SEARCHES[self.name]))
        self.gap = float(rng.choice([0.0, 1e-4, 1e-4, 0.1, 0.9]))
        self.declared = bool(rng.random() < 0.5)
        self.n = int(rng.integers(5, 11)) if self.name in UNIVARIATE else int(rng.integers(4, 7))
        self.X = rng.integers(0, int(rng.integers(2, 6)), (self.n, 2)).astype(float)
        self.X[0], self.X[1] = 0.0, 1.0  # no column is constant
        self.weights = self._weights()
        build = {
            "ort": self._numbers,
            "ort-h": self._numbers,
            "policy": self._rewards,
            "policy-h": self._rewards,
        }
        self.data, self.parameters = build.get(self.name, self._classes)()
        formulation = mipforest.get_formulation(self.name)(**self.parameters)
        self.problem = formulation.build(self.data, self.depth, declare=self.declared)

    def _weights(self):
        kind = self.rng.integers(4)
        if kind == 0:
            return None
        if kind == 1:
            return self.rng.integers(1, 4, self.n).astype(float)
        if kind == 2:
            return self.rng.choice([0.37, 1.0, 2.5], self.n)
        return 10.0 ** self.rng.integers(-9, 10, self.n)

    def _splits(self):
        """Hyperparameters of the splits, whose cost is chosen beside the loss."""
        own = {"N_min": int(self.rng.integers(1, 3)), "alpha": float(self.rng.choice([0.0, 0.05]))}
        if self.name in HYPERPLANES:
            own |= {
                "mu": float(self.rng.choice([0.005, 0.1, 0.3])),
                "max_features": int(self.rng.integers(0, 3)),
            }
        return own

    def _classes(self):
        K = 2 if self.name in MARGINS else int(self.rng.integers(2, 4))
        y = self.rng.integers(0, K, self.n)
        y[:K] = np.arange(K)
        if self.name in MARGINS:
            self.weights = None if self.weights is None else np.clip(self.weights, 0.1, 10.0)
            own = {
                "C": float(self.rng.choice([0.5, 5.0])),
                "epsilon": float(self.rng.choice([1e-3, 0.3, 0.9])),
            }
            self.weights = None  # enumeration of weighted routings takes seconds
        else:
            own = self._splits()
            if self.rng.random() < 0.3:
                costs = self.rng.integers(1, 4, (K, K)) * 10.0 ** float(self.rng.choice([0, 0, 6]))
                np.fill_diagonal(costs, 0.0)
                costs[0, 1:] = 1.0
                own["costs"] = costs.tolist()
        self.y = y
        return Dataset.from_arrays(self.X, y, weights=self.weights, scaling="minmax"), own

    def _numbers(self):
        self.y = self.rng.integers(0, 6, self.n) / 2 + float(self.rng.choice([0.0, 1e6]))
        self.y[0] = self.y[1] + 1.0
        # Sums of squares of unlike weights leave no digits for the light ones: then the status says so.
        self.weights = None if self.weights is None else np.clip(self.weights, 1e-2, 1e2)
        loss = str(self.rng.choice(["squared", "absolute"]))
        own = {**self._splits(), "loss": loss}
        return Dataset.from_arrays(
            self.X, self.y, task="regression", weights=self.weights, scaling="minmax"
        ), own

    def _rewards(self):
        self.weights = None
        rewards = self.rng.integers(0, 5, (self.n, int(self.rng.integers(2, 4)))).astype(float)
        rewards[0] = np.arange(rewards.shape[1])
        if self.rng.random() < 0.3:
            rewards[0, 0] = -(10.0 ** self.rng.integers(3, 13))
        self.rewards = rewards
        return Dataset.from_arrays(self.X, rewards=rewards, scaling="minmax"), self._splits()

    def start(self):
        """A tree of another model, of this one, or none."""
        kind = self.rng.integers(4)
        if kind == 0:
            return "default"
        if kind == 1:
            return "none"
        topology, p = Topology(self.depth), self.data.p
        w, b = np.zeros((topology.n_branches, p)), np.zeros(topology.n_branches)
        for t in topology.branches:
            if self.rng.random() < 0.8:
                i, j = self.rng.integers(self.n), self.rng.integers(p)
                w[t, j] = 1.0
                b[t] = -float(self.data.X[i, j]) + float(self.rng.choice([0.0, -0.07]))
                if kind == 3:  # a hyperplane, of a scale of its own, above or below nodes that do not split
                    w[t] = self.rng.normal(size=p) * float(self.rng.choice([1e-4, 1.0]))
                    b[t] = -float(w[t] @ self.data.X[i])
        K = len(self.data.classes) or 1
        values = self.rng.integers(0, K, topology.n_leaves)
        if self.name in ("ort", "ort-h"):
            values = self.rng.choice(self.y, topology.n_leaves)
        if self.name in MARGINS:
            values = np.tile([0, 1], topology.n_leaves // 2)
        return Tree(self.depth, w, b, values, tuple(self.data.classes), tuple(self.data.features.labels))

    def least(self):
        """Return the least value of a tree of the model, by enumeration."""
        own, data = self.parameters, self.data
        if self.name in MARGINS:
            C = own["C"]
            levels = [0.0, C] if self.name == "svm-leaves" else [C, C]
            return enumerated_margot(data.X, data.sign, levels, self.depth, own["epsilon"])
        structure = self.problem.formulation.structure(self.problem.instance)
        unit = structure.unit
        if self.name in HYPERPLANES:
            oblique = ObliqueProblem.of(structure, data.X, self.depth)
            loss = loss_of_groups(structure, data.X) if self.name == "ort-h" else None
            return optimum(oblique, loss=loss) / unit + structure.offset
        weight = np.ones(self.n) if self.weights is None else self.weights
        if self.name == "policy":
            lost = self.rewards.max(axis=1, keepdims=True) - self.rewards
            found = best_tree_value(
                data.X,
                lambda rows: lost[rows].sum(axis=0).min(),
                self.depth,
                own["alpha"] * self.n,
                own["N_min"],
            )
            return found / self.n
        costs = None
        if self.name == "oct":
            K = len(data.classes)
            costs = 1.0 - np.eye(K) if "costs" not in own else np.array(own["costs"])
        cost = leaf_cost("classes" if self.name == "oct" else own["loss"], self.y, weight, costs)
        whole = cost(np.arange(self.n))
        return best_tree_value(data.X, cost, self.depth, own["alpha"] * whole, own["N_min"]) / whole


def check_claims(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = Case(seed)
        result = case.problem.solve(
            case.search,
            start=case.start(),
            gap=case.gap,
            threads=1,
            seed=0,
            time_limit=30,
            solver_options=FEW.get(case.search, {}),
        )
    least, tolerance = case.least(), PROGRAMMES if case.name in MARGINS else SUMS
    said = (
        f"{case.name} {case.parameters} {case.search} gap {case.gap} declared {case.declared}: {result.status}, "
        f"{result.objective} and {result.bound}, least {least}; {result.failed_checks} {result.solution.warnings}"
    )
    slack = tolerance * max(least, 1e-9 if least else 1e-12)
    assert result.tree is not None, said
    assert result.verified, said
    assert result.objective >= least - slack, f"no tree has the value: {said}"
    assert result.bound <= least + slack, f"the bound is above a tree: {said}"
    optimal = result.status == "optimal"
    assert optimal == closed(result.objective, result.bound, case.gap, case.problem.objective_unit), (
        f"status and numbers differ: {said}"
    )
    if optimal:
        assert (
            result.objective - least <= case.gap * result.objective + slack + 1e-6 * result.objective + 1e-7
        ), said
    outside = case.problem.outside(replace(result.solved_tree).unscaled())
    assert not outside, f"{outside}: {said}"


def test_claims_hold():
    hold_for_all(check_claims, range(40))


@pytest.mark.slow
def test_claims_hold_in_many_cases():
    hold_for_all(check_claims, range(40, 2000))
