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


SIDES = ["no"] * 20 + ["yes"] * 20


def solved(mipforest, tmp_path, text, *options, model="oct", name="data.csv"):
    """Solve a file at depth 1; give the outcome and the run's folder."""
    path, run = tmp_path / name, tmp_path / "run"
    path.write_text(text)
    solve = ("solve", "--model", model, "--depth", "1", "--data", str(path), "--time-limit", "5", "--force")
    return mipforest(*solve, *options, "--out", str(run)), run


def predicted(mipforest, run, text, *options):
    path = run.parent / "new.csv"
    path.write_text(text)
    return mipforest("predict", str(run), str(path), *options)


def test_how_a_file_told_its_numbers_holds_for_new_files(mipforest, tmp_path):
    text = "x;target\n" + "".join(f"2.{k:03d},5;{side}\n" for k, side in enumerate(SIDES))
    done, run = solved(mipforest, tmp_path, text)
    assert done.code == 0
    assert "x >= 2020" in done.out
    assert "numbers are read with decimal=',', thousands='.'" in done.out
    source = json.loads((run / "result.json").read_text())["data_source"]
    assert (source["decimal"], source["thousands"]) == (",", ".")
    # A value such as 2.018 alone would be read as about two.
    assert predicted(mipforest, run, "x\n2.018\n2.030\n5\n").out.split() == ["no", "yes", "no"]
    assert predicted(mipforest, run, "x\n2018.5\n2030.5\n", "--decimal", ".").out.split() == ["no", "yes"]


def test_signs_beside_numbers_may_be_left_out_of_new_files(mipforest, tmp_path):
    text = "x,target\n" + "".join(f"{k}%,{side}\n" for k, side in enumerate(SIDES))
    done, run = solved(mipforest, tmp_path, text)
    assert "column 'x' read as numbers, without their '%'" in done.out
    assert predicted(mipforest, run, "x\n3%\n30\n").out.split() == ["no", "yes"]
    assert "line 3 holds 'many'" in predicted(mipforest, run, "x\n3%\nmany\n").err


def test_files_without_a_line_of_names(mipforest, tmp_path):
    text = "".join(f"{'ab'[k % 2]},{k},{side}\n" for k, side in enumerate(SIDES))
    told, _ = solved(mipforest, tmp_path, text)
    assert told.code == 2
    assert "the first line is data; read the file with --no-header" in told.err
    done, run = solved(mipforest, tmp_path, text, "--no-header", "--names", "letter,size,target")
    assert done.code == 0
    for new in (
        "a,3\nb,30\n",
        "a,3,no\nb,30,yes\n",
        "letter,size\na,3\nb,30\n",
        "letter,size,target\na,3,no\nb,30,no\n",
    ):
        assert predicted(mipforest, run, new).out.split()[:2] == ["no", "yes"]
    assert predicted(mipforest, run, "size\n3\n30\n", "--header").out.split() == ["no", "yes"]
    assert predicted(mipforest, run, "3\n30\n", "--names", "size").out.split() == ["no", "yes"]
    assert "4 values" in predicted(mipforest, run, "1,2,3,4\n").err


def test_words_for_missing_values_and_words_that_are_kept(mipforest, tmp_path):
    text = "bag,x,target\n" + "".join(
        f"{('None', 'one')[k // 20]},{'.' if k % 7 == 0 else k % 5},{side}\n" for k, side in enumerate(SIDES)
    )
    told, _ = solved(mipforest, tmp_path, text)
    assert told.code == 2
    assert "'bag' has None" in told.err
    assert "--keep-words None" in told.err
    options = ("--keep-words", "None", "--missing-values", "-999,.", "--missing", "branch")
    done, run = solved(mipforest, tmp_path, text, *options)
    assert done.code == 0
    assert "bag is" in done.out
    # The tree does not read x, so that anything may stand there.
    assert predicted(mipforest, run, "bag,x\nNone,.\none,what\nNone,\n").out.split() == ["no", "yes", "no"]


def test_dates_are_read_in_the_order_of_the_run(mipforest, tmp_path):
    text = "day,target\n" + "".join(f"7/{k % 28 + 1}/{1990 + k},{side}\n" for k, side in enumerate(SIDES))
    done, run = solved(mipforest, tmp_path, text, "--dates", "days")
    assert done.code == 0
    assert json.loads((run / "result.json").read_text())["data_source"]["date_order"] == "mdy"
    assert predicted(mipforest, run, "day\n1/5/2009\n12/5/2010\n").out.split() == ["no", "yes"]
    assert "no day of the calendar" in predicted(mipforest, run, "day\n31/5/2009\n").err
    text = "day,target\n" + "".join(f"{k % 12 + 1}/5/{1990 + k},{side}\n" for k, side in enumerate(SIDES))
    told, _ = solved(mipforest, tmp_path, text, "--dates", "days")
    assert "--date-order dmy (the day) or --date-order mdy" in told.err
    assert solved(mipforest, tmp_path, text, "--dates", "days", "--date-order", "dmy")[0].code == 0


def test_equal_names_titles_and_columns_without_values(mipforest, tmp_path):
    rows = "".join(f"{k},,{side}\n" for k, side in enumerate(SIDES))
    told, _ = solved(mipforest, tmp_path, f"x,x,target\n{rows}")
    assert "--names x_1,x_2,target" in told.err
    told, _ = solved(mipforest, tmp_path, f"x,z,target\n{rows}")
    assert (
        "column 'z' has no value in any row: nothing can be learned there; leave it out with --drop z"
        in told.err
    )
    told, _ = solved(mipforest, tmp_path, f"Table 1,,\nx,z,target\n{rows}")
    assert "--skip-lines 1" in told.err
    told, _ = solved(mipforest, tmp_path, f"Table 1\nx,z,target\n{rows}")
    assert "--skip-lines 1 leaves it out" in told.err
    done, run = solved(
        mipforest, tmp_path, f"Table 1,,\ny,y,x,target\n{rows.replace(',,', ',,,')}".replace("y,y,x", "x,y,y"),
        "--skip-lines", "1", "--drop", "y",
    )  # fmt: skip
    assert done.code == 0
    assert predicted(mipforest, run, "Table 1,,\nx,y,y\n3,1,2\n30,1,2\n").out.split() == ["no", "yes"]


def test_where_training_samples_lack_nothing_the_advice_is_not_the_option_that_is_set(mipforest, tmp_path):
    text = "x,y,target\n" + "".join(f"{k},{'' if k == 7 else k},{side}\n" for k, side in enumerate(SIDES))
    path = tmp_path / "test.csv"
    path.write_text("x,y,target\n,3,no\n")
    told, _ = solved(mipforest, tmp_path, text, "--missing", "branch", "--test", str(path))
    assert told.code == 2
    assert "missing values in 1 column(s) of 1 rows, the first in line 2: 'x' (1)" in told.err
    assert "no split says where missing ones go; fill them in, or leave the rows out" in told.err
