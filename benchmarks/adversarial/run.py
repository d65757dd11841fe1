"""Judge the corpus with the referee: catch rate and false-positive rate by family.

    python benchmarks/adversarial/run.py                      # everything at level full
    python benchmarks/adversarial/run.py --level quick --family 16 --family 17 --output some.json
    python benchmarks/adversarial/run.py --only 'hostile/f38*' --output f38.json
    python benchmarks/adversarial/run.py --resume             # go on where the last run stopped

Writes benchmarks/results/adversarial.json after every candidate. Other settings and a part of the corpus need
another --output; --resume adds a part to what the file has. Exit code 1 if a candidate was missed or crashed
unexpectedly, an honest kernel was punished, or the referee broke.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import psutil  # noqa: E402
from _provenance import provenance  # noqa: E402
from _published import refuse_part  # noqa: E402
from _time_limit import TimeOver, time_limit  # noqa: E402
from corpus import Case, Problems, load_cases  # noqa: E402
from rich.console import Console  # noqa: E402
from verdicts import GOOD, Outcome, Record, broken, judge, refused, summary, table  # noqa: E402

from agentforge.config import RefereeSettings  # noqa: E402
from agentforge.devices import DeviceSpec, detect  # noqa: E402
from agentforge.languages import read_solution  # noqa: E402
from agentforge.referee import EvaluationRequest, Referee  # noqa: E402
from agentforge.schema import AgentForgeError, Level, UsageError  # noqa: E402

RESULTS = HERE.parent / "results" / "adversarial.json"
CANARY = "AGENTFORGE_CANARY"
ESCAPED = "agentforge_esc"
_OUTSIDE = ("/", "/tmp", "/var/tmp", "/dev/shm", "/etc", "/root", "/home", "/usr/lib", "/opt", "/srv")


def settings(level: Level, *, compiled: bool, sandbox: str = "auto") -> RefereeSettings:
    """Short timing: the corpus asks whether a verdict is right, not how exact a speedup is."""
    quick = level is Level.QUICK
    return RefereeSettings(
        sandbox=sandbox,
        call_timeout_s=8.0,
        build_timeout_s=60.0,
        evaluation_timeout_s=400.0,
        full_blocks=16,
        full_seconds=2.5,
        quick_blocks=4,
        quick_seconds=0.5,
        compile_baseline=compiled and not quick,
    )


@contextmanager
def canary() -> Iterator[None]:
    """A secret in our environment and one in a folder of ours, which no candidate may see."""
    folder = Path(tempfile.mkdtemp(prefix="agentforge_canary_"))
    (folder / "secret").write_text("canary")
    os.environ[CANARY] = "canary"
    try:
        yield
    finally:
        os.environ.pop(CANARY, None)
        shutil.rmtree(folder, ignore_errors=True)


def sweep_escapes() -> list[str]:
    """Files and processes that a candidate made outside of its sandbox; they are removed."""
    return [*_files_outside(), *_survivors()]


def _survivors() -> list[str]:
    """Processes of a candidate that outlived its verdict: they call themselves `ESCAPED`."""
    found = [p for p in psutil.process_iter(["name"]) if p.info["name"] == ESCAPED]
    _, alive = psutil.wait_procs(found, timeout=2)
    for process in alive:
        process.kill()
    return [f"process {process.pid}" for process in alive]


def _files_outside() -> list[str]:
    found = [path for folder in _OUTSIDE for path in sorted(Path(folder).glob("agentforge_escape_*"))]
    for path in found:
        with suppress(OSError):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return [str(path) for path in found]


class Judging:
    """Evaluates cases one after the other; a referee that broke is replaced."""

    def __init__(
        self, level: Level, *, compiled: bool, cache: Path, limit_s: int = 700, sandbox: str = "auto"
    ) -> None:
        self._level = level
        self._settings = settings(level, compiled=compiled, sandbox=sandbox)
        self._cache = cache
        self._limit_s = limit_s
        self._device: DeviceSpec = detect("cpu")
        self._problems = Problems()
        self._referee: Referee | None = None

    def evaluate(self, case: Case) -> Record:
        """The record of one case; never raises for what a candidate or the referee does."""
        definition, workloads = self._problems.get(case)
        start = time.monotonic()
        try:
            solution = read_solution(case.path, definition.hash)
        except UsageError as error:
            return refused(case, str(error))
        try:
            with time_limit(self._limit_s):
                if self._referee is None:
                    self._referee = Referee(self._settings, device=self._device, cache=self._cache)
                evaluation = self._referee.evaluate(
                    EvaluationRequest(definition, workloads, solution, level=self._level)
                )
        except TimeOver:
            record = broken(
                case, f"the referee hung for {self._limit_s} s", time.monotonic() - start, sweep_escapes()
            )
        except AgentForgeError as error:
            record = broken(
                case, f"{type(error).__name__}: {error}", time.monotonic() - start, sweep_escapes()
            )
        except Exception as error:  # a traceback of the referee is a finding, not our end
            record = broken(
                case, f"raised {type(error).__name__}: {error}", time.monotonic() - start, sweep_escapes()
            )
        else:
            return judge(case, evaluation, sweep_escapes())
        self.close()
        return record

    def forget(self) -> None:
        """Let go of the baselines and of what was found of their task."""
        if self._referee is not None:
            self._referee.release()

    def close(self) -> None:
        referee, self._referee = self._referee, None
        if referee is not None:
            with suppress(Exception, TimeOver), time_limit(30):
                referee.close()


def choose(
    cases: Sequence[Case], families: Sequence[int], only: Sequence[str], limit: int | None
) -> list[Case]:
    """The cases that were asked for; honest ones stay unless a family or a pattern leaves them out."""
    chosen = [
        case
        for case in cases
        if (not families or case.family in families)
        and (not only or any(fnmatch(case.name, pattern) or pattern in case.name for pattern in only))
    ]
    return chosen[:limit]


def write(path: Path, level: Level, records: dict[str, Record], started: dict[str, object]) -> None:
    """The results so far, with where they come from."""
    rates = summary(records.values())
    content = {
        **started,
        "level": level.value,
        "summary": rates,
        "cases": [records[name].model_dump(mode="json") for name in sorted(records)],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".tmp")
    scratch.write_text(json.dumps(content, indent=1) + "\n")
    scratch.replace(path)


def earlier(path: Path, level: Level) -> dict[str, Record]:
    """Records of a run that stopped; empty where there is none at this level."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    if content.get("level") != level.value:
        return {}
    return {case["name"]: Record.model_validate(case) for case in content["cases"]}


def report(console: Console, records: Sequence[Record]) -> None:
    """Tables, then everything that is not as it must be, by name."""
    for kind in ("hostile", "honest"):
        if any(r.kind == kind for r in records):
            console.print(table(records, kind))
    for record in records:
        if record.outcome in GOOD:
            continue
        reason = record.reasons[0] if record.reasons else "no reason given"
        speed = f" {record.speedup}" if record.speedup else ""
        line = f"{record.outcome:<12} {record.name}: {record.status} {record.evidence}{speed}; {reason[:160]}"
        console.print(line, markup=False, highlight=False)
    rates = summary(records)
    for key in ("catch_rate", "no_gain_rate", "false_positive_rate"):
        if rates[key] is not None:
            console.print(f"{key.replace('_', ' ')}: {rates[key]:.1%}")
    if (median_s := rates["median_right_s"]) is not None:
        console.print(f"median verdict on an honest kernel that is right: {median_s} s")


def _line(record: Record) -> str:
    shown = record.outcome if record.outcome in GOOD else record.outcome.upper()
    first = record.reasons[0][:90] if record.reasons else ""
    return f"{shown} {record.name} {record.status} {record.evidence} {record.seconds:.1f}s {first}"


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Judge the adversarial corpus with the referee.")
    parser.add_argument("--level", choices=[x.value for x in Level], default=Level.FULL.value)
    parser.add_argument("--kind", choices=["hostile", "honest", "both"], default="both")
    parser.add_argument(
        "--family", type=int, action="append", default=[], help="number of an attack family; repeat"
    )
    parser.add_argument("--only", action="append", default=[], help="name, part of a name or pattern; repeat")
    parser.add_argument("--limit", type=int, default=None, help="at most so many")
    parser.add_argument("--resume", action="store_true", help="skip what the output file holds already")
    parser.add_argument(
        "--jobs", type=int, choices=[1], default=1, help="timing needs the machine: one at a time"
    )
    parser.add_argument("--compile", action="store_true", help="measure against torch.compile too")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    options = parser.parse_args(argv)
    if not options.list:
        parts = ("only", "family", "limit", "kind") if options.resume else ()
        refuse_part(parser, options, "output", ("resume", *parts))
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Judge what was asked for; the exit code says whether all of it is as it must be."""
    options = arguments(argv)
    console, level = Console(), Level(options.level)
    cases = choose(load_cases(), options.family, options.only, None)
    cases = [c for c in cases if options.kind in (c.kind, "both")][: options.limit]
    if options.list:
        for case in cases:
            console.print(f"{case.name}  [{case.problem}]  {case.cheat}", markup=False, highlight=False)
        return 0
    records = earlier(options.output, level) if options.resume else {}
    started: dict[str, object] = {
        **provenance(),
        "settings": settings(level, compiled=options.compile).model_dump(mode="json"),
    }
    sweep_escapes()
    with tempfile.TemporaryDirectory(prefix="agentforge_adversarial_") as cache, canary():
        judging = Judging(level, compiled=options.compile, cache=Path(cache))
        try:
            for number, case in enumerate(cases, 1):
                if case.name in records:
                    continue
                record = judging.evaluate(case).model_copy(update={"commit": str(started["commit"])})
                records[case.name] = record
                write(options.output, level, records, started)
                console.print(f"{number}/{len(cases)} {_line(record)}", markup=False, highlight=False)
        finally:
            judging.close()
    chosen = [records[c.name] for c in cases if c.name in records]
    report(console, chosen)
    bad = (Outcome.MISSED, Outcome.CRASHED, Outcome.PUNISHED, Outcome.BROKEN)
    return int(any(r.outcome in bad for r in chosen))


if __name__ == "__main__":
    raise SystemExit(main())
