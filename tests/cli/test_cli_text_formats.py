"""A file with decimal commas from the command line: the message, the run, and predictions by the run's format."""

import json

ROWS = "".join(f"{k};{k},5;{'yes' if k > 12 else 'no'}\n" for k in range(25))


def test_a_file_with_decimal_commas_is_told_solved_and_predicted(mipforest, tmp_path):
    path, run = tmp_path / "commas.csv", tmp_path / "run"
    path.write_text(f"a;b;target\n{ROWS}")
    solve = ("solve", "--model", "oct", "--depth", "1", "--data", str(path), "--time-limit", "5")
    told = mipforest(*solve)
    assert told.code == 2
    assert "looks like decimal commas; --decimal , reads them as numbers" in told.err
    assert mipforest(*solve, "--decimal", ",", "--out", str(run), "--quiet").code == 0
    assert json.loads((run / "result.json").read_text())["data_source"]["decimal"] == ","
    assert mipforest("predict", str(run), str(path)).out.split() == ["no"] * 13 + ["yes"] * 12
    plain = tmp_path / "points.csv"
    plain.write_text("a,b\n3,3.5\n20,20.5\n")
    assert mipforest("predict", str(run), str(plain), "--decimal", ".").out.split() == ["no", "yes"]
    plain.write_text("a,b\n3,3.5\n20,many\n")
    refused = mipforest("predict", str(run), str(plain), "--decimal", ".")
    assert "line 3 holds 'many'" in refused.err
