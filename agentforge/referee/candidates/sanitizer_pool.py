"""Forkservers whose workers look for their own faults: Python and torch with a sanitizer loaded."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from agentforge.isolation.sandboxes import Sandbox
from agentforge.languages.cpp.sanitizers.sanitizers import Sanitizer
from agentforge.schema import HarnessError

from ..workers.process import Forkserver


class NotChecked(Exception):
    """Why this machine cannot look for a kind of fault, in one sentence."""


class SanitizerPool:
    """One forkserver per sanitizer, started on demand and kept warm. Its workers are never timed."""

    def __init__(self, sandbox: Sandbox, folder: Path, environment: Mapping[str, str]) -> None:
        self._sandbox = sandbox
        self._folder = folder
        self._environment = environment
        self._servers: dict[str, Forkserver] = {}
        self._broken: dict[str, str] = {}

    def prepare(self, sanitizer: Sanitizer) -> None:
        """Begin to start its forkserver, which takes seconds, and come back at once."""
        if sanitizer.name in self._servers or sanitizer.name in self._broken:
            return
        library = sanitizer.available()
        if not library:
            self._broken[sanitizer.name] = f"the compiler brings no {sanitizer.library}"
            return
        # By env inside of the sandbox: its own program shall not have the library. Code that torch.compile
        # generates has no sanitizer, and the compiler is slow with one.
        wanted = {"LD_PRELOAD": library, "TORCH_COMPILE_DISABLE": "1", **sanitizer.environment}
        prefix = [*in_place(), "env", *(f"{key}={value}" for key, value in wanted.items())]
        self._servers[sanitizer.name] = Forkserver(
            sanitizer.name, self._sandbox, self._folder, self._environment, prefix=prefix
        )

    def forkserver(self, sanitizer: Sanitizer) -> Forkserver:
        """The forkserver of a sanitizer, ready.

        Raises:
            NotChecked: it does not start here.
        """
        self.prepare(sanitizer)
        server = self._servers.get(sanitizer.name)
        if server is not None:
            try:
                server.ready()
            except HarnessError as error:
                self._broken[sanitizer.name] = f"its forkserver does not start ({error})"
                self._servers.pop(sanitizer.name).close()
            else:
                return server
        raise NotChecked(self._broken[sanitizer.name])

    def close(self) -> None:
        """End all forkservers; safe to call twice."""
        while self._servers:
            self._servers.popitem()[1].close()


@cache
def in_place() -> tuple[str, ...]:
    """A command whose child has the memory layout that ThreadSanitizer expects; empty if that is
    forbidden."""
    command = ("setarch", "-R")
    if shutil.which(command[0]) is None:
        return ()
    tried = subprocess.run([*command, "true"], capture_output=True, timeout=20, check=False)
    return command if tried.returncode == 0 else ()
