"""Rules that choose a setting, on tables made by hand and against their definition."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mipforest.tuning import NoTreeFound, TuningError, choose


def table(scores, features, finished=None):
    return pd.DataFrame(
        {
            "finished": [True] * len(scores) if finished is None else finished,
            "validation_mean": scores,
            "features_mean": features,
        }
    )


@pytest.mark.parametrize(
    ("scores", "features", "best", "sparse"),
    [
        ([0.90, 0.95, 0.94], [1, 8, 5], 1, 2),  # 0.90 is below 97.5% of 0.95 = 0.92625
        ([0.80, 0.78, 0.779], [9, 3, 1], 0, 1),  # 0.78 is 97.5% of 0.8 exactly
        ([0.94, 0.95, 0.94], [3, 8, 3], 1, 0),  # equal in both: the first one
        ([0.93, 0.95, 0.94], [3, 3, 3], 1, 1),  # equally few features: the best score
        ([0.95, 0.95], [4, 4], 0, 0),
        ([0.95, 0.95], [4, 3], 0, 1),
        ([1.0, 0.975, 0.9749], [2.5, 2.25, 1.0], 0, 1),
    ],
)
def test_choices_by_hand(scores, features, best, sparse):
    assert choose(table(scores, features), "best") == best
    assert choose(table(scores, features), "sparse") == sparse


def test_scores_added_in_another_order_are_equal():
    one, other = np.mean([0.1, 0.2, 0.3]), np.mean([0.3, 0.2, 0.1])
    assert one != other  # exact: another rule
    assert choose(table([min(one, other), max(one, other)], [1, 1]), "best") == 0


def test_a_smaller_error_is_better():
    errors = table([10.0, 8.0, 8.1, 8.3], [1, 9, 4, 2])
    assert choose(errors, "best", sign=-1) == 1
    assert choose(errors, "sparse", sign=-1) == 2  # 8.2 is 2.5% more than 8


def test_a_negative_r2_has_a_range_too():
    assert choose(table([-0.40, -0.41, -0.42], [5, 3, 1]), "sparse") == 1


def test_settings_without_all_scores_are_left_out():
    scores = table([0.99, np.nan, 0.9, 0.8], [1, 1, 3, 2], finished=[False, True, True, True])
    assert choose(scores, "best") == 2
    assert choose(scores, "sparse") == 2


def test_nothing_to_choose_from():
    with pytest.raises(NoTreeFound, match="raise the time limit"):
        choose(table([np.nan, 0.9], [1, 1], finished=[True, False]), "best")


def test_an_unknown_rule_is_refused():
    with pytest.raises(TuningError, match="did you mean 'sparse'"):
        choose(table([0.9], [1]), "spars")


settings = st.lists(
    st.tuples(st.integers(0, 40).map(lambda errors: 1 - errors / 200), st.integers(0, 6)),
    min_size=1,
    max_size=12,
)


@given(settings)
def test_the_sparse_choice_is_that_of_the_definition(rows):
    scores, features = zip(*rows, strict=True)
    chosen = choose(table(scores, features), "sparse")
    good = [k for k in range(len(rows)) if scores[k] >= 0.975 * max(scores) - 1e-9]
    assert chosen in good
    fewest = [k for k in good if features[k] == min(features[k] for k in good)]
    assert chosen in fewest
    assert chosen == next(
        k for k in fewest if scores[k] == max(scores[k] for k in fewest)
    )  # exact: of one list
