"""Mutation test of the referee: take each defence away in turn; the corpus must notice.

    python benchmarks/adversarial/mutate.py [--only NAME] [--output FILE]

A mutant is a patch of the referee's own process (or a weaker setting) and the hostile candidates that this
defence is there for. Each candidate is judged with the whole referee, which must catch it, and again with
the defence gone. A mutant that no candidate notices is a defence that nothing tests, or that another one
covers; the table says which.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from _provenance import provenance  # noqa: E402
from corpus import Case, load_cases  # noqa: E402
from pydantic import BaseModel  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402
from run import Judging  # noqa: E402
from verdicts import Outcome, Record  # noqa: E402

from agentforge.schema import Level  # noqa: E402

RESULTS = HERE.parent / "results" / "adversarial_mutants.json"


@dataclass(frozen=True)
class Mutant:
    """One defence taken away."""

    name: str
    what: str
    """What the referee no longer does."""
    patches: tuple[tuple[str, Any], ...]
    """`module:attribute` and what stands there instead."""
    noticed_by: tuple[str, ...]
    """Parts of names of hostile candidates, one of which must get through."""
    sandbox: str = "auto"
    full: bool = False
    """The defence works at level full alone."""


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


def _passes(*args: Any, **kwargs: Any) -> str:
    return "taken away"


def _no_doubt(*args: Any, **kwargs: Any) -> str:
    return ""


def _all_told(*args: Any, **kwargs: Any) -> Any:
    from agentforge.harness.taskcheck import TaskReport

    return TaskReport()


def _loose(original: Callable[..., Any]) -> Callable[..., Any]:
    """Bounds of a fixed absolute 1e-2, as public harnesses have them."""
    from agentforge.harness.tolerance import Bound

    def derive(reference: Any, *args: Any, **kwargs: Any) -> Any:
        bound = original(reference, *args, **kwargs)
        return Bound(1e9, 0.0, 1e-2, bound.reference_error) if reference.is_floating_point() else bound

    return derive


def _filled_once(original: Callable[..., Any]) -> Callable[..., Any]:
    """Each slot keeps its first content."""

    def fill(self: Any, slot: int) -> None:
        seen = self.__dict__.setdefault("seen_by_mutant", set())
        if slot not in seen:
            seen.add(slot)
            original(self, slot)

    return fill


@dataclass(frozen=True)
class Wrapped:
    """Replacement made from the original."""

    make: Callable[[Callable[..., Any]], Callable[..., Any]]


_H = "agentforge.harness"
MUTANTS: tuple[Mutant, ...] = (
    Mutant("absolute-tolerance", "a fixed absolute 1e-2 in the place of the reference's own error",
           ((f"{_H}.bench:derive", Wrapped(_loose)), (f"{_H}.contents:derive", Wrapped(_loose)),
            (f"{_H}.bench:examine_task", _all_told)),
           ("softmax_quantised", "l2_noise", "small_values_flushed")),
    Mutant("weak-tasks-unseen", "nobody asks whether the task can tell right from wrong",
           ((f"{_H}.bench:examine_task", _all_told),), ("f01_constant_within_tolerance/always_zero",)),
    Mutant("form-unchecked", "shape and dtype are not compared",
           ((f"{_H}.judge:Judge._check_form", _nothing),), ("int32_index", "float64_output", "half_output")),
    Mutant("outputs-may-overlap", "one static buffer for all answers is not looked for",
           ((f"{_H}.stages.behaviour:Determinism.run", _passes),),
           ("one_buffer", "fresh_view_of_one_buffer")),
    Mutant("inputs-may-change", "inputs are not looked at after a call",
           ((f"{_H}.stages.behaviour:Mutation.run", _passes),), ("answer_in_place", "right_then_mutate")),
    Mutant("late-work", "processor time after the answer is not looked at",
           ((f"{_H}.stages.behaviour:Aftermath.run", _passes),), ("spinning_threads", "subprocess_daemon")),
    Mutant("no-attestation", "nobody asks which kernels ran",
           ((f"{_H}.stages.behaviour:Attestation.run", _passes),), ("compiled_never_launched", "restate_it")),
    Mutant("no-stability", "ordinary inputs alone",
           ((f"{_H}.stages.correctness:Stability.run", _passes),),
           ("eps_forgotten", "softmax_no_max", "variance_by_squares"), full=True),
    Mutant("timed-calls-unchecked", "outputs of timed calls are not compared",
           ((f"{_H}.spotcheck:SpotChecks.compare", _nothing),),
           ("twenty_five", "f18_call_counter/hundred", "by_age")),
    Mutant("inputs-repeat", "every call on a slot sees the same content",
           ((f"{_H}.inputs:Inputs.fill", Wrapped(_filled_once)),), ("data_ptr", "pointer_and_version")),
    Mutant("no-variants", "the workload's shapes and strides alone",
           ((f"{_H}.variants:Variants.run", _passes),), ("even_rows", "multiple_of_eight"), full=True),
    Mutant("kernels-may-idle", "kernels are not taken out to see whether they do the work",
           ((f"{_H}.examination:Examination._engagement", _passes),), ("forged_counter",), full=True),
    Mutant("no-endurance", "no calls beyond those that timing needs",
           ((f"{_H}.examination:endure", _passes),), ("f18_call_counter/hundred",), full=True),
    Mutant("no-sanitizers", "no sanitized builds",
           ((f"{_H}.stages.memory_safety:MemorySafety.run", _passes),),
           ("cpp_scratch_one_past", "cpp_racy_counter"), full=True),
    Mutant("seen-time", "a time that nobody can reach is not doubted",
           ((f"{_H}.physics:check", _no_doubt),), ("f22_after_the_timer/fill_before_fetch",), full=True),
    Mutant("weak-sandbox", "resource limits alone, no namespaces", (),
           ("write_outside", "network", "read_secrets", "disk_filler"), sandbox="rlimits"),
)  # fmt: skip


class Finding(BaseModel):
    """What became of one mutant."""

    mutant: str
    what: str
    applied: bool
    """False where the patched function is not there any more: mend this file."""
    noticed: bool
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    """Candidate to outcome, status and first reason."""


@contextmanager
def without(mutant: Mutant) -> Iterator[None]:
    """The referee without a defence.

    Raises:
        AttributeError: the defence is not where the mutant says.
    """
    with ExitStack() as stack:
        for target, replacement in mutant.patches:
            module, _, path = target.partition(":")
            owner: Any = importlib.import_module(module)
            *parents, name = path.split(".")
            for parent in parents:
                owner = getattr(owner, parent)
            original = getattr(owner, name)
            made = replacement.make(original) if isinstance(replacement, Wrapped) else replacement
            stack.enter_context(mock.patch.object(owner, name, made))
        yield


def judged(cases: Sequence[Case], level: Level, sandbox: str) -> list[Record]:
    """Records of the cases by a fresh referee."""
    with tempfile.TemporaryDirectory(prefix="agentforge_mutate_") as cache:
        judging = Judging(level, compiled=False, cache=Path(cache), sandbox=sandbox)
        try:
            return [judging.evaluate(case) for case in cases]
        finally:
            judging.close()


def examine(mutant: Mutant, cases: Sequence[Case], level: Level) -> Finding:
    """Judge a mutant's candidates with and without its defence."""
    chosen = [c for c in cases if c.kind == "hostile" and any(part in c.name for part in mutant.noticed_by)]
    before = judged(chosen, level, "auto")
    finding = Finding(mutant=mutant.name, what=mutant.what, applied=True, noticed=False)
    finding.before = {r.name: _shown(r) for r in before}
    try:
        with without(mutant):
            after = judged(chosen, level, mutant.sandbox)
    except AttributeError:
        return finding.model_copy(update={"applied": False})
    finding.after = {r.name: _shown(r) for r in after}
    caught = {r.name for r in before if r.outcome is Outcome.CAUGHT}
    finding.noticed = any(r.name in caught and r.outcome is not Outcome.CAUGHT for r in after)
    return finding


def _shown(record: Record) -> str:
    return f"{record.outcome} {record.status}: {record.reasons[0][:80] if record.reasons else ''}"


def main(argv: Sequence[str] | None = None) -> int:
    """Examine the mutants; exit code 1 where one goes unnoticed."""
    parser = argparse.ArgumentParser(
        description="Take each defence of the referee away; the corpus must notice."
    )
    parser.add_argument("--only", default="", help="part of a mutant's name")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(argv)
    console, cases, findings = Console(), load_cases(), []
    made = Table(title="Mutants of the referee", title_justify="left")
    for column in ("defence taken away", "noticed", "got through"):
        made.add_column(column, overflow="fold")
    for mutant in MUTANTS:
        if options.only not in mutant.name:
            continue
        level = Level.FULL if mutant.full else Level.QUICK
        finding = examine(mutant, cases, level)
        findings.append(finding)
        through = [n for n, text in finding.after.items() if not text.startswith("caught")]
        word = "yes" if finding.noticed else ("NO" if finding.applied else "NOT APPLIED")
        console.print(f"{mutant.name}: {word} {through}", markup=False)
        made.add_row(
            f"{mutant.name}: {mutant.what}", word, "\n".join(through), style="" if finding.noticed else "red"
        )
    console.print(made)
    content = {**provenance(), "mutants": [f.model_dump() for f in findings]}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(content, indent=1) + "\n")
    return int(not all(f.noticed for f in findings))


if __name__ == "__main__":
    raise SystemExit(main())
