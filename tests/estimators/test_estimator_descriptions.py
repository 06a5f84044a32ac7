"""What help() says of estimators, and what is said of parameters that they do not have."""

import inspect
import pickle
import pydoc
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import mipforest.estimators as estimators
from mipforest.data import DataError
from mipforest.estimators import (
    MargotClassifier,
    OCTClassifier,
    OLCTClassifier,
    OptimalTreeClassifier,
    OptimalTreeRegressorCV,
    RiskScoreClassifier,
)
from mipforest.estimators.base import EstimatorType, TreeEstimator

CLASSES = [
    cls
    for cls in map(estimators.__dict__.get, estimators.__all__)
    if inspect.isclass(cls) and hasattr(cls, "get_params")
]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_help_lists_every_parameter_with_meaning_and_default(cls):
    text = inspect.getdoc(cls)
    listed = dict(
        re.findall(r"^(\w+)(?: : .*)?\n    +(\S.*)", text.split("Parameters\n---")[1], re.MULTILINE)
    )
    for name, parameter in inspect.signature(cls).parameters.items():
        assert len(listed[name]) > 10
        if cls.__name__ != "RegressAndCompare" and not hasattr(parameter.default, "name"):
            assert re.search(
                rf"^{name} : .*default={re.escape(repr(parameter.default))}$", text, re.MULTILINE
            )
    assert "all others" not in text
    assert "As for" not in text.split("Examples")[0].replace("As for scikit", "")


def test_ranges_are_those_of_the_formulation():
    assert "C : number per node, > 0, default=1.0" in inspect.getdoc(MargotClassifier)
    assert "loss : text, squared | absolute, default='squared'" in inspect.getdoc(estimators.ORTRegressor)
    assert inspect.getdoc(OCTClassifier).index("N_min :") < inspect.getdoc(OCTClassifier).index("solver :")
    assert "min_weight_fraction_leaf" not in inspect.getdoc(OptimalTreeRegressorCV).split("Attributes")[0]
    shown = pydoc.render_doc(OCTClassifier, renderer=pydoc.plaintext)
    assert re.search(r"time_limit : .*default=60.0\n .*Seconds for the fit", shown)
    assert EstimatorType.__doc__.startswith("The type of estimators")
    assert "A card has no depth" in inspect.getdoc(RiskScoreClassifier)
    assert "\ntree_" not in inspect.getdoc(RiskScoreClassifier)
    assert (
        "feature_importances_"
        not in inspect.getdoc(estimators.OptimalPrescriptiveTree).split("Attributes")[1]
    )


@pytest.mark.parametrize(
    ("cls", "name", "told"),
    [
        (OCTClassifier, "max_depth", "max_depth is depth here"),
        (OCTClassifier, "min_samples_leaf", "min_samples_leaf is N_min here"),
        (OCTClassifier, "ccp_alpha", "ccp_alpha is alpha here"),
        (OCTClassifier, "n_jobs", "n_jobs is threads here"),
        (MargotClassifier, "ccp_alpha", "nothing that does what ccp_alpha does"),
        (OptimalTreeClassifier, "min_samples_leaf", "parameters={'N_min': ...}"),
        (estimators.ForestSelectorClassifier, "max_depth", "max_depth is depth here"),
        (estimators.ForestSelectorClassifier, "n_estimators", "n_estimators is n_trees here"),
        (OLCTClassifier, "tim_limit", "did you mean 'time_limit'"),
    ],
)
def test_names_of_scikit_learn_are_refused_with_ours(cls, name, told):
    with pytest.raises(TypeError, match=re.escape(told)):
        cls(**{name: 1})
    if issubclass(cls, TreeEstimator):
        with pytest.raises(ValueError, match=re.escape(told)):
            cls().set_params(**{name: 1})


def test_estimators_are_made_copied_and_pickled_as_before():
    for made in (OCTClassifier(3, alpha=0.1), clone(OCTClassifier(3, alpha=0.1))):
        assert pickle.loads(pickle.dumps(made)).get_params() == made.get_params()
    assert next(iter(inspect.signature(OCTClassifier).parameters)) == "depth"
    with pytest.raises(TypeError, match="positional"):
        OCTClassifier(3, "tight")
    with pytest.raises(TypeError, match="RiskScoreClassifier has no parameter 'depth'"):
        RiskScoreClassifier(depth=2)


def test_a_class_of_a_user_has_its_own_docstring():
    @dataclass(eq=False, repr=False, kw_only=True)
    class Own(OCTClassifier):
        pace: int = 1

    class Described(OCTClassifier):
        """Mine."""

    assert Own(pace=2).get_params()["pace"] == 2
    assert Described.__doc__ == "Mine."


def test_errors_speak_of_arguments():
    frame = pd.DataFrame({"name": [f"person {k}" for k in range(200)], "age": np.arange(200.0)})
    with pytest.raises(DataError, match=r"name.*X\.drop\(columns=") as refused:
        OCTClassifier(time_limit=0).fit(frame, np.arange(200) % 2)
    assert "--" not in str(refused.value)


def test_every_row_is_explained():
    X = pd.DataFrame({"age": [20.0, 30.0, 60.0, 70.0]})
    y = np.array(["well", "well", "sick", "sick"])
    fitted = OCTClassifier(depth=1).fit(X, y)
    assert fitted.explain(X)[::3] == ["age < 45 (20): well", "age >= 45 (70): sick"]
    card = RiskScoreClassifier(rules=1).fit(X, y)
    assert re.fullmatch(r"(age .*|no rule holds): total \d+, risk [\d.<>]+%", card.explain(X)[0])
    smooth = estimators.RandomizedTreeClassifier(depth=1, n_starts=1).fit(X, y)
    with pytest.raises(ValueError, match="leaf_probabilities"):
        smooth.explain(X)


def test_the_pruning_path_is_an_array():
    X, y = np.arange(40.0)[:, None] % 7, np.arange(40) % 2
    tuned = estimators.OptimalTreeClassifierCV(depth=2, starts=3, cv=2).fit(X, y)
    cost, loss = tuned.pruning_path_.T
    assert cost[0] == 0  # exact: where every path begins
    assert (np.diff(cost) > 0).all()
    assert loss.min() == pytest.approx(tuned.cv_results_["validation_mean"][tuned.tuning_.chosen])


def test_logarithms_of_probabilities():
    X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
    fitted = OCTClassifier(depth=1).fit(X, y)
    assert np.exp(fitted.predict_log_proba(X)) == pytest.approx(fitted.predict_proba(X))
    assert np.isneginf(fitted.predict_log_proba(X)[0, 1])
