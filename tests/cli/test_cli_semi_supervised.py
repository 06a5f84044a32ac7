"""Files with empty labels on the command line: solve, read the run again, and what other models say."""

import json

import numpy as np
import pytest


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(3)
    x = rng.integers(0, 9, (40, 2))
    kind = np.where(x[:, 0] + rng.integers(0, 2, 40) > 4, "late", "early")
    kind[rng.random(40) < 0.7] = ""
    lines = ["a,b,kind", *(f"{a},{b},{of}" for (a, b), of in zip(x.tolist(), kind, strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "t.csv", int((kind == "").sum())


def asked(path, *options, model="semi-oct", depth=1):
    return ("solve", "--model", model, "--depth", depth, "--data", path, "--target", "kind", *options)


def test_a_file_with_empty_labels_is_solved_and_read_again(mipforest, table, tmp_path):
    path, m = table
    done = mipforest(*asked(path, "--param", "totals=late:0.5", "--out", tmp_path / "run"))
    assert done.code == 0, done.err
    assert f"{m} of 40 rows have no 'kind': samples without a label" in done.out
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["outcome"].startswith("optimal")
    assert result["verified"]
    assert result["data"]["n"] == 40 - m
    assert result["samples_without_label"] == m
    assert sum(result["predicted_totals"].values()) == m  # exact: counts
    assert result["parameters"]["totals"] == {"late": 0.5}
    assert mipforest("report", tmp_path / "run").code == 0
    assert mipforest("predict", tmp_path / "run", path).code == 0


@pytest.mark.parametrize(
    ("options", "model", "told"),
    [
        ((), "semi-oct", "parameter totals is needed"),
        (("--param", "totals=never:3"), "semi-oct", "'never', which is no class"),
        (("--param", "totals=late"), "semi-oct", "gives no totals"),
        ((), "oct", "semi-supervised models alone (semi-oct"),
    ],
)
def test_what_is_missing_is_said(mipforest, table, options, model, told):
    done = mipforest(*asked(table[0], *options, model=model))
    assert done.code == 2
    assert told in " ".join(done.err.split())
