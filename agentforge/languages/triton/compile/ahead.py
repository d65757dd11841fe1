"""Compile recorded launches ahead of time: start the child process and check its answer."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentforge.languages._base import BuildResult, CommandRunner
from agentforge.languages.command import interpreter
from agentforge.languages.cpp.cache import BuildRecord, keep_text
from agentforge.languages.occupancy import occupancy, target_limits
from agentforge.languages.solutions.folder import write_solution
from agentforge.languages.untrusted import read_json
from agentforge.schema import Diagnostic, ResourceUsage, Solution, content_hash

from ..launches import Launch

_CHILD = "child.py"
_CHILD_FILES = ("compile/child.py", "interpreter/fake_driver.py", "interpreter/fake_cuda.py")
_LANGUAGE = Path(__file__).resolve().parents[1]
"""Source folder of the child's files."""
_WARP = 32
_LARGEST_ANSWER = 8 << 20


@dataclass(frozen=True)
class AheadOfTime:
    """Compiles launches of one solution."""

    solution: Solution
    folder: Path
    """Existing folder, for temporary files."""
    targets: Sequence[str]
    cache: Path
    run: CommandRunner
    version: str

    def compile(self, launches: Sequence[Launch], timeout_s: float) -> BuildResult:
        """Compile every launch for every target. Failures are not cached."""
        if not launches:
            return BuildResult(True)
        found = [launch.model_dump(mode="json") for launch in launches]
        key = content_hash([self.solution.hash, found, list(self.targets), self.version], length=40)
        kept = self.cache / "triton" / f"{key}.json"
        try:
            record = BuildRecord.model_validate_json(kept.read_bytes())
            return BuildResult(True, diagnostics=record.diagnostics, resources=record.resources, cached=True)
        except (OSError, ValueError):
            pass
        step = self._start(found, launches, timeout_s)
        if step.ok and step.resources:
            record = BuildRecord(diagnostics=step.diagnostics, resources=step.resources)
            keep_text(kept, record.model_dump_json())
        return step

    def _start(
        self, found: list[dict[str, Any]], launches: Sequence[Launch], timeout_s: float
    ) -> BuildResult:
        with tempfile.TemporaryDirectory(prefix=".ahead-", dir=self.folder) as name:
            scratch = Path(name).resolve()
            scratch.chmod(0o755)
            # The child runs the solution, which may write to the folder that it lies in.
            copy = scratch / "solution"
            write_solution(self.solution, copy)
            for file in _CHILD_FILES:
                shutil.copyfile(_LANGUAGE / file, scratch / Path(file).name)
            question, answer = scratch / "request.json", scratch / "answer.json"
            request = {
                "folder": str(copy),
                "entry": self.solution.entry_file,
                "launches": found,
                "targets": list(self.targets),
            }
            question.write_text(json.dumps(request))
            argv = [interpreter(), "-I", str(scratch / _CHILD), str(question), str(answer)]
            done = self.run(argv, cwd=scratch, timeout_s=timeout_s)
            if done.timed_out:
                message = f"compiling its kernels took longer than {timeout_s:g} s"
                return BuildResult(False, diagnostics=(Diagnostic(message=message),), timed_out=True)
            response = _read(answer)
        if response is None:
            tail = (done.stderr + done.stdout).strip().splitlines()[-1:] or ["it printed nothing"]
            message = f"the compiler exited with {done.returncode}: {tail[0][:500]}"
            return BuildResult(False, diagnostics=(Diagnostic(message=message),))
        return judge(response, launches, self.targets)


def judge(answer: Mapping[str, Any], launches: Sequence[Launch], targets: Sequence[str]) -> BuildResult:
    """Interpret the child's answer, which comes from a process that ran untrusted code.

    A launch that compiles for some targets is usable; messages for the others become warnings.
    """
    if "failed" in answer:
        return BuildResult(False, diagnostics=(_diagnostic(answer["failed"], "it cannot be imported: "),))
    diagnostics: list[Diagnostic] = []
    resources: list[ResourceUsage] = []
    bad: dict[int, list[tuple[str, Diagnostic]]] = {}
    for entry in _entries(answer, "errors"):
        problem = _diagnostic(entry, "")
        bad.setdefault(_index(entry, launches), []).append((str(entry.get("target"))[:20], problem))
    for entry in _entries(answer, "compiled"):
        index = _index(entry, launches)
        if entry.get("target") not in targets:
            continue
        try:
            usage = _usage(entry, launches[index])
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        limits = target_limits(usage.target)
        if usage.shared_bytes > limits.shared_bytes_block:
            message = (
                f"kernel {usage.kernel} needs {usage.shared_bytes} bytes of shared memory per block and only "
                f"{limits.shared_bytes_block} are available: use smaller blocks or fewer num_stages"
            )
            bad.setdefault(index, []).append((usage.target, Diagnostic(message=message)))
        else:
            resources.append(usage)
    ok = True
    for problems in bad.values():
        fatal = len(problems) >= len(targets)
        ok = ok and not fatal
        diagnostics += _merged(problems, "error" if fatal else "warning")
    for name in dict.fromkeys(str(n)[:120] for n in _listed(answer, "absent")):
        message = f"kernel {name} cannot be compiled ahead of time: it is not a function of a module"
        diagnostics.append(Diagnostic(severity="note", message=message))
    unique = tuple(dict.fromkeys(diagnostics))
    return BuildResult(ok, diagnostics=tuple(sorted(unique, key=_rank))[:50], resources=tuple(resources))


def _merged(problems: Sequence[tuple[str, Diagnostic]], severity: str) -> list[Diagnostic]:
    """One diagnostic for several targets with the same message."""
    targets: dict[Diagnostic, list[str]] = {}
    for target, problem in problems:
        targets.setdefault(problem, []).append(target)
    return [
        p.model_copy(update={"severity": severity, "message": f"{', '.join(names)}: {p.message}"})
        for p, names in targets.items()
    ]


def _rank(diagnostic: Diagnostic) -> int:
    return {"error": 0, "warning": 1, "note": 2}[diagnostic.severity]


def _entries(answer: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    return [entry for entry in _listed(answer, name) if isinstance(entry, dict)]


def _listed(answer: Mapping[str, Any], name: str) -> list[Any]:
    found = answer.get(name)
    return found if isinstance(found, list) else []


def _index(entry: Mapping[str, Any], launches: Sequence[Launch]) -> int:
    index = entry.get("launch")
    return index if isinstance(index, int) and 0 <= index < len(launches) else 0


def _diagnostic(entry: Any, prefix: str) -> Diagnostic:
    entry = entry if isinstance(entry, dict) else {}
    line, column = entry.get("line"), entry.get("column")
    return Diagnostic(
        message=f"{prefix}{str(entry.get('message'))[:1000]}",
        file=str(entry.get("file", ""))[:255],
        line=line if isinstance(line, int) and line > 0 else 0,
        column=column if isinstance(column, int) and column > 0 else 0,
    )


def _usage(entry: Mapping[str, Any], launch: Launch) -> ResourceUsage:
    target, threads = str(entry["target"]), int(entry["warps"]) * _WARP
    registers, shared = int(entry["registers"]), int(entry["shared"])
    return ResourceUsage(
        kernel=launch.title,
        target=target,
        registers=registers,
        shared_bytes=shared,
        spill_store_bytes=int(entry["spill_stores"]),
        spill_load_bytes=int(entry["spill_loads"]),
        threads=threads,
        occupancy=occupancy(target, threads=threads, registers=registers, shared_bytes=shared),
    )


def _read(answer: Path) -> dict[str, Any] | None:
    try:
        found = read_json(answer, _LARGEST_ANSWER)
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
