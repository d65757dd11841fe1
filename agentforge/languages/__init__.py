"""Languages: from a `Solution` to something a worker can import."""

from ._base import Availability, BuildResult, CommandResult, CommandRunner, Language, languages
from .command import run_command
from .folder import write_solution

__all__ = [
    "Availability",
    "BuildResult",
    "CommandResult",
    "CommandRunner",
    "Language",
    "languages",
    "run_command",
    "write_solution",
]
