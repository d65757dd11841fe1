"""Write the table of the referee's checks into docs/referee.md, from `PIPELINE`.

python tools/referee_table.py            # write the table
python tools/referee_table.py --check    # fail if the table in the file is not current
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from agentforge.referee import checks  # noqa: E402
from agentforge.referee.checks import PIPELINE, Check, When  # noqa: E402
from agentforge.schema import Level  # noqa: E402
from tools.generated import GeneratedPart  # noqa: E402

TABLE = GeneratedPart("docs/referee.md", "checks", "tools/referee_table.py")


def table() -> str:
    """The table in Markdown: one row for each name in `PIPELINE`."""
    rows: dict[str, list[Check]] = {}
    for check in PIPELINE:
        rows.setdefault(check.name, []).append(check)
    lines = ["| stage | file | level, and when | what it catches |", "|---|---|---|---|"]
    for name, found in rows.items():
        check = found[0]
        when = [
            _levels(check),
            *(c.when.value for c in found if found != [c] or c.when is not When.EXAMINATION),
        ]
        lines.append(f"| `{name}` | `{_file(check)}` | {', '.join(when)} | {check.catches} |")
    return "\n".join(lines) + "\n"


def _file(check: Check) -> str:
    return type(check).__module__.removeprefix(f"{checks.__name__}.").replace(".", "/") + ".py"


def _levels(check: Check) -> str:
    levels = {len(Level): "all", len(Level) - 1: "both"}.get(len(check.levels), " and ".join(check.levels))
    return f"{levels}, {check.condition}" if check.condition else levels


if __name__ == "__main__":
    raise SystemExit(TABLE.main(table()))
