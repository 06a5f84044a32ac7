r"""Outcomes of treatments: generated experiments where all are known, imputed ones, and published tables.

``synthetic:treatments`` has the experiments of J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis,
MIT 2018, section 6.2, with two treatments. There are 20 features, the odd ones normal, the even ones 0 or
1, a base and an effect, and

.. math::

    y_0 = \text{base} - \text{effect} / 2, \qquad y_1 = \text{base} + \text{effect} / 2, \qquad
    P(Z = 1 \mid x) = 1 / (1 + e^{-y_0(x)}).

Training outcomes are those of the treatment Z with normal noise; lower ones are better. The thesis says that base and
effect have mean 0 and variance 1 (``functions=scaled``, the default). Its printed tree of the first experiment fits
functions that are only centred better (``functions=centred``); not centred, the first effect is never positive.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.errors import DataError, refuse_out_of_range
from mipforest.special import expit, normal_cdf

if TYPE_CHECKING:
    import pandas as pd

#: Number of features.
N_FEATURES = 20

#: Standard deviation of the noise of training outcomes, by experiment.
NOISE = {1: 0.1, 2: 0.2, 3: 0.5}


@dataclass(frozen=True, kw_only=True)
class TreatmentExperiment:
    """Options of ``synthetic:treatments``.

    Attributes
    ----------
    experiment
        1, 2 or 3, as the thesis numbers them.
    n
        Number of samples.
    functions
        ``"scaled"``: base and effect have mean 0 and variance 1 over the features; ``"centred"``: mean 0.
    seed
        Seed of features, treatments and noise.
    """

    experiment: int = 1
    n: int = 1000
    functions: str = "scaled"
    seed: int = 0

    def __post_init__(self) -> None:
        ranges = {"experiment": (1, 3), "n": (2, 10**8), "seed": (0, 2**63)}
        refuse_out_of_range("synthetic:treatments", self, ranges)
        if self.functions not in ("scaled", "centred"):
            raise DataError(
                f"synthetic:treatments: functions={self.functions} is unknown; it is scaled or centred"
            )

    def outcomes(self, X: FloatArray) -> FloatArray:
        """Return the (n, 2) true outcomes of samples (n, 20) under both treatments, without noise."""
        base, effect = self._base(X), self._effect(X)
        return np.column_stack([base - effect / 2, base + effect / 2])

    def draw(self, n: int, seed: int) -> tuple[FloatArray, FloatArray]:
        """Draw samples for a test: (n, 20) features and their (n, 2) true outcomes."""
        X = _features(np.random.default_rng([seed, 1]), n)
        return X, self.outcomes(X)

    def sample(self) -> tuple[FloatArray, IntArray, FloatArray]:
        """Draw the training samples: (n, 20) features, (n,) treatments 0 or 1, (n,) outcomes with noise."""
        rng = np.random.default_rng([self.seed, 0])
        X = _features(rng, self.n)
        outcomes = self.outcomes(X)
        z = (rng.random(self.n) < expit(outcomes[:, 0])).astype(np.int64)
        noise = NOISE[self.experiment] * rng.standard_normal(self.n)
        return X, z, outcomes[np.arange(self.n), z] + noise

    def _base(self, X: FloatArray) -> FloatArray:
        if self.experiment == 1:
            return self._brought(X[:, [0, 2, 4, 6, 7, 8]].sum(axis=1) - 2.0, -1.5, 5.25)
        return np.zeros(len(X)) if self.experiment == 2 else self._step(X)

    def _effect(self, X: FloatArray) -> FloatArray:
        if self.experiment == 1:
            return self._step(X)
        if self.experiment == 2:
            first, second = _both(X[:, 0] > 1, X[:, 2] > 0), _both(X[:, 4] > 1, X[:, 6] > 0)
            share = _above_one() / 2
            variance = 2 * 16 * share * (1 - share) + 2
            values = 4 * first + 4 * second + 2 * X[:, 7] * X[:, 8]
            return self._brought(values, 8 * share, variance)
        squares = (X[:, [0, 2, 4, 6, 8]] ** 2).sum(axis=1) + X[:, [1, 3, 5, 7]].sum(axis=1)
        return self._brought(0.5 * (squares - 11.0), -2.0, 2.75)

    def _step(self, X: FloatArray) -> FloatArray:
        """Return the function that is -5, and 0 where the first feature is above 1."""
        above = _above_one()
        mean, variance = 5 * above - 5, 25 * above * (1 - above)
        return self._brought(np.where(X[:, 0] > 1, 0.0, -5.0), mean, variance)

    def _brought(self, values: FloatArray, mean: float, variance: float) -> FloatArray:
        centred: FloatArray = values - mean
        return centred / np.sqrt(variance) if self.functions == "scaled" else centred


def _both(first: BoolArray, second: BoolArray) -> FloatArray:
    return (first & second).astype(np.float64)


def _features(rng: np.random.Generator, n: int) -> FloatArray:
    X = rng.standard_normal((n, N_FEATURES))
    X[:, 1::2] = rng.random((n, N_FEATURES // 2)) < 0.5
    return X


# ---------------------------------------------------------------------- unknown outcomes


def imputed_outcomes(X: FloatArray, treatment: IntArray, y: FloatArray, m: int, *, k: int = 10) -> FloatArray:
    """Return (n, m) outcomes where those of other treatments than the given are imputed by nearest neighbours.

    Source: Dunn 2018, section 6.3, which imputes on test samples and states neither k nor the metric: here Euclidean
    distances of features in standard deviations.

    Parameters
    ----------
    X, treatment, y
        (n, p) features, (n,) numbers of the treatments that the samples had, and (n,) outcomes of these.
    m
        Number of treatments.
    k
        Number of neighbours that had the treatment; all of them where they are fewer.

    Raises
    ------
    DataError
        If no sample had some treatment.
    """
    from sklearn.neighbors import KNeighborsRegressor  # takes seconds; generated data need none
    from sklearn.preprocessing import StandardScaler

    scaled, found = StandardScaler().fit_transform(X), np.empty((len(y), m))
    for t in range(m):
        had = treatment == t
        if not had.any():
            raise DataError(f"no sample had treatment {t} of {m}: nothing to impute its outcomes from")
        neighbours = KNeighborsRegressor(min(k, int(had.sum()))).fit(scaled[had], y[had])
        found[:, t] = np.where(had, y, neighbours.predict(scaled))
    return found


# ---------------------------------------------------------------------- measures of policies


class PolicyMeasures(NamedTuple):
    """How good prescriptions are where the outcomes under all treatments are known.

    Attributes
    ----------
    treatment_accuracy
        Share of the samples with the best treatment.
    effect_accuracy
        R2 of the estimated differences of outcomes between two treatments; NaN for other numbers of treatments. It may
        be negative.
    value
        Mean outcome under the prescriptions.
    """

    treatment_accuracy: float
    effect_accuracy: float
    value: float


def policy_measures(
    outcomes: FloatArray, prescribed: IntArray, estimates: FloatArray, *, better: str = "lower"
) -> PolicyMeasures:
    """Compare prescriptions with outcomes that are known under all treatments (Dunn 2018, section 6.2).

    Parameters
    ----------
    outcomes, estimates
        (n, m) outcomes under each treatment, and their estimates.
    prescribed
        (n,) numbers of the prescribed treatments.
    better
        Which outcomes are better: ``"lower"`` or ``"higher"``.
    """
    under = outcomes[np.arange(len(outcomes)), prescribed]
    best = outcomes.min(axis=1) if better == "lower" else outcomes.max(axis=1)
    accuracy, effect = float((under == best).mean()), np.nan
    if outcomes.shape[1] == 2:
        true, found = outcomes[:, 1] - outcomes[:, 0], estimates[:, 1] - estimates[:, 0]
        effect = 1 - float(((found - true) ** 2).sum() / ((true - true.mean()) ** 2).sum())
    return PolicyMeasures(accuracy, effect, float(under.mean()))


# ---------------------------------------------------------------------- published tables

#: Columns of the two files of LaLonde's job training study (Dehejia and Wahba, 1999).
_JOBS = ("treatment", "age", "education", "black", "hispanic", "married", "nodegree", "re75", "outcome")

#: Columns of a file of the infant health study with simulated outcomes (Hill, 2011; Dorie's program NPCI).
_IHDP = ("treatment", "outcome", "counterfactual", "mean_0", "mean_1", *(f"x{j}" for j in range(1, 26)))

#: Names of the tables, with what has to be given, for messages.
POLICY_TABLES = {
    "jobs": "jobs:FOLDER, with nsw_control.txt and nsw_treated.txt of the National Supported Work study (treatment, "
    "age, education, black, hispanic, married, nodegree, earnings of 1975 and 1978; no header)",
    "ihdp": "ihdp:FILE, one of ihdp_npci_1.csv and so on (treatment, outcome, counterfactual outcome, both means, 25 "
    "features; no header)",
}


def policy_table(kind: str, place: str) -> pd.DataFrame:
    """Read one of the tables with treatments of Dunn 2018, section 6.3, from files that are given.

    Parameters
    ----------
    kind
        ``"jobs"`` (higher outcomes are better) or ``"ihdp"``.
    place
        Folder or file, as :data:`POLICY_TABLES` says.

    Returns
    -------
    DataFrame
        Columns ``treatment`` and ``outcome``, and the features.

    Raises
    ------
    DataError
        If a file is missing or has other columns.
    """
    import pandas as pd

    path, names = Path(place).expanduser(), _JOBS if kind == "jobs" else _IHDP
    files = [path / "nsw_control.txt", path / "nsw_treated.txt"] if kind == "jobs" else [path]
    missing = [str(file) for file in files if not file.is_file()]
    if not place or missing:
        raise DataError(
            f"no table {kind} at {place!r}: there is no file {' and no file '.join(missing) or 'named'}; "
            f"give {POLICY_TABLES[kind]}"
        )
    try:
        parts = [pd.read_csv(file, sep=r"\s+" if kind == "jobs" else ",", header=None) for file in files]
    except (ValueError, OSError) as error:
        raise DataError(f"{place} cannot be read as {kind}: {error}; give {POLICY_TABLES[kind]}") from error
    for file, part in zip(files, parts, strict=True):
        if part.shape[1] != len(names) or not set(part[0]) <= {0, 1}:
            raise DataError(
                f"{file} has {part.shape[1]} columns, the first from {part[0].min()} to {part[0].max()}; {kind} has "
                f"{len(names)}, the first 0 or 1; give {POLICY_TABLES[kind]}"
            )
    frame = pd.concat(parts, ignore_index=True).set_axis(list(names), axis=1)
    frame["treatment"] = np.where(frame["treatment"] == 1, "treated", "control")
    return frame.drop(columns=["counterfactual", "mean_0", "mean_1"], errors="ignore")


def _above_one() -> float:
    """Return the probability that a normal feature is above 1."""
    return float(normal_cdf(-1.0))
