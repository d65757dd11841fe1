"""The `cpp` language."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from pathlib import Path

from agentforge.languages._base import BuildResult, CommandRunner
from agentforge.languages.info import CPP
from agentforge.languages.solutions.folder import write_or_explain
from agentforge.languages.untrusted import object_problem
from agentforge.registry import Availability
from agentforge.schema import Diagnostic, MachineError, Metric, Solution, content_hash

from .cache import BuildRecord, ObjectCache
from .diagnostics import parse_diagnostics
from .disassembly import disassemble, loop_metrics
from .vectorised import read_report, vectorisation

SUFFIXES = (".cpp", ".cc", ".cxx")
_MOST_SOURCES = 128
_OUTPUT = ".output"
_RECORDS = 5
"""Version of the build record; raising it makes cached objects rebuild."""
_INSTALL = "install g++ (apt-get install g++), or set CXX to a C++20 compiler"


@lru_cache(maxsize=8)
def _version(path: str, _mtime_ns: int) -> str:
    """First line of `--version`; cached until the binary changes."""
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False)
    return done.stdout.splitlines()[0] if done.returncode == 0 and done.stdout else ""


def compiler_version() -> str:
    """Name and version of the C++ compiler; empty if none works."""
    path = shutil.which(os.environ.get("CXX") or "g++")
    if path is None:
        return ""
    try:
        return _version(path, Path(path).stat().st_mtime_ns)
    except (OSError, subprocess.SubprocessError):
        return ""


@dataclass(frozen=True)
class _Job:
    """One source of a solution and everything needed to build it."""

    source: Path
    folder: Path
    flags: list[str]
    dependencies: list[str]
    headers: tuple[str, ...]
    """Names of the solution's headers, which the source may include."""
    shared: str
    """Hash of the compiler and of the headers."""
    run: CommandRunner
    deadline: float

    def build(self, cache: ObjectCache) -> BuildResult:
        from .shipped import agentforge_cpp

        try:
            agentforge_cpp.torch_folders(self.dependencies)
        except ValueError as error:
            return self._failed(f"error: {error}")
        name = agentforge_cpp.object_name(self.source, self.flags, self.dependencies)
        target = self.source.parent / name
        key = content_hash([_RECORDS, name, self.shared], length=40)
        record = cache.fetch(key, target)
        if record is not None:
            return _built(record, target, cached=True)
        with tempfile.TemporaryDirectory(prefix=".build-", dir=self.folder) as scratch:
            lay_out(self.source, self.folder, self.headers, Path(scratch))
            return self._compile(cache, key, target, Path(scratch))

    def _compile(self, cache: ObjectCache, key: str, target: Path, scratch: Path) -> BuildResult:
        from .shipped import agentforge_cpp

        relative = str(self.source.relative_to(self.folder))
        relative = f"./{relative}" if relative.startswith("-") else relative  # a file, not a flag
        built, report = scratch / _OUTPUT / target.name, scratch / _OUTPUT / "vectorised.txt"
        built.parent.mkdir()
        commands = agentforge_cpp.commands(
            relative, str(built.relative_to(scratch)), self.flags, self.dependencies
        )
        if "clang" not in compiler_version():
            commands[0].append(f"-fopt-info-vec-optimized-missed={report.relative_to(scratch)}")
        output = ""
        for command in commands:
            left = self.deadline - time.monotonic()
            done = self.run(command, cwd=scratch, timeout_s=max(left, 0.01))
            output += done.stderr + done.stdout
            if done.returncode != 0 or done.timed_out or left <= 0:
                return self._failed(output, timed_out=done.timed_out or left <= 0)
        if problem := object_problem(built):
            return self._failed(f"error: {problem}")
        loops = read_report(report)
        metrics, findings = ((), ()) if loops is None else vectorisation(loops)
        listing = disassemble([Path(_OUTPUT) / target.name], scratch, self.run)
        metrics += () if listing is None else loop_metrics(listing)
        record = BuildRecord(diagnostics=parse_diagnostics(output), metrics=metrics, findings=findings)
        cache.store(key, built, record)
        built.replace(target)
        return _built(record, target, cached=False)

    def _failed(self, output: str, *, timed_out: bool = False) -> BuildResult:
        diagnostics = parse_diagnostics(output)
        name = self.source.relative_to(self.folder)
        if timed_out:
            what = f"compiling {name} took longer than the time-out"
            diagnostics = (Diagnostic(message=what, file=str(name)), *diagnostics)
        elif not any(d.severity == "error" for d in diagnostics):
            what = output.strip()[-2000:] or f"the compiler failed on {name} without a message"
            diagnostics = (Diagnostic(message=what, file=str(name)), *diagnostics)
        return BuildResult(False, diagnostics=diagnostics, timed_out=timed_out)


def lay_out(source: Path, folder: Path, headers: Iterable[str], scratch: Path) -> None:
    """Copy only files covered by the cache key, so that nothing else can affect the object.

    The compiler may write to `scratch`, and to nothing else: flags can make it run any program.
    """
    from .shipped import agentforge_cpp

    for path in {*agentforge_cpp.included(source), *(folder / name for name in headers)}:
        if path.is_relative_to(folder):
            place = scratch / path.relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)


def _built(record: BuildRecord, target: Path, *, cached: bool) -> BuildResult:
    return BuildResult(
        True,
        cached=cached,
        diagnostics=record.diagnostics,
        metrics=record.metrics,
        findings=record.findings,
        files=(target,),
    )


class Cpp:
    """`extern "C"` sources; every `.cpp` becomes one shared object beside it, also in sub-folders."""

    name = "cpp"
    info = CPP

    def available(self) -> Availability:
        version = compiler_version()
        if version:
            return Availability(True, version)
        return Availability(False, f"no C++ compiler; {_INSTALL}")

    def build(
        self,
        solution: Solution,
        folder: Path,
        *,
        cache: Path,
        run: CommandRunner,
        timeout_s: float,
        device: str = "cpu",
    ) -> BuildResult:
        from .shipped import agentforge_cpp

        start = time.monotonic()
        version = compiler_version()
        if not version:
            raise MachineError(f"no C++ compiler found; {_INSTALL}")
        unwritten = write_or_explain(solution, folder)
        if unwritten is not None:
            return BuildResult(
                False, time.monotonic() - start, diagnostics=(unwritten,), log=unwritten.message
            )
        headers = {f.path: f.content for f in solution.sources if not f.path.endswith((".py", *SUFFIXES))}
        shared = content_hash([version, headers])
        jobs = []
        for file in solution.sources:
            if file.path.endswith(SUFFIXES):
                source = folder / file.path
                flags, dependencies = agentforge_cpp.settings(source)
                job = _Job(
                    source, folder, flags, dependencies, tuple(headers), shared, run, start + timeout_s
                )
                jobs.append(job)
        if len(jobs) > _MOST_SOURCES:
            many = f"it has {len(jobs)} C++ sources; {_MOST_SOURCES} are the limit"
            return BuildResult(False, diagnostics=(Diagnostic(message=many),)).since(start)
        objects = ObjectCache(cache / "cpp")
        with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
            steps = list(pool.map(lambda job: job.build(objects), jobs))
        step = reduce(BuildResult.joined, steps, BuildResult(True))
        return replace(step, metrics=_totals(step.metrics)).since(start)


def _totals(metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    totals: dict[str, Metric] = {}
    for metric in metrics:
        before = totals[metric.name].value if metric.name in totals else 0.0
        value = max(before, metric.value) if metric.unit else before + metric.value
        totals[metric.name] = metric.model_copy(update={"value": value})
    return tuple(totals.values())
