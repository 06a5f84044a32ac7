r"""OPT-L, OPT-LH: optimal prescriptive trees with linear estimates, and univariate or hyperplane splits (H).

Source: J. Dunn, *Optimal Trees for Prediction and Prescription*, PhD thesis, MIT 2018, section 6.1. As in
:mod:`formulations.opt`, with the estimates of leaf l under treatment t fitted by a lasso to its samples that had it
(6.9),

.. math::

    \hat y_{lt}(x) = \beta_{0lt} + \beta_{lt}^\top x, \qquad (\beta_{0lt}, \beta_{lt}) \in \arg\min
    \sum_{i \in l,\, z_i = t} (y_i - \hat y_{lt}(x_i))^2 + \lambda \|\beta_{lt}\|_1,

and this minimum is what a leaf's estimates are charged, times :math:`1 - \mu`. The thesis prints no intercept; here is
one, free of charge, so that observed outcomes still sum up to their estimates. Features are in [0, 1]; :math:`\lambda`
is in units of the outcome. Weights of samples multiply their terms, as in :mod:`formulations.opt`, in the sums over i
of rows (g) and (j) too. Prescriptions would like other estimates than the fitted ones, so the model states the
optimality conditions of the lasso. With :math:`e_{il}` the residual of sample i under its own treatment if it is in
leaf l, and 0 if not,

.. math::

    & |e_{il}| \le M z_{il}, \quad |e_{il} - (y_i - \hat y_{l z_i}(x_i))| \le M (1 - z_{il}) && i, l \quad (f) \\
    & \sum_{i: z_i = t} e_{il} = 0, \quad 2 \sum_{i: z_i = t} x_{ij} e_{il} = \lambda s_{ljt} && l, j, t \quad (g) \\
    & \beta = \beta^+ - \beta^-, \quad 0 \le \beta^\pm_{ljt} \le N u^\pm_{ljt}, \quad u^+_{ljt} + u^-_{ljt} \le 1
        && l, j, t \quad (h) \\
    & 2 u^+_{ljt} - 1 \le s_{ljt} \le 1 - 2 u^-_{ljt}, \quad -1 \le s_{ljt} \le 1, \quad u^\pm_{ljt} \in \{0, 1\}
        && l, j, t \quad (i) \\
    & E_{lt} = \sum_{i: z_i = t} y_i e_{il} + \tfrac{\lambda}{2} \sum_j (\beta^+_{ljt} + \beta^-_{ljt}) \ge 0
        && l, t \quad (j) \\
    & p_{il} \ge \hat y_{lt}(x_i) - 2 H (2 - \tau_{lt} - z_{il}), \quad p_{il} \ge -H z_{il} && i, l, t \quad (k)

with rows (d) of :mod:`formulations.opt`, and the objective :math:`\frac 1 n [\mu \sum p_{il} + (1 - \mu) \sum E_{lt} +
\alpha \hat L C]`.

*It is exact.* Rows (g) to (i) say that :math:`s` is a subgradient of the norm at :math:`\beta`, and that the slope of
the squared loss is its multiple: the lasso is convex, so these are its minima. There, :math:`\sum e^2 = \sum e y -
\beta^\top \sum x e = \sum y e - \frac \lambda 2 \|\beta\|_1`, which makes (j) the squared loss and the norm without a
square. *The constants.* The mean alone is charged the squared loss around it, so that :math:`\lambda \|\beta_{lt}\|_1`
is at most that of all samples of treatment t, around their mean: N is the greatest of these over :math:`\lambda`. An
estimate is the mean outcome at the mean of its samples, and differs from it by at most N within [0, 1]: so :math:`H =
\max |y| + N`, and M is the range of y plus N. Where a leaf has no sample of a treatment, (g) to (i) leave :math:`\beta
= 0`. Outcomes are centred first, which moves the objective by a constant. A lasso of features that depend on each other
in a leaf may have several minima, of which the model takes the one that suits prescriptions best; the tree then has the
value of its own.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from formulations.opt import (
    LeafEstimates,
    Opt,
    OptH,
    PrescriptionExpressions,
    PrescriptiveInstance,
    PrescriptiveTree,
    TreatmentLeaves,
)
from formulations.splits.univariate import leaves_of
from mipforest.arrays import BoolArray, FloatArray
from mipforest.data import Dataset
from mipforest.model import LinearExpr, Model
from mipforest.model.check import ROUNDING
from mipforest.problem.expressions import Expression, TreeExpressions
from mipforest.problem.parameters import parameter
from mipforest.problem.structure import TreeCharges
from mipforest.trees import Tree

#: Rounds of coordinate descent at most, and the duality gap that ends them, as a share of the squared outcomes.
ROUNDS, ACCURACY = 20_000, 1e-9

#: Ranges of the outcome by which linear estimates may fall below all outcomes before a local search ends too soon.
HEADROOM = 2.0

#: What rounding may add to the slope of a feature that is left out.
SLOPE_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class LassoLeaves(TreatmentLeaves):
    """Leaves that estimate a linear function under each treatment.

    Attributes
    ----------
    lam
        Weight of the coefficients' sizes, above 0.
    """

    lam: float

    def fit(self, here: BoolArray) -> LeafEstimates:
        """Return the estimates of a leaf with the samples ``here`` (n,)."""
        constant = super().fit(here)
        X, y, given, weight = self.data.X[here], self.y[here], self.given[here], self.weights[here]
        outcome, slopes, total, loss = (
            constant.outcome.copy(),
            constant.coefficients,
            constant.total.copy(),
            0.0,
        )
        for t in np.flatnonzero(~np.isnan(outcome)):
            own = given == t
            slopes[t], charged = lasso(X[own], y[own], self.lam, weight[own])
            loss += charged
            outcome[t] -= float(np.average(X[own], axis=0, weights=weight[own]) @ slopes[t])
            if np.isfinite(total[t]):
                total[t] = weight.sum() * outcome[t] + float(weight @ X @ slopes[t])
        return LeafEstimates(outcome, slopes, total, loss)

    @property
    def farthest(self) -> float:
        """Greatest sum of the sizes of a leaf's coefficients under one treatment: N."""
        spread = []
        for had in self.members.T:
            y, weight = self.y[had], self.weights[had]
            spread.append(float(weight @ (y - np.average(y, weights=weight)) ** 2))
        return max(spread) / self.lam


def lasso(
    X: FloatArray, y: FloatArray, lam: float, weight: FloatArray | None = None
) -> tuple[FloatArray, float]:
    """Minimise the squared loss plus ``lam`` times the sum of the coefficients' sizes; the intercept is free.

    Coordinate descent finds features and signs; their linear equations then give the coefficients to the last digits.

    Parameters
    ----------
    X, y
        (k, p) features and (k,) targets.
    lam
        Weight, above 0.
    weight
        (k,) weights of the samples in the loss; 1 unless given.

    Returns
    -------
    tuple
        (p,) coefficients, and the minimum.
    """
    weight = np.ones(len(y)) if weight is None else weight
    root = np.sqrt(weight)
    Xc = root[:, None] * (X - np.average(X, axis=0, weights=weight))
    yc = root * (y - np.average(y, weights=weight))
    beta, theta, constant = np.zeros(X.shape[1]), lam / 2, float(yc @ yc)
    slope = Xc.T @ yc
    if np.abs(slope).max() <= theta:
        return beta, constant
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import Lasso, lars_path  # takes seconds; only linear estimates need it

    fitted = Lasso(alpha=theta / len(y), fit_intercept=False, tol=ACCURACY, max_iter=ROUNDS)
    gram, found = Xc.T @ Xc, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the conditions are looked at here
        beta = np.asarray(fitted.fit(Xc, yc).coef_, dtype=np.float64)
        found = _stationary(gram, slope, theta, beta)
        if found is None:
            # An outlying outcome leaves descent far from the minimum; the path of the penalty ends at it.
            _, _, path = lars_path(Xc, yc, method="lasso", alpha_min=theta / len(y))
            found = _stationary(gram, slope, theta, path[:, -1])
    beta = beta if found is None else found
    residuals = yc - Xc @ beta
    return beta, float(residuals @ residuals) + lam * float(np.abs(beta).sum())


def _stationary(gram: FloatArray, slope: FloatArray, theta: float, beta: FloatArray) -> FloatArray | None:
    """Solve the linear equations of a minimum with the features and signs of coefficients; ``None`` if it is none."""
    used, sign = beta != 0, np.sign(beta)
    exact = np.zeros(len(beta))
    exact[used] = np.linalg.lstsq(gram[np.ix_(used, used)], (slope - theta * sign)[used], rcond=None)[0]
    # Of features that depend on each other the equations may have no solution.
    missed = np.abs(slope - gram @ exact - theta * sign)
    most = np.where(used, 0.0, theta) + theta * SLOPE_ROUNDING + ROUNDING * (abs(gram) @ abs(exact))
    return exact if (np.sign(exact) == sign).all() and (missed <= most).all() else None


@dataclass(frozen=True, kw_only=True)
class LinearEstimates(PrescriptiveTree):
    """What the two models with linear estimates share.

    Parameters
    ----------
    lam
        Weight lambda of the coefficients' sizes, in units of the outcome.
    """

    lam: float = parameter(0.1, "weight of the coefficients of the estimates", above=0)

    def _leaves(self, data: Dataset) -> LassoLeaves:
        own = super()._leaves(data)
        return LassoLeaves(**vars(own), lam=self.lam)

    def _least_objective(self, leaves: TreatmentLeaves) -> float:
        assert isinstance(leaves, LassoLeaves)
        return self.mu * (float(leaves.y.min()) - leaves.farthest)

    def declare(self, m: Model, instance: PrescriptiveInstance) -> None:
        data, leaves, topology = instance.data, instance.leaves, instance.topology
        assert isinstance(leaves, LassoLeaves)
        complexity, group = instance.routing.declare(m), instance.routing.group
        centre, N = float(leaves.y.mean()), leaves.farthest
        y, weight = leaves.y - centre, leaves.weights
        H, M = float(np.abs(y).max()) + N, float(np.ptp(y)) + N
        z, had = m["z"][group], leaves.members.astype(float)
        over = (topology.leaves, data.classes)
        beta0 = m.continuous(
            "beta0", over, lower=-H, upper=H, meaning="intercept of a treatment's estimate in a leaf"
        )
        up, down = (
            m.nonnegative("beta_up", (*over, data.features), meaning="positive parts of its coefficients"),
            m.nonnegative("beta_down", (*over, data.features), meaning="negative parts of its coefficients"),
        )
        estimates = [
            beta0[:, t] + data.X @ (up - down)[:, t].T for t in range(data.n_classes)
        ]  # (n, |L|) each
        own: LinearExpr = sum(had[:, t : t + 1] * estimate for t, estimate in enumerate(estimates))
        e = m.continuous(
            "e",
            z.shape,
            lower=-M,
            upper=M,
            meaning="residual of a sample in the leaf that it reaches, else 0",
        )
        m.add("residual_here_below", e >= -M * z)  # (f)
        m.add("residual_here_above", e <= M * z)  # (f)
        m.add("residual_below", e - (y[:, None] - own) >= -M * (1 - z))  # (f)
        m.add("residual_above", e - (y[:, None] - own) <= M * (1 - z))  # (f)
        s = m.continuous(
            "subgradient", up.shape, lower=-1, upper=1, meaning="subgradient of the sizes of the coefficients"
        )
        u_up, u_down = (
            m.binary("u_up", up.shape, meaning="whether a coefficient is positive"),
            m.binary("u_down", up.shape, meaning="whether a coefficient is negative"),
        )
        errors = []
        for t in range(data.n_classes):
            each = weight * had[:, t]
            m.add(f"balanced_{t}", each @ e == 0, over=topology.leaves)  # (g)
            m.add(f"slope_{t}", 2 * ((each[:, None] * data.X).T @ e).T == self.lam * s[:, t])  # (g)
            size = (up[:, t] + down[:, t]).sum(axis=1)
            errors.append((each * y) @ e + 0.5 * self.lam * size)
            m.add(f"error_{t}", errors[-1] >= 0)  # (j)
        m.add("up", up <= N * u_up)  # (h)
        m.add("down", down <= N * u_down)  # (h)
        m.add("one_sign", u_up + u_down <= 1)  # (h)
        m.add("subgradient_up", s >= 2 * u_up - 1)  # (i)
        m.add("subgradient_down", s <= 1 - 2 * u_down)  # (i)
        tau = self._declare_prescriptions(m, instance)  # (d)
        prescribed = m.continuous(
            "p",
            z.shape,
            lower=-H,
            upper=H,
            meaning="outcome of the prescribed treatment for a sample in a leaf",
        )
        m.add("prescribed_here", prescribed >= -H * z)  # (k)
        for t, estimate in enumerate(estimates):
            m.add(f"prescribed_{t}", prescribed >= estimate - 2 * H * (2 - tau[:, t] - z))  # (k)
        costs: LinearExpr = self.alpha * leaves.baseline * complexity
        losses: LinearExpr = sum(part.sum() for part in errors)
        outcomes = (weight @ prescribed).sum() + leaves.total_weight * centre
        m.minimize((1 / leaves.total_weight) * (self.mu * outcomes + (1 - self.mu) * losses + costs))

    def encode(self, tree: Tree, instance: PrescriptiveInstance) -> dict[str, FloatArray]:
        leaves, routing, data = instance.leaves, instance.routing, instance.data
        y, splits = leaves.y - leaves.y.mean(), routing.encode(tree)
        z = leaves_of(tree, data.X)
        L, m, p = z.shape[1], data.n_classes, data.p
        beta0, beta, s = np.zeros((L, m)), np.zeros((L, m, p)), np.zeros((L, m, p))
        e, prescribed = np.zeros(z.shape), np.zeros(z.shape)
        tau = self._encoded_prescriptions(tree, z)
        for leaf in np.flatnonzero(z.any(axis=0)):
            here = z[:, leaf] > 0
            fitted = leaves.fit(here)
            beta0[leaf] = np.where(np.isnan(fitted.outcome), 0.0, fitted.outcome - leaves.y.mean())
            beta[leaf] = fitted.coefficients
            estimates = data.X[here] @ beta[leaf].T + beta0[leaf]
            e[here, leaf] = y[here] - estimates[np.arange(here.sum()), leaves.given[here]]
            prescribed[here, leaf] = estimates @ tau[leaf]
        for t in range(m):
            slopes = 2 * ((leaves.weights * leaves.members[:, t])[:, None] * data.X).T @ e / self.lam
            s[:, t] = np.where(beta[:, t] != 0, np.sign(beta[:, t]), np.clip(slopes.T, -1, 1))
        up, down = np.maximum(beta, 0.0), np.maximum(-beta, 0.0)
        signs = {"u_up": (up > 0).astype(float), "u_down": (down > 0).astype(float), "subgradient": s}
        return {
            **splits,
            "beta0": beta0,
            "beta_up": up,
            "beta_down": down,
            "e": e,
            **signs,
            "tau": tau,
            "p": prescribed,
        }

    def expressions(self, m: Model, instance: PrescriptiveInstance) -> TreeExpressions:
        return LinearEstimateExpressions(self.name, m, instance.data, instance.topology, instance.routing)

    def structure(self, instance: PrescriptiveInstance) -> TreeCharges:
        # Linear estimates may fall below all outcomes: sums that a search takes for positive have headroom.
        headroom = HEADROOM * float(np.ptp(instance.leaves.y))
        charges = super().structure(instance)
        offset = charges.offset - self.mu * headroom
        y = np.asarray(charges.y, dtype=np.float64) + headroom
        return replace(charges, y=y, offset=offset, coefficient_cost=self.lam)


@dataclass(frozen=True, eq=False)
class LinearEstimateExpressions(PrescriptionExpressions):
    """What models with linear estimates say besides prescriptions: which features the estimates use."""

    def leaf_features(self) -> Expression:
        """Return the (|L| m, p) expression: by :math:`u^+ + u^-`, one row per leaf and treatment."""
        return (self.m["u_up"] + self.m["u_down"]).reshape(-1, self.data.p)


@dataclass(frozen=True, kw_only=True)
class OptL(LinearEstimates, Opt):
    """Optimal prescriptive tree with univariate splits and linear estimates."""

    name = "opt-l"
    summary = "optimal prescriptive tree with univariate splits and linear estimates"
    takes_sets = False


@dataclass(frozen=True, kw_only=True)
class OptLH(LinearEstimates, OptH):
    """Optimal prescriptive tree with hyperplane splits and linear estimates."""

    name = "opt-lh"
    summary = "optimal prescriptive tree with hyperplane splits and linear estimates"
