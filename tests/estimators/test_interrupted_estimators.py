"""Ctrl-C at fits of real processes: they raise, and keep the best tree; searches over parameters stop."""

import json
import math
import signal

import pytest
from interrupted_processes import interrupted
from sklearn.model_selection import GridSearchCV

from mipforest.data.synthetic import load_synthetic
from mipforest.estimators import MargotClassifier, OCTClassifier

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

#: Seconds within which a fit hears Ctrl-C on an idle machine, and more for one that is not.
SOON, PATIENCE = 2.0, 28.0

#: Fits a hard problem, says when its solve has begun, and prints what Ctrl-C left.
PROGRAM = """
import json, sys, time
import numpy as np
import mipforest
from mipforest.data.synthetic import load_synthetic

name, arguments, n = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
data = load_synthetic(f"tree,depth=4,n={n},p=10,label_noise=0.2", scaling="none")
y = data.y if name.endswith("Classifier") else data.y + 0.1 * data.X_raw[:, 0]
targets = (np.arange(data.n) % 2, y) if "Prescriptive" in name else (y,)
estimator = getattr(mipforest, name)
began = time.monotonic()

def ready(event):
    global began
    if began is not None and (event.objective == event.objective or time.monotonic() - began > 5):
        began = None
        print("ready", flush=True)

tiny = [part[:40] for part in (data.X_raw, *targets)]
estimator(**arguments | {"time_limit": 1}).fit(*tiny)  # compiles
fitted = estimator(**{"time_limit": 300} | arguments, on_progress=ready)
told = {"raised": False}
try:
    fitted.fit(data.X_raw, *targets)
except KeyboardInterrupt as interrupt:
    told = {"raised": True, "says": str(interrupt)}
told["fitted"] = hasattr(fitted, "tree_") or hasattr(fitted, "card_")
told["status"] = fitted.result_.status
told["verified"] = fitted.result_.verified
print(json.dumps(told), flush=True)
"""


def check(name, arguments, n):
    told, seconds = interrupted(PROGRAM, name, json.dumps(arguments), str(n))
    keeps = arguments.get("on_interrupt") == "keep"
    assert told["raised"] != keeps
    assert told["fitted"] == keeps
    assert told["status"] == "interrupted"
    assert told["verified"]
    if not keeps:
        assert "result_ has the best tree so far" in told["says"]
    assert seconds < SOON + PATIENCE


class Once:
    """Sends a real SIGINT to this process at the first incumbent; notes the events."""

    def __init__(self):
        self.events, self.sent = [], False

    def __call__(self, event):
        self.events.append(event)
        if not self.sent and math.isfinite(event.objective):
            self.sent = True
            signal.raise_signal(signal.SIGINT)


DATA = load_synthetic("tree,depth=4,n=100,p=10,label_noise=0.2", scaling="none")


def hard(**arguments):
    return MargotClassifier(
        **{"depth": 2, "time_limit": 60, "on_progress": Once(), "solver": "highs"} | arguments
    )


def test_an_interrupted_fit_raises_and_keeps_the_best_tree():
    fit = hard()
    with pytest.raises(KeyboardInterrupt, match="result_ has the best tree"):
        fit.fit(DATA.X_raw, DATA.y)
    assert fit.result_.verified
    assert fit.result_.status == "interrupted"
    assert not hasattr(fit, "tree_")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    # What is left of it is gone with the next fit.
    with pytest.raises(ValueError, match="depth"):
        fit.set_params(depth=0).fit(DATA.X_raw, DATA.y)
    assert not hasattr(fit, "result_")


def test_its_tree_may_be_kept():
    kept = hard(on_interrupt="keep").fit(DATA.X_raw, DATA.y)
    assert kept.status_ == "interrupted"
    assert kept.verified_
    with pytest.raises(ValueError, match="on_interrupt is 'ask'; choose 'raise' or 'keep'"):
        MargotClassifier(on_interrupt="ask").fit(DATA.X_raw, DATA.y)


def test_a_search_raises_too():
    with pytest.raises(KeyboardInterrupt, match="result_ has the best tree"):
        OCTClassifier(depth=4, solver="tao", time_limit=60, on_progress=Once()).fit(DATA.X_raw, DATA.y)


def test_a_search_over_parameters_stops():
    told = Once()
    # A copy of the estimator has a copy of an object, and the same function.
    search = GridSearchCV(hard(on_progress=lambda event: told(event)), {"C": [0.1, 1.0]}, cv=2)
    with pytest.raises(KeyboardInterrupt):
        search.fit(DATA.X_raw, DATA.y)
    seconds = [event.seconds for event in told.events]
    assert told.sent
    assert seconds == sorted(seconds)  # exact: the clock of one fit
    assert not hasattr(search, "best_estimator_")


@pytest.mark.slow
def test_a_program_that_handles_ctrl_c_itself_goes_on_doing_so():
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(True))
    try:
        fitted = hard(time_limit=1).fit(DATA.X_raw, DATA.y)
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard
    assert fitted.verified_


SLOW = [
    ("MargotClassifier", {"solver": "highs", "depth": 2}, 100),
    ("MargotClassifier", {"solver": "routing", "depth": 3}, 300),
    ("MargotClassifier", {"solver": "local-search", "depth": 3}, 2000),
    ("OCTClassifier", {"solver": "exact-search", "depth": 5}, 2000),
    ("OCTClassifier", {"solver": "local-search", "depth": 5, "solver_options": {"starts": 1000000}}, 2000),
    ("OCTClassifier", {"solver": "tmo", "depth": 5}, 2000),
    ("OCTHClassifier", {"solver": "highs", "depth": 2}, 200),
    ("OCTClassifier", {"solver": "exact-search", "depth": 5, "on_interrupt": "keep"}, 2000),
    ("ORTRegressor", {"solver": "exact-search", "depth": 4}, 2000),
    ("RiskScoreClassifier", {"rules": 5}, 1000),
    ("RandomizedTreeClassifier", {"depth": 4, "n_starts": 100_000}, 1000),
    ("OptimalPrescriptiveTree", {"depth": 3, "solver": "highs", "n_treatment": 5}, 100),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "arguments", "n"), SLOW)
def test_every_search_raises_and_keeps_its_tree(name, arguments, n):
    check(name, arguments, n)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_tuned_estimator_raises_during_its_cross_validation(jobs):
    told, seconds = interrupted(TUNED, str(jobs), after=3.0)
    assert told == "TuningInterrupted"
    assert seconds < SOON + PATIENCE


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["scip", "gurobi"])
def test_other_solvers_do_too(solver):
    pytest.importorskip({"scip": "pyscipopt", "gurobi": "gurobipy"}[solver])
    bridges = {"gurobi": {"bridges": "quadratic"}}  # fits the licence inside the package
    check("MargotClassifier", {"solver": solver, "depth": 2} | bridges.get(solver, {}), 60)


#: A cross-validation that takes minutes.
TUNED = """
import json, sys
from mipforest import OptimalTreeClassifierCV
from mipforest.data.synthetic import load_synthetic

if __name__ == "__main__":
    data = load_synthetic("tree,depth=4,n=2000,p=20,label_noise=0.2", scaling="none")
    OptimalTreeClassifierCV(depth=1, starts=2).fit(data.X_raw[:50], data.y[:50])  # compiles
    print("ready", flush=True)
    try:
        OptimalTreeClassifierCV(depth=6, starts=5000, n_jobs=int(sys.argv[1])).fit(data.X_raw, data.y)
        print(json.dumps("ended"), flush=True)
    except KeyboardInterrupt as interrupt:
        print(json.dumps(type(interrupt).__name__), flush=True)
"""


#: A grid search whose every fit takes a minute.
GRID = """
import json
from interrupted_processes import interrupted
from sklearn.model_selection import GridSearchCV
from mipforest import MargotClassifier
from mipforest.data.synthetic import load_synthetic

if __name__ == "__main__":
    data = load_synthetic("tree,depth=4,n=150,p=10,label_noise=0.2", scaling="none")
    hard = MargotClassifier(depth=2, solver="highs", time_limit=60, threads=1)
    search = GridSearchCV(hard, {"C": [0.1, 1.0, 10.0, 100.0]}, cv=3, n_jobs=2)
    print("ready", flush=True)
    try:
        search.fit(data.X_raw, data.y)
        print(json.dumps("ended"), flush=True)
    except KeyboardInterrupt:
        print(json.dumps("raised"), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("group", [False, True], ids=["the search", "the search and its processes"])
def test_a_grid_search_on_two_processes_stops(group):
    told, seconds = interrupted(GRID, after=10.0, group=group)
    assert told == "raised"
    assert seconds < SOON + PATIENCE
