"""ConTree (pycontree): optimal univariate trees by dynamic programming on continuous features.

It runs in a process of its own: its native code hears no signal and looks at its clock too rarely, so it is killed.
``python -m mipforest.heuristics.contree FOLDER DEPTH COST SECONDS`` reads ``FOLDER/samples.npz`` and writes
``FOLDER/tree.npz``; ``FOLDER/ready`` is there once its packages are loaded.
"""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.errors import SolverError, SolverUnavailable
from mipforest.processes import environment_of_pythons, python_of
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology, Tree

if TYPE_CHECKING:
    from mipforest.data import Dataset

#: Seconds after which ConTree returns the best tree so far.
TIME_LIMIT = 60.0

#: Seconds between two looks at the process, and beyond its limit until it is killed.
INTERVAL, PATIENCE = 0.02, 0.5

#: Seconds beyond its limit after which a process ends that nobody kills, as its parent is gone.
ORPHANED = 30

#: A node's feature where it is a leaf.
LEAF = -1

#: Of each node, in order of depth first: (m,) feature or :data:`LEAF`, (m,) threshold, (m,) label.
Nodes = tuple[IntArray, FloatArray, IntArray]


def contree(
    data: Dataset,
    topology: Topology,
    *,
    split_cost: float = 0.0,
    time_limit: float = TIME_LIMIT,
    budget: TimeBudget | None = None,
) -> Tree:
    """Find the tree with the fewest errors; see :func:`contree_within`. Where that has none, it is CART's."""
    from mipforest.heuristics.cart import cart  # late: the process of ConTree needs none of it

    found, _ = contree_within(data, topology, split_cost=split_cost, time_limit=time_limit, budget=budget)
    return cart(data, topology) if found is None else found


def contree_within(
    data: Dataset,
    topology: Topology,
    *,
    split_cost: float = 0.0,
    time_limit: float = TIME_LIMIT,
    budget: TimeBudget | None = None,
) -> tuple[Tree | None, bool]:
    """Find the tree with the fewest errors (Brita, van der Linden and Demirovic 2025), in a process of its own.

    Parameters
    ----------
    data
        Scaled features; classes.
    topology
        Index sets of the tree.
    split_cost
        Cost of a split as a share of the samples, 0 to 1.
    time_limit
        Seconds.
    budget
        Whose stop ends the search at once, and whose limit does not count the loading of packages.

    Returns
    -------
    tree
        For scaled features; nodes without a split send every sample to the right. ``None`` where the search was
        stopped, or had no tree soon after its limit.
    ended
        Whether the search ended within the time: the tree is optimal then.

    Raises
    ------
    SolverUnavailable
        If pycontree is not installed.
    SolverError
        If it fails.
    """
    if find_spec("pycontree") is None:
        raise SolverUnavailable(
            "start 'dp' needs the Python package pycontree; run: pip install 'mipforest[dp]'"
        )
    budget = budget or TimeBudget()
    answer = fitted_nodes(
        data.X,
        data.y.astype(np.int64),
        depth=topology.depth,
        split_cost=split_cost,
        time_limit=time_limit,
        stopped=lambda: budget.stopped,
        loaded=lambda seconds: budget.exclude("load", seconds),
    )
    if answer is None:
        return None, False
    (feature, threshold, label), ended = answer
    w = np.zeros((topology.n_branches, data.p))
    b = np.zeros(topology.n_branches)
    leaf_value = np.zeros(topology.n_leaves)
    following = iter(range(len(feature)))

    def copy(k: int, t: int, members: IntArray) -> None:
        """Copy ConTree's node k, which the given samples reach, to node t, and all that lies below."""
        if feature[k] == LEAF:
            below = [t]
            for s in below:
                if s >= topology.n_branches:
                    leaf_value[s - topology.n_branches] = label[k]
                else:
                    below += [topology.left(s), topology.right(s)]
            return
        j = feature[k]
        goes_left = data.X[members, j] <= threshold[k]
        w[t, j], b[t] = 1.0, -np.nextafter(threshold[k], np.inf)
        copy(next(following), topology.left(t), members[goes_left])
        copy(next(following), topology.right(t), members[~goes_left])

    copy(next(following), 0, np.arange(data.n))
    tree = Tree(topology.depth, w, b, leaf_value, tuple(data.classes), tuple(data.features.labels))
    return tree, ended


def fitted_nodes(
    X: FloatArray,
    y: IntArray,
    *,
    depth: int,
    split_cost: float,
    time_limit: float,
    stopped: Callable[[], bool],
    loaded: Callable[[float], object],
) -> tuple[Nodes, bool] | None:
    """Let ConTree find a tree; ``None`` where it was stopped, or has none half a second after its limit.

    Parameters
    ----------
    X, y
        (n, p) features and (n,) classes.
    depth
        Depth of the tree.
    split_cost
        Cost of a split as a share of the samples.
    time_limit
        Seconds, from when its packages are loaded.
    stopped
        Asked every few hundredths of a second whether to end.
    loaded
        Called once with how many seconds the packages took to load.

    Returns
    -------
    nodes, ended
        The tree, and whether the search ended within the time.

    Raises
    ------
    SolverError
        If the process ends without an answer, with its last word.
    """
    with TemporaryDirectory(prefix="mipforest-contree-") as name:
        folder = Path(name)
        np.savez(folder / "samples.npz", X=X, y=y)
        command = [*python_of(__name__), name, str(depth), repr(split_cost), repr(time_limit)]
        with (folder / "errors").open("w+b") as errors:
            # A session of its own: Ctrl-C on a terminal is for the parent, which kills it.
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=environment_of_pythons(),
                start_new_session=True,
            )
            try:
                if not _waited_for(process, folder, time_limit, stopped, loaded):
                    return None
            finally:
                process.kill()
                process.wait()
            if process.returncode:
                errors.seek(0)
                last = errors.read().decode(errors="replace").strip().splitlines()[-1:] or ["nothing"]
                raise SolverError(f"contree ended with code {process.returncode}; it said: {last[0]}")
        with np.load(folder / "tree.npz") as found:
            return (found["feature"], found["threshold"], found["label"]), bool(found["ended"])


def _waited_for(
    process: subprocess.Popen[bytes],
    folder: Path,
    time_limit: float,
    stopped: Callable[[], bool],
    loaded: Callable[[float], object],
) -> bool:
    """Wait for the end of the process; return whether it came, before a stop and the end of its patience."""
    began, deadline = monotonic(), math.inf
    while process.poll() is None:
        if deadline == math.inf and (folder / "ready").exists():
            loaded(monotonic() - began)
            deadline = monotonic() + time_limit + PATIENCE
        if stopped() or monotonic() > deadline:
            return False
        sleep(INTERVAL)
    return True


def _nodes_of(root: Any) -> Nodes:
    """Write down the nodes of ConTree's tree."""
    rows = list[tuple[int, float, int]]()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_leaf_node():
            rows.append((LEAF, 0.0, node.get_label()))
        else:
            rows.append((node.get_split_feature(), node.get_split_threshold(), 0))
            waiting += [node.get_right(), node.get_left()]
    feature, threshold, label = zip(*rows, strict=True)
    return np.array(feature, np.int64), np.array(threshold, np.float64), np.array(label, np.int64)


def main(folder: str, depth: str, split_cost: str, time_limit: str) -> None:
    """Run ConTree here."""
    from pycontree import ConTree

    place, seconds = Path(folder), float(time_limit)
    with np.load(place / "samples.npz") as samples:
        X, y = samples["X"], samples["y"]
    (place / "ready").touch()
    if seconds + ORPHANED < 2**31 and hasattr(signal, "alarm"):
        signal.alarm(math.ceil(seconds) + ORPHANED)  # the signal's default ends native code, too
    learner = ConTree(max_depth=int(depth), complexity_cost=float(split_cost), time_limit=seconds)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Fitting exceeds time limit")
        feature, threshold, label = _nodes_of(learner.fit(X, y).get_tree())
    ended = learner._config.is_within_time_limit()
    np.savez(place / "tree.npz", feature=feature, threshold=threshold, label=label, ended=ended)


if __name__ == "__main__":
    main(*sys.argv[1:])
