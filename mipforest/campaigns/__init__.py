"""Campaigns: many models on many data sets, in one results file, with tables and pictures."""

from mipforest.campaigns.campaign import Campaign, campaigns
from mipforest.campaigns.run import run
from mipforest.campaigns.store import Counts, Store
from mipforest.campaigns.suite import Suite, included_suites, read_suite
from mipforest.errors import CampaignError

__all__ = [
    "Campaign",
    "CampaignError",
    "Counts",
    "Store",
    "Suite",
    "campaigns",
    "included_suites",
    "read_suite",
    "run",
]
