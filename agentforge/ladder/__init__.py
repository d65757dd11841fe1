"""What a GPU can do, found out rung by rung, and what AgentForge does without."""

from ._base import LADDER, Rung, RungOutcome, RungResult
from .climb import Ladder, climb
from .device import find_device

__all__ = ["LADDER", "Ladder", "Rung", "RungOutcome", "RungResult", "climb", "find_device"]
