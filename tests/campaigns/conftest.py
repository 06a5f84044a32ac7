"""One campaign that nothing disturbs, for all tests that look at its results."""

from __future__ import annotations

import pytest
from campaign_suites import TINY, campaign_of

from mipforest.campaigns import Campaign, Counts, run


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """A finished campaign of 20 cells, two of which fail; read only."""
    text = f"{TINY}\n[published.margot.tree]\ntest_accuracy = 0.912\ngap = 0.25\n"
    campaign = campaign_of(tmp_path_factory.mktemp("undisturbed"), text)
    assert run(campaign) == Counts(done=18, failed=2, waiting=0)
    return campaign
