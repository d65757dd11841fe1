"""One sitting on a lent GPU: all pieces in the order of what they teach, each in a process of its own.

A piece that fails, hangs or crashes costs only its own time. A sitting that is interrupted goes on where it
stopped: a piece with a complete result of this commit is not measured again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from _provenance import same_code

SHARES: Mapping[str, int] = {
    "ladder": 180, "tests": 300, "verdict": 300, "operators": 420, "optimize": 360, "attacks": 420,
    "tune": 240, "feedback": 240, "ncu": 60, "profile": 90,
    "landscapes": 60,
}  # fmt: skip
"""Most seconds of each piece, in the order in which they run: 45 minutes."""
_LEAST_S = 20.0
_GRACE_S = 15.0

Start = Callable[[str, float], list[str]]
"""The command that measures a piece in so many seconds."""


def complete(output: Path, piece: str, commit: str) -> bool:
    """Whether a piece was measured to its end at this commit."""
    with suppress(OSError, ValueError):
        found = json.loads((output / f"gpu-{piece}.json").read_text())
        return bool(found["ok"]) and not found["cut_off"] and same_code(found["commit"], commit)
    return False


def finished(output: Path, piece: str, part: str, commit: str) -> dict[str, Any]:
    """What went well in a piece that was not measured to its end at this commit.

    Args:
        part: key of the result that has one answer by name.
    """
    found = _read(output / f"gpu-{piece}.json") or {}
    if complete(output, piece, commit) or not same_code(str(found.get("commit", "")), commit):
        return {}
    return {name: one for name, one in found.get(part, {}).items() if one["ok"]}


def sit(minutes: float, output: Path, commit: str, start: Start) -> dict[str, str]:
    """Measure all pieces, and write the page of results after each.

    Args:
        minutes: of the whole sitting.
        output: folder of the results.
        commit: a result of another one is measured again.
        start: the command of a piece.

    Returns:
        By piece what became of it.
    """
    end = time.monotonic() + 60 * minutes
    fates: dict[str, str] = {}
    for piece, share in SHARES.items():
        left = end - time.monotonic()
        if complete(output, piece, commit):
            fates[piece] = "measured before"
        elif left < _LEAST_S:
            fates[piece] = "no time left"
        else:
            seconds = min(share, left)
            fates[piece] = _run(start(piece, seconds), seconds + _GRACE_S)
        print(f"{piece}: {fates[piece]}", flush=True)
        write_page(output)
    return fates


def _run(command: Sequence[str], seconds: float) -> str:
    child = subprocess.Popen(command, start_new_session=True)
    try:
        code = child.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"stopped after {seconds:.0f} s"
    finally:
        with suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
    return "ok" if code == 0 else f"exit code {code}"


def write_page(output: Path) -> None:
    """Write `gpu.md` from the result files that are there."""
    rows = ["# Results on a GPU", "", "Written by `python benchmarks/gpu/run.py page` from `gpu-*.json`.", "",
            "| piece | result | device | driver | commit | date | command |",
            "|---|---|---|---|---|---|---|"]  # fmt: skip
    found = {piece: _read(output / f"gpu-{piece}.json") for piece in SHARES}
    for piece, answer in found.items():
        if answer is not None:
            result = "cut off" if answer.get("cut_off") else "ok" if answer.get("ok") else "failed"
            driver = str(answer.get("driver", "")).split(",")[0]
            facts = [piece, result, answer.get("device"), driver, answer.get("commit"), answer.get("date")]
            rows.append("| " + " | ".join(str(f) for f in facts) + f" | `{answer.get('command')}` |")
    notes = [f"- {piece}: {a['note']}" for piece, a in found.items() if a and "note" in a]
    if any(answer is not None for answer in found.values()):
        (output / "gpu.md").write_text("\n".join([*rows, "", *notes, *_operators(found["operators"]), ""]))


def _operators(found: Mapping[str, Any] | None) -> list[str]:
    """A table of the piece `operators`: one row for each of our kernels."""
    rows: list[str] = []
    for label, one in (found or {}).get("operators", {}).items():
        times = one.get("offline", {})
        for kernel, mine in times.items():
            if kernel in ("eager", "compile", "liger", "copy"):
                continue
            theirs = times.get("liger")
            liger = f"{theirs['seconds'] / mine['seconds']:.2f}x" if theirs else ""
            compiled = f"{mine['over_compile']:.2f}x" if mine["over_compile"] else ""
            rows.append(
                f"| {label} | {kernel} | {1e6 * mine['seconds']:.1f} us | {mine['share_of_copy']:.0%} "
                f"| {mine['over_eager']:.2f}x | {compiled} | {liger} |"
            )
    head = ["", "## Operators, one call after the other", "",
            "| operator | kernel | time | of a copy's speed | over eager | over torch.compile | over Liger |",
            "|---|---|---|---|---|---|---|"]  # fmt: skip
    return head + rows if rows else []


def _read(file: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def piece_command(output: Path) -> Start:
    """Commands of the real pieces."""
    run = str(Path(__file__).with_name("run.py"))
    return lambda piece, seconds: [
        sys.executable, run, piece, "--output", str(output), "--seconds", f"{seconds:.0f}"
    ]  # fmt: skip
