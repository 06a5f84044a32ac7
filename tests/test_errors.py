"""The errors of the package: their texts in Python's words and in those of the command line."""

import pickle
from importlib import import_module
from inspect import isclass
from pkgutil import walk_packages

import pytest

import mipforest
from mipforest import DataError, load
from mipforest.data import Dataset
from mipforest.errors import MipforestError, SolverError, SolverUnavailable
from mipforest.instances import SuiteError


def test_the_next_step_has_words_for_python_and_for_the_command_line():
    error = DataError("3 classes", hint="merge with binarise(...)", option="merge with --positive CLASS")
    assert str(error) == "3 classes; merge with binarise(...)"
    assert error.on_command_line == "3 classes; merge with --positive CLASS"
    assert DataError("3 classes", hint="merge some").on_command_line == "3 classes; merge some"
    assert DataError("3 classes").on_command_line == str(DataError("3 classes")) == "3 classes"
    assert str(DataError("no bound:", hint="give one")) == "no bound: give one"


def test_the_place_stands_in_front_and_the_next_step_is_kept():
    error = DataError("3 classes", hint="merge in Python", option="merge on the command line")
    placed = error.located("a.csv")
    assert type(placed) is DataError
    assert (str(placed), placed.on_command_line) == (
        "a.csv: 3 classes; merge in Python",
        "a.csv: 3 classes; merge on the command line",
    )
    assert type(error.located("instance a", SuiteError)) is SuiteError


def test_an_error_from_another_process_keeps_all_it_says():
    error = pickle.loads(pickle.dumps(DataError("3 classes", hint="in Python", option="on the command line")))
    assert (str(error), error.on_command_line) == ("3 classes; in Python", "3 classes; on the command line")


def test_the_packages_exceptions_share_one_base_and_one_set_of_exit_codes():
    for module in walk_packages(mipforest.__path__, "mipforest."):
        if module.name.startswith("mipforest.cli") or module.name.endswith("__main__"):
            continue
        for found in vars(import_module(module.name)).values():
            if isclass(found) and found.__module__.startswith("mipforest.") and issubclass(found, Exception):
                assert issubclass(found, MipforestError | Warning), found
    assert (MipforestError.exit_code, SolverError.exit_code, SolverUnavailable.exit_code) == (2, 3, 4)


def test_a_refusal_of_data_ends_in_what_to_do():
    with pytest.raises(DataError, match=r"merge some with data\.relabel") as refused:
        load("iris").require_classes(2)
    assert refused.value.message.endswith("(setosa, versicolor, virginica)")


def test_a_class_that_is_given_as_a_number_is_named_as_the_text_that_it_is():
    problem = mipforest.get_formulation("oct")().build(Dataset.from_arrays([[0.0], [1.0]], [0, 1]), 1)
    with pytest.raises(DataError, match=r"has no class 1 .did you mean '1'"):
        mipforest.constraints.limit_label(problem, 1, 0.5)
