r"""The plunge of the routing search: from an open node down to a complete routing, or until it is cut off.

An **open node** of the branch and bound is a partial assignment with a warm start: it says for every group of equal
samples which branch node of the tree the group has reached, or which leaf, where limits on leaves ask for it. The group
has passed all nodes above, and its sides there are decided. Each branch node has a relaxation, whose value for the
groups that reach it, with the sides decided so far, never falls when more is decided. So the sum of these values is a
lower bound on every tree that extends the open node, and equals a tree's value where all groups are decided at all
nodes above the last level.

Each step of a plunge does the same, whatever the relaxation:

1. *Solve* the nodes that changed, from their warm starts.
2. *Close sides.* Sending group g to a side adds variables at 0 to its node and to the child. One step with each raises
   the bound by a known gain. Where that reaches the cutoff, g must take the other side, and where both sides do, the
   open node is cut off. This is repeated until nothing changes.
3. *Strong branching.* The candidates with the highest branching scores are tried on both sides. The plunge goes on with
   the cheaper side of the best one; the other side is left as an open node.

:func:`plunge` is this loop, compiled once for all relaxations: the support vector machines of
:mod:`mipforest.searches.routing.svm_dual` and the linear programmes of :mod:`mipforest.searches.routing.l1_simplex`. A
relaxation is a named tuple of arrays, whose type chooses what carries out the operations from :func:`value_of` on; the
loop has it as words, and asks for operations by one address (:mod:`mipforest.searches.addresses`).
:class:`SubproblemPlunge` is the same loop in Python, for nodes that select features: there a
node's relaxation is a list of subproblems whose length is not known before.

The subtrees below the root do not depend on each other once the sides at the root are known. A **subtree bound** bounds
what a subtree costs for the groups that are known to reach it (:mod:`mipforest.searches.routing.svm_backend`). It stays
valid when more groups are decided, and takes the place of the subtree's relaxation values where it is higher.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.searches import compile_by, entry, kernel, operation
from mipforest.searches.addresses import WORDS, address_of, call, kind_of, view, words_of
from mipforest.searches.numbers import ANY_SIZE, require

if TYPE_CHECKING:
    from mipforest.searches.routing.given_splits import GivenSplits
    from mipforest.searches.routing.leaf_limits import LeafLimits
    from mipforest.time_budget import TimeBudget

#: Why a plunge ended.
CUT_OFF, COMPLETE, STOPPED = 0, 1, 2

#: Steps of one plunge: it then hands back what is open, so that limits and other threads get their turn.
STEPS = 400

#: In a branching score a gain counts as at least this, and the larger of two by this power of it.
LEAST_GAIN, LARGER = 1e-9, 0.3

#: Weight of candidates below the root: a side there is decided for fewer samples.
BELOW_ROOT = 0.5

#: Weight of a gain of the duals in a branching score, in a subtree whose cost is known.
_HIDDEN = 0.02

#: What closing sides has led to: something is undecided, everything is decided, the open node is cut off, the log of a
#: certificate is full.
_UNDECIDED, _DECIDED, _CLOSED, _LOG_FULL = range(4)

#: The first numbers of a log: where it ends, and the end from which a plunge stops, as another round might not fit.
LOG_START, NO_LOG = 2, np.ones(1)


# ---------------------------------------------------------------------- problem, result, backend


@dataclass(frozen=True, eq=False)
class ConvexNodes:
    r"""The problem: a tree of convex nodes, of which support vector machines are one kind.

    Attributes
    ----------
    X
        (G, p) distinct samples.
    weight
        (G, 2) total weight of the samples of class -1 and +1 in each group.
    C
        (|B|,) penalties.
    bias_limit
        (|B|,) bounds on the biases of some optimal tree, in the coordinates of ``X``.
    depth
        Levels of branch nodes.
    epsilon
        Gap that stands for a strict inequality.
    kinks
        (K, 2) margins at which the loss has a kink, and by how much its slope changes there.
    l1
        Whether the norm is the l1 norm; else half the squared Euclidean norm.
    budget, alpha
        (|B|,) features free of cost, and the cost of every further one, infinite where it is forbidden; ``None`` where
        all features are free.
    pull
        (p,) of a part of the samples, a linear term of the root: it is charged :math:`-\text{pull}^\top w` as well.
        ``None`` for none. Only trees of support vector machines on all features may have one.
    allowed
        (|B|, p) features that each node may use; ``None`` for all.
    limits
        Limits on what leaves hold; ``None`` for none.
    given
        Splits of nodes that choose nothing but a weight; such a node may use the feature of its split alone.

    Raises
    ------
    DataValueError
        If a number is NaN or infinite, as a bound on the biases is where no tree is known.
    """

    X: FloatArray
    weight: FloatArray
    C: FloatArray
    bias_limit: FloatArray
    depth: int
    epsilon: float
    kinks: FloatArray
    l1: bool
    budget: IntArray | None
    alpha: float
    pull: FloatArray | None = None
    allowed: BoolArray | None = None
    limits: LeafLimits | None = None
    given: GivenSplits = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse numbers that compiled loops cannot compute with."""
        for name in ("X", "kinks"):
            require("routing", name, getattr(self, name), least=-ANY_SIZE, most=ANY_SIZE)
        for name in ("weight", "C", "bias_limit", "epsilon"):
            require("routing", name, getattr(self, name), least=0.0, most=ANY_SIZE)
        require("routing", "alpha", self.alpha, least=0.0, most=np.inf)
        if self.pull is not None:
            require("routing", "pull", self.pull, least=-ANY_SIZE, most=ANY_SIZE)

    @property
    def n_nodes(self) -> int:
        """Number of branch nodes."""
        return int(2**self.depth - 1)

    @property
    def n_upper(self) -> int:
        """Number of branch nodes above the last level."""
        return int(2 ** (self.depth - 1) - 1)


class OpenNode(Protocol):
    """An open node: partial assignment and warm start."""

    @property
    def bytes(self) -> int:
        """Memory that it takes with its warm start."""

    def lighter(self) -> OpenNode:
        """Return the same node without its warm start."""


@dataclass(frozen=True, eq=False)
class PlungeResult:
    """Result of a plunge.

    Attributes
    ----------
    end
        Why it ended: :data:`CUT_OFF`, :data:`COMPLETE` or :data:`STOPPED`.
    node
        The node at its end; a complete routing has a value.
    open
        Open nodes that it left, each with a bound.
    bound, cut_bound
        Bound of the node at its end, and the least one at which something was cut off on the way (``inf`` if nothing
        was).
    weights, bias
        (|B|, p) and (|B|,) hyperplanes of the node at its end, in the coordinates of the problem.
    steps
        Number of steps.
    log, values
        What it has logged for a certificate, and (|B|,) the proven values of the nodes at its end.
    plunges
        How many plunges it stands for: steps, cut bound and open nodes are those of all, the rest is the last one's.
    """

    end: int
    node: Any
    open: Sequence[tuple[float, Any]]
    bound: float
    cut_bound: float
    weights: FloatArray
    bias: FloatArray
    steps: int
    log: Any = ()
    values: FloatArray = field(default_factory=lambda: np.zeros(0))
    plunges: int = 1


class Backend(ABC):
    """Plunges for one kind of node problem, called from several threads at once.

    Parameters
    ----------
    nodes
        The problem.
    logs
        Whether plunges log for a certificate what they do. Nothing is dropped then: what has no dual point of its own
        is left open, to be closed by one.

    Attributes
    ----------
    needs_trees
        Whether trees are to be made from hyperplanes and looked for around the best one, as plunges make none.
    writer
        The class that writes its certificates, where it takes problems with one.
    """

    needs_trees: ClassVar[bool] = True
    writer: ClassVar[Any] = None

    def __init__(self, nodes: ConvexNodes, *, logs: bool = False) -> None:
        self.nodes, self.logs = nodes, logs

    @classmethod
    @abstractmethod
    def takes(cls, nodes: ConvexNodes, *, certified: bool) -> bool:
        """Return whether the backend is made for a problem, with or without a certificate."""

    @classmethod
    def compile(cls, budget: TimeBudget) -> float:
        """Load what plunges run, or compile it; see :func:`~mipforest.searches.compile_by`."""
        return compile_by(cls._run_tiny, budget, "routing", 15)

    @classmethod
    @abstractmethod
    def _run_tiny(cls) -> None:
        """Run everything that is compiled on something tiny."""

    def begin_slice(self, number: int, highest_cutoff: float) -> None:  # noqa: B027
        """Go on with open nodes that another process has made.

        Parameters
        ----------
        number
            Number of the slice, from 1 on: what plunges number from now on differs from what other slices do.
        highest_cutoff
            That of all plunges so far, in all processes.
        """

    @abstractmethod
    def first(self) -> Any:
        """Return the open node from which all trees can be reached."""

    @abstractmethod
    def at(self, reached: IntArray) -> Any:
        """Return the open node of a partial assignment (G,): the branch nodes that the groups have reached."""

    def decided(self, node: Any, reached: IntArray) -> Any:
        """Return an open node with further sides of its partial assignment (G,), at the last level."""
        raise NotImplementedError

    @abstractmethod
    def plunge(self, start: Any, cutoff: float, max_steps: int, stop: IntArray) -> PlungeResult:
        """Plunge from an open node.

        Parameters
        ----------
        start
            An open node that this backend made.
        cutoff
            Objective value from which nodes are pruned.
        max_steps, stop
            Limit of steps, and a flag that ends the plunge when it is not 0.
        """


# ---------------------------------------------------------------------- operations of relaxations


@operation
def value_of(nodes: Any, t: int) -> float:
    """Return the proven value of node t."""
    raise NotImplementedError


@operation
def clear(nodes: Any, t: int) -> None:
    """Remove all variables of node t."""


@operation
def add_margins(nodes: Any, t: int, g: int) -> None:
    """Charge a group at a node: a variable at 0 for each class that it has samples of, and kink of the loss."""


@operation
def add_side(nodes: Any, t: int, g: int, side: int) -> None:
    """Keep a group on a side of a node, -1 for left and 1 for right: a variable at 0."""


@operation
def warm_start(nodes: Any, t: int) -> None:
    """Take the variables of node t from the warm start that was loaded."""


@operation
def solve(nodes: Any, t: int, stop: float, brief: bool, final: bool) -> None:
    """Solve node t from where it stands.

    Parameters
    ----------
    nodes, t
        The relaxation, and the node.
    stop
        Value from which no more is needed.
    brief
        Whether cheap steps are enough, as a subtree bound covers the value.
    final
        Whether the routing is complete: to more digits.
    """


@operation
def gain_of_side(nodes: Any, t: int, g: int, side: int) -> float:
    """Return a proven gain of node t by one step with a group kept on a side."""
    raise NotImplementedError


@operation
def gain_of_margins(nodes: Any, t: int, g: int) -> float:
    """Return a proven gain of node t by one step with a group charged there."""
    raise NotImplementedError


@operation
def trial_gain(nodes: Any, t: int, g: int, side: int, slack: float) -> float:
    """Return the gain of node t by some steps with a group charged there (side 0) or kept on a side."""
    raise NotImplementedError


@operation
def save(nodes: Any, t: int, at: int) -> None:
    """Write the warm start of node t to a row of the open nodes."""


@operation
def log_leaf(nodes: Any) -> None:
    """Log the dual point that cuts off the node, or that proves the value of a complete routing."""


@operation
def log_closed(nodes: Any, first: bool, g: int, t: int, side: int) -> None:
    """Log that group g cannot take a side of node t; ``first``: the dual point is not in the log yet."""


@operation
def log_branch(nodes: Any, g: int, side: int) -> None:
    """Log that the plunge goes on with a side of group g and leaves the other open."""


@kernel
def _measure_gains(nodes: Any, reached: IntArray, gains: FloatArray, t: int, n_upper: int) -> None:
    """Measure the gain of node t for every group that may be decided there or sent there."""
    parent = (t - 1) // 2 if t > 0 else -1
    for g in range(len(reached)):
        if t < n_upper and reached[g] == t:
            gains[0, t, g] = gain_of_side(nodes, t, g, -1)
            gains[1, t, g] = gain_of_side(nodes, t, g, 1)
        elif reached[g] == parent:
            gains[2, t, g] = gain_of_margins(nodes, t, g)


#: What the loop asks of a relaxation: the operations by number.
(
    VALUE_OF, CLEAR, ADD_MARGINS, ADD_SIDE, WARM_START, SOLVE, SOLVE_BRIEFLY, SOLVE_FINALLY, MEASURE_GAINS, TRIAL_GAIN,
    SAVE, LOG_LEAF, LOG_FIRST_CLOSED, LOG_CLOSED, LOG_BRANCH,
) = range(15)  # fmt: skip


class NodesWithGains(NamedTuple):
    """A relaxation, and arrays of the loop's workspace: one call measures the gains of a node for all groups."""

    nodes: Any
    reached: IntArray
    gains: FloatArray


class Relaxation(NamedTuple):
    """A relaxation as the loop has it.

    Attributes
    ----------
    words
        Its named tuple: :class:`NodesWithGains`.
    operate
        Address of its operations.
    candidates, trials_close
        Candidates of strong branching, and whether a trial that closes a side ends it.
    """

    words: IntArray
    operate: int
    candidates: int
    trials_close: bool


def relaxation_of(nodes: Any, work: PlungeWorkspace) -> Relaxation:
    """Return a relaxation as the loop has it; its operations are compiled or loaded."""
    kind, at_work = kind_of(nodes), NodesWithGains(nodes, work.reached, work.gains)
    if kind not in _ADDRESSES:
        _ADDRESSES[kind] = _address(typeof(at_work))
    return Relaxation(words_of(at_work), _ADDRESSES[kind], nodes.candidates, nodes.trials_close)


#: Addresses by kinds of relaxations.
_ADDRESSES: dict[Any, int] = {}


def _address(kind: Any) -> int:
    at_work_in, i = view(kind), types.int64

    def operate(words: Any, what: int, t: int, g: int, side: int, x: float) -> float:
        at_work, result = at_work_in(words), 0.0
        nodes = at_work.nodes
        if what == VALUE_OF:
            result = value_of(nodes, t)
        elif what == MEASURE_GAINS:
            _measure_gains(nodes, at_work.reached, at_work.gains, t, g)
        elif what == TRIAL_GAIN:
            result = trial_gain(nodes, t, g, side, x)
        elif what in (SOLVE, SOLVE_BRIEFLY, SOLVE_FINALLY):
            solve(nodes, t, x, what == SOLVE_BRIEFLY, what == SOLVE_FINALLY)
        elif what == CLEAR:
            clear(nodes, t)
        elif what == ADD_MARGINS:
            add_margins(nodes, t, g)
        elif what == ADD_SIDE:
            add_side(nodes, t, g, side)
        elif what == WARM_START:
            warm_start(nodes, t)
        elif what == SAVE:
            save(nodes, t, g)
        elif what == LOG_LEAF:
            log_leaf(nodes)
        elif what == LOG_BRANCH:
            log_branch(nodes, g, side)
        else:
            log_closed(nodes, what == LOG_FIRST_CLOSED, g, t, side)
        return result

    return address_of(operate, (WORDS, i, i, i, i, types.float64), (kind,))


@kernel
def _ask(nodes: Relaxation, what: int, t: int, g: int, side: int, x: float) -> float:
    """Have an operation carried out: at node t, with a group (row of open nodes, number), a side, and a value."""
    result: float = call(nodes.operate, (nodes.words, what, t, g, side, x))
    return result


# ---------------------------------------------------------------------- compiled loop


class Groups(NamedTuple):
    r"""The problem, for compiled loops.

    Attributes
    ----------
    X
        (G, p) features of the groups of equal samples, centred.
    weight
        (G, 2) total weight of the samples of each class, -1 and +1.
    kinks
        (K, 2) margins at which the loss has a kink, and by how much its slope changes there.
    C, bias_limit
        (|B|,) penalties, and bounds on the biases of some optimal tree.
    epsilon
        Gap that stands for a strict inequality.
    pull
        (|B|, p) linear terms: node t is charged :math:`-\text{pull}_t^\top w_t` as well.
    """

    X: FloatArray
    weight: FloatArray
    kinks: FloatArray
    C: FloatArray
    bias_limit: FloatArray
    epsilon: float
    pull: FloatArray


class PlungeWorkspace(NamedTuple):
    """Per-thread workspace of a plunge: where it stands, and what it leaves open.

    Attributes
    ----------
    reached
        (G,) partial assignment, in and out.
    subtree_bounds, excess, known
        (2,) bounds on the cost of the subtrees below the root, in; by how much they exceed the values of the subtrees'
        nodes; and, in, whether they were the cost itself when they were found.
    gains, scores
        (3, |B|, G) gains of a node's value for a group kept left, kept right, or charged there, and (2, G) gains of the
        bound left and right, as branching scores count them.
    changed, stale
        (|B|,) nodes to solve again, and nodes whose bound gains have to be measured again.
    tried, proven
        (G,) groups that were tried, and (2, 2) gains of the bound that trials prove: of the best one in row 0.
    open_reached, open_bound
        (steps + 1, ...) open nodes.
    steps
        (1,) number of steps.
    log
        What is proven, for a certificate; of length 1 to log nothing.
    """

    reached: IntArray
    subtree_bounds: FloatArray
    excess: FloatArray
    known: BoolArray
    gains: FloatArray
    scores: FloatArray
    changed: BoolArray
    stale: BoolArray
    tried: BoolArray
    proven: FloatArray
    open_reached: IntArray
    open_bound: FloatArray
    steps: IntArray
    log: FloatArray


def workspace_for(n_nodes: int, n_groups: int, log: FloatArray) -> PlungeWorkspace:
    """Return a workspace for plunges of at most :data:`STEPS` steps, with this log."""
    return PlungeWorkspace(
        reached=np.zeros(n_groups, np.int64),
        subtree_bounds=np.zeros(2),
        excess=np.zeros(2),
        known=np.zeros(2, np.bool_),
        gains=np.zeros((3, n_nodes, n_groups)),
        scores=np.zeros((2, n_groups)),
        changed=np.zeros(n_nodes, np.bool_),
        stale=np.zeros(n_nodes, np.bool_),
        tried=np.zeros(n_groups, np.bool_),
        proven=np.zeros((2, 2)),
        open_reached=np.empty((STEPS + 1, n_groups), np.int64),
        open_bound=np.empty(STEPS + 1),
        steps=np.zeros(1, np.int64),
        log=log,
    )


@entry
def plunge(
    nodes: Relaxation, work: PlungeWorkspace, n_upper: int, cutoff: float, max_steps: int, stop: IntArray
) -> tuple[int, int, float, float]:
    """Plunge from the partial assignment ``work.reached`` with the warm start that was loaded.

    Parameters
    ----------
    nodes, work
        A relaxation, and the workspace.
    n_upper
        Number of branch nodes above the last level.
    cutoff
        Objective value from which nodes are pruned.
    max_steps, stop
        Limit of steps, and a flag that ends the plunge when it is not 0.

    Returns
    -------
    end, n_open, bound, cut_bound
        Why it ended, the number of open nodes, the bound at its end, and the least bound at which something was cut off
        on the way (``inf`` if nothing was).
    """
    logs = len(work.log) > 1
    n_open, bound, cut_bound, end = 0, 0.0, np.inf, STOPPED
    _begin(nodes, work)
    for _ in range(max_steps):
        work.steps[0] += 1
        bound, cut_bound, outcome = _close_sides(nodes, work, n_upper, cutoff, cut_bound)
        if outcome == _CLOSED:
            end = CUT_OFF
            break
        if outcome == _LOG_FULL:
            break
        if outcome == _DECIDED:
            end = COMPLETE
            if logs:
                _ask(nodes, LOG_LEAF, 0, 0, 0, 0.0)
            break
        if stop[0] != 0:
            break
        branch = _strong_branching(nodes, work, n_upper, cutoff - bound)
        if branch < 0:  # no score compares with NaN: the numbers have overflowed, which the caller reports
            bound = np.nan
            break
        side = -1 if work.scores[0, branch] <= work.scores[1, branch] else 1
        other_bound = bound + (work.proven[0, 1] if side < 0 else work.proven[0, 0])
        if logs:
            _ask(nodes, LOG_BRANCH, 0, branch, side, 0.0)
        if other_bound < cutoff or logs:
            t = work.reached[branch]
            _leave_open(nodes, work, n_open, other_bound)
            work.open_reached[n_open, branch] = 2 * t + 1 if side > 0 else 2 * t + 2
            n_open += 1
        else:
            cut_bound = min(cut_bound, other_bound)
        _decide(nodes, work, branch, side, n_upper)
    if end == STOPPED:
        _leave_open(nodes, work, n_open, bound)
        n_open += 1
    return end, n_open, bound, cut_bound


@kernel
def side_of(reached: int, t: int) -> int:
    """Return -1 or 1 where a group that has reached a node went left or right at t, 2 where it stands at t, else 0."""
    if reached == t:
        return 2
    node = reached
    while node > t:
        parent = (node - 1) // 2
        if parent == t:
            return -1 if node == 2 * t + 1 else 1
        node = parent
    return 0


@kernel
def subtree_of(t: int) -> int:
    """Return below which side of the root node t > 0 is: 0 for left, 1 for right."""
    while t > 2:
        t = (t - 1) // 2
    return t - 1


@kernel
def _begin(nodes: Relaxation, work: PlungeWorkspace) -> None:
    """Set up the relaxations of the open node with their warm starts."""
    for t in range(len(work.changed)):
        _ask(nodes, CLEAR, t, 0, 0, 0.0)
        for g in range(len(work.reached)):
            side = side_of(work.reached[g], t)
            if side != 0:
                _ask(nodes, ADD_MARGINS, t, g, 0, 0.0)
            if side == 1 or side == -1:
                _ask(nodes, ADD_SIDE, t, g, side, 0.0)
        _ask(nodes, WARM_START, t, 0, 0, 0.0)
        work.changed[t] = True


@kernel
def _close_sides(
    nodes: Relaxation, work: PlungeWorkspace, n_upper: int, cutoff: float, cut_bound: float
) -> tuple[float, float, int]:
    """Solve what changed and close sides that lead to no better tree, until nothing changes.

    A complete routing is solved once more, to more digits.

    Returns
    -------
    bound, cut_bound, outcome
        The bound, the least one at which something was cut off, and one of the constants from :data:`_UNDECIDED` on.
    """
    reached, gains, scores, excess = work.reached, work.gains, work.scores, work.excess
    known, log = work.known, work.log
    logs, final = len(log) > 1, False
    while True:
        bound = _solve_changed(nodes, work, np.inf if final else cutoff, final)
        if final:
            return bound, cut_bound, _DECIDED
        slack = cutoff - bound
        if slack <= 0.0:
            if logs:
                _ask(nodes, LOG_LEAF, 0, 0, 0, 0.0)
            return bound, min(cut_bound, bound), _CLOSED
        if logs and log[0] > log[1]:
            return bound, cut_bound, _LOG_FULL
        for t in range(len(work.changed)):
            if work.stale[t]:
                _ask(nodes, MEASURE_GAINS, t, n_upper, 0, 0.0)
                work.stale[t] = False
        closed, outcome = 0, _DECIDED
        for g in range(len(reached)):
            t = reached[g]
            if t >= n_upper:
                continue
            at_left, at_right = gains[0, t, g], gains[1, t, g]
            below_left, below_right = gains[2, 2 * t + 1, g], gains[2, 2 * t + 2, g]
            left = gain_of_bound(excess, t, 2 * t + 1, at_left, below_left)
            right = gain_of_bound(excess, t, 2 * t + 2, at_right, below_right)
            scores[0, g] = scored_gain(known, t, left, at_left + below_left)
            scores[1, g] = scored_gain(known, t, right, at_right + below_right)
            if logs and max(left, right) >= slack:
                first = closed == 0
                if left >= slack:
                    _ask(nodes, LOG_FIRST_CLOSED if first else LOG_CLOSED, t, g, -1, 0.0)
                    first = False
                if right >= slack:
                    _ask(nodes, LOG_FIRST_CLOSED if first else LOG_CLOSED, t, g, 1, 0.0)
            if min(left, right) >= slack:
                return bound, min(cut_bound, bound + min(left, right)), _CLOSED
            if max(left, right) >= slack:
                cut_bound = min(cut_bound, bound + max(left, right))
                _decide(nodes, work, g, 1 if left >= slack else -1, n_upper)
                closed += 1
            else:
                outcome = _UNDECIDED
        final = closed == 0 and outcome == _DECIDED
        if closed == 0 and not final:
            return bound, cut_bound, outcome


@kernel
def _solve_changed(nodes: Relaxation, work: PlungeWorkspace, cutoff: float, final: bool) -> float:
    """Solve the nodes that changed until the bound reaches the cutoff; return the bound.

    At the end of a complete routing (``final``) all nodes are solved, and to more digits.
    """
    changed = work.changed
    bound = _bound(nodes, work)
    for t in range(len(changed)):
        if (changed[t] or final) and bound < cutoff:
            enough, covered = _ask(nodes, VALUE_OF, t, 0, 0, 0.0) + cutoff - bound, 0.0
            if t > 0:
                covered = work.excess[subtree_of(t)]
            # What a subtree bound covers matters for branching scores only.
            how = SOLVE_FINALLY if final else SOLVE_BRIEFLY if covered > 0.0 else SOLVE
            _ask(nodes, how, t, 0, 0, enough + covered)
            bound = _bound(nodes, work)
            changed[t] = False
            work.stale[t] = True
    return bound


@kernel
def _bound(nodes: Relaxation, work: PlungeWorkspace) -> float:
    """Return the bound: of each subtree below the root, its nodes' values or its subtree bound, the higher one."""
    excess = work.excess
    excess[0], excess[1] = work.subtree_bounds[0], work.subtree_bounds[1]
    bound = _ask(nodes, VALUE_OF, 0, 0, 0, 0.0)
    for t in range(1, len(work.changed)):
        value = _ask(nodes, VALUE_OF, t, 0, 0, 0.0)
        bound += value
        excess[subtree_of(t)] -= value
    for k in range(2):
        excess[k] = max(excess[k], 0.0)
        bound += excess[k]
    return bound


@kernel
def gain_of_bound(excess: FloatArray, t: int, child: int, here: float, below: float) -> float:
    """Return the gain of the bound where the values of node t and its child gain something.

    What a subtree bound exceeds the values of the subtree's nodes by, its excess (2,), is in the bound already.
    """
    covered: float = excess[subtree_of(child)]
    if t == 0:
        return here + max(below - covered, 0.0)
    return max(here + below - covered, 0.0)


@kernel
def scored_gain(known: BoolArray, t: int, gain: float, of_values: float) -> float:
    """Return what a gain of the bound by a side at node t counts in a branching score, with that of the values.

    A group that is sent below the root raises what a subtree costs about as it raises the nodes' values. A side below
    the root does not, where that cost is known (2,).
    """
    if t == 0 or not known[subtree_of(t)]:
        return of_values
    return max(gain, _HIDDEN * of_values)


@kernel
def branching_score(left: float, right: float, t: int) -> float:
    """Return the branching score of a candidate at node t by the bound gains of its sides: the smaller counts most."""
    low, high = min(left, right), max(left, right)
    score: float = max(low, LEAST_GAIN) * max(high, LEAST_GAIN) ** LARGER
    return score if t == 0 else BELOW_ROOT * score


@kernel
def _strong_branching(nodes: Relaxation, work: PlungeWorkspace, n_upper: int, slack: float) -> int:
    """Try the candidates with the highest branching scores on both sides; return the best.

    Its scores are written into ``work.scores``, and the gains that its trials prove into row 0 of ``work.proven``.
    """
    reached, scores, tried, proven = work.reached, work.scores, work.tried, work.proven
    best_score, branch = -1.0, -1
    for g in range(len(reached)):
        tried[g] = False
    for _ in range(nodes.candidates):
        candidate, score = -1, -1.0
        for g in range(len(reached)):
            if reached[g] < n_upper and not tried[g]:
                other = branching_score(scores[0, g], scores[1, g], reached[g])
                if other > score:
                    candidate, score = g, other
        if candidate < 0:
            break
        tried[candidate] = True
        t = reached[candidate]
        for k in range(2):
            child = 2 * t + 1 + k
            here, below = _ask(nodes, TRIAL_GAIN, t, candidate, 2 * k - 1, slack), 0.0
            if here < slack:
                below = _ask(nodes, TRIAL_GAIN, child, candidate, 0, slack)
            gain, of_values = gain_of_bound(work.excess, t, child, here, below), here + below
            if nodes.trials_close:  # a single step may prove more than a trial that was ended early
                here, below = work.gains[k, t, candidate], work.gains[2, child, candidate]
                gain = max(gain, gain_of_bound(work.excess, t, child, here, below))
                of_values = max(of_values, here + below)
            proven[1, k] = gain
            scores[k, candidate] = min(scored_gain(work.known, t, gain, of_values), 2.0 * slack)
        score = branching_score(scores[0, candidate], scores[1, candidate], t)
        if score > best_score:
            best_score, branch = score, candidate
            proven[0, 0], proven[0, 1] = proven[1, 0], proven[1, 1]
        if nodes.trials_close and max(proven[1, 0], proven[1, 1]) >= slack:
            proven[0, 0], proven[0, 1] = proven[1, 0], proven[1, 1]
            return candidate
    return branch


@kernel
def _leave_open(nodes: Relaxation, work: PlungeWorkspace, at: int, bound: float) -> None:
    """Write the partial assignment and its warm start into a row of the open nodes."""
    work.open_bound[at] = bound
    for g in range(len(work.reached)):
        work.open_reached[at, g] = work.reached[g]
    for t in range(len(work.changed)):
        _ask(nodes, SAVE, t, at, 0, 0.0)


@kernel
def _decide(nodes: Relaxation, work: PlungeWorkspace, g: int, side: int, n_upper: int) -> None:
    """Send a group from the node that it has reached to a side."""
    t = work.reached[g]
    child = 2 * t + 1 if side < 0 else 2 * t + 2
    work.reached[g] = child
    _ask(nodes, ADD_SIDE, t, g, side, 0.0)
    _ask(nodes, ADD_MARGINS, child, g, 0, 0.0)
    work.changed[t] = True
    work.changed[child] = True
    if child < n_upper:
        work.stale[2 * child + 1] = True
        work.stale[2 * child + 2] = True


# ---------------------------------------------------------------------- backends of the compiled loop

#: Warm start of all nodes: two arrays, whose meaning the backend knows.
WarmStart = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class WarmNode:
    """Open node: partial assignment (G,) and warm start, where there is one.

    The subtrees below the root have bounds, each computed for a number of groups, and known to be the cost or not.
    """

    reached: NDArray[np.int16]
    warm: WarmStart | None = None
    subtree_bounds: tuple[float, float] = (0.0, 0.0)
    counted: tuple[int, int] = (0, 0)
    known: tuple[bool, bool] = (False, False)

    @property
    def bytes(self) -> int:
        """Memory of its assignment and its warm start."""
        return self.reached.nbytes + sum(array.nbytes for array in self.warm or ())

    def lighter(self) -> WarmNode:
        """Return the partial assignment alone."""
        return replace(self, warm=None)


class CompiledBackend(Backend):
    """Plunges of the compiled loop; parameters as for :class:`Backend`."""

    def __init__(self, nodes: ConvexNodes, *, logs: bool = False) -> None:
        super().__init__(nodes, logs=logs)
        # A node's value does not change when all samples are moved; small numbers keep sums exact.
        self._centre = nodes.X.mean(axis=0)
        pull = np.zeros((nodes.n_nodes, nodes.X.shape[1]))
        if nodes.pull is not None:
            pull[0] = nodes.pull
        self._groups = Groups(
            np.ascontiguousarray(nodes.X - self._centre),
            nodes.weight,
            np.ascontiguousarray(nodes.kinks),
            nodes.C,
            nodes.bias_limit,
            float(nodes.epsilon),
            pull,
        )
        self._idle: list[tuple[Any, Relaxation, PlungeWorkspace]] = []

    @abstractmethod
    def _relaxation(self, log: FloatArray) -> Any:
        """Return arrays for the nodes of one plunge after the other, and for what is proven."""

    @abstractmethod
    def _load(self, nodes: Any, warm: WarmStart | None) -> None:
        """Load a warm start, or none."""

    @abstractmethod
    def _saved(self, nodes: Any, at: int) -> WarmStart:
        """Return the warm start in a row of the open nodes."""

    @abstractmethod
    def _solution(self, nodes: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return weights (|B|, p), biases (|B|,) for centred samples, and proven values (|B|,) of the nodes."""

    def _empty_log(self) -> FloatArray:
        return NO_LOG.copy()

    def first(self) -> WarmNode:
        """Return the open node at the root."""
        return WarmNode(np.zeros(len(self.nodes.X), np.int16))

    def at(self, reached: IntArray) -> WarmNode:
        """Return the open node of a partial assignment; subtrees get no bounds: trees are looked for there."""
        return WarmNode(reached.astype(np.int16), counted=(len(reached), len(reached)))

    def decided(self, node: WarmNode, reached: IntArray) -> WarmNode:
        """Return an open node with further sides; see :class:`Backend`."""
        return replace(node, reached=reached.astype(np.int16))

    def plunge(self, start: WarmNode, cutoff: float, max_steps: int, stop: IntArray) -> PlungeResult:
        """Plunge from an open node; see :class:`Backend`."""
        try:  # another thread may take the last one at any time
            nodes, relaxation, work = self._idle.pop()
        except IndexError:
            log = self._empty_log()
            nodes = self._relaxation(log)
            work = workspace_for(self.nodes.n_nodes, len(self.nodes.X), log)
            relaxation = relaxation_of(nodes, work)
        work.reached[:], work.steps[0], work.log[0] = start.reached, 0, LOG_START
        work.subtree_bounds[:], work.known[:] = start.subtree_bounds, start.known
        self._load(nodes, start.warm)
        end, n_open, bound, cut_bound = plunge(relaxation, work, self.nodes.n_upper, cutoff, max_steps, stop)
        w, b, values = self._solution(nodes)
        result = PlungeResult(
            end=end,
            node=replace(start, reached=work.reached.astype(np.int16), warm=None),
            open=[
                (
                    float(work.open_bound[k]),
                    replace(start, reached=work.open_reached[k].astype(np.int16), warm=self._saved(nodes, k)),
                )
                for k in range(n_open)
            ],
            bound=bound,
            cut_bound=cut_bound,
            weights=w,
            bias=b - w @ self._centre,
            steps=int(work.steps[0]),
            log=work.log[: int(work.log[0])].copy(),
            values=values,
        )
        self._idle.append((nodes, relaxation, work))
        return result


# ---------------------------------------------------------------------- the loop over subproblems by features


class SubproblemPlunge(ABC):
    """One plunge from an open node whose nodes select features, in Python; the node is changed.

    Parameters
    ----------
    here
        The open node.
    cutoff
        Objective value from which nodes are pruned.
    stop
        A flag that ends the plunge when it is not 0.
    logs
        Whether nothing is dropped, as a certificate is written.
    """

    def __init__(self, here: Any, cutoff: float, stop: IntArray, *, logs: bool = False) -> None:
        self.here, self.cutoff, self.stop, self.logs = here, cutoff, stop, logs
        self.open: list[tuple[float, Any]] = []
        self.cut_bound, self.steps = np.inf, 0

    @abstractmethod
    def close_sides(self) -> bool:
        """Solve what changed and close sides that lead to no better tree; return whether the node is cut off."""

    @property
    @abstractmethod
    def is_decided(self) -> bool:
        """Whether all groups have reached the last level."""

    @abstractmethod
    def complete(self) -> int:
        """Find the best features of a complete routing; return why the plunge ends."""

    def finds_tree(self) -> bool:
        """Look for a tree close to the node; return whether one was found, which ends the plunge."""
        return False

    @abstractmethod
    def branch(self) -> tuple[float, Any]:
        """Take the cheaper half of what is left; return the other half and its bound."""

    def run(self, max_steps: int) -> int:
        """Run the loop; return why it ended."""
        for self.steps in range(1, max_steps + 1):
            if self.close_sides():
                return CUT_OFF
            if self.is_decided:
                return self.complete()
            if self.stop[0]:
                return STOPPED
            if self.finds_tree():
                return COMPLETE
            bound, other = self.branch()
            if bound >= self.cutoff and not self.logs:
                self.cut_bound = min(self.cut_bound, bound)
            else:
                self.open.append((bound, other))
        return STOPPED


def enclosed(x: FloatArray, side: NDArray[Any]) -> tuple[BoolArray, BoolArray]:
    """Return which points (K,) on a line must go left, or right, for the sides -1 or 1 that others (K,) have taken.

    Those between points of one side go there, and those beyond them where the other side is not.
    """
    inside = []
    for to in (-1, 1):
        here, there, low, high = x[side == to], x[side == -to], np.inf, -np.inf
        if len(here):
            low, high = here.min(), here.max()
            if len(there):
                low, high = (-np.inf, high) if high < there.min() else (low, np.inf)
        inside.append((x >= low) & (x <= high))
    return inside[0], inside[1]


def bisecting(waiting: IntArray, x: FloatArray, side: NDArray[Any]) -> int:
    """Return which waiting point of a line (K,) to decide next, by the sides -1 or 1 that others have taken.

    The ends of the line show which way it runs; then the middle halves what is left.
    """
    in_order = waiting[np.argsort(x[waiting], kind="stable")]
    ends = int((side == -1).any()) + int((side == 1).any())
    return int(in_order[(0, -1, len(in_order) // 2)[ends]])
