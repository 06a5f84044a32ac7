r"""Times until an event, some censored: estimates of hazard and survival, targets of trees, scores of predictions.

A sample has a time, and whether its event was seen then (:math:`\delta_i = 1`) or it was only followed so far. At a
time :math:`t_j` of an event let :math:`d_j` be the weight of its events, and :math:`n_j` that of all samples followed
until then or longer. The estimates of Nelson and Aalen, and of Kaplan and Meier, are

.. math::

    \Lambda(t) = \sum_{t_j \le t} \frac{d_j}{n_j}, \qquad S(t) = \prod_{t_j \le t} \left(1 - \frac{d_j}{n_j}\right).

At one time events come before censorings: who is censored at :math:`t_j` counts in :math:`n_j`.

**Trees of relative risks** (LeBlanc and Crowley, *Relative Risk Trees for Censored Survival Data*, Biometrics 48, 1992;
Huisman, van der Linden and Demirović, *Optimal Survival Trees: A Dynamic Programming Approach*, AAAI 2024) give every
leaf a hazard ratio :math:`\theta` to the baseline :math:`\Lambda_0` of all samples. The log-likelihood of a leaf is

.. math::

    \sum_i w_i \left[ \delta_i \ln \theta - \theta \Lambda_0(t_i) \right] + \text{const}, \qquad
    \hat\theta = \frac{\sum_i w_i \delta_i}{\sum_i w_i \Lambda_0(t_i)}.

With the exposure :math:`e_i = w_i \Lambda_0(t_i)` as weight and :math:`y_i = \delta_i / \Lambda_0(t_i)` as target,
this is minus :math:`\sum_i e_i (\theta - y_i \ln \theta)`: a Poisson loss, whose best :math:`\hat\theta` is the
weighted mean of the targets (:func:`relative_risks`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.errors import DataError

#: Weight of a sample without exposure, as a share of the least exposure there is: weights have to be positive, and k of
#: such samples lower the hazard ratio of a leaf with others by less than k times this share of it.
NO_EXPOSURE = 1e-9

#: Probabilities that were computed leave the range from 0 to 1 by less than this.
ROUNDING = 1e-9


class StepFunction(NamedTuple):
    """A right-continuous step function of time.

    Attributes
    ----------
    times
        (m,) times of its steps, ascending and distinct.
    values
        (m,) value from each of them on, until the next one; the last value stays.
    first
        Value before the first step.
    """

    times: FloatArray
    values: FloatArray
    first: float

    def at(self, time: ArrayLike) -> FloatArray:
        """Return the values at times of any shape, in the same shape.

        Raises
        ------
        DataError
            If a time is NaN.
        """
        asked = _numbers("time", time)
        _refuse("time", asked, np.isnan(asked), "the function is one of numbers: give one")
        steps = np.searchsorted(self.times, asked, side="right")
        return np.asarray(np.append(self.first, self.values)[steps])


def nelson_aalen(time: ArrayLike, event: ArrayLike, weight: ArrayLike | None = None) -> StepFunction:
    """Estimate the cumulative hazard (Nelson 1972, Aalen 1978).

    Parameters
    ----------
    time
        (n,) finite times, at least 0, of the event or of the censoring.
    event
        (n,) whether the event was seen.
    weight
        (n,) positive weights; 1 for each where none are given.

    Returns
    -------
    StepFunction
        From 0 up, with a step at every time with an event; 0 throughout where there is none.

    Raises
    ------
    DataError
        If the shapes differ, there is no sample, or a number is out of its range.
    """
    counts = _counts(*_samples(time, event, weight))
    seen = counts.events > 0
    d = counts.events[seen]
    hazard = np.cumsum(d / (d + (counts.censored + counts.later)[seen]))
    return StepFunction(counts.times[seen], hazard, 0.0)


def kaplan_meier(time: ArrayLike, event: ArrayLike, weight: ArrayLike | None = None) -> StepFunction:
    """Estimate the survival function (Kaplan and Meier 1958).

    Parameters
    ----------
    time, event, weight
        As for :func:`nelson_aalen`.

    Returns
    -------
    StepFunction
        From 1 down, with a step at every time with an event; 1 throughout where there is none. It ends at 0,
        exactly, if nobody is censored at the longest time. Beyond that time it stays, though nothing is known there.

    Raises
    ------
    DataError
        As for :func:`nelson_aalen`.
    """
    counts = _counts(*_samples(time, event, weight))
    return _product_limit(counts.times, counts.events, counts.censored + counts.later)


def kaplan_meier_of_censoring(
    time: ArrayLike, event: ArrayLike, weight: ArrayLike | None = None
) -> StepFunction:
    """Estimate the probability of not being censored until a time, for the weights of :func:`brier_scores`.

    This is ``kaplan_meier(time, ~event)``, but with events before censorings also where both are at one time: who had
    its event there is not at risk of being censored any more.

    Parameters
    ----------
    time, event, weight
        As for :func:`nelson_aalen`; the event is still that of interest.

    Returns
    -------
    StepFunction
        From 1 down, with a step at every time with a censoring. It ends at 0 if a sample is
        censored at the longest time.

    Raises
    ------
    DataError
        As for :func:`nelson_aalen`.
    """
    counts = _counts(*_samples(time, event, weight))
    return _product_limit(counts.times, counts.censored, counts.later)


def relative_risks(
    time: ArrayLike,
    event: ArrayLike,
    weight: ArrayLike | None = None,
    baseline: StepFunction | None = None,
) -> tuple[FloatArray, FloatArray, StepFunction]:
    r"""Return targets and weights whose mean in a leaf is its hazard ratio (LeBlanc and Crowley 1992).

    Parameters
    ----------
    time, event, weight
        As for :func:`nelson_aalen`; at least one event, unless there is a baseline.
    baseline
        Cumulative hazard of the training samples, for other ones; an event before its first step has that of the step.

    Returns
    -------
    rate
        (n,) targets :math:`\delta_i / \Lambda_0(t_i)`.
    exposure
        (n,) weights :math:`w_i \Lambda_0(t_i)`. A sample that was censored before the first event says nothing
        of hazards, as :math:`\Lambda_0(t_i) = 0`: its target is 0, and its weight :data:`NO_EXPOSURE` times the least
        of the others.
    baseline
        The cumulative hazard :math:`\Lambda_0` of all samples. Those of a leaf with hazard ratio :math:`\theta` have
        the survival function :math:`\exp(-\theta \Lambda_0(t))`.

    Raises
    ------
    DataError
        As for :func:`nelson_aalen`, and if there is no event.

    Notes
    -----
    The hazard ratio of all samples together is 1: their exposures sum to the weight of the events.
    """
    time, event, weight = _samples(time, event, weight)
    if baseline is None and not event.any():
        raise DataError(
            f"none of the {len(time)} samples had its event, so all hazards are 0 and no two can be compared; "
            "check that event is True where the event was seen, or give samples that were followed for longer"
        )
    baseline = nelson_aalen(time, event, weight) if baseline is None else baseline
    hazard = baseline.at(time)
    # Among training samples no event is before the first one: only censored ones lack exposure.
    hazard[event] = np.maximum(hazard[event], baseline.values[0])
    exposed = hazard > 0
    rate, exposure = np.zeros(len(time)), weight * hazard
    rate[event] = 1.0 / hazard[event]
    exposure[~exposed] = NO_EXPOSURE * exposure[exposed].min(initial=float(baseline.values[0]))
    return rate, exposure, baseline


def concordance(time: ArrayLike, event: ArrayLike, risk: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Return Harrell's C: how often, of two samples, the one with the greater risk has its event first.

    A pair is comparable if the one with the shorter time had its event. At equal times an event comes before a
    censoring, and two events are not comparable. A pair weighs the product of both weights, as in R's ``survival``.

    Parameters
    ----------
    time, event, weight
        As for :func:`nelson_aalen`.
    risk
        (n,) predicted risks, of any scale; a greater one predicts an earlier event. They may be infinite, as logarithms
        of hazards are.

    Returns
    -------
    float
        Share of the comparable pairs, from 0 to 1, in which the risk of the shorter time is greater; pairs of equal
        risks count one half.

    Raises
    ------
    DataError
        As for :func:`nelson_aalen`, if a risk is NaN, or if no pair is comparable.

    Notes
    -----
    It takes about n (log n)^2 steps. Two different ranks of risks have one highest binary digit in which they differ:
    one pass for each digit finds every pair once.
    """
    time, event, weight = _samples(time, event, weight)
    risk = _of_samples("risk", risk, len(time))
    _refuse(
        "risk", risk, np.isnan(risk), "a missing risk has no place among others: predict one, or leave it out"
    )
    w: FloatArray = weight / weight.max()  # products of two stay finite
    # A pair of an event and any sample is comparable if the other one's moment is later.
    moment = 2 * np.unique(time, return_inverse=True)[1] + ~event
    of_event = np.where(event, w, 0.0)
    comparable = float(of_event @ _later(np.zeros_like(moment), moment, w))
    if comparable == 0:
        raise DataError(
            f"no two of the {len(time)} samples can be compared: {int(event.sum())} had their event, "
            "none of them before the time of another sample; give samples with events that others outlast"
        )
    rank = np.unique(risk, return_inverse=True)[1]
    won = 0.5 * float(of_event @ _later(rank, moment, w))
    for digit in range(int(rank.max()).bit_length()):
        higher, is_one = rank >> (digit + 1), (rank >> digit) & 1 == 1
        won += float(np.where(is_one, of_event, 0.0) @ _later(higher, moment, np.where(is_one, 0.0, w)))
    # Both are sums of the same terms in another order.
    return min(won / comparable, 1.0)


def brier_scores(
    time: ArrayLike, event: ArrayLike, survival: ArrayLike, times: ArrayLike, censoring: StepFunction
) -> FloatArray:
    r"""Return the Brier scores of predicted survival functions (Graf et al., Statistics in Medicine 18, 1999).

    With the probability :math:`G` of not being censored, the score at a time t is the mean over all samples of

    .. math::

        \frac{S_i(t)^2 \, [t_i \le t, \delta_i = 1]}{G(t_i)} + \frac{(1 - S_i(t))^2 \, [t_i > t]}{G(t)},

    in which samples that are followed for longer stand for those that were censored before t, which count 0.

    Parameters
    ----------
    time, event
        (n,) of the samples that are predicted, as for :func:`nelson_aalen`.
    survival
        (n, m) predicted probabilities, from 0 to 1, that the event of a sample is after a time.
    times
        (m,) finite times, at least 0, in any order.
    censoring
        :func:`kaplan_meier_of_censoring` of the training samples.

    Returns
    -------
    scores
        (m,) scores, at least 0; 0 is the best, and 1/4 what the prediction 1/2 has without censoring.

    Raises
    ------
    DataError
        As for :func:`nelson_aalen`, if a probability is not from 0 to 1, or if ``censoring`` is 0 where its inverse is
        needed: no training sample was followed for so long.
    """
    time, event, _ = _samples(time, event, None)
    times = _asked_times(times)
    survival = _numbers("survival functions", survival)
    if survival.shape != (len(time), len(times)):
        raise DataError(
            f"survival functions have shape {survival.shape}, and it must be ({len(time)}, {len(times)}): one row for "
            "each sample, one column for each of the times"
        )
    _refuse(
        "survival functions",
        survival,
        ~((survival >= -ROUNDING) & (survival <= 1 + ROUNDING)),
        "it is a probability: predict numbers from 0 to 1",
    )
    at_own_time, at_times = censoring.at(time), censoring.at(times)
    scores = np.empty(len(times))
    for k, t in enumerate(times):
        past, ahead = event & (time <= t), time > t
        followed = np.where(past, at_own_time, at_times[k])
        counted = past | ahead
        if not (followed[counted] > 0).all():
            raise DataError(
                f"the probability of not being censored is 0 at a time that the score at {t:g} needs, as the training "
                "samples were not followed for so long, and its inverse would be infinite; give times below "
                f"{_end_of(censoring):g}"
            )
        missed = np.where(past, survival[:, k], 1.0 - survival[:, k])[counted]
        scores[k] = float((missed**2 / followed[counted]).sum()) / len(time)
    return scores


def integrated_brier_score(
    time: ArrayLike, event: ArrayLike, survival: ArrayLike, times: ArrayLike, censoring: StepFunction
) -> float:
    """Return the mean of the Brier score over a range of times, by the trapezoidal rule.

    Parameters
    ----------
    time, event, survival, censoring
        As for :func:`brier_scores`.
    times
        (m,) finite times, at least two, ascending and distinct.

    Returns
    -------
    float
        Integral of the score from the first of the times to the last, divided by the time between them.

    Raises
    ------
    DataError
        As for :func:`brier_scores`, and if there are fewer than two times, or they do not ascend.
    """
    times = _asked_times(times)
    if len(times) < 2:
        raise DataError(f"{len(times)} times have no range to integrate over; give two or more")
    steps = np.diff(times)
    if not (steps > 0).all():
        k = int((steps <= 0).argmax())
        raise DataError(
            f"times[{k + 1}] is {times[k + 1]:g} and follows {times[k]:g}, but an integral needs ascending times; sort "
            "them, without repetitions, and the columns of survival with them"
        )
    scores = brier_scores(time, event, survival, times, censoring)
    return float(np.trapezoid(scores, times) / (times[-1] - times[0]))


class SurvivalMeasures(NamedTuple):
    """Measures of predicted hazard ratios.

    Attributes
    ----------
    concordance
        Harrell's C (:func:`concordance`), by weight: 1/2 for one prediction for all.
    integrated_brier_score
        Mean Brier score (:func:`integrated_brier_score`), in which samples count once, over the times of events of the
        training samples, up to the last one before :data:`FOLLOWED` of these are gone.
    """

    concordance: float
    integrated_brier_score: float


#: Share of the training samples that may be gone at the last time of a Brier score: later ones rest on a few samples.
FOLLOWED = 0.9


def survival_measures(
    followed: FloatArray, ratio: FloatArray, baseline: StepFunction, training: FloatArray
) -> SurvivalMeasures:
    """Measure predicted hazard ratios.

    Parameters
    ----------
    followed, training
        (n, 3) time of each sample, 1 where its event was seen then, and its weight; and those of the training samples.
    ratio
        (n,) predicted hazard ratios.
    baseline
        Cumulative hazard that the ratios multiply.

    Returns
    -------
    SurvivalMeasures
        NaN where no two samples can be compared, and where there are not two times of events.
    """
    found = [np.nan, np.nan]
    time, event = followed[:, 0], followed[:, 1] > 0
    with suppress(DataError):
        found[0] = concordance(time, event, ratio, followed[:, 2])
    times = np.unique(training[training[:, 1] > 0, 0])
    times = times[times < np.quantile(training[:, 0], FOLLOWED)]
    if len(times) >= 2:
        alive = np.exp(-ratio[:, None] * baseline.at(times))
        with suppress(DataError):
            censoring = kaplan_meier_of_censoring(training[:, 0], training[:, 1] > 0)
            found[1] = integrated_brier_score(time, event, alive, times, censoring)
    return SurvivalMeasures(*found)


# ------------------------------------------------------------------ sums over samples


class _Counts(NamedTuple):
    """Weights (m,) at the distinct times, ascending: of events, of censorings, and of all samples with later times."""

    times: FloatArray
    events: FloatArray
    censored: FloatArray
    later: FloatArray


def _counts(time: FloatArray, event: BoolArray, weight: FloatArray) -> _Counts:
    times, group = np.unique(time, return_inverse=True)
    events: FloatArray = np.bincount(group, np.where(event, weight, 0.0), len(times)).astype(np.float64)
    censored: FloatArray = np.bincount(group, np.where(event, 0.0, weight), len(times)).astype(np.float64)
    # Sums from the end subtract nothing, so that the last ones are as exact as the first.
    later = np.append(np.cumsum((events + censored)[:0:-1])[::-1], 0.0)
    return _Counts(times, events, censored, later)


def _product_limit(times: FloatArray, leaving: FloatArray, staying: FloatArray) -> StepFunction:
    """Return the product of the shares that stay, over the times at which a weight leaves.

    ``staying / (leaving + staying)`` is 0 where nobody stays; one minus the share that leaves may round to less.
    """
    steps = leaving > 0
    share: FloatArray = staying[steps] / (leaving[steps] + staying[steps])
    return StepFunction(times[steps], share.cumprod(), 1.0)


def _later(group: IntArray, moment: IntArray, weight: FloatArray) -> FloatArray:
    """Return (n,) for each sample the weight of those in its group whose moment is later."""
    span = int(moment.max()) + 1
    key = group * span + moment
    order = np.argsort(key)
    ordered = key[order]
    from_end = np.append(np.cumsum(weight[order][::-1])[::-1], 0.0)
    after = np.searchsorted(ordered, key, side="right")
    end = np.searchsorted(ordered, (group + 1) * span)
    found: FloatArray = from_end[after] - from_end[end]
    return found


def _end_of(censoring: StepFunction) -> float:
    """Return the first time from which on nobody is followed."""
    starts, values = np.append(0.0, censoring.times), np.append(censoring.first, censoring.values)
    return float(starts[(~(values > 0)).argmax()])


# ------------------------------------------------------------------ what is given


def _samples(
    time: ArrayLike, event: ArrayLike, weight: ArrayLike | None
) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Return times, events and weights, each (n,), or refuse them."""
    time = _numbers("time", time)
    if time.ndim != 1 or not len(time):
        raise DataError(
            f"time has shape {time.shape}, it must be (n,) with n >= 1: give one time for each sample"
        )
    _refuse_times("time", time)
    event = _of_samples("event", event, len(time))
    _refuse(
        "event",
        event,
        (event != 0) & (event != 1),
        "events are True where they were seen, False where the sample was censored: compare with the code of the event",
    )
    weight = np.ones(len(time)) if weight is None else _of_samples("weight", weight, len(time))
    _refuse(
        "weight",
        weight,
        ~(np.isfinite(weight) & (weight > 0)),
        "weights are positive and finite: correct it, or leave the sample out",
    )
    # Sums of weights have to be finite too.
    _refuse(
        "weight",
        weight,
        weight > np.finfo(np.float64).max / len(time),
        "the sum of such weights is infinite: divide all by the greatest",
    )
    return time, event == 1, weight


def _asked_times(times: ArrayLike) -> FloatArray:
    """Return times (m,) of scores, or refuse them."""
    times = _numbers("times", times)
    if times.ndim != 1:
        raise DataError(f"times has shape {times.shape}, it must be (m,): give the times in one row")
    _refuse_times("times", times)
    return times


def _refuse_times(name: str, times: FloatArray) -> None:
    """Refuse times that are negative or not finite."""
    _refuse(
        name,
        times,
        ~(np.isfinite(times) & (times >= 0)),
        "times are finite and at least 0: correct it, or leave it out",
    )


def _of_samples(name: str, values: ArrayLike, n: int) -> FloatArray:
    """Return (n,) numbers, or refuse another shape."""
    found = _numbers(name, values)
    if found.shape != (n,):
        raise DataError(f"{name} has shape {found.shape}, it must be ({n},): give one for each time")
    return found


def _numbers(name: str, values: ArrayLike) -> FloatArray:
    """Return an array of numbers, or refuse what holds others."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be numbers ({error}); give one for each entry") from error


def _refuse(name: str, values: FloatArray, bad: BoolArray, advice: str) -> None:
    """Refuse the first bad value, with where it stands."""
    if bad.any():
        at = np.argwhere(bad)[0]
        place = f"[{', '.join(map(str, at))}]" if len(at) else ""
        raise DataError(f"{name}{place} is {float(values[tuple(at)]):g}; {advice}")
