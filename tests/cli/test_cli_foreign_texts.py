"""Names and levels of others: no order to a terminal, no turned text, and pictures that are XML."""

import unicodedata
from xml.etree.ElementTree import fromstring

import numpy as np
import pandas as pd
import pytest

#: Clears the screen, rings, turns the text behind it, breaks a line elsewhere, is no character of XML.
MARKS = "\x1b[2J\x07\u202e\u2028\ufffe"

#: Escaped, as all of these must be.
ESCAPED = "\\x1b[2J\\x07\\u202e\\u2028\\ufffe"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A file with marks in the names of columns, the levels, and the classes."""
    rng = np.random.default_rng(0)
    level = rng.choice(["x", f"y{MARKS}"], size=40)
    number = rng.normal(size=40).round(2)
    answer = np.where(level != "x", f"p{MARKS}", f"q{MARKS}")
    frame = pd.DataFrame({f"l{MARKS}": level, f"n{MARKS}": number, "answer": answer})
    path = tmp_path_factory.mktemp("data") / f"t{MARKS.replace(chr(7), '')}.csv"
    frame.to_csv(path, index=False)
    return path


def prints(text):
    return not any(unicodedata.category(sign) in ("Cc", "Cf", "Zl") and sign not in "\n\t" for sign in text)


def test_no_mark_passes_in_the_terminal_on_a_page_or_in_a_picture(mipforest, table, tmp_path):
    run = tmp_path / "run"
    options = ("--model", "oct", "--depth", "2", "--data", table, "--target", "answer", "--param", "N_min=1")
    solved = mipforest("solve", *options, "--time-limit", "20", "--out", run)
    shown, refused = mipforest("show", run), mipforest("solve", *options, "--drop", "absent")
    predicted = mipforest("predict", run, table, "--explain")
    assert [done.code for done in (solved, shown, predicted)] == [0, 0, 0]
    for done in (solved, shown, refused, predicted):
        assert prints(done.out + done.err)
    assert f"y{ESCAPED}" in shown.out
    for name in ("tree.svg", "tree.dot", "report.html", "tree.py"):
        command = "report" if name.endswith("html") else "plot"
        assert mipforest(command, run, "-o", tmp_path / name).code == 0
        assert prints((tmp_path / name).read_text(encoding="utf-8"))
    picture = fromstring((tmp_path / "tree.svg").read_bytes())
    assert any("x1b" in (element.text or "") for element in picture.iter())


@pytest.mark.slow
def test_other_pictures_are_xml(mipforest, table, tmp_path):
    frame = pd.read_csv(table)
    wide, cards = tmp_path / "numbers.csv", tmp_path / "cards.csv"
    numbers = pd.DataFrame(np.random.default_rng(1).normal(size=(40, 2)), columns=[f"a{MARKS}", f"b{MARKS}"])
    numbers.assign(answer=frame["answer"]).to_csv(wide, index=False)
    numbers.gt(0).astype(int).assign(answer=frame["answer"]).to_csv(cards, index=False)
    oct_run = ("--model", "oct", "--depth", "1", "--data", wide, "--target", "answer", "--param", "N_min=1")
    card_run = ("--model", "ors", "--data", cards, "--target", "answer")
    assert mipforest("solve", *oct_run, "--out", tmp_path / "oct").code == 0
    assert mipforest("solve", *card_run, "--time-limit", "20", "--out", tmp_path / "card").code in (0, 3)
    assert mipforest("plot", tmp_path / "oct", "--partition", "-o", tmp_path / "partition.svg").code == 0
    assert mipforest("plot", tmp_path / "card", "-o", tmp_path / "card.svg").code == 0
    looked = ("vite", "random-forest:trees=3", "--depth", "1", "--data", wide, "--target", "answer")
    seen = mipforest(*looked, "-o", tmp_path / "vite.svg")
    assert seen.code == 0
    assert prints(seen.out + seen.err)
    for name in ("partition.svg", "card.svg", "vite.svg"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert prints(text)
        fromstring(text)
