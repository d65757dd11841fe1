"""Kernels that are right and could not be verified: kept as files, so that they can be tried elsewhere."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from agentforge.languages.solutions.folder import write_solution
from agentforge.loop import RunLog
from agentforge.loop.bottleneck_state import gain_over_eager, unsteady
from agentforge.schema import Attempt, Evaluation, ReasonCode

MARK = "UNVERIFIED.md"


def unverified(
    attempts: Iterable[Attempt], evaluation_of: Callable[[Attempt], Evaluation | None]
) -> dict[str, tuple[Attempt, Evaluation]]:
    """The best unverified attempt, by definition hash, of each bottleneck with a right attempt and no
    verified one.

    That is the newest one that cannot be timed here, or the fastest one that only a busy machine kept from
    being verified.
    """
    found: dict[str, tuple[Attempt, Evaluation]] = {}
    verified: set[str] = set()
    for attempt in attempts:
        evaluation = evaluation_of(attempt)
        if evaluation is None or not evaluation.passed or attempt.solution is None:
            continue
        gain = gain_over_eager(evaluation) or 0.0
        if evaluation.verified and gain > 1.0:
            verified.add(attempt.bottleneck)
        known = found.get(attempt.bottleneck)
        untimed = evaluation.because(ReasonCode.UNTIMED)
        if untimed or (unsteady(evaluation) and gain > max(1.0, gain_over_eager(known and known[1]) or 0.0)):
            found[attempt.bottleneck] = attempt, evaluation
    return {name: pair for name, pair in found.items() if name not in verified}


def write_unverified(run_log: RunLog, folder: Path) -> tuple[str, ...]:
    """Write these kernels with their references into folders of their own.

    Args:
        folder: emptied first.

    Returns:
        One sentence for each kernel, for the report.
    """
    shutil.rmtree(folder, ignore_errors=True)
    notes = []
    for name, (attempt, evaluation) in unverified(run_log.attempts(), run_log.evaluation).items():
        definition = run_log.store.get_definition(name)
        solution = run_log.solution_of(attempt)
        place = folder / f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', definition.name)[:80]}-{name[:8]}"
        write_solution(solution, place)
        (place / "reference.py").write_text(definition.reference, encoding="utf-8")
        reasons = "\n".join(f"- {reason}" for reason in evaluation.reasons)
        text = _TEXT.format(number=attempt.number, name=definition.name, reasons=reasons)
        (place / MARK).write_text(text, encoding="utf-8")
        notes.append(f"attempt {attempt.number} of {definition.name} is right, and unverified: {place}")
    return tuple(notes)


_TEXT = """# Unverified

Attempt {number} for {name}. Its outputs matched those of `reference.py`. Its speed is not verified:

{reasons}

Verify it on the machine that it is for: `agentforge verify reference.py .`
"""
