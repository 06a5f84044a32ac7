"""Whether the HiGHS that is installed reads LP files soundly, as mipforest asks of it."""

from importlib.metadata import version

import pytest

from mipforest.files.lp_reader import SOUND

READS_LP = tuple(map(int, version("highspy").split(".")[:2])) >= SOUND

needs_lp_reader = pytest.mark.skipif(not READS_LP, reason="HiGHS 1.15 drops parts of LP files")
