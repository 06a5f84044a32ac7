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
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.data.dataset import Dataset
from mipforest.data.encoding import Scaling
from mipforest.data.random_trees import GroundTruth, RandomTree, children
from mipforest.data.target import Task
from mipforest.data.treatments import N_FEATURES, TreatmentExperiment
from mipforest.errors import DataError, did_you_mean, refuse_out_of_range

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
        ``tree,depth=3,n=500,p=4,label_noise=0.05``; see :class:`~mipforest.data.random_trees.RandomTree`,
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
    if tree.leaf_density == 0:  # as before leaves could be linear: names stay
        del given["leaf_density"]
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
        The hyperplanes. A leaf that no point can reach (beside a node that does not split) is not a partition.
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
