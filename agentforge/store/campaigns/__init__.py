"""Campaigns and their queue."""

from .queue import CampaignQueue
from .records import CampaignRecords, Progress, Try
from .statements import LOST_TRIES, Done

__all__ = ["LOST_TRIES", "CampaignQueue", "CampaignRecords", "Done", "Progress", "Try"]
