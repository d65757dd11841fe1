"""The process that reads a report: `python -m agentforge.profiling.nsight.reader REPORT ANSWER [FOLDER ...]`.

It runs in the sandbox, since the report lay where a candidate could write. Nsight Compute brings a module of
its own that reads its reports, whatever their version: that in a `FOLDER` of its installation goes before the
package `ncu-report`.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress
from pathlib import Path

from .capability import Refused
from .report import Reading, read_report


def main(argv: list[str]) -> None:
    """Read the report, write what it says, or why it cannot be read."""
    report, answer, *folders = map(Path, argv[1:])
    for folder in folders:
        _try_module(folder / "extras" / "python")
    try:
        reading = Reading(reports=read_report(report))
    except Refused as refused:
        reading = Reading(refusal=refused.kind, message=str(refused))
    answer.write_text(reading.model_dump_json())


def _try_module(folder: Path) -> None:
    """Import the reader that lies there; one that is not for this interpreter leaves no trace."""
    if "ncu_report" in sys.modules or not folder.is_dir():
        return
    sys.path.insert(0, str(folder))
    with suppress(ImportError, OSError):
        importlib.import_module("ncu_report")
    sys.path.remove(str(folder))


if __name__ == "__main__":
    main(sys.argv)
