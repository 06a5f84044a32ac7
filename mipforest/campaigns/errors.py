"""The error that every problem with a campaign raises."""


class CampaignError(ValueError):
    """A suite or a results file that cannot be used: the message says what is wrong, where, and what to do."""
