"""Compile for GPUs ahead of time: with NVRTC, or nvcc if NVRTC cannot; report machine-code facts."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from agentforge.languages._base import BuildResult, CommandRunner
from agentforge.languages.command import interpreter
from agentforge.languages.cpp.cache import BuildRecord, ObjectCache
from agentforge.languages.cpp.shipped import agentforge_cpp
from agentforge.languages.occupancy import target_limits
from agentforge.languages.untrusted import object_problem, read_json
from agentforge.schema import Diagnostic, Solution, UsageError, content_hash, pip_install

from .. import source as cuda_source
from ..launch_syntax import instances
from ..load_inline.build import cuda_calls, cuda_text, device_code, too_long
from ..load_inline.parse import InlineCall, NotLiteral
from ..shipped import agentforge_cuda
from . import nvrtc
from .diagnostics import parse_diagnostics, parse_resources, placed, too_much_shared
from .sass import parse_cubin

DEFAULT_TARGET = "sm_90"
"""Target if there is no GPU and the solution names none."""
_OTHER_PACKAGE = re.compile(
    r"\b((?:curand|cublas|cusparse|cusolver|cufft|cudnn|nccl|cutlass|cute)[\w/.]{0,100})(?:\"|: No such file)"
)
"""Matches the error for a header that is not part of NVRTC's or nvcc's packages."""
_LOAD_INLINE = tuple(
    f"-D__CUDA_NO_{what}__"
    for what in ("HALF_OPERATORS", "HALF_CONVERSIONS", "BFLOAT16_CONVERSIONS", "HALF2_OPERATORS")
)
"""Macros that torch's `load_inline` defines in every compilation."""
_MOST_LOG = 4 << 20
_NOT_NVRTC = re.compile(r"cannot open source file|identifier \"(?:std|cuda\w+)\"|<<<")


class Job(NamedTuple):
    """One source for one target."""

    file: str
    """Path in the solution's folder; with the first line, as `model_new.py:12`, unless `content` begins with
    the file's first line."""
    content: str
    target: str
    flags: tuple[str, ...]
    output: str
    """Path in the folder; empty if the cubin is not kept."""
    instances: tuple[str, ...] = ()
    """Templates to instantiate, if possible."""
    standard: bool = True
    """Compiled with parts of the standard library that NVRTC lacks."""


class LiteralSource(NamedTuple):
    """CUDA C++ in a string of a Python file that another library compiles by NVRTC."""

    place: str
    """`model_new.py:12`: the file and the source's first line in it."""
    code: str
    options: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()
    """Templates to instantiate, if possible."""
    standard: bool = False
    """Compiled with parts of the standard library, as nvcc has them."""


@lru_cache(maxsize=1)
def compilers() -> Compiler | None:
    """The GPU compilers on this machine; None if there are none."""
    toolkit, nvcc = nvrtc.find_toolkit(), shutil.which("nvcc")
    if toolkit is not None:
        stamp = Path(toolkit.library).stat()
        name = Path(toolkit.builtins or toolkit.library).name.split(".so.")[-1]
        return Compiler(
            toolkit, nvcc or "", f"NVRTC {name}", f"{toolkit.library}:{stamp.st_mtime_ns}:{stamp.st_size}"
        )
    if nvcc is not None:
        done = subprocess.run([nvcc, "--version"], capture_output=True, text=True, timeout=20, check=False)
        release = re.search(r"release ([\d.]+)", done.stdout)
        return Compiler(None, nvcc, f"nvcc {release[1] if release else '?'}", f"{nvcc}:{done.stdout}")
    return None


@lru_cache(maxsize=1)
def gpu_target() -> str:
    """Target of the first GPU that CUDA shows, such as `sm_90`; empty without a GPU."""
    query = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    for chosen in ([f"--id={first}"] if first else [], []):  # it does not know parts of a GPU
        try:
            done = subprocess.run([*query, *chosen], capture_output=True, text=True, timeout=20, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        match = re.match(r"\s*(\d+)\.(\d)", done.stdout)
        if done.returncode == 0 and match:
            return f"sm_{match[1]}{match[2]}"
    return ""


@dataclass(frozen=True)
class Compiler:
    """NVRTC, nvcc or both."""

    toolkit: nvrtc.Toolkit | None
    nvcc: str
    version: str
    identity: str
    """Changes if the installed files change."""

    def compile(
        self,
        solution: Solution,
        folder: Path,
        *,
        cache: Path,
        run: CommandRunner,
        deadline: float,
        device: str = "cpu",
        literals: Sequence[LiteralSource] = (),
    ) -> BuildResult:
        """Compile all kernel sources of a solution in `folder`.

        Args:
            literals: sources in Python files besides those of `load_inline`.
            deadline: by `time.monotonic`.
            device: `cuda` compiles for the GPU of this machine. Torch and CuPy compile there what lies in
                Python files, with their own headers and flags: a failure here is only a note.
        """
        files = {f.path: f.content for f in solution.sources}
        calls, notes = _inline_calls(files)
        try:
            jobs = self._jobs(files, calls, folder, device, literals)
        except UsageError as error:
            return BuildResult(False, diagnostics=(Diagnostic(message=str(error)),))
        objects = ObjectCache(cache / "cuda")
        part, missing = BuildResult(True, diagnostics=notes), []
        for job in jobs:
            record = objects.fetch(self._key(job, files), folder / job.output) if job.output else None
            if record is None:
                missing.append(job)
                continue
            part = part.joined(
                BuildResult(
                    True,
                    cached=True,
                    diagnostics=record.diagnostics,
                    metrics=record.metrics,
                    resources=record.resources,
                    files=(folder / job.output,),
                )
            )
        if not missing:
            return part
        return part.joined(self._fresh(missing, files, folder, objects, run, deadline, device))

    def _jobs(
        self,
        files: Mapping[str, str],
        calls: Sequence[InlineCall],
        folder: Path,
        device: str,
        literals: Sequence[LiteralSource],
    ) -> list[Job]:
        jobs = []
        for name in sorted(n for n in files if n.endswith(cuda_source.SOURCES)):
            stated, flags = _flags(folder / name)
            for target in self._targets(folder / name, stated, device):
                output = agentforge_cuda.object_name(folder / name, flags, f"{target}.cubin")
                jobs.append(Job(name, files[name], target, flags, str(Path(name).parent / output)))
        for call in calls:
            content = device_code(cuda_text(call))
            if "__global__" in content:
                stated, flags = _flags(folder / call.file)
                target = self._targets(folder / call.file, stated, device, content)[0]
                options = (*_LOAD_INLINE, *flags, *call.defines)
                jobs.append(Job(call.file, content, target, options, "", instances(content)))
        for literal in literals:
            place = folder / literal.place.partition(":")[0]
            stated, flags = _flags(place)
            for target in self._targets(place, stated, device, literal.code):
                options = (*flags, *literal.options)
                jobs.append(
                    Job(literal.place, literal.code, target, options, "", literal.instances, literal.standard)
                )
        for job in jobs:
            if device != "cuda" or job.target.rstrip("af") != gpu_target():
                target_limits(job.target)
        return jobs

    def _targets(self, source: Path, stated: Sequence[str], device: str, text: str = "") -> list[str]:
        if device != "cuda" and (named := agentforge_cuda.named_targets(stated)):
            return list(dict.fromkeys(named))
        here = (gpu_target() if device == "cuda" else "") or DEFAULT_TARGET
        number = int(here.removeprefix("sm_"))
        return [agentforge_cuda.target_of(source, stated, (number // 10, number % 10), text)]

    def _key(self, job: Job, files: Mapping[str, str]) -> str:
        headers = {n: c for n, c in files.items() if not n.endswith((".py", *cuda_source.SOURCES))}
        stated = [self.identity, nvrtc.OPTIONS, nvrtc.HEADERS]
        return content_hash([job.content, job.target, list(job.flags), headers, stated], length=40)

    # -- compilation

    def _fresh(
        self,
        jobs: Sequence[Job],
        files: Mapping[str, str],
        folder: Path,
        objects: ObjectCache,
        run: CommandRunner,
        deadline: float,
        device: str,
    ) -> BuildResult:
        with tempfile.TemporaryDirectory(prefix=".build-", dir=folder) as name:
            copy = Path(name)
            for file in (n for n in files if not n.endswith(".py")):
                (copy / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(folder / file, copy / file)
            scratch = Path(tempfile.mkdtemp(prefix=".objects-", dir=copy))
            outcomes = _CompilerRun(self, copy, scratch, run, deadline).compile(jobs)
            if outcomes is None:
                message = "compiling for the GPU took longer than the time-out"
                late = Diagnostic(message=message, file=jobs[0].file)
                return BuildResult(False, diagnostics=(late,), timed_out=True)
            part = BuildResult(True)
            for job, outcome in zip(jobs, outcomes, strict=True):
                one = self._judge(job, outcome)
                if device == "cuda" and not job.output:
                    one = one.as_notes()
                if one.ok and outcome.cubin is not None:
                    one = one.joined(BuildResult(True, metrics=parse_cubin(outcome.cubin.read_bytes())))
                    if job.output:
                        record = BuildRecord(
                            diagnostics=one.diagnostics, metrics=one.metrics, resources=one.resources
                        )
                        objects.store(self._key(job, files), outcome.cubin, record)
                        outcome.cubin.replace(folder / job.output)
                        one = one.joined(BuildResult(True, files=(folder / job.output,)))
                part = part.joined(one)
            return part

    def _judge(self, job: Job, outcome: CompileOutcome) -> BuildResult:
        resources = parse_resources(outcome.log, cuda_source.launch_bounds(job.content))
        found = [placed(d, job.file) for d in parse_diagnostics(outcome.log)]
        file = job.file.partition(":")[0]
        if outcome.cubin is None:
            missing = _OTHER_PACKAGE.search(outcome.log)
            if missing:
                return BuildResult(True, unjudged=f"{file} includes {missing[1]}, which is not installed")
            large = [
                too_much_shared(r, job.file, cuda_source.kernel_line(job.content, r.kernel))
                for r in resources
            ]
            found = [d for d in large if d is not None] or found
            if not any(d.severity == "error" for d in found):
                message = outcome.log.strip()[-2000:] or "the CUDA compiler failed without a message"
                found.insert(0, Diagnostic(message=message, file=file))
        return BuildResult(outcome.cubin is not None, diagnostics=tuple(found), resources=resources)


def not_compiled() -> BuildResult:
    """The step on a machine without a CUDA compiler."""
    message = f"not compiled for a GPU: there is no CUDA compiler; run {pip_install('cuda')}"
    return BuildResult(True, diagnostics=(Diagnostic(severity="note", message=message),))


def _inline_calls(files: Mapping[str, str]) -> tuple[list[InlineCall], tuple[Diagnostic, ...]]:
    """Calls of `load_inline` to compile ahead, and a note if they can only be compiled when the file runs."""
    try:
        calls = cuda_calls(files)
        problem = too_long(calls)
    except NotLiteral as error:
        problem = f"the sources of load_inline are known only when the file runs: {error}"
    if not problem:
        return calls, ()
    return [], (Diagnostic(severity="note", message=f"not compiled ahead for a GPU: {problem}"),)


def _flags(source: Path) -> tuple[list[str], tuple[str, ...]]:
    """All flags of a source, by the nearest manifest (a kernel in a stitched model has its own), and those
    without targets."""
    stated = agentforge_cpp.settings(source)[0]
    return stated, tuple(agentforge_cuda.compiler_flags(stated))


class CompileOutcome(NamedTuple):
    """Result of one job."""

    cubin: Path | None
    log: str


def _is_beyond_nvrtc(job: Job, outcome: CompileOutcome) -> bool:
    """True if nvcc may succeed where NVRTC failed: host headers, host code."""
    return job.standard and outcome.cubin is None and bool(_NOT_NVRTC.search(outcome.log + job.content))


@dataclass
class _CompilerRun:
    """Runs compilers on jobs. Flags can make nvcc run any program, in `folder`."""

    compiler: Compiler
    folder: Path
    """Copy of the solution's sources; the compilers may write to it, and to nothing else."""
    scratch: Path
    """Folder inside of it for what they write."""
    run: CommandRunner
    deadline: float

    def compile(self, jobs: Sequence[Job]) -> list[CompileOutcome] | None:
        """One outcome per job; None if the time ran out."""
        sources = [self._source(job) for job in jobs]  # before a program can put links in their places
        outcomes = self._by_nvrtc(jobs, sources) if self.compiler.toolkit is not None else [None] * len(jobs)
        if outcomes is None:
            return None
        done: list[CompileOutcome] = []
        for number, (job, first) in enumerate(zip(jobs, outcomes, strict=True)):
            outcome: CompileOutcome | None = first
            if self.compiler.nvcc and (first is None or _is_beyond_nvrtc(job, first)):
                outcome = self._by_nvcc(number, job, sources[number])
                if outcome is None:
                    return None
            done.append(outcome or CompileOutcome(None, "neither NVRTC nor nvcc is installed"))
        problems = [object_problem(o.cubin) if o.cubin else "" for o in done]  # once no program runs any more
        return [CompileOutcome(None, p) if p else o for o, p in zip(done, problems, strict=True)]

    def _by_nvrtc(self, jobs: Sequence[Job], sources: Sequence[str]) -> list[CompileOutcome | None] | None:
        shutil.copyfile(nvrtc.__file__, self.scratch / "nvrtc.py")
        requests = []
        for number, (job, source) in enumerate(zip(jobs, sources, strict=True)):
            include = f"--include-path={(self.folder / job.file).parent}"
            requests.append(
                {
                    "source": source,
                    "name": job.file,
                    "output": str(self.scratch / f"{number}.cubin"),
                    "target": job.target,
                    "options": [*job.flags, include],
                    "instances": job.instances,
                    "standard": job.standard,
                }
            )
        body = json.dumps({"toolkit": self.compiler.toolkit, "jobs": requests})
        # Without site-packages (-I -S) the process starts in 20 ms.
        command = [interpreter(), "-I", "-S", str(self.scratch / "nvrtc.py"), body]
        done = self.run(command, cwd=self.folder, timeout_s=self._left())
        if done.timed_out:
            return None
        return [self._outcome(number, done.stderr + done.stdout) for number in range(len(jobs))]

    def _outcome(self, number: int, output: str) -> CompileOutcome:
        cubin = self.scratch / f"{number}.cubin"
        try:
            log = str(read_json(Path(f"{cubin}.json"), _MOST_LOG)["log"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return CompileOutcome(
                None, f"nvrtc: error: the compiler exited without a result: {output[-1000:]}"
            )
        return CompileOutcome(cubin if cubin.is_file() else None, log)

    def _by_nvcc(self, number: int, job: Job, source: str) -> CompileOutcome | None:
        cubin = self.scratch / f"{number}.cubin"
        include = f"-I{(self.folder / job.file).parent}"
        relaxed = [] if job.output else ["--expt-relaxed-constexpr"]  # as load_inline does
        command = [self.compiler.nvcc, "-cubin", f"-arch={job.target}", "-std=c++17", "-lineinfo", "-Xptxas",
                   "-v", *relaxed, *job.flags, include, source, "-o", str(cubin)]  # fmt: skip
        done = self.run(command, cwd=self.folder, timeout_s=self._left())
        if done.timed_out:
            return None
        return CompileOutcome(cubin if cubin.is_file() else None, done.stderr + done.stdout)

    def _source(self, job: Job) -> str:
        if job.output:
            return job.file
        place = self.scratch / f"{content_hash(job.content)}.cu"
        place.write_text(job.content)
        return str(place)

    def _left(self) -> float:
        return max(0.01, self.deadline - time.monotonic())
