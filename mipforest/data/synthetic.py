r"""Generated data sets by name: 4-partitions, 6-partitions, tree and curves, each as ``synthetic:NAME``.

Those with treatments, ``synthetic:treatments``, are in :mod:`mipforest.data.treatments`.

4-partitions and 6-partitions have two features. D'Onofrio, Grani, Monaci, Palagi: Margin optimal
classification trees, section 6.1: hyperplanes with margins are defined, and random points are plotted
outside the margins, 108 and 96 in all. The paper shows the hyperplanes in a figure only; the ones here are
our own, chosen to have what the text and table 3 report: 4-partitions has depth 2 and the greedy local SVM
heuristic falls short of it (86.1% in the paper), 6-partitions cannot be classified with depth 2.

curves: one interval tells the target. A curve is a random Fourier series on [0, 1],

.. math::

    x(u) = a_0 + \sum_{k=1}^{8} \tfrac1k \bigl(a_k \cos 2\pi k u + b_k \sin 2\pi k u\bigr), \qquad
    a_k, b_k \sim N(0, 1),

of which evenly spaced points are known. The target looks at its mean m over one interval only: it is 2 m where m is
above 0, and -m below, with normal noise. So a tree of depth 1 with one interval and linear leaves can tell it up to the
noise.

tree: random trees as ground truths, and samples of them with noise. Dunn, Optimal trees for prediction and
prescription (2018), sections 2.5, 3.4, 4.4 and 5.3, after
Murthy and Salzberg: a full tree with random splits labels points drawn uniformly from the unit cube; no two
sibling leaves share a label. The thesis does not say how features and thresholds are drawn; here

- density 1: the feature is uniform over all features, the threshold uniform over the interval that the
  node's cell leaves to that feature;
- density > 1: the number of features is uniform in 1..density, the features are random, their coefficients
  uniform in [-1, 1], and the threshold is a random quantile, 0.1 to 0.9, of ``w.x`` over points of the
  node's cell.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data.dataset import Dataset
from mipforest.data.encoding import Scaling
from mipforest.data.target import Task
from mipforest.data.treatments import N_FEATURES, TreatmentExperiment
from mipforest.errors import DataError, did_you_mean, refuse_out_of_range


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """The tree behind a generated sample: a complete binary tree on the unit cube, features in original units.

    It may be deeper than a tree that models fit, and it draws points besides predicting them.

    Nodes are in heap order: root 0, children 2t+1 and 2t+2; ``w[t].x + b[t] >= 0`` goes right. A node
    that does not split has ``w[t] = 0`` and ``b[t] = 1``: everything goes right.

    Attributes
    ----------
    w, b
        (2^D - 1, p) coefficients and (2^D - 1,) intercepts of the branch nodes.
    leaves
        (2^D,) prediction of each leaf, from left to right: class labels (int64) or values (float64).
    leaf_w
        (2^D, p) coefficients of linear leaves, which predict ``leaf_w . x`` more than ``leaves``; ``None`` for constant
        leaves.
    """

    w: FloatArray
    b: FloatArray
    leaves: IntArray | FloatArray
    leaf_w: FloatArray | None = None

    @property
    def depth(self) -> int:
        """Depth D of the tree."""
        return len(self.leaves).bit_length() - 1

    @property
    def splits(self) -> BoolArray:
        """(2^D - 1,) which branch nodes split."""
        return np.asarray(self.w.any(axis=1))

    def leaf_of(self, X: FloatArray) -> IntArray:
        """Return the leaf, 0 to 2^D - 1 from the left, of each of the (n, p) points."""
        return self._path(X)[:, -1] - len(self.b)

    def predict(self, X: FloatArray) -> IntArray | FloatArray:
        """Return the class label or value of each of the (n, p) points."""
        leaf = self.leaf_of(X)
        if self.leaf_w is None:
            return self.leaves[leaf]
        values: FloatArray = self.leaves[leaf] + (X * self.leaf_w[leaf]).sum(axis=1)
        return values

    def margin(self, X: FloatArray) -> FloatArray:
        """Return the (n,) Euclidean distances of points to the nearest hyperplane on their way to a leaf."""
        path = self._path(X)[:, :-1]
        w, b = self.w[path], self.b[path]
        norm = np.linalg.norm(w, axis=2)
        score = np.abs(np.einsum("ndp,np->nd", w, X) + b)
        distance = np.divide(score, norm, out=np.full_like(score, np.inf), where=norm > 0)
        return np.asarray(distance.min(axis=1, initial=np.inf))

    def draw(self, n: int, seed: int = 0) -> tuple[FloatArray, IntArray | FloatArray]:
        """Draw points uniformly from the unit cube, with their true labels: a noise-free test set.

        Dunn's test sets have ``2000 * 2^D`` points.

        Returns
        -------
        tuple
            (n, p) points and (n,) labels or values.
        """
        X = np.random.default_rng(seed).random((n, self.w.shape[1]))
        return X, self.predict(X)

    def _path(self, X: FloatArray) -> IntArray:
        """Return the (n, D + 1) nodes that each point passes, the last being its leaf's."""
        path = np.zeros((len(X), self.depth + 1), dtype=np.int64)
        for d in range(self.depth):
            node = path[:, d]
            goes_right = np.einsum("np,np->n", self.w[node], X) + self.b[node] >= 0
            left, right = children(node)
            path[:, d + 1] = np.where(goes_right, right, left)
        return path


#: Points of a cell that a hyperplane's threshold is a quantile of.
_CELL_POINTS = 200


def children(t: Any) -> tuple[Any, Any]:
    """Return the left and the right child of branch node t, or (n,) children of (n,) nodes, in heap order."""
    return 2 * t + 1, 2 * t + 2


@dataclass(frozen=True, kw_only=True)
class RandomTree:
    """Options of ``synthetic:tree``; the defaults are Dunn's.

    Attributes
    ----------
    depth
        Depth of the tree, 1 to 12.
    n
        Number of samples.
    p
        Number of features.
    classes
        Number of classes K, at most 2^depth; of no meaning for a regression.
    density
        Largest number of features in a split, at most p; 1 gives splits on one feature each.
    leaf_density
        Largest number of features in the linear function of a leaf, at most p, of a regression; 0 for constant leaves.
    feature_noise
        Share of the samples, 0 to 1, all of whose features are moved by U(-0.1, 0.1) after labelling.
    label_noise
        Classification: share of the samples, 0 to 1, that get a random other label. Regression: standard
        deviation of the normal noise added to every value (leaf values are U(0, 1)).
    values
        Number of values of every feature, evenly spaced from 0 to 1: what its points are rounded to after labelling,
        in bins of the same width. 2 gives features that are 0 or 1; 0 rounds nothing.
    seed
        Seed of everything. The tree depends on it and on ``depth, p, classes, density, leaf_density, task`` only.
    task
        ``"classification"`` or ``"regression"``.
    """

    depth: int = 4
    n: int = 1000
    p: int = 5
    classes: int = 2
    density: int = 1
    leaf_density: int = 0
    feature_noise: float = 0.0
    label_noise: float = 0.0
    values: int = 0
    seed: int = 0
    task: Task = "classification"

    def __post_init__(self) -> None:
        ranges = {
            "depth": (1, 12),
            "n": (1, 10**8),
            "p": (1, 10**6),
            "classes": (2, 2**self.depth) if self.task == "classification" else (0, 10**6),
            "density": (1, self.p),
            "leaf_density": (0, self.p if self.task == "regression" else 0),
            "feature_noise": (0, 1),
            "label_noise": (0, 1) if self.task == "classification" else (0, 10**6),
            "values": (0, 10**6),
            "seed": (0, 2**63),
        }
        refuse_out_of_range("synthetic:tree", self, ranges)
        if self.values == 1:
            raise DataError(
                "synthetic:tree: values is 1, and such features part nothing; give 2 or more, or 0"
            )
        if self.task not in ("classification", "regression"):
            raise DataError(
                f"synthetic:tree: task={self.task} is unknown; it is classification or regression"
            )

    def ground_truth(self) -> GroundTruth:
        """Draw the tree."""
        rng = np.random.default_rng([self.seed, 0])
        w, b = _splits_on_one_feature(self, rng) if self.density == 1 else _hyperplanes(self, rng)
        leaves = rng.random(2**self.depth) if self.task == "regression" else _labels(self, rng)
        leaf_w = _linear_leaves(self, rng) if self.leaf_density else None
        return GroundTruth(w, b, leaves, leaf_w)

    def sample(self, ground_truth: GroundTruth) -> tuple[FloatArray, IntArray | FloatArray]:
        """Draw the (n, p) points, label them by the tree, then add the noise.

        Returns
        -------
        tuple
            (n, p) features and (n,) labels or values.
        """
        X, y = ground_truth.draw(self.n, seed=self.seed)
        rng = np.random.default_rng([self.seed, 1])
        moved = _some(rng, self.n, self.feature_noise)
        X[moved] += rng.uniform(-0.1, 0.1, size=(len(moved), self.p))
        if self.values:
            X = np.floor(X * self.values).clip(0, self.values - 1) / (self.values - 1)
        if self.task == "regression":
            return X, y + self.label_noise * rng.standard_normal(self.n)
        flipped = _some(rng, self.n, self.label_noise)
        y[flipped] = (y[flipped] + rng.integers(1, self.classes, size=len(flipped))) % self.classes
        return X, y


def _some(rng: np.random.Generator, n: int, share: float) -> IntArray:
    """Choose a share of ``n`` samples."""
    return rng.permutation(n)[: round(share * n)]


def _labels(options: RandomTree, rng: np.random.Generator) -> IntArray:
    """Draw a label for each leaf, siblings differing."""
    left = rng.integers(options.classes, size=2 ** (options.depth - 1))
    right = (left + rng.integers(1, options.classes, size=len(left))) % options.classes
    return np.stack([left, right], axis=1).ravel()


def _linear_leaves(options: RandomTree, rng: np.random.Generator) -> FloatArray:
    """Draw the coefficients of each leaf: their number uniform in 1..leaf_density, their values in [-1, 1]."""
    leaf_w = np.zeros((2**options.depth, options.p))
    for row in leaf_w:
        used = rng.choice(options.p, size=rng.integers(1, options.leaf_density + 1), replace=False)
        row[used] = rng.uniform(-1.0, 1.0, size=len(used))
    return leaf_w


def _splits_on_one_feature(options: RandomTree, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw splits ``x_j >= threshold`` that cut their node's box."""
    branches = 2**options.depth - 1
    w, b = np.zeros((branches, options.p)), np.zeros(branches)
    boxes = {0: (np.zeros(options.p), np.ones(options.p))}
    for t in range(branches):
        low, high = boxes.pop(t)
        j = rng.integers(options.p)
        threshold = rng.uniform(low[j], high[j])
        w[t, j], b[t] = 1.0, -threshold
        cut = np.arange(options.p) == j
        left, right = children(t)
        boxes[left], boxes[right] = (
            (low, np.where(cut, threshold, high)),
            (np.where(cut, threshold, low), high),
        )
    return w, b


def _hyperplanes(options: RandomTree, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw hyperplanes that cut their node's polytope."""
    branches = 2**options.depth - 1
    w, b = np.zeros((branches, options.p)), np.zeros(branches)
    start = {0: np.full(options.p, 0.5)}
    for t in range(branches):
        points = _cell_points(*_cell(w, b, t), start.pop(t), rng)
        used = rng.choice(options.p, size=rng.integers(1, options.density + 1), replace=False)
        w[t, used] = rng.uniform(-1.0, 1.0, size=len(used))
        scores = points @ w[t]
        b[t] = -np.quantile(scores, rng.uniform(0.1, 0.9))
        left, right = children(t)
        start[left], start[right] = points[scores.argmin()], points[scores.argmax()]
    return w, b


def _cell(w: FloatArray, b: FloatArray, node: int) -> tuple[FloatArray, FloatArray]:
    """Return the half-spaces ``A x + c >= 0`` that a node's ancestors and the unit cube leave to it."""
    p = w.shape[1]
    A, c = [np.eye(p), -np.eye(p)], [np.zeros(p), np.ones(p)]
    while node:
        parent, sign = (node - 1) // 2, 1.0 if node % 2 == 0 else -1.0
        A.append(sign * w[[parent]])
        c.append(sign * b[[parent]])
        node = parent
    return np.vstack(A), np.concatenate(c)


def _cell_points(A: FloatArray, c: FloatArray, start: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw points of ``{x: A x + c >= 0}`` by hit-and-run: a random direction, a uniform point on that chord.

    ``start`` is a point of the cell. The points' law tends to the uniform one over the cell (Smith, 1984).
    """
    points = np.empty((_CELL_POINTS, len(start)))
    x = start
    for k in range(_CELL_POINTS):
        direction = rng.standard_normal(len(x))
        slack, rate = np.maximum(A @ x + c, 0.0), A @ direction
        longest = min((slack[rate < 0] / -rate[rate < 0]).min(), 1e9)
        shortest = max((-slack[rate > 0] / rate[rate > 0]).max(), -1e9)
        x = x + rng.uniform(shortest, longest) * direction
        points[k] = x
    return points


#: Number of waves in a curve.
_WAVES = 8


@dataclass(frozen=True, kw_only=True)
class CurveExperiment:
    """Options of ``synthetic:curves``.

    Attributes
    ----------
    n
        Number of curves.
    points
        Number of points at which a curve is known, 4 or more.
    begin, end
        The interval that tells the target, within 0 to 1.
    noise
        Standard deviation of the noise of the target.
    seed
        Seed of curves and noise.
    """

    n: int = 200
    points: int = 60
    begin: float = 0.3
    end: float = 0.45
    noise: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        ranges: dict[str, tuple[float, float]] = {
            "n": (2, 10**8),
            "points": (4, 10**4),
            "noise": (0, 10**6),
            "seed": (0, 2**63),
        }
        ranges |= {"begin": (0, 1), "end": (self.begin, 1)}
        refuse_out_of_range("synthetic:curves", self, ranges)
        if self.begin == self.end:
            raise DataError(f"synthetic:curves: begin and end are both {self.end}; choose a larger end")

    @property
    def at(self) -> FloatArray:
        """(points,) where the curves are known."""
        return np.linspace(0.0, 1.0, self.points)

    @property
    def features(self) -> list[str]:
        """Names of the features: ``x@`` and the place."""
        return [f"x@{place:.6g}" for place in self.at]

    def sample(self) -> tuple[FloatArray, FloatArray]:
        """Draw the (n, points) values of the curves, and the (n,) targets."""
        rng = np.random.default_rng([self.seed, 2])
        level = rng.standard_normal(self.n)
        waves = np.arange(1, _WAVES + 1)
        cosines, sines = (rng.standard_normal((self.n, _WAVES)) / waves for _ in range(2))
        turns = 2 * np.pi * waves
        X = (
            level[:, None]
            + cosines @ np.cos(np.outer(turns, self.at))
            + sines @ np.sin(np.outer(turns, self.at))
        )
        both = np.array([self.begin, self.end])
        in_cosine, in_sine = (
            np.sin(np.outer(turns, both)) / turns[:, None],
            -np.cos(np.outer(turns, both)) / turns[:, None],
        )
        length = self.end - self.begin
        mean = level + (cosines @ np.diff(in_cosine)[:, 0] + sines @ np.diff(in_sine)[:, 0]) / length
        y = np.where(mean > 0, 2 * mean, -mean)
        return X, y + self.noise * rng.standard_normal(self.n)


#: Euclidean distance that every point of the partitions keeps from the hyperplanes of its path.
MARGIN = 0.04

#: Points drawn at a time; only the efficiency depends on it, and the points that a seed gives.
_BATCH = 256

FOUR = GroundTruth(
    w=np.array([[0.70, 0.71], [0.91, 0.41], [-0.21, 0.98]]),
    b=np.array([-0.68, -0.37, -0.51]),
    leaves=np.array([-1, 1, 1, -1]),
)

SIX = GroundTruth(
    w=np.array(
        [[-0.77, 0.64], [-0.33, 0.94], [0.06, 1.0], [0.0, 0.0], [-0.84, 0.54], [0.0, 0.0], [-0.32, 0.95]]
    ),
    b=np.array([0.06, -0.06, -0.59, 1.0, 0.34, 1.0, -0.67]),
    leaves=np.array([1, 1, -1, 1, -1, -1, -1, 1]),
)

#: Name of a partitions data set to its ground truth and its number of points in each partition.
_PARTITIONS = {"4-partitions": (FOUR, 27), "6-partitions": (SIX, 16)}

#: What can follow ``synthetic:``.
GENERATORS = (*_PARTITIONS, "tree", "treatments", "curves")

#: What holds the options of a generator; of all others, those of the tree.
_EXPERIMENTS = {"treatments": TreatmentExperiment, "curves": CurveExperiment}

_SPOKEN: dict[Any, str] = {int: "a whole number", float: "a number", str: "a word"}


@dataclass(frozen=True, eq=False)
class _Sample:
    """A generated sample: full name with every option, features in original units, target, ground truth, remark."""

    name: str
    X: FloatArray
    y: IntArray | FloatArray
    ground_truth: GroundTruth
    task: Task
    note: str


def load_synthetic(spec: str, *, seed: int = 0, scaling: Scaling = "minmax") -> Dataset:
    """Generate a data set.

    Parameters
    ----------
    spec
        ``4-partitions``, ``6-partitions``, ``tree``, ``treatments`` or ``curves``, with options behind commas:
        ``tree,depth=3,n=500,p=4,label_noise=0.05``; see :class:`~mipforest.data.synthetic.RandomTree`,
        :class:`~mipforest.data.treatments.TreatmentExperiment` and :class:`~mipforest.data.synthetic.CurveExperiment`.
        The partitions take ``seed`` only.
    seed
        Seed, if ``spec`` does not give one.
    scaling
        ``"minmax"``, ``"standard"`` or ``"none"``. The truth is in original units (``X_raw``).

    Returns
    -------
    Dataset
        Named after all options, the seed included: the name generates it again.

    Raises
    ------
    DataError
        If a generator or option is unknown, or a value is out of range.
    """
    kind, options = _read(spec, seed)
    if kind == "treatments":
        return _with_treatments(TreatmentExperiment(**options), scaling)
    if kind == "curves":
        return _curves(CurveExperiment(**options), scaling)
    sample = _generate(kind, options)
    try:
        return Dataset.from_arrays(
            sample.X, sample.y, name=sample.name, task=sample.task, scaling=scaling, notes=[sample.note]
        )
    except DataError as error:
        raise DataError(f"{sample.name}: {error} (try another seed or a larger n)") from error


def ground_truth(spec: str, *, seed: int = 0) -> GroundTruth:
    """Return the tree that a generated data set was drawn from.

    Parameters
    ----------
    spec
        As for :func:`load_synthetic`, or the name of a generated data set.
    seed
        Seed, if ``spec`` does not give one.
    """
    kind, options = _read(spec.removeprefix("synthetic:"), seed)
    if kind == "treatments":
        raise DataError(f"synthetic:{spec} is drawn from no tree; see mipforest.data.treatment_experiment")
    if kind == "curves":
        raise DataError(
            f"synthetic:{spec} is drawn from no tree; see mipforest.data.synthetic for what tells its target"
        )
    return _generate(kind, options).ground_truth


def treatment_experiment(spec: str, *, seed: int = 0) -> TreatmentExperiment:
    """Return the experiment that ``synthetic:treatments`` was drawn from, which knows all true outcomes.

    Parameters
    ----------
    spec, seed
        As for :func:`ground_truth`.
    """
    kind, options = _read(spec.removeprefix("synthetic:"), seed)
    if kind != "treatments":
        raise DataError(f"synthetic:{kind} has no treatments; give synthetic:treatments with its options")
    return TreatmentExperiment(**options)


def _read(spec: str, seed: int) -> tuple[str, dict[str, Any]]:
    """Return the generator of a name, and its options."""
    kind, *written = spec.split(",")
    if kind not in GENERATORS:
        known = ", ".join(f"synthetic:{generator}" for generator in GENERATORS)
        raise DataError(
            f"no generator is called {kind!r}{did_you_mean(kind, GENERATORS)}; there are {known}; options follow a "
            "comma, as in synthetic:tree,depth=3"
        )
    options = _options(written, _EXPERIMENTS.get(kind, RandomTree))
    return kind, {"seed": seed, **options}


def _generate(kind: str, options: dict[str, Any]) -> _Sample:
    return _tree(options) if kind == "tree" else _partitions(kind, options)


def _options(
    written: list[str], taken: type[RandomTree | TreatmentExperiment | CurveExperiment]
) -> dict[str, Any]:
    """Read ``name=value`` parts."""
    types: dict[str, Any] = {field.name: type(field.default) for field in fields(taken)}
    options: dict[str, Any] = {}
    for part in written:
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or name not in types:
            hint, known = did_you_mean(name, types), ", ".join(f"{option}=" for option in types)
            raise DataError(f"synthetic: cannot read the option {part!r}{hint}; the options are {known}")
        if name in options:
            raise DataError(f"synthetic: the option {name!r} is given twice; keep one")
        try:
            options[name] = types[name](value)
        except ValueError:
            raise DataError(
                f"synthetic: {name}={value} is not {_SPOKEN[types[name]]}; correct the value"
            ) from None
    return options


def _with_treatments(experiment: TreatmentExperiment, scaling: Scaling) -> Dataset:
    X, treatments, y = experiment.sample()
    return Dataset.from_arrays(
        X,
        y,
        treatments=treatments,
        features=[f"x{j + 1}" for j in range(N_FEATURES)],
        name="synthetic:treatments,"
        + ",".join(f"{name}={value}" for name, value in asdict(experiment).items()),
        target="outcome",
        scaling=scaling,
        notes=[f"experiment {experiment.experiment} of Dunn's section 6.2, seed {experiment.seed}"],
    )


def _curves(experiment: CurveExperiment, scaling: Scaling) -> Dataset:
    X, y = experiment.sample()
    options = ",".join(f"{name}={value}" for name, value in asdict(experiment).items())
    return Dataset.from_arrays(
        X,
        y,
        features=experiment.features,
        name=f"synthetic:curves,{options}",
        task="regression",
        scaling=scaling,
        notes=[
            f"curves of seed {experiment.seed} whose target depends on {experiment.begin:g} to {experiment.end:g}"
        ],
    )


def _tree(options: dict[str, Any]) -> _Sample:
    tree = RandomTree(**options)
    ground_truth = tree.ground_truth()
    X, y = tree.sample(ground_truth)
    given = asdict(tree)
    if tree.task == "regression":
        del given["classes"]
    for option in ("leaf_density", "values"):  # names have what is used: those of samples without it stay
        if given[option] == 0:
            del given[option]
    name = "synthetic:tree," + ",".join(f"{option}={value}" for option, value in given.items())
    note = f"drawn from a random tree of depth {tree.depth}, seed {tree.seed}"
    absent = sorted(set(range(tree.classes)) - set(y.tolist())) if tree.task == "classification" else []
    if absent:
        note += f"; class(es) {', '.join(map(str, absent))} of 0..{tree.classes - 1} do not occur"
    return _Sample(name, X, y, ground_truth, tree.task, note)


def _partitions(kind: str, options: dict[str, Any]) -> _Sample:
    seed = options.pop("seed")
    if options:
        raise DataError(f"synthetic:{kind} takes no option {', '.join(options)}; it takes seed=")
    if seed < 0:
        raise DataError(f"synthetic:{kind}: seed={seed} is negative; choose 0 or more")
    ground_truth, per_partition = _PARTITIONS[kind]
    X = draw_points(ground_truth, per_partition, seed)
    y = ground_truth.predict(X)
    note = f"random points at least {MARGIN} away from known hyperplanes, seed {seed}"
    return _Sample(f"synthetic:{kind},seed={seed}", X, y, ground_truth, "classification", note)


def draw_points(ground_truth: GroundTruth, per_partition: int, seed: int) -> FloatArray:
    """Draw points uniformly from each partition of the unit square, outside the margins.

    Parameters
    ----------
    ground_truth
        The hyperplanes. A leaf that no point can reach (next to a node that does not split) is not a partition.
    per_partition
        Number of points in each partition.
    seed
        Seed of the generator.

    Returns
    -------
    FloatArray
        (partitions * per_partition, 2) points, in random order.
    """
    rng = np.random.default_rng(seed)
    wanted = np.zeros(len(ground_truth.leaves), dtype=np.int64)
    wanted[_reachable_leaves(ground_truth)] = per_partition
    chosen: list[FloatArray] = []
    while wanted.any():
        points = rng.random((_BATCH, 2))
        points = points[ground_truth.margin(points) >= MARGIN]
        for leaf, point in zip(ground_truth.leaf_of(points), points, strict=True):
            if wanted[leaf]:
                wanted[leaf] -= 1
                chosen.append(point)
    return np.array(chosen)


def _reachable_leaves(ground_truth: GroundTruth) -> list[int]:
    """Return the leaves that points can reach: a node that does not split sends everything right."""
    nodes = [0]
    for _ in range(ground_truth.depth):
        nodes = [
            child for t in nodes for child in (children(t) if ground_truth.splits[t] else children(t)[1:])
        ]
    return [node - len(ground_truth.b) for node in nodes]
