"""A sandbox: the built-in resource limits, with less memory for files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic import BaseModel, Field

from agentforge.isolation.sandboxes import Box, Limits
from agentforge.isolation.sandboxes.rlimits import Rlimits
from agentforge.registry import Availability


class Cautious:
    """`Rlimits` that allows smaller files.

    It isolates no network and no files, so `auto` must not prefer it: it says that it does not work unless
    the user chooses it by `enabled`.

    Args:
        enabled: `-c referee.sandbox=cautious -c referee.sandbox_options.enabled=true`.
        file_bytes: largest file.
    """

    name = "cautious"

    class Options(BaseModel, extra="forbid"):
        """`referee.sandbox_options`."""

        enabled: bool = False
        file_bytes: int = Field(default=1 << 26, ge=1 << 16)

    def __init__(self, *, enabled: bool = False, file_bytes: int = 1 << 26) -> None:
        self.options = {"enabled": enabled, "file_bytes": file_bytes}
        self._enabled = enabled
        self._file_bytes = file_bytes
        self._inner = Rlimits()

    def available(self) -> Availability:
        if not self._enabled:
            return Availability(False, "set referee.sandbox_options.enabled=true to use it")
        return self._inner.available()

    def enter(self, limits: Limits, *, keep_fds: Sequence[int], box: Box) -> None:
        smaller = replace(limits, file_bytes=min(limits.file_bytes, self._file_bytes))
        self._inner.enter(smaller, keep_fds=keep_fds, box=box)
