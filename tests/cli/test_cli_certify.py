"""``mipforest certify``: what is certified is said, and compared with what was asked."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

OPTIONS = ("--model", "hfs-margot", "--param", "C=1,3", "--param", "B=1", "--depth", 2)
OF_DATA = ("--target", "answer", "--test-size", 0.25, "--seed", 3)


@pytest.fixture(scope="module")
def proof(mipforest, people_csv, tmp_path_factory):
    path = tmp_path_factory.mktemp("proof") / "proof.gz"
    options = ("--data", people_csv, *OF_DATA, "--solver", "routing", "--certificate", path)
    assert mipforest("solve", *OPTIONS, *options, "--quiet").code == 0
    return path


def rewritten(proof, path, change):
    lines = gzip.decompress(proof.read_bytes()).decode().splitlines()
    header = json.loads(lines[0])
    change(header)
    path.write_bytes(gzip.compress("\n".join([json.dumps(header), *lines[1:], ""]).encode()))
    return path


def test_what_is_certified_is_said(mipforest, proof):
    done = mipforest("certify", proof)
    assert done.code == 0
    for words in (
        "hfs-margot (variant valid), C=",
        "B=1",
        "C (1, 3, 3)",
        "features free (1, 1, 1)",
        "18 samples",
    ):
        assert words in done.out
    told = mipforest("certify", proof, "--json").json
    assert told["model"] == "hfs-margot"
    assert told["parameters"]["B"] == 1
    assert (told["rows"], told["C"], told["free"]) == (18, [1.0, 3.0, 3.0], [1, 1, 1])
    assert len(told["sha256"]) == 64
    assert told["compared"] == []


def test_the_same_problem_is_the_same(mipforest, proof, people_csv):
    done = mipforest("certify", proof, *OPTIONS, "--data", people_csv, *OF_DATA, "--json")
    assert done.code == 0, done.err
    assert done.json["compared"] == ["model", "depth", "data"]
    assert mipforest("certify", proof, "--data", people_csv, *OF_DATA).code == 0


@pytest.mark.first_cases(6)
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--model", "margot"), "model: hfs-margot in the file, margot asked"),
        (("--model", "hfs-margot"), "C: (1, 3, 3) in the proof, (1, 1, 1) as asked"),
        (("--param", "C=1,4", "--param", "B=1"), "C: (1, 3, 3) in the proof, (1, 4, 4) as asked"),
        (("--param", "C=1,3", "--param", "B=2"), "features free of cost: (1, 1, 1) in the proof, (2, 2, 2)"),
        (
            ("--param", "C=1,3", "--param", "B=1", "--param", "epsilon=0.01"),
            "epsilon: 0.001 in the proof, 0.01",
        ),
        (
            ("--param", "C=1,3", "--param", "B=1", "--variant", "tight"),
            "variant: valid in the file, tight asked",
        ),
        (("--model", "sfs-margot", "--param", "C=1,3", "--param", "B=1"), "alpha: None in the proof"),
        (("--depth", 3), "depth: 2 in the proof, 3 asked"),
        (("--data", "people", "--target", "answer"), "samples: 18 in the file, 24 in"),
        (("--data", "people", *OF_DATA[:-1], 4), "sha256 of samples"),
        (("--data", "people", *OF_DATA, "--scaling", "none"), "features, or their scaling, differ"),
        (("--data", "people", *OF_DATA, "--drop", "height"), "features: "),
        (("--data", "people", *OF_DATA, "--positive", "no"), None),
    ],
)
def test_all_that_differs_is_told_and_refused(mipforest, proof, people_csv, options, told):
    done = mipforest("certify", proof, *(people_csv if option == "people" else option for option in options))
    if told is None:  # with the other class as the positive one, signs are turned, or stay
        assert done.code in (0, 3)
        return
    assert done.code == 3
    assert told in done.err


def test_other_classes_of_the_same_samples_are_told(mipforest, proof, people, tmp_path):
    other = people.assign(answer=people["answer"].map({"yes": "no", "no": "yes"}))
    other.to_csv(tmp_path / "other.csv", index=False)
    done = mipforest("certify", proof, "--data", tmp_path / "other.csv", *OF_DATA)
    assert done.code == 3
    assert "differ" in done.err


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda header: header["parameters"].update(C=2.0), "by the file's own parameters"),
        (lambda header: header["parameters"].update(B=2), "features free of cost: (1, 1, 1) in the proof"),
        (lambda header: header["parameters"].update(epsilon=0.5), "epsilon: 0.001 in the proof, 0.5"),
        (lambda header: header.update(model="margot", parameters={"C": [1, 3]}), "features free of cost"),
        (lambda header: header.update(variant="paper"), "of which there are no certificates"),
        (lambda header: header.update(variant="odd"), "parameters that it does not take"),
        (lambda header: header["parameters"].update(C=-1), "parameters that it does not take"),
        (lambda header: header["parameters"].update(odd=1), "no parameter 'odd'"),
        (
            lambda header: header.update(model="oct", variant="tight", parameters={}),
            "of which there are no certificates",
        ),
    ],
)
def test_names_that_the_proof_was_not_checked_with_are_refused(mipforest, proof, tmp_path, change, told):
    done = mipforest("certify", rewritten(proof, tmp_path / "other.gz", change))
    assert done.code == 3
    assert told in done.err


def test_files_without_names_are_certified_with_a_note(mipforest, proof, tmp_path, people_csv):
    def change(header):
        for name in ("model", "variant", "parameters", "rows", "sha256"):
            del header[name]

    older = rewritten(proof, tmp_path / "older.gz", change)
    done = mipforest("certify", older)
    assert done.code == 0
    assert "names no model" in done.err
    assert mipforest("certify", older, *OPTIONS, "--data", people_csv, *OF_DATA).code == 0
    assert mipforest("certify", older, "--param", "C=1").code == 2
    assert mipforest("certify", older, "--data", people_csv).code == 2


def test_options_of_data_need_data(mipforest, proof):
    done = mipforest("certify", proof, "--target", "answer")
    assert done.code == 2
    assert "--data is missing" in done.err


def test_a_relative_gap_is_named_by_its_number_and_may_be_asked_for_by_the_word(mipforest, tmp_path):
    file, data = tmp_path / "proof.gz", "synthetic:tree,depth=1,n=240,p=2,seed=1"
    model = ("--model", "margot", "--depth", 1)
    solved = mipforest(
        "solve", *model, "--data", data, "--param", "epsilon=relative", "--certificate", file, "--json"
    )
    assert solved.code == 0
    number = solved.json["parameters"]["epsilon"]
    assert f"epsilon=relative is {number:g}, for 240 different samples" in solved.json["warnings"]
    for asked in ("relative", number):
        assert mipforest("certify", file, *model, "--param", f"epsilon={asked}", "--data", data).code == 0
    other = mipforest("certify", file, *model, "--param", "epsilon=0.001")
    assert f"epsilon: {number:g} in the file, 0.001 asked" in other.err
    word = mipforest("certify", file, *model, "--param", "epsilon=relativ")
    assert word.code == 2
    assert "epsilon='relativ' is neither a number nor 'relative'" in word.err


#: Models whose leaves predict a number, with their columns and parameters; and what else differs in the proof.
OF_NUMBERS = {
    "quantile": (("--target", "rate", "--drop", "exposure", "--param", "tau=0.8"), "loss absolute around"),
    "poisson": (("--target", "rate", "--weight", "exposure", "--param", "N_min=2"), "loss deviance"),
    "survival": (("--target", "exposure", "--event", "seen", "--drop", "rate"), "loss deviance"),
}


@pytest.mark.parametrize("model", OF_NUMBERS)
def test_losses_of_numbers_are_certified_and_compared(mipforest, tmp_path, model):
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"x": rng.integers(0, 9, 40), "z": rng.integers(0, 5, 40)})
    table["exposure"] = rng.uniform(0.2, 3.0, 40).round(1)
    table["rate"] = rng.poisson(table["exposure"] * np.exp(table["x"] / 4)) / table["exposure"]
    if model == "survival":
        table["seen"] = np.where(rng.random(40) < 0.7, "yes", "no")
    table.to_csv(tmp_path / "table.csv", index=False)
    file, (options, told) = tmp_path / "proof.gz", OF_NUMBERS[model]
    asked = ("--model", model, "--depth", 2, "--data", tmp_path / "table.csv", *options)
    done = mipforest("solve", *asked, "--solver", "exact-search", "--certificate", file, "--quiet")
    assert done.code == 0, done.err
    done = mipforest("certify", file, *asked)
    assert done.code == 0, done.err
    assert told in done.out
    assert ("logarithms rounded outward" in done.out) == (model != "quantile")
    assert "model, depth, data: the same" in done.out
    assert "in whole numbers" in mipforest("certify", file, "--exact").out
    other = mipforest("certify", file, *asked, "--param", "alpha=0.01")
    assert other.code == 3
    assert "alpha: 0 in the file, 0.01 asked" in other.err
    if model == "quantile":
        other = mipforest("certify", file, "--model", "ort", "--param", "loss=absolute")
        assert other.code == 3
        assert "level of the quantile: 0.8 in the proof, 0.5 as asked" in other.err
    mutant = rewritten(file, tmp_path / "other.gz", lambda header: header["parameters"].update(tau=0.7))
    assert mipforest("certify", mutant).code == 3
