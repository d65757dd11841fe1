"""The referee: it trusts no candidate."""

from ._base import Limits, Sandbox, sandboxes

__all__ = ["Limits", "Sandbox", "sandboxes"]
