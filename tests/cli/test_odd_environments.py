"""Names of files that are no text, standard streams that are closed or full, tables for spreadsheets."""

import os
import subprocess
import sys

import pandas as pd
import pytest
from seeds import few_of

QUICK = ("solve", "--model", "oct", "--depth", "1", "--data", "iris", "--time-limit", "20")


def shell(command, cwd, **environment):
    """Run a line of a shell, in which ``$M`` is the program; standard output and error come back as bytes."""
    return subprocess.run(
        ["sh", "-c", command],
        cwd=cwd,
        capture_output=True,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(sys.path), "M": f"{sys.executable} -m mipforest", **environment},
        check=False,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names, or no such device")
class TestStreams:
    @pytest.mark.slow
    @pytest.mark.parametrize("unbuffered", few_of(["", "1"]))
    @pytest.mark.parametrize("as_json", few_of(["", "--json"]))
    def test_a_full_output_ends_in_words_and_keeps_the_tree(self, tmp_path, unbuffered, as_json):
        done = shell(
            f"$M {' '.join(QUICK)} {as_json} > /dev/full",
            tmp_path,
            PYTHONUNBUFFERED=unbuffered,
            TMPDIR=str(tmp_path),
        )
        told = done.stderr.decode()
        assert done.returncode == 2
        assert "error: standard output cannot be written: No space left on device" in told
        assert "Traceback" not in told
        (kept,) = tmp_path.glob("mipforest-run-*")
        assert (kept / "tree.json").exists()

    def test_a_closed_output_is_told_and_the_run_is_whole(self, tmp_path):
        done = shell(f"$M {' '.join(QUICK)} --out run >&-", tmp_path)
        assert done.returncode == 2
        assert "standard output is closed" in done.stderr.decode()
        assert "Traceback" not in done.stderr.decode()
        assert {path.name for path in (tmp_path / "run").iterdir()} >= {"result.json", "tree.json"}
        assert b"note" not in (tmp_path / "run" / "solver.log").read_bytes()

    @pytest.mark.first_cases(1)
    @pytest.mark.parametrize("place", ["2>/dev/full", "2>&-"])
    def test_errors_that_cannot_be_shown_lose_no_answer(self, tmp_path, place):
        done = shell(f"$M {' '.join(QUICK)} {place}", tmp_path)
        assert done.returncode == 0
        assert b"optimal, proven" in done.stdout
        assert shell(f"$M solve --model nope --data iris {place}", tmp_path).returncode == 2

    @pytest.mark.slow
    def test_names_of_files_may_hold_any_bytes(self, tmp_path):
        samples = b"x,y\n1,a\n2,a\n3,b\n4,b\n"
        with open(os.fsencode(tmp_path) + b"/bad\xff.csv", "wb") as file:
            file.write(samples)
        commands = (
            r"N=$(printf 'bad\377'); $M solve --model oct --depth 1 --data $N.csv --target y --out run$N && "
            "$M show run$N && $M report run$N && $M predict run$N $N.csv -o pred$N.csv && $M plot run$N -o $N.svg && "
            "$M export --model oct --depth 1 --data $N.csv --target y -o $N.mps && $M check $N.mps $N.mst"
        )
        done = shell(commands, tmp_path)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        assert b"bad\\xff" in done.stdout
        assert b"Traceback" not in done.stderr


@pytest.mark.slow
def test_no_text_of_a_table_for_spreadsheets_is_a_formula(tmp_path):
    samples = pd.DataFrame({"=size": [1.0, 2.0, 3.0, 4.0], "kind": ["=1+1", "=1+1", "-b", "-b"]})
    samples.to_csv(tmp_path / "data.csv", index=False)
    done = shell(
        "$M solve --model oct --depth 1 --data data.csv --target kind --out run && "
        "$M predict run data.csv -o plain.csv && $M predict run data.csv -o safe.csv --spreadsheet && "
        "$M predict run data.csv --spreadsheet",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert pd.read_csv(tmp_path / "plain.csv")["prediction"].tolist() == samples["kind"].tolist()
    safe = pd.read_csv(tmp_path / "safe.csv")
    assert safe["prediction"].tolist() == [f"'{name}" for name in samples["kind"]]
    assert safe["'=size"].tolist() == samples["=size"].tolist()  # numbers stay
    assert b"'=1+1" in done.stdout
