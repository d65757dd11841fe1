"""Campaigns and their queue."""

from .queue import CampaignQueue
from .records import CampaignRecords, Progress, Try
from .statements import LOST_TRIES

__all__ = ["LOST_TRIES", "CampaignQueue", "CampaignRecords", "Progress", "Try"]
