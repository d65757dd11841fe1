"""Campaigns and their queue."""

from .queue import CampaignQueue, worker_name
from .records import CampaignRecords, Progress, Try
from .results import CampaignResults, Result, Spending
from .statements import LOST_TRIES, Done

__all__ = [
    "LOST_TRIES",
    "CampaignQueue",
    "CampaignRecords",
    "CampaignResults",
    "Done",
    "Progress",
    "Result",
    "Spending",
    "Try",
    "worker_name",
]
