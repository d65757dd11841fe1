"""Build C++ kernels with AddressSanitizer and UBSan, or with ThreadSanitizer, and read their reports.

ThreadSanitizer cannot see libgomp's synchronisation, so `openmp.cpp` replaces libgomp. It also tells of C11's
mutexes.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from agentforge.languages._base import CommandRunner
from agentforge.languages.untrusted import object_problem
from agentforge.schema import Diagnostic, Solution, content_hash

from ..cache import BuildRecord, ObjectCache
from ..language import SUFFIXES, compiler_version, lay_out

_OPENMP = Path(__file__).with_name("openmp.cpp")
_READABLE = ("-g1", "-fno-omit-frame-pointer", "-fno-tree-vectorize")
_ANY_SIZE = ("objcopy", "--redefine-sym", "aligned_alloc=memalign")
"""The sanitizers' aligned_alloc refuses sizes that are no multiple of the alignment, glibc's does not."""
_WRAPPED = ("mtx_lock", "mtx_trylock", "mtx_timedlock", "mtx_unlock", "cnd_wait", "cnd_timedwait")
_NEEDED = re.compile(r"undefined (?:reference to|symbol:?) [`']?(\w+)")
_FENCE = re.compile(r"atomic_thread_fence|__sync_synchronize|omp\s+flush")


@dataclass(frozen=True)
class Sanitizer:
    """One kind of instrumentation."""

    name: str
    compile: tuple[str, ...]
    link: tuple[str, ...]
    library: str
    """Library that the process must load before all others."""
    environment: Mapping[str, str]

    def available(self) -> str:
        """Path of its run-time library; empty if the compiler does not ship it."""
        return _library(self.library)


MEMORY = Sanitizer(
    "memory",
    (*_READABLE, "-O1", "-fsanitize=address",
     # g++ 12 takes wrong addresses in `(a ? b : c)[i / 2]` under integer-divide-by-zero; processors trap it.
     "-fsanitize=bounds,null,return,unreachable,vla-bound"),
    ("-fsanitize=address,undefined",),
    "libasan.so",
    # Ignore what torch and Python do themselves: leaks and mixed allocators.
    {"ASAN_OPTIONS": "detect_leaks=0:alloc_dealloc_mismatch=0:new_delete_type_mismatch=0:"
     "detect_odr_violation=0:detect_container_overflow=0:allocator_may_return_null=1:print_legend=0:"
     "quarantine_size_mb=32:exitcode=86",
     "UBSAN_OPTIONS": "print_stacktrace=0"},
)  # fmt: skip
RACES = Sanitizer(
    "races",
    # Not optimized: a store by two threads is a race even if the optimizer would drop it.
    (*_READABLE, "-O0", "-fsanitize=thread"),
    ("-fsanitize=thread", *(f"-Wl,--wrap={name}" for name in _WRAPPED)),
    "libtsan.so",
    {"TSAN_OPTIONS": "ignore_noninstrumented_modules=1:detect_deadlocks=0:report_thread_leaks=0:"
     "report_signal_unsafe=0:report_destroy_locked=0:halt_on_error=1:exitcode=66:history_size=4",
     "OMP_NUM_THREADS": "4"},
)  # fmt: skip


class NotBuilt(Exception):
    """Why a solution cannot be built with this sanitizer; this does not count against the solution."""


@cache
def _library(name: str) -> str:
    from ..shipped.agentforge_cpp import compiler

    program = shutil.which(compiler())
    if program is None or "clang" in compiler_version():
        return ""
    argv = [program, f"-print-file-name={name}"]
    found = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False).stdout.strip()
    return str(Path(found).resolve()) if Path(found).is_absolute() and Path(found).exists() else ""


def build(
    solution: Solution,
    folder: Path,
    sanitizer: Sanitizer,
    *,
    cache: Path,
    run: CommandRunner,
    timeout_s: float,
) -> None:
    """Replace built objects by sanitized ones.

    Args:
        timeout_s: for all sources together, in seconds.

    Raises:
        NotBuilt: it does not compile this way, or uses OpenMP features that cannot be watched.
    """
    from ..shipped import agentforge_cpp

    deadline = time.monotonic() + timeout_s
    for file in solution.sources if sanitizer is RACES else ():
        fence = None if file.path.endswith(".py") else _FENCE.search(file.content)
        if fence is not None:
            raise NotBuilt(f"{file.path} uses {fence[0]}, which ThreadSanitizer does not support")
    headers = {f.path: f.content for f in solution.sources if not f.path.endswith((".py", *SUFFIXES))}
    shared = content_hash(
        [compiler_version(), headers, sanitizer.compile, sanitizer.link, _ANY_SIZE, _OPENMP.read_text()]
    )
    objects = ObjectCache(cache / "cpp")
    for file in solution.sources:
        if not file.path.endswith(SUFFIXES):
            continue
        source = folder / file.path
        flags, dependencies = agentforge_cpp.settings(source)
        target = source.parent / agentforge_cpp.object_name(source, flags, dependencies)
        key = content_hash([sanitizer.name, target.name, shared], length=40)
        if objects.fetch(key, target) is not None:
            continue
        with tempfile.TemporaryDirectory(prefix=".sanitized-", dir=folder) as name:
            scratch = Path(name)
            openmp = _openmp(objects, scratch, run, deadline) if sanitizer is RACES else None
            lay_out(source, folder, headers, scratch)
            built = scratch / target.name
            inside = source.relative_to(folder)
            _compile(inside, built, sanitizer, (flags, dependencies), openmp, run, deadline)
            if problem := object_problem(built):
                raise NotBuilt(problem)
            objects.store(key, built, BuildRecord())
            built.replace(target)


def _openmp(objects: ObjectCache, scratch: Path, run: CommandRunner, deadline: float) -> Path:
    """Build an OpenMP run time that ThreadSanitizer can observe; compiled once per machine."""
    from ..shipped import agentforge_cpp

    copied = scratch / "agentforge_openmp.cpp"
    built = copied.with_suffix(".o")
    key = content_hash([compiler_version(), _OPENMP.read_text()], length=40)
    if objects.fetch(key, built) is None:
        shutil.copyfile(_OPENMP, copied)
        command = [
            agentforge_cpp.compiler(),
            "-std=c++20",
            "-O1",
            "-fPIC",
            "-fvisibility=hidden",
            "-c",
            copied.name,
            "-o",
            built.name,
        ]
        _run(command, scratch, RACES, run, deadline)
        objects.store(key, built, BuildRecord())
    return built


def _compile(
    inside: Path,
    built: Path,
    sanitizer: Sanitizer,
    settings: tuple[list[str], list[str]],
    openmp: Path | None,
    run: CommandRunner,
    deadline: float,
) -> None:
    from ..shipped import agentforge_cpp

    # Names relative to the folder, as in the solution's own build, so that reports name its files.
    output = f"./{built.name}"
    compiling, linking = agentforge_cpp.commands(f"./{inside}", output, *settings)
    compiling += sanitizer.compile
    linking += [*sanitizer.link, "-Wl,-z,defs"]
    if openmp is not None:
        linking.remove("-fopenmp")
        linking.insert(linking.index(f"{output}.o") + 1, f"./{openmp.name}")
    for command in (compiling, [*_ANY_SIZE, f"{output}.o"], linking):
        _run(command, built.parent, sanitizer, run, deadline)


def _run(command: list[str], folder: Path, sanitizer: Sanitizer, run: CommandRunner, deadline: float) -> None:
    done = run(command, cwd=folder, timeout_s=max(0.01, deadline - time.monotonic()))
    if done.timed_out:
        raise NotBuilt(f"its {sanitizer.name} build took too long")
    if done.returncode != 0:
        needed = sorted(set(_NEEDED.findall(done.stderr + done.stdout)))
        raise NotBuilt(
            f"it needs {', '.join(needed[:4])}" if needed else "it does not compile with this sanitizer"
        )


# ------------------------------------------------------------------------------------------- reports

_ADDRESS = re.compile(r"ERROR: AddressSanitizer: (?P<kind>[\w-]+)")
_ACCESS = re.compile(r"^(?P<access>READ|WRITE) of size (?P<size>\d+)", re.MULTILINE)
_PLACE = re.compile(r"is located (?P<where>\d+ bytes [\w ]+?) (?P<region>[\d,]+-byte) region")
_RACE = re.compile(r"WARNING: ThreadSanitizer: (?P<kind>[^(\n]+?) *\(pid=\d+\)")
_TOUCH = re.compile(
    r"^  (?:(?:Previous )?(?:atomic )?(?:[Ww]rite|[Rr]ead)) of size (?P<size>\d+) at .*$", re.MULTILINE
)
_FRAME = re.compile(
    r"^\s+#\d+ (?:0x[0-9a-f]+ in )?(?P<function>.+?) (?P<file>[^\s()]+):(?P<line>\d+)(?::\d+)?(?: |$)",
    re.MULTILINE,
)
_UNDEFINED = re.compile(
    r"^(?P<file>\S+?):(?P<line>\d+):\d+: runtime error: (?P<message>(?!variable length .* value 0$).*)$",
    re.MULTILINE,
)
"""g++ allows an array on the stack without elements."""


def read_report(log: str, solution: Solution) -> Diagnostic | None:
    """The first fault that a sanitizer found in a solution's own source; None if there is none.

    Args:
        solution: a fault must lie in one of its files; faults in libraries are ignored.
    """
    names = {f.path.rsplit("/", 1)[-1] for f in solution.sources}
    undefined = next((m for m in _UNDEFINED.finditer(log) if _base(m["file"]) in names), None)
    if undefined is not None:
        return _diagnostic(undefined["message"], undefined["file"], undefined["line"])
    found = _ADDRESS.search(log)
    if found is not None:
        return _bad_access(found["kind"], log[found.end() :], names)
    found = _RACE.search(log)
    if found is not None:
        return _race(found["kind"], log[found.end() :], names)
    return None


def _bad_access(kind: str, report: str, names: set[str]) -> Diagnostic | None:
    first, _, _ = report.partition("\n\n")
    frame = _own_frame(first, names)
    if frame is None:
        return None
    access, place = _ACCESS.search(report), _PLACE.search(report)
    did = f"{'writes' if access['access'] == 'WRITE' else 'reads'} {access['size']} bytes" if access else ""
    where = f"{place['where']} a {place['region']} allocation" if place else ""
    text = " ".join(part for part in (did, where) if part)
    return _diagnostic(f"{text} ({kind})" if text else kind, frame["file"], frame["line"])


def _race(kind: str, report: str, names: set[str]) -> Diagnostic | None:
    stacks = [report[m.end() :].partition("\n\n")[0] for m in list(_TOUCH.finditer(report))[:2]]
    frames = [frame for frame in (_own_frame(stack, names) for stack in stacks) if frame is not None]
    if not frames:
        return None
    other = (
        f" with line {frames[1]['line']}"
        if len(frames) > 1 and frames[1]["line"] != frames[0]["line"]
        else ""
    )
    return _diagnostic(f"{kind} between threads{other}", frames[0]["file"], frames[0]["line"])


def _own_frame(stack: str, names: set[str]) -> re.Match[str] | None:
    """The innermost frame in one of the solution's files; inlined library code lies above it."""
    return next((m for m in _FRAME.finditer(stack) if _base(m["file"]) in names), None)


def _base(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _diagnostic(message: str, file: str, line: str) -> Diagnostic:
    return Diagnostic(message=message[:300], file=_base(file)[:200], line=int(line[:9]))
