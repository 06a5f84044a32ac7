"""The reader: what other writers may write, and malformed files with line and reason."""

import gzip

import numpy as np
import pytest

from mipforest.files import MpsError, read_mps
from mipforest.testing import assert_same_form

INF = np.inf

BASE = """\
NAME test
ROWS
 N cost
 L cap
 G need
 E fix
COLUMNS
 x cost 1 cap 2
 x need 3
 MARKER 'MARKER' 'INTORG'
 y cap 1 fix 1
 z need 1
 MARKER 'MARKER' 'INTEND'
RHS
 RHS cap 4 need 1
 RHS fix 2
BOUNDS
 UP BND x 9
ENDATA
"""


def read(tmp_path, text):
    path = tmp_path / "model.mps"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_mps(path)


def sides(form):
    return list(zip(form.row_lower.tolist(), form.row_upper.tolist(), strict=True))


def bounds(form):
    return list(zip(form.col_lower.tolist(), form.col_upper.tolist(), strict=True))


def test_a_plain_file(tmp_path):
    form = read(tmp_path, BASE)
    assert form.name == "test"
    assert form.column_names == ["x", "y", "z"]
    assert form.row_names == ["cap", "need", "fix"]
    assert form.c.tolist() == [1, 0, 0]
    assert form.A.toarray().tolist() == [[2, 1, 0], [3, 0, 1], [0, 1, 0]]
    assert sides(form) == [(-INF, 4), (1, INF), (2, 2)]
    assert bounds(form) == [(0, 9), (0, 1), (0, 1)]
    assert form.integer.tolist() == [False, True, True]
    assert (form.offset, form.maximize, form.Q, form.indicators.n_rows) == (0, False, None, 0)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: text.replace(" ", "\t  "),
        lambda text: text.replace("\n", "\n\n* a comment\n   \n"),
        lambda text: text.replace(" RHS ", " ").replace(" BND ", " "),
        lambda text: text.replace(" RHS ", " my_set "),
        lambda text: text.replace("ROWS", "OBJSENSE\n  MIN\nROWS"),
        lambda text: text.replace(" 4 ", " +4.0e0 "),
        lambda text: text + "\n* a comment after the end\n\n",
        lambda text: text.replace(" x need 3\n", " x need 3\n x fix 0\n"),
    ],
)
def test_other_ways_to_write_the_same(tmp_path, change):
    plain = read(tmp_path, BASE)
    form = read(tmp_path, change(BASE.replace("NAME test", "NAME\ttest")))
    assert_same_form(plain, form)


@pytest.mark.parametrize(
    ("text", "maximize"),
    [
        ("OBJSENSE\n    MAX\n", True),
        ("OBJSENSE MAXIMIZE\n", True),
        ("OBJSENSE\n max\n", True),
        ("OBJSENSE MIN\n", False),
    ],
)
def test_sense(tmp_path, text, maximize):
    assert read(tmp_path, text + BASE).maximize is maximize


def test_ranges_of_all_row_types(tmp_path):
    ranges = "RANGES\n RNG cap -3 need 2\n RNG fix {}\nBOUNDS"
    assert sides(read(tmp_path, BASE.replace("BOUNDS", ranges.format(5)))) == [(1, 4), (1, 3), (2, 7)]
    assert sides(read(tmp_path, BASE.replace("BOUNDS", ranges.format(-5))))[2] == (-3, 2)
    assert sides(read(tmp_path, BASE.replace("BOUNDS", ranges.format(0))))[2] == (2, 2)


def test_ranges_may_come_ahead_of_right_hand_sides(tmp_path):
    text = BASE.replace("RHS\n RHS cap", "RANGES\n RNG cap 3\nRHS\n RHS cap")
    assert sides(read(tmp_path, text))[0] == (1, 4)


def test_objective_constant_and_free_rows(tmp_path):
    text = BASE.replace(" E fix", " E fix\n N free").replace(" z need 1", " z need 1 free 5")
    form = read(tmp_path, text.replace(" RHS fix 2", " RHS fix 2 cost -3.5\n RHS free 7"))
    assert form.offset == 3.5
    assert sides(form)[3] == (-INF, INF)
    assert form.A.toarray()[3].tolist() == [0, 0, 5]


@pytest.mark.parametrize(
    ("lines", "expected", "integer"),
    [
        ([], (0, 1), True),
        (["UP BND y 7"], (0, 7), True),
        (["LO BND y 2"], (2, INF), True),
        (["MI BND y"], (-INF, INF), True),
        (["PL y"], (0, INF), True),
        (["FR BND y"], (-INF, INF), True),
        (["FX BND y -3"], (-3, -3), True),
        (["MI BND y", "UP BND y -2"], (-INF, -2), True),
        (["UP BND y -2", "LO BND y -4"], (-4, -2), True),
        (["LO BND y -inf", "UP BND y Infinity"], (-INF, INF), True),
        (["BV BND y"], (0, 1), True),
        (["BV BND y 1"], (0, 1), True),
        (["BV y 1"], (0, 1), True),
        (["LI BND y 2", "UI BND y 3"], (2, 3), True),
        (["UP BND y 1e30"], (0, 1e30), True),
    ],
)
def test_bounds(tmp_path, lines, expected, integer):
    text = BASE.replace(" UP BND x 9\n", "".join(f" {line}\n" for line in lines))
    form = read(tmp_path, text)
    assert bounds(form)[1] == expected  # exact: as written
    assert form.integer[1] == integer


def test_bounds_without_marker_make_integer_columns(tmp_path):
    assert read(tmp_path, BASE.replace("UP BND x 9", "UI BND x 9")).integer[0]
    assert read(tmp_path, BASE.replace("UP BND x 9", "BV BND x")).integer[0]


def test_both_quadratic_sections(tmp_path):
    triangle = read(tmp_path, BASE.replace("ENDATA", "QUADOBJ\n x x 2\n y x 3\n z z 0\nENDATA"))
    full = read(tmp_path, BASE.replace("ENDATA", "QMATRIX\n x x 2\n y x 3\n x y 3\nENDATA"))
    expected = [[2, 3, 0], [3, 0, 0], [0, 0, 0]]
    assert triangle.Q.toarray().tolist() == full.Q.toarray().tolist() == expected


def test_indicator_rows_leave_the_linear_rows(tmp_path):
    form = read(tmp_path, BASE.replace("BOUNDS", "INDICATORS\n IF need y 0\n IF cap z 1\nBOUNDS"))
    assert form.row_names == ["fix"]
    indicators = form.indicators
    assert [name for block in indicators.rows for name in block.names()] == ["cap", "need"]
    assert indicators.binary.tolist() == [2, 1]
    assert indicators.value.tolist() == [1, 0]
    assert indicators.A.toarray().tolist() == [[2, 1, 0], [3, 0, 1]]
    assert (indicators.lower.tolist(), indicators.upper.tolist()) == ([-INF, 1], [4, INF])


def edit(old, new, line, reason):
    return pytest.param(BASE.replace(old, new, 1), line, reason, id=reason[:40])


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        edit("ENDATA\n", "", 18, "without ENDATA"),
        edit("ENDATA\n", "ENDATA\nNAME next\n", 20, "after ENDATA"),
        edit("NAME test", " x cost 1", 1, "'x' outside a section"),
        edit("RHS\n", "RSH\n", 14, "did you mean RHS"),
        edit("BOUNDS", "SOS1", 17, "section SOS1 is not supported"),
        edit("BOUNDS", "RHS", 17, "a second section RHS"),
        edit("ROWS\n", "", 2, "'N' outside a section"),
        edit("COLUMNS\n", "RHS\n", 7, "RHS ahead of section COLUMNS"),
        edit("ROWS\n", "COLUMNS\n", 2, "COLUMNS ahead of section ROWS"),
        edit(" N cost\n", "", 6, "no row of type N"),
        edit("RHS\n", "RHS here\n", 14, "'here' after the section header"),
        edit("ROWS", "OBJSENSE\nROWS", 2, "OBJSENSE is empty"),
        edit("ROWS", "OBJSENSE\n UP\nROWS", 3, "MAX or MIN, not 'UP'"),
        edit("ROWS", "OBJSENSE MAX\n MIN\nROWS", 3, "OBJSENSE has one line"),
        edit(" L cap", " L my cap", 4, "3 fields"),
        edit(" L cap", " X cap", 4, "row type 'X'"),
        edit(" G need", " G cap", 5, "row 'cap' a second time"),
        edit(" G need", " G cost", 5, "row 'cost' a second time"),
        edit(" x need 3", " x need", 9, "2 fields"),
        edit(" x need 3", " x need 3 cap", 9, "4 fields"),
        edit(" x need 3", " x needs 3", 9, "unknown row 'needs'; did you mean 'need'"),
        edit(" x need 3", " x need three", 9, "'three' is not a finite number"),
        edit(" x need 3", " x need nan", 9, "'nan' is not a finite number"),
        edit(" x need 3", " x need inf", 9, "'inf' is not a finite number"),
        edit(" x need 3", " x need 1e999", 9, "'1e999' is not a finite number"),
        edit(" x need 3", " x need 1_0", 9, "'1_0' is not a finite number"),
        edit(" x need 3", " x cap 3", 9, "second entry in row 'cap'"),
        edit(" x need 3", " x cost 3", 9, "second entry in row 'cost'"),
        edit(" z need 1", " x fix 1", 12, "column 'x' a second time"),
        edit("'INTORG'", "'SOSORG'", 10, "'SOSORG'"),
        edit("'INTORG'", "'INTEND'", 10, "outside a run"),
        edit("'INTEND'", "'INTORG'", 13, "inside a run"),
        edit(" MARKER 'MARKER' 'INTEND'\n", "", 18, "no 'INTEND'"),
        edit(" RHS fix 2", " RHS fix", 16, "unknown row 'RHS'"),
        edit(" RHS fix 2", " fix", 16, "1 fields"),
        edit(" RHS fix 2", " RHS cap 2", 16, "second right-hand side"),
        edit(" RHS fix 2", " RHS cost 2 cost 3", 16, "second right-hand side"),
        edit(" RHS fix 2", " other fix 2", 16, "second set 'other' in RHS"),
        edit("BOUNDS", "RANGES\n RNG cost 2\nBOUNDS", 18, "row of type N"),
        edit("BOUNDS", "RANGES\n RNG cap 2 cap 3\nBOUNDS", 18, "second range"),
        edit(" UP BND x 9", " XX BND x 9", 18, "bound type 'XX'"),
        edit(" UP BND x 9", " SC BND x 9", 18, "bound type 'SC' is unknown or unsupported"),
        edit(" UP BND x 9", " UP BND q 9", 18, "unknown column 'q'"),
        edit(" UP BND x 9", " UP BND x", 18, "unknown column 'BND'"),
        edit(" UP BND x 9", " UP BND x 9 9", 18, "5 fields"),
        edit(" UP BND x 9", " FR", 18, "1 fields"),
        edit(" UP BND x 9", " UP BND x nine", 18, "'nine' is not"),
        edit(" UP BND x 9", " UP BND x nan", 18, "'nan' is not"),
        edit(" UP BND x 9", " UP BND x 9\n FX BND x 9", 19, "second upper bound"),
        edit(" UP BND x 9", " UP BND x 9\n UP other y 9", 19, "second set 'other'"),
        edit(" UP BND x 9", " UP BND x -9", 18, "negative UP bound of column x without a lower bound"),
        edit(" UP BND x 9", " UP BND x 9\n LO BND x 10", 19, r"[10.0, 9.0] of column x cross"),
        edit(" UP BND x 9", " LO BND x inf", 18, "lower bound inf"),
        edit(" UP BND x 9", " UP BND x -inf", 18, "upper bound -inf"),
        edit("ENDATA", "QUADOBJ\n x x\nENDATA", 20, "2 fields"),
        edit("ENDATA", "QUADOBJ\n x q 1\nENDATA", 20, "unknown column 'q'"),
        edit("ENDATA", "QUADOBJ\n x y 1\n y x 1\nENDATA", 21, "second entry"),
        edit("ENDATA", "QMATRIX\n x y 1\nENDATA", 20, "not symmetric"),
        edit("ENDATA", "QMATRIX\nQUADOBJ\nENDATA", 20, "keep one"),
        edit("ENDATA", "INDICATORS\n IF cap y\nENDATA", 20, "IF row column value"),
        edit("ENDATA", "INDICATORS\n IF cap y 2\nENDATA", 20, "it is 0 or 1"),
        edit("ENDATA", "INDICATORS\n IF cap x 1\nENDATA", 20, "x is not binary"),
        edit("ENDATA", "INDICATORS\n IF cost y 1\nENDATA", 20, "type N"),
        edit("ENDATA", "INDICATORS\n IF cap y 1\n IF cap z 1\nENDATA", 21, "second condition"),
        edit(" L cap", " L c\x07p", 4, "no printable text"),
    ],
)
def test_malformed_files_fail_with_line_and_reason(tmp_path, text, line, reason):
    with pytest.raises(MpsError) as caught:
        read(tmp_path, text)
    assert reason in caught.value.reason
    assert caught.value.line == line
    assert str(caught.value) == f"{tmp_path / 'model.mps'}:{line}: {caught.value.reason}"


def test_a_range_that_overflows(tmp_path):
    text = BASE.replace("need 1\n RHS", "need 1.7e308\n RHS").replace("BOUNDS", "RANGES\n need 1e308\nBOUNDS")
    with pytest.raises(MpsError, match=r"model\.mps:18: the range overflows"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    "data", [b"", b"\n\n", b"ENDATA\n", b"NAME\nROWS\n N c\nENDATA\n", b"\x00\xff" * 50, b"\x89PNG\r\n\x1a\n"]
)
def test_files_that_are_no_models(tmp_path, data):
    with pytest.raises(MpsError):
        read(tmp_path, data)


def test_a_file_without_line_ends_is_not_kept_in_memory(tmp_path):
    path = tmp_path / "bomb.mps.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(50):
            file.write(b" " * (1 << 20))
    with pytest.raises(MpsError, match=r"gz:1: the line is longer than 65536 characters"):
        read_mps(path)


def test_damaged_compressed_files(tmp_path):
    path = tmp_path / "model.mps.gz"
    whole = gzip.compress(BASE.encode())
    for data in (BASE.encode(), whole[: len(whole) // 2], whole[:-4], whole[:30] + b"\x00" + whole[31:], b""):
        path.write_bytes(data)
        with pytest.raises(MpsError, match=r"model\.mps\.gz:"):
            read_mps(path)


@pytest.mark.parametrize(
    ("line", "name"), [("NAME my model FREE", "my model"), ("NAME FREE", "FREE"), ("NAME x FREE ", "x")]
)
def test_the_word_free_is_no_part_of_the_name(tmp_path, line, name):
    assert read(tmp_path, BASE.replace("NAME test", line)).name == name
