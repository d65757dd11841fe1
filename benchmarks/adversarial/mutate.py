"""Mutation test of the referee: take each defence away in turn; the corpus must notice.

    python benchmarks/adversarial/mutate.py [--resume]
    python benchmarks/adversarial/mutate.py --only NAME --output FILE
    python benchmarks/adversarial/mutate.py --only NAME --resume    # replaces one published finding

A mutant (see defences.py) is a patch of the referee's own process or of its workers, or a weaker setting, and
the hostile candidates that this defence is there for. Each candidate is judged with the whole referee, which
must hold it, and again with the defence gone. Where none gets through, another defence covers this one, and
defences.py says which. A candidate that passed in a measurement too noisy to verify it is named apart, and
one on which the referee itself failed says nothing.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from _provenance import provenance  # noqa: E402
from _published import refuse_part  # noqa: E402
from corpus import Case, load_cases  # noqa: E402
from defences import DEFENCES, WEAKENED, Mutant, Wrapped  # noqa: E402
from escape import listener  # noqa: E402
from pydantic import BaseModel  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402
from run import Judging, canary  # noqa: E402
from verdicts import GOOD, Outcome, Record  # noqa: E402

from agentforge.referee.workers.process import Forkserver  # noqa: E402
from agentforge.schema import Level  # noqa: E402

_HELD = (Outcome.CAUGHT, Outcome.DOUBTED, Outcome.NEUTRALISED, Outcome.CRASHED)
RESULTS = HERE.parent / "results" / "adversarial_mutants.json"


class Finding(BaseModel):
    """What became of one mutant."""

    mutant: str
    what: str
    applied: bool
    """False where the patched function is not there any more: mend defences.py."""
    noticed: bool
    """A candidate got through: it was verified or passed, or left something outside of its sandbox."""
    unproven: tuple[str, ...] = ()
    """Candidates that passed where the measurement was too noisy to verify them."""
    failed: tuple[str, ...] = ()
    """Candidates on which the referee itself failed, and which left nothing: they say nothing."""
    covered_by: str = ""
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    """Candidate to outcome, status and first reason."""
    commit: str = ""
    """Of the referee that judged them: a resumed run may hold findings of several."""

    @property
    def right(self) -> bool:
        """Noticed, or covered by another defence as it is said to be."""
        undecided = self.unproven or self.failed
        return self.applied and (self.noticed or bool(self.covered_by and not undecided))

    @property
    def word(self) -> str:
        """What the table says of it."""
        if self.noticed:
            return "yes"
        if self.right:
            return "covered"
        return "unproven" if self.unproven else "NO"


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
        if mutant.workers:
            stack.enter_context(_weaker_workers(mutant.workers))
        yield


@contextmanager
def _weaker_workers(what: str) -> Iterator[None]:
    """Interpreters of workers import what takes a defence away."""
    start = Forkserver.__init__

    def init(
        self: Forkserver, kind: str, sandbox: Any, folder: Path, env: Any, *rest: Any, **kw: Any
    ) -> None:
        if kw.get("parent") is None:  # others are forked from a weaker one
            path = f"{WEAKENED}{os.pathsep}{env['PYTHONPATH']}"
            env = {**env, "PYTHONPATH": path, "AGENTFORGE_WEAKENED": what}
        start(self, kind, sandbox, folder, env, *rest, **kw)

    with mock.patch.object(Forkserver, "__init__", init):
        yield


class Baselines:
    """Referees that judge one after the other: whole ones are shared, since their start takes seconds."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._shared: dict[Level, Judging] = {}

    def judge(self, cases: Sequence[Case], level: Level, mutant: Mutant | None = None) -> list[Record]:
        """Records of the cases; baselines and what was found of the tasks are always new."""
        if mutant is not None and mutant.fresh:
            judging = self._new(level, mutant.sandbox)
            try:
                return [judging.evaluate(case) for case in cases]
            finally:
                judging.close()
        judging = self._shared.setdefault(level, self._new(level))
        judging.forget()
        try:
            return [judging.evaluate(case) for case in cases]
        finally:
            judging.forget()

    def _new(self, level: Level, sandbox: str = "auto") -> Judging:
        return Judging(level, compiled=False, cache=self._cache, sandbox=sandbox)

    def close(self) -> None:
        """End all referees."""
        for judging in self._shared.values():
            judging.close()


def examine(mutant: Mutant, cases: Sequence[Case], baselines: Baselines, commit: str) -> Finding:
    """Judge a mutant's candidates with and without its defence."""
    level = Level.FULL if mutant.full else Level.QUICK
    chosen = [c for c in cases if c.kind == "hostile" and any(part in c.name for part in mutant.noticed_by)]
    before = baselines.judge(chosen, level)
    finding = Finding(
        mutant=mutant.name, what=mutant.what, applied=True, noticed=False, covered_by=mutant.covered_by,
        before={r.name: _shown(r) for r in before}, commit=commit,
    )  # fmt: skip
    try:
        with without(mutant):
            after = baselines.judge(chosen, level, mutant)
    except AttributeError:
        return finding.model_copy(update={"applied": False})
    finding.after = {r.name: _shown(r) for r in after}
    held = {r.name for r in before if r.outcome in _HELD}
    return concluded(finding, [r for r in after if r.name in held])


def concluded(finding: Finding, records: Sequence[Record]) -> Finding:
    """What the verdicts without the defence say, on candidates that the whole referee held."""
    update = {
        "noticed": any(r.outcome is Outcome.MISSED or r.leftovers for r in records),
        "unproven": tuple(r.name for r in records if r.outcome is Outcome.UNPROVEN),
        "failed": tuple(r.name for r in records if r.outcome is Outcome.BROKEN and not r.leftovers),
    }
    return finding.model_copy(update=update)


def _shown(record: Record) -> str:
    return f"{record.outcome} {record.status}: {record.reasons[0][:80] if record.reasons else ''}"


def table(findings: Sequence[Finding]) -> Table:
    """One row for each defence."""
    made = Table(title="Mutants of the referee", title_justify="left")
    for column in ("defence taken away", "noticed", "got through, or covered by"):
        made.add_column(column, overflow="fold")
    for finding in findings:
        words = {name: text.partition(" ")[0] for name, text in finding.after.items()}
        through = [f"{name}: {word}" for name, word in words.items() if word not in GOOD]
        what = f"{finding.mutant}: {finding.what}"
        row = (what, finding.word, "\n".join(through) or finding.covered_by)
        made.add_row(*row, style="" if finding.right else "red")
    return made


def earlier(path: Path) -> dict[str, Finding]:
    """Findings of a run that stopped."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return {found["mutant"]: Finding.model_validate(found) for found in content["mutants"]}


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description="Take each defence of the referee away; the corpus must notice."
    )
    parser.add_argument("--only", action="append", default=[], help="part of a mutant's name; repeat")
    parser.add_argument("--resume", action="store_true", help="keep what the output file holds already")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(argv)
    refuse_part(parser, options, "output", ("resume", "only") if options.resume else ())
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Examine the mutants; exit code 1 where one goes unnoticed."""
    options = arguments(argv)
    console, cases, started = Console(), load_cases(), provenance()
    findings = earlier(options.output) if options.resume else {}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="agentforge_mutate_") as cache, canary(), listener():
        baselines = Baselines(Path(cache))
        try:
            for mutant in DEFENCES:
                wanted = not options.only or any(part in mutant.name for part in options.only)
                if not wanted or (mutant.name in findings and not options.only):
                    continue
                finding = examine(mutant, cases, baselines, str(started["commit"]))
                findings[mutant.name] = finding
                ordered = [findings[m.name].model_dump() for m in DEFENCES if m.name in findings]
                options.output.write_text(json.dumps({**started, "mutants": ordered}, indent=1) + "\n")
                console.print(f"{mutant.name}: {finding.word} {finding.after}", markup=False)
        finally:
            baselines.close()
    console.print(table(list(findings.values())))
    return int(not all(f.right for f in findings.values()))


if __name__ == "__main__":
    raise SystemExit(main())
