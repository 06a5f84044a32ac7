"""Models that routing proves, and what its answer under constraints has in common with that of the rows."""

from tolerance import at_most

from mipforest.problem.tree_search import get_search

NAMES = ["a", "b", "c"]
MODELS = [
    ("margot", {"C": 2.0}),
    ("hfs-margot", {"C": 2.0, "B": 1}),
    ("olct", {"C": 2.0}),
    ("loss-optimal", {"C": 2.0, "regulariser": "l1"}),
    ("sfs-margot", {"C": 2.0, "B": 1, "alpha": 0.5}),
]
#: Gap to which both sides prove, and by what two proven optima may differ.
GAP, SAME = 1e-5, 1e-4


def refusal(problem):
    """Return why routing does not take a problem; empty where it does."""
    return get_search("routing").objection(problem)


def solved_by_both(problem, twin):
    """Return the results of routing, and of HiGHS without a start on the same problem built again."""
    return (
        problem.solve("routing", gap=GAP, time_limit=120),
        twin.solve("highs", gap=GAP, time_limit=120, start=None),
    )


def check_beside(result, other):
    """Check that routing's tree is one within the constraints, and its bound no more than the other's optimum."""
    assert result.verified, result.failed_checks
    assert all(one.admits(result.tree, result.problem.data) for one in result.problem.constraints)
    assert at_most(result.bound, other.objective * (1 + GAP))
