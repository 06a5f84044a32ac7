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
    plain.write_text("a\n3\nmany\n")  # the tree splits on a alone
    refused = mipforest("predict", str(run), str(plain), "--decimal", ".")
    assert "line 3 holds 'many'" in refused.err


def test_dates_are_solved_and_predicted_as_numbers(mipforest, tmp_path):
    path, run, out = tmp_path / "dates.csv", tmp_path / "run", tmp_path / "out.csv"
    path.write_text("when,target\n" + "".join(f"2024-03-{k + 1:02d},{int(k > 9)}\n" for k in range(20)))
    solve = ("solve", "--model", "oct", "--depth", "1", "--data", str(path), "--time-limit", "5")
    told = mipforest(*solve)
    assert told.code == 2
    assert "looks like dates" in told.err
    assert "--dates days or --dates parts" in told.err
    assert mipforest(*solve, "--dates", "days", "--out", str(run), "--quiet").code == 0
    path.write_text("when\n2023-01-01\n2025-01-01\n")
    assert mipforest("predict", str(run), str(path), "-o", str(out)).code == 0
    assert out.read_text().splitlines() == ["when,prediction", "2023-01-01,0", "2025-01-01,1"]
