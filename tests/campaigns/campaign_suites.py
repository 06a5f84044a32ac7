"""Suites of small, quick cells."""

from __future__ import annotations

from pathlib import Path

from mipforest.campaigns import Campaign

#: 20 cells that are solved to optimality in milliseconds, but for those of seed 8: their only training samples of
#: one class make some models fail.
TINY = """
name = "tiny"
seeds = [0, 1, 2, 3, 8]
time_limits = [60.0]
threads = 1

[split]
test_size = 0.25
stratify = "none"

[data.tree]
load = "synthetic:tree,depth=1,n=24,p=2"

[models.oct]
model = "oct"
depth = 1
grid = { alpha = [0.0, 0.05] }

[models.margot]
model = "margot"
depth = 1
parameters = { C = 1.0 }

[models.hfs]
model = "hfs-margot"
depth = 1
parameters = { C = 1.0, B = 1 }
"""

#: Two cells.
PAIR = """
name = "pair"
seeds = [2, 3]
time_limits = [60.0]
threads = 1

[split]
test_size = 0.25

[data.tree]
load = "synthetic:tree,depth=1,n=24,p=2"

[models.oct]
model = "oct"
depth = 1
"""


def campaign_of(place: Path, text: str, **options: object) -> Campaign:
    """Write a suite into a folder, with its results beside it."""
    path = place / "suite.toml"
    path.write_text(text)
    return Campaign(path, place / "results.sqlite", **options)  # type: ignore[arg-type]
