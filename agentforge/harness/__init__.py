"""The referee: it trusts no candidate."""

from ._base import Box, Limits, Sandbox, sandboxes
from .referee import Referee, choose_sandbox
from .verdict import exit_code

__all__ = ["Box", "Limits", "Referee", "Sandbox", "choose_sandbox", "exit_code", "sandboxes"]
