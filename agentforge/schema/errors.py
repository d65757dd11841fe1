"""The exceptions of AgentForge: infrastructure only; a candidate's failure is an `Evaluation`."""

from __future__ import annotations

from pydantic import ValidationError


class AgentForgeError(Exception):
    """Root of all our errors. The message is one sentence that says what to do; the CLI prints it, exit 2.

    Args:
        shown: lines that the CLI prints below it as they are, such as a difference.
    """

    def __init__(self, message: str = "", *, shown: str = "") -> None:
        super().__init__(message)
        self.shown = shown

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in the place of a traceback: the sentence, as the command line does."""
        return [f"{type(self).__name__}: {self}", *self.shown.splitlines()]


class UsageError(AgentForgeError):
    """What the user asked for cannot be done as asked: a bad file, option, name or value."""


class BusyError(UsageError):
    """Another process works on the run: the same call succeeds when that one has ended."""


class TargetError(UsageError):
    """The model file cannot be used: missing, does not import, lacks `Model`, raises, returns no tensor."""

    lasts = True
    """Whether the same call fails again."""


class UnsupportedTargetError(TargetError):
    """The model may be right, and cannot be used here: no GPU, an unknown dtype, an odd argument."""


class MemoryShortageError(UnsupportedTargetError):
    """The model needs more memory than is free on this machine now."""

    lasts = False


class MissingPackageError(UsageError):
    """A problem imports a package that is not installed on this machine."""


class MachineError(AgentForgeError):
    """This machine lacks something: a compiler, a device, a package. The message says how to get it."""


class ProviderError(MachineError):
    """A provider of language models refuses the key, the model or the URL that this machine has."""


class OutageError(ProviderError):
    """A provider of language models is out of reach, too busy, or the quota is used up: the same call may
    succeed later."""


class TimeEnded(AgentForgeError):
    """The run's time ended in the middle of an evaluation: that says nothing about the candidate."""


class StoreError(AgentForgeError):
    """The database cannot be used: corrupt, newer than this version, locked, disk full."""


class NoDatabaseError(StoreError):
    """There is no database yet."""


class RevisionError(StoreError):
    """A database that is only read has tables of another version, or none.

    Args:
        found: revision of its tables; None if it has none.
        wanted: revision that this version reads.
    """

    def __init__(self, message: str = "", *, found: str | None = None, wanted: str = "") -> None:
        super().__init__(message)
        self.found, self.wanted = found, wanted


class UnreachableError(StoreError):
    """The database cannot be reached, or another process writes to it: the same call may succeed later."""


class HarnessError(AgentForgeError):
    """The referee itself failed; nothing is said about the candidate. The CLI exits with 3."""


class CannotCode(Exception):
    """A coder or the generator cannot carry out a plan."""


NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What `ast.parse` raises for a text that is no Python, or that is nested too deep for its parser."""


def pip_install(extra: str) -> str:
    """The command that installs an extra, and its folder: on PyPI, `agentforge` is another project."""
    return f"pip install '.[{extra}]' in AgentForge's clone"


def first_fault(error: ValidationError) -> tuple[str, str]:
    """The place and the message of the first thing that is wrong with a value."""
    first = error.errors()[0]
    return ".".join(map(str, first["loc"])), first["msg"]
