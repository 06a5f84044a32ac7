"""Faults that ``planted_faults.py`` plants are in the code as it stands."""

import pytest
from planted_faults import FAULTS, PROJECT


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_every_fault_can_be_planted(fault):
    text = (PROJECT / fault.file).read_text(encoding="utf-8")
    assert text.count(fault.before) == 1
    assert fault.before != fault.after
    for tests in fault.tests:
        assert (PROJECT / "tests" / tests).exists()
