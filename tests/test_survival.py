"""Estimates of survival are those of their definitions, of a textbook and of scikit-survival; bad data are refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seeds import seeds
from tolerance import at_least, at_most, in_order, same

from mipforest.data import DataError
from mipforest.survival import (
    NO_EXPOSURE,
    StepFunction,
    brier_scores,
    concordance,
    integrated_brier_score,
    kaplan_meier,
    kaplan_meier_of_censoring,
    nelson_aalen,
    relative_risks,
)

#: Remission in weeks under 6-MP (Freireich et al., Blood 21, 1963); at 6 and at 10 weeks one was censored.
REMISSION = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
RELAPSE = [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]


def survival_case(seed):
    """A few samples, with ties of times, and of events and censorings; every third case has weights of one."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    time = rng.integers(0, 12, n) / 4 if seed % 2 else rng.random(n)
    event = rng.random(n) < rng.choice([0.3, 0.7, 1.0])
    # One event that all others outlast: a baseline, and a pair to compare.
    time[0], event[0], time[1:] = 0.05, True, time[1:] + 0.1 * (seed % 3 > 0)
    return time, event, np.ones(n) if seed % 3 == 0 else rng.integers(1, 9, n) / 4


@st.composite
def sample_lists(draw):
    """Times, events and weights of up to 12 samples."""
    n = draw(st.integers(1, 12))
    time = draw(st.lists(st.integers(0, 5) | st.floats(0, 1e6), min_size=n, max_size=n))
    event = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    weight = draw(st.lists(st.floats(1e-3, 1e3), min_size=n, max_size=n))
    return np.array(time, dtype=float), np.array(event), np.array(weight)


def at_risk(time, event, weight, t):
    """Weight of the events at a time, and of all samples followed until then."""
    return weight[event & (time == t)].sum(), weight[time >= t].sum()


def instants(*times):
    """Times, the middles between them, and times before and after."""
    found = np.unique(np.concatenate(times))
    return np.concatenate([[-1.0], found, (found[1:] + found[:-1]) / 2, [found[-1] + 1.0]])


def replicated(count, *arrays):
    return tuple(np.repeat(np.asarray(array), count, axis=0) for array in arrays)


# ------------------------------------------------------------------ estimates


def test_a_step_function_is_continuous_from_the_right():
    steps = StepFunction(np.array([1.0, 2.0]), np.array([0.5, 0.25]), 1.0)
    # exact: copies
    assert steps.at([[0.0, 0.999, 1.0], [1.5, 2.0, np.inf]]).tolist() == [[1.0, 1.0, 0.5], [0.5, 0.25, 0.25]]
    assert steps.at(1.0).shape == ()
    constant = StepFunction(np.array([]), np.array([]), 3.0)
    assert constant.at([0.0, 9.0]).tolist() == [3.0, 3.0]
    with pytest.raises(DataError, match=r"time\[1\] is nan"):
        steps.at([1.0, np.nan])


def test_the_textbook_example():
    # Kalbfleisch and Prentice; Collett: 0.857, 0.807, ... and the sums of d / n.
    survival = kaplan_meier(REMISSION, RELAPSE)
    assert survival.times.tolist() == [6, 7, 10, 13, 16, 22, 23]
    assert survival.values == pytest.approx([0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448], abs=5e-4)
    hazard = nelson_aalen(REMISSION, RELAPSE)
    assert same(hazard.values, np.cumsum([3 / 21, 1 / 17, 1 / 15, 1 / 12, 1 / 11, 1 / 7, 1 / 6]))
    assert same(hazard.at([5.9, 6, 100]), [0, 3 / 21, hazard.values[-1]])


@pytest.mark.parametrize("seed", seeds(20, 200))
def test_estimates_are_those_of_their_definitions(seed):
    time, event, weight = survival_case(seed)
    hazard, survival = nelson_aalen(time, event, weight), kaplan_meier(time, event, weight)
    censoring = kaplan_meier_of_censoring(time, event, weight)
    for t in instants(time):
        steps = [at_risk(time, event, weight, s) for s in np.unique(time[event & (time <= t)])]
        assert same(hazard.at(t), sum(d / n for d, n in steps))
        assert same(survival.at(t), math.prod(1 - d / n for d, n in steps))
        # Who had its event at a time is not at risk of being censored there.
        out = [at_risk(time, ~event, weight, s) for s in np.unique(time[~event & (time <= t)])]
        gone = [at_risk(time, event, weight, s)[0] for s in np.unique(time[~event & (time <= t)])]
        assert same(censoring.at(t), math.prod(1 - c / (n - d) for (c, n), d in zip(out, gone, strict=True)))


@given(sample_lists())
def test_estimates_are_monotone_and_end_where_nobody_is_left(samples):
    time, event, weight = samples
    hazard, survival = nelson_aalen(*samples), kaplan_meier(*samples)
    assert same(hazard.times, survival.times)
    assert same(hazard.times, np.unique(time[event]))
    assert in_order([0.0, *hazard.values])
    assert in_order([0.0, *survival.values[::-1], 1.0])
    # exact: products of shares, of which one is zero
    assert (survival.at(time.max()) == 0) == bool(event[time == time.max()].all())
    # The product of 1 - h is at most exp(-h), whose exponents sum to the hazard.
    assert at_most(survival.values, np.exp(-hazard.values))
    scaled = kaplan_meier(2 * time, event, 3 * weight)
    assert same(scaled.values, survival.values)


@given(sample_lists())
def test_without_ties_of_both_kinds_the_censoring_is_the_other_event(samples):
    time, event, weight = samples
    time = np.where(event, np.floor(time), np.floor(time) + 0.5)
    ours, other = kaplan_meier_of_censoring(time, event, weight), kaplan_meier(time, ~event, weight)
    assert same(ours.times, other.times)
    assert same(ours.values, other.values)
    # Every sample that is followed beyond t is neither an event nor a censoring until t.
    both, followed = kaplan_meier(time, event, weight), instants(time)
    left = [weight[time > t].sum() / weight.sum() for t in followed]
    assert same(both.at(followed) * ours.at(followed), left)


@pytest.mark.parametrize("seed", seeds(5, 50))
def test_a_weight_is_a_number_of_copies(seed):
    time, event, _ = survival_case(seed)
    rng = np.random.default_rng(seed)
    count, risk = rng.integers(1, 5, len(time)), rng.integers(0, 4, len(time))
    copies = replicated(count, time, event)
    for estimate in (nelson_aalen, kaplan_meier, kaplan_meier_of_censoring):
        assert same(estimate(time, event, count).values, estimate(*copies).values)
    ours = concordance(time, event, risk, count)
    assert same(ours, concordance(*copies, np.repeat(risk, count)))


# ------------------------------------------------------------------ relative risks


@pytest.mark.parametrize("seed", seeds(20, 200))
def test_the_hazard_ratio_of_a_leaf_is_the_mean_of_its_targets(seed):
    time, event, weight = survival_case(seed)
    rate, exposure, baseline = relative_risks(time, event, weight)
    hazard = baseline.at(time)
    assert (exposure > 0).all()
    rng = np.random.default_rng(seed)
    for leaf in (np.arange(len(time)), rng.permutation(len(time))[: int(rng.integers(1, len(time) + 1))]):
        own = hazard[leaf] > 0
        ratio = np.average(rate[leaf], weights=exposure[leaf])
        if not own.any():
            assert ratio == 0  # exact: a mean of zeros
            continue
        assert ratio == pytest.approx(
            weight[leaf] @ event[leaf] / (weight[leaf] @ hazard[leaf]), rel=len(leaf) * NO_EXPOSURE
        )

        def likelihood(theta, leaf=leaf):
            return weight[leaf] @ (event[leaf] * np.log(theta) - theta * hazard[leaf])

        # It maximises the likelihood, and up to a constant this is minus the Poisson loss of the targets.
        others = max(ratio, 0.1) * np.exp(np.linspace(-1, 1, 21))
        if ratio > 0:
            assert at_least(likelihood(ratio), [likelihood(theta) for theta in others])
        poisson = [exposure[leaf][own] @ (theta - rate[leaf][own] * np.log(theta)) for theta in others]
        assert same(np.add([likelihood(theta) for theta in others], poisson), 0.0)
    # Exposures of all samples sum to the weight of the events.
    assert rate @ exposure == pytest.approx(exposure.sum(), rel=len(time) * NO_EXPOSURE)


def test_samples_censored_before_the_first_event_say_nothing():
    rate, exposure, baseline = relative_risks([1, 2, 2, 3, 4], [0, 1, 0, 1, 0], [5, 1, 1, 2, 1])
    assert same(baseline.times, [2, 3])
    assert same(baseline.values, [1 / 5, 1 / 5 + 2 / 3])
    assert same(rate, [0, 5, 0, 15 / 13, 0])
    assert same(exposure[1:], [1 / 5, 1 / 5, 26 / 15, 13 / 15])
    assert exposure[0] == pytest.approx(NO_EXPOSURE / 5, rel=1e-9)


# ------------------------------------------------------------------ concordance


def concordance_by_pairs(time, event, risk, weight):
    won = comparable = 0.0
    for i in np.flatnonzero(event):
        for j in range(len(time)):
            if time[j] > time[i] or (time[j] == time[i] and not event[j]):
                comparable += weight[i] * weight[j]
                won += weight[i] * weight[j] * ((risk[i] > risk[j]) + 0.5 * (risk[i] == risk[j]))
    return won / comparable


@pytest.mark.parametrize("seed", seeds(20, 200))
def test_the_concordance_is_that_of_all_pairs(seed):
    time, event, weight = survival_case(seed)
    rng = np.random.default_rng(seed)
    n = len(time)
    risk = rng.choice([-np.inf, 0.0, 1.0, 2.5], n) if seed % 2 else rng.normal(size=n)
    ours = concordance(time, event, risk, weight)
    assert same(ours, concordance_by_pairs(time, event, risk, weight))
    assert same(ours + concordance(time, event, -risk, weight), 1.0)
    assert same(concordance(time, event, np.zeros(n), weight), 0.5)
    assert same(concordance(time, event, -(2 * time + ~event), weight), 1.0)
    assert 0.0 <= ours <= 1.0  # exact: it is bounded where it is computed


def test_concordance_compares_an_event_with_a_censoring_at_its_time():
    assert same(concordance([1, 1], [True, False], [2, 1]), 1.0)
    with pytest.raises(DataError, match="2 had their event, none of them before the time of another"):
        concordance([1, 1], [True, True], [2, 1])
    with pytest.raises(DataError, match="1 had their event"):
        concordance([1, 2], [False, True], [2, 1])


# ------------------------------------------------------------------ Brier scores


def brier_by_definition(time, event, survival, times, censoring):
    scores = []
    for k, t in enumerate(times):
        score = 0.0
        for i in range(len(time)):
            if time[i] <= t and event[i]:
                score += survival[i, k] ** 2 / float(censoring.at(time[i]))
            elif time[i] > t:
                score += (1 - survival[i, k]) ** 2 / float(censoring.at(t))
        scores.append(score / len(time))
    return scores


@pytest.mark.parametrize("seed", seeds(20, 200))
def test_brier_scores_are_those_of_their_definition(seed):
    time, event, weight = survival_case(seed)
    # A sample of the training data outlasts all others: no weight is infinite.
    training = (np.append(time, 99.0), np.append(event, True), np.append(weight, 1.0))
    rng = np.random.default_rng(seed)
    times = np.unique(rng.choice(np.append(time, rng.random(3)), 5))
    survival = rng.random((len(time), len(times)))
    for censoring in (kaplan_meier_of_censoring(*training), kaplan_meier(training[0], ~training[1])):
        scores = brier_scores(time, event, survival, times, censoring)
        expected = brier_by_definition(time, event, survival, times, censoring)
        assert same(scores, expected)
        order = rng.permutation(len(times))
        shuffled = brier_scores(time, event, survival[:, order], times[order], censoring)
        assert same(shuffled, scores[order])
        if len(times) > 1:
            area = sum(
                (b - a) * (u + v) / 2
                for a, b, u, v in zip(times, times[1:], expected, expected[1:], strict=False)
            )
            whole = integrated_brier_score(time, event, survival, times, censoring)
            assert same(whole, area / (times[-1] - times[0]))


def test_without_censoring_the_score_is_a_mean_of_squares():
    time, event = np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4, dtype=bool)
    censoring, times = kaplan_meier_of_censoring(time, event), np.array([1.5, 3.0])
    certain = (time[:, None] > times).astype(float)
    assert same(brier_scores(time, event, certain, times, censoring), 0.0)
    assert same(brier_scores(time, event, 1 - certain, times, censoring), 1.0)
    assert same(integrated_brier_score(time, event, np.full((4, 2), 0.5), times, censoring), 0.25)


def test_weights_make_up_for_the_censored():
    # Censoring is independent of the events: the weighted score is near that of all times, the naive one is not.
    rng = np.random.default_rng(0)
    n, t = 20_000, 1.0
    true, stopped = rng.exponential(1.0, n), rng.exponential(1.0, n)
    time, event = np.minimum(true, stopped), true <= stopped
    survival = np.full((n, 1), 0.2)
    score = brier_scores(time, event, survival, [t], kaplan_meier_of_censoring(time, event))[0]
    assert score == pytest.approx(np.mean(((true > t) - 0.2) ** 2), abs=0.02)
    assert abs(np.mean(((time > t) - 0.2) ** 2) - score) > 0.1


def test_times_beyond_the_training_samples_are_refused():
    time, event = [1.0, 2.0, 3.0, 3.0], [True, True, False, True]
    censoring = kaplan_meier_of_censoring(time, event)
    assert same(brier_scores(time, event, np.zeros((4, 1)), [2.5], censoring), 0.5)
    with pytest.raises(DataError, match=r"the score at 3 needs.*give times below 3"):
        brier_scores(time, event, np.zeros((4, 1)), [3.0], censoring)
    with pytest.raises(DataError, match="the score at 4 needs"):
        brier_scores([5.0], [False], [[1.0]], [4.0], censoring)
    # The others of this time count nothing, and need no weight.
    assert same(brier_scores([1.0, 3.5], [True, False], np.ones((2, 1)), [4.0], censoring), 0.5)


# ------------------------------------------------------------------ scikit-survival


def structured(time, event):
    return np.array(list(zip(event, time, strict=True)), dtype=[("event", bool), ("time", float)])


@pytest.mark.parametrize("seed", seeds(10, 100))
def test_agrees_with_scikit_survival(seed):
    nonparametric, metrics = (
        pytest.importorskip("sksurv.nonparametric"),
        pytest.importorskip("sksurv.metrics"),
    )
    rng = np.random.default_rng(seed)
    time, event, _ = survival_case(seed)
    for theirs, ours in (
        (nonparametric.nelson_aalen_estimator(event, time), nelson_aalen(time, event)),
        (nonparametric.kaplan_meier_estimator(event, time), kaplan_meier(time, event)),
        (
            nonparametric.kaplan_meier_estimator(event, time, reverse=True),
            kaplan_meier_of_censoring(time, event),
        ),
    ):
        assert same(ours.at(theirs[0]), theirs[1])
    risk = rng.choice([0.0, 1.0, 2.5], len(time)) if seed % 2 else rng.normal(size=len(time))
    theirs = metrics.concordance_index_censored(event, time, risk)[0]
    assert same(concordance(time, event, risk), theirs)
    # It takes times within those of the tests, and of the training samples.
    training = np.append(time, [98.0, 99.0]), np.append(event, [False, True])
    times = np.unique(rng.uniform(time.min(), time.max(), 6))
    survival = rng.random((len(time), len(times)))
    arguments = structured(*training), structured(time, event), survival, times
    censoring = kaplan_meier_of_censoring(*training)
    theirs = metrics.brier_score(*arguments)[1]
    assert same(brier_scores(time, event, survival, times, censoring), theirs)
    theirs = metrics.integrated_brier_score(*arguments)
    assert same(integrated_brier_score(time, event, survival, times, censoring), theirs)


def test_agrees_with_scikit_survival_on_breast_cancer():
    datasets, metrics = pytest.importorskip("sksurv.datasets"), pytest.importorskip("sksurv.metrics")
    X, y = datasets.load_gbsg2()
    event, time, nodes = y["cens"], y["time"], X["pnodes"].to_numpy(float)
    ours = concordance(time, event, nodes)
    assert same(ours, metrics.concordance_index_censored(event, time, nodes)[0])
    rate, exposure, baseline = relative_risks(time, event)
    many = nodes > 3
    ratio = np.where(many, *(np.average(rate[leaf], weights=exposure[leaf]) for leaf in (many, ~many)))
    times = np.arange(365.0, 1826.0, 73.0)
    survival = np.exp(-np.outer(ratio, baseline.at(times)))
    theirs = metrics.integrated_brier_score(y, y, survival, times)
    found = integrated_brier_score(time, event, survival, times, kaplan_meier_of_censoring(time, event))
    assert same(found, theirs)


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize("estimate", [nelson_aalen, kaplan_meier, kaplan_meier_of_censoring, relative_risks])
@pytest.mark.parametrize(
    ("time", "event", "weight", "message"),
    [
        ([1, np.nan], [1, 1], None, r"time\[1\] is nan; times are finite and at least 0"),
        ([1, np.inf], [1, 1], None, r"time\[1\] is inf"),
        ([-1, 2], [1, 1], None, r"time\[0\] is -1"),
        ([], [], None, r"time has shape \(0,\)"),
        (3.0, True, None, r"time has shape \(\)"),
        ([[1, 2]], [[1, 1]], None, r"time has shape \(1, 2\)"),
        (["a", "b"], [1, 1], None, "time must be numbers"),
        ([1, 2], [1], None, r"event has shape \(1,\), it must be \(2,\)"),
        ([1, 2], [1, 2], None, r"event\[1\] is 2; events are True where they were seen"),
        ([1, 2], [1, np.nan], None, r"event\[1\] is nan"),
        ([1, 2], [1, 1], [1, 0], r"weight\[1\] is 0; weights are positive and finite"),
        ([1, 2], [1, 1], [-1, 1], r"weight\[0\] is -1"),
        ([1, 2], [1, 1], [np.inf, 1], r"weight\[0\] is inf"),
        ([1, 2], [1, 1], [1e308, 1e308], r"weight\[0\] is 1e\+308; the sum of such weights is infinite"),
        ([1, 2], [1, 1], [1, 1, 1], r"weight has shape \(3,\)"),
    ],
)
def test_what_is_no_sample_is_refused(estimate, time, event, weight, message):
    with pytest.raises(DataError, match=message):
        estimate(time, event, weight)


def test_without_an_event_there_is_no_hazard_to_compare():
    with pytest.raises(DataError, match="none of the 2 samples had its event"):
        relative_risks([1, 2], [False, False])
    # As estimates, these are constants.
    assert same(nelson_aalen([1, 2], [False, False]).at([0, 5]), 0.0)
    assert same(kaplan_meier([1, 2], [False, False]).at([0, 5]), 1.0)
    assert same(kaplan_meier_of_censoring([1, 2], [True, True]).at([0, 5]), 1.0)


def test_what_has_no_score_is_refused():
    time, event = [1, 2], [True, True]
    censoring, one = kaplan_meier_of_censoring(time, event), np.ones((2, 1))
    with pytest.raises(DataError, match=r"risk\[1\] is nan"):
        concordance(time, event, [1, np.nan])
    with pytest.raises(DataError, match=r"risk has shape \(2, 1\), it must be \(2,\)"):
        concordance(time, event, one)
    with pytest.raises(DataError, match=r"survival functions have shape \(2, 1\), and it must be \(2, 2\)"):
        brier_scores(time, event, one, [1, 2], censoring)
    with pytest.raises(DataError, match=r"survival functions\[0, 0\] is 1.5; it is a probability"):
        brier_scores(time, event, 1.5 * one, [1], censoring)
    with pytest.raises(DataError, match=r"survival functions\[0, 0\] is nan"):
        brier_scores(time, event, np.nan * one, [1], censoring)
    with pytest.raises(DataError, match=r"times\[0\] is -1"):
        brier_scores(time, event, one, [-1], censoring)
    with pytest.raises(DataError, match=r"times has shape \(\)"):
        brier_scores(time, event, one, 1, censoring)
    with pytest.raises(DataError, match="1 times have no range"):
        integrated_brier_score(time, event, one, [1], censoring)
    with pytest.raises(DataError, match=r"times\[1\] is 1 and follows 1"):
        integrated_brier_score(time, event, np.ones((2, 2)), [1, 1], censoring)
