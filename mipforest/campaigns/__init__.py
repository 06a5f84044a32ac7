"""Campaigns: many models on many data sets, in one results file, with tables and pictures."""

from mipforest.campaigns.run import Campaign, run
from mipforest.campaigns.store import Counts, Store
from mipforest.campaigns.suite import Suite, read_suite
from mipforest.errors import CampaignError

__all__ = ["Campaign", "CampaignError", "Counts", "Store", "Suite", "read_suite", "run"]
