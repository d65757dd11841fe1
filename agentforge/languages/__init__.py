"""Languages: from a `Solution` to something a worker can import."""

from ._base import Availability, BuildResult, CommandResult, CommandRunner, Language, languages

__all__ = ["Availability", "BuildResult", "CommandResult", "CommandRunner", "Language", "languages"]
