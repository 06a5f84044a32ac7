"""What the command line prints and writes is what it printed and wrote before."""

import pytest
from golden_transcripts import TRANSCRIPTS, close, replay, with_numbers_of


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_command_line_prints_and_writes_what_it_did(transcript, tmp_path):
    """``python tests/cli/golden/refresh.py`` renews the transcripts; read what changed before keeping it."""
    (tmp_path / "first").mkdir()
    (tmp_path / "again").mkdir()
    told = list(replay(transcript, tmp_path / "first"))
    if any("compil" in now and "compil" not in before for _, before, now in told):
        # Whichever test comes first compiles a search, and is told so; what is compiled once is loaded from then on.
        told = list(replay(transcript, tmp_path / "again"))
    for command, before, now in told:
        assert [command, *with_numbers_of(before, now).splitlines()] == [command, *before.splitlines()]


def test_numbers_are_compared_and_not_masked():
    assert close("40.0724", "40.0725")
    assert not close("40.0724", "40.08")
    assert not close("4", "5")
    assert with_numbers_of("objective 1.5, 3 rows", "objective 1.50000001, 3 rows") == "objective 1.5, 3 rows"
    assert with_numbers_of("objective 1.5", "objective 1.6") == "objective 1.6"
    assert with_numbers_of("iris_2: 2.0", "iris_2: 2.00000001") == "iris_2: 2.0"
