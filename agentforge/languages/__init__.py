"""Languages: from a `Solution` to something a worker can import."""

from ._base import (
    PRELUDE,
    AheadOfTimeLanguage,
    Availability,
    BuildResult,
    CommandResult,
    CommandRunner,
    Language,
    languages,
)
from .command import run_command
from .extensions import builds_at_import
from .folder import CPP_RUNTIME, MANIFEST, runtime_files, write_solution
from .inductor import inductor_solution
from .single_file import export_single_file
from .solution_io import read_solution

__all__ = [
    "CPP_RUNTIME",
    "MANIFEST",
    "PRELUDE",
    "AheadOfTimeLanguage",
    "Availability",
    "BuildResult",
    "CommandResult",
    "CommandRunner",
    "Language",
    "builds_at_import",
    "export_single_file",
    "inductor_solution",
    "languages",
    "read_solution",
    "run_command",
    "runtime_files",
    "write_solution",
]
