"""Costs of errors by the names of classes, on the command line."""

import json

import pytest

NAMED = "true,virginica,setosa,versicolor\nsetosa,9,0,1\nvirginica,0,5,7\nversicolor,2,3,0\n"


@pytest.fixture
def named(tmp_path):
    def written(text):
        (tmp_path / "costs.csv").write_text(text)
        return tmp_path / "costs.csv"

    return written


def asked(*options, model="oct"):
    return ("solve", "--model", model, "--depth", 1, "--data", "iris", *options, "--json")


def test_a_file_with_names_is_a_matrix_in_the_order_of_the_data(mipforest, named):
    path = named(NAMED)
    by_name = mipforest(*asked("--cost-matrix", path))
    by_parameter = mipforest(*asked("--param", f"costs={path}"))
    by_rows = mipforest(*asked("--param", "costs=0,1,9;3,0,2;5,7,0"))
    assert by_name.code == by_rows.code == 0
    results = [json.loads(done.out) for done in (by_name, by_parameter, by_rows)]
    for result in results:
        assert result["parameters"]["costs"] == [[0, 1, 9], [3, 0, 2], [5, 7, 0]]
        assert result["verified"]
    assert len({json.dumps(result["objective"]) for result in results}) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (NAMED.replace("virginica", "Virginica"), "no costs of class virginica, and costs of Virginica"),
        ("t,setosa,virginica\nsetosa,0,1\nvirginica,1,0\n", "no costs of class versicolor"),
        (NAMED.replace("9,0,1", "9,0,-1"), "line 2: '-1' is no cost"),
        (NAMED.replace("2,3,0", "2,three,0"), "line 4: 'three' is no cost"),
        (NAMED.replace("0,5,7", "0,5"), "line 3: class virginica has 2 costs for 3 predicted classes"),
        (NAMED.replace("versicolor,2", "setosa,2"), "more than one row of class setosa"),
        (
            NAMED.replace("versicolor,2", "other,2"),
            "class other, versicolor has only a row, or only a column",
        ),
        ("0,1\n-2,0\n", "line 2: '-2' is no cost"),
        ("", "the shape (0,)"),
    ],
)
def test_what_is_no_cost_matrix_is_refused(mipforest, named, text, said):
    done = mipforest(*asked("--cost-matrix", named(text)))
    assert done.code == 2
    assert said in done.json["error"]


def test_models_of_margins_say_why_they_take_none(mipforest, named):
    for model in ("margot", "sfs-margot", "olct", "loss-optimal", "svm-leaves"):
        done = mipforest(*asked("--cost-matrix", named(NAMED), model=model))
        assert done.code == 2
        assert (
            "the loss of a margin has no cost of a predicted class; take oct or oct-h" in done.json["error"]
        )
    done = mipforest(*asked("--cost-matrix", named(NAMED), "--param", "costs=0,1;1,0"))
    assert done.code == 2
    assert "leave one out" in done.json["error"]
