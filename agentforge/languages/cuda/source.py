"""Analyse a CUDA source without a compiler: kernels, shared memory, what the emulator does not support."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agentforge.languages.cpp.shipped import agentforge_cpp

SOURCES = (".cu",)
HEADERS = (".cuh", ".h", ".hpp", ".hh", ".inc")
MOST_TEXT = 256 << 10
"""Maximum characters of a source that is read here; ten times what people write."""

_HOST = (
    (r"<<<", "launches in the source (dynamic parallelism or host code)"),
    (r"\bcuda(?:Malloc|Free|Memcpy|Stream|Device|Get)\w*\s*\(", "calls of the CUDA run-time library"),
    (r"#\s*include\s*<(?:torch|ATen|c10|pybind11)/", "torch's headers"),
)
"""Patterns that a source may contain if it has a host side."""
_UNSUPPORTED: tuple[tuple[str, str], ...] = (
    (r"\b(?:asm|__asm|__asm__)\b", "inline PTX"),
    (
        r"\b(?:this_grid|this_cluster|this_multi_grid|coalesced_threads|labeled_partition|binary_partition)\b",
        "cooperative groups beyond a block's tiles",
    ),
    (r"(?<!::)\bcuda::\w", "libcu++"),
    (r"\b__pipeline_arrive_on\b|\bmemcpy_async\b", "asynchronous copies of groups"),
    (r"\bCUtensorMap\b", "TMA"),
    (r"\b(?:cub|thrust|cute|cutlass)\s*::", "CUB, Thrust or CUTLASS"),
    (r"\b__cluster_dims__|\bcluster_(?:group|dims)\b", "thread block clusters"),
    (r"\b(?:tex[123]D\w*|surf[123]D\w*|cudaTextureObject_t)\b", "textures"),
    (r"\b__activemask\b", "__activemask()"),
    (r"\bcurand_\w+\s*\(|\bcurandState\w*", "cuRAND"),
    (r"\b__nv_fp8\w*", "8-bit floats"),
    (r"\bcudaLaunch\w+\s*\(", "launches by cudaLaunchKernel"),
)
_ORDERED_OTHERWISE = re.compile(r"\bvolatile\b|\b__threadfence|\bnanosleep\b|\batomicCAS\b|\batomicExch\b")
"""Threads may wait for one another through memory, so an apparent race may not be one."""


@dataclass(frozen=True)
class Unsupported:
    """Something that the CPU cannot run."""

    what: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} uses {self.what}, which cannot run on a CPU"


def without_comments(text: str) -> str:
    """`text` with comments and string contents blanked; length and lines stay the same."""

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        if found.startswith("/") or "\n" in found:
            return re.sub(r"[^\n]", " ", found)
        return found[0] + " " * (len(found) - 2) + found[-1] if found != '"C"' else found

    return agentforge_cpp._LEXEMES.sub(blank, text)


def unsupported(files: Mapping[str, str]) -> Unsupported | None:
    """The first construct in kernel sources and their headers that cannot be emulated."""
    for name, content in sorted(files.items()):
        if not name.endswith((*SOURCES, *HEADERS)):
            continue
        found = unsupported_in(content, name, _UNSUPPORTED + _HOST)
        if found is not None:
            return found
    return None


def unsupported_in(
    content: str, name: str, patterns: tuple[tuple[str, str], ...] = _UNSUPPORTED, *, line: int = 1
) -> Unsupported | None:
    """The first construct in one source that cannot be emulated.

    Args:
        line: line of the file on which the source begins.
    """
    text = without_comments(content)
    found = [(m.start(), what) for pattern, what in patterns if (m := re.search(pattern, text))]
    if not found:
        return None
    start, what = min(found)
    return Unsupported(what, name, text.count("\n", 0, start) + line)


def checks_races(files: Mapping[str, str]) -> bool:
    """True if only barriers order the threads of a block."""
    return not any(_ORDERED_OTHERWISE.search(without_comments(text)) for text in files.values())


_KERNEL = re.compile(r"\b__global__\b")
_MOST_HEAD = 4096
"""Characters between `__global__` and the kernel's body."""
_BOUNDS = re.compile(r"__launch_bounds__\s*\(\s*(\d{1,9})[uUlL]*\b")
_NAME = re.compile(r"\b(\w+)\s*\(")
_ATTRIBUTE = re.compile(r"__\w{1,60}__\s*\((?:[^()]|\([^()]*\))*\)")


def launch_bounds(text: str) -> dict[str, int]:
    """Threads per block that kernels declare as a literal, by kernel."""
    plain = without_comments(text)
    found = {}
    for kernel in _KERNEL.finditer(plain):
        head = plain[kernel.end() : kernel.end() + _MOST_HEAD].partition("{")[0]
        bounds = _BOUNDS.search(head)
        names = _NAME.findall(_ATTRIBUTE.sub(" ", head))
        if bounds and names:
            found[names[0]] = int(bounds[1])
    return found


def kernel_line(text: str, name: str) -> int:
    """Line on which a kernel is first named after `__global__`; 0 if it is not found."""
    plain = without_comments(text)
    match = re.search(rf"__global__[^;{{]{{0,{_MOST_HEAD}}}?\b({re.escape(name)})\s*\(", plain)
    return plain.count("\n", 0, match.start(1)) + 1 if match else 0


def kernel_bodies(text: str) -> dict[str, int]:
    """Position after the opening brace of each defined kernel."""
    plain = without_comments(text)
    found = {}
    for kernel in _KERNEL.finditer(plain):
        end = re.compile(r"[{;]").search(plain, kernel.end(), kernel.end() + _MOST_HEAD)
        names = _NAME.findall(_ATTRIBUTE.sub(" ", plain[kernel.end() : end.start()])) if end else []
        if end and end.group() == "{" and names:
            found[names[0]] = end.end()
    return found


# ------------------------------------------------------------------------------------- for the emulator

_EXTERN = re.compile(
    r"\bextern\s+__shared__\s+(?P<type>[^;\[\]]*?[\s>*])(?P<name>\w+)\s*\[\s*\]\s*;|"
    r"(?:\bstatic\s+)?\b__shared__\s+(?P<body>[^;=]*);"
)
_INCLUDE = re.compile(
    r"^[ \t]*#[ \t]*include[ \t]*[<\"](?:"
    r"(?:cuda|cuda_runtime|cuda_runtime_api|cuda_fp8|cuda_pipeline|cuda_pipeline_primitives|cuda_profiler_api"
    r"|cublas|cublas_v2|cublasLt|cudnn|cusparse|curand|curand_kernel|device_launch_parameters|device_functions"
    r"|device_atomic_functions|math_functions|vector_types|vector_functions|mma|cooperative_groups/reduce"
    r"|torch/(?:extension|torch|all|script|types))\.h"
    r"|(?:cub|thrust|cute|cutlass|cuda|ATen/cuda|c10/cuda|pybind11|THC)/[\w/.]+)[>\"]",
    re.MULTILINE,
)
"""Headers whose supported part the emulator always includes; other uses are reported."""
_DECLARATOR = re.compile(r"(?P<type>.*?[\s>*&])?\s*(?P<name>\w+)\s*(?P<sizes>(?:\[.*\])*)", re.DOTALL)
_ALIGNMENT = re.compile(r"__align__\s*\([^()]*\)|\balignas\s*\([^()]*\)")


def for_cpu(text: str, name: str, kernels: list[str], *, line: int = 1) -> str:
    """Rewrite the source for g++, keeping lines: shared memory by reference, launchers at the end."""
    text = _INCLUDE.sub("", text)
    plain = without_comments(text)
    pieces, last = [f'#line {line} "{name}"\n'], 0
    for match in _EXTERN.finditer(plain):
        inside = _in_function(plain, match.start())
        new = _dynamic(match, inside) if match["name"] else (_static(match["body"]) if inside else None)
        if new is not None:
            new += "\n" * plain.count("\n", match.start(), match.end())
            pieces += [text[last : match.start()], new]
            last = match.end()
    pieces += [text[last:], "\n"]
    return "".join(pieces) + "".join(f"CUDA_ON_CPU_KERNEL({kernel})\n" for kernel in kernels)


def _dynamic(match: re.Match[str], inside: bool) -> str:
    kind, name = _ALIGNMENT.sub(" ", match["type"]).strip(), match["name"]
    if inside:
        return f"auto& {name} = ::cuda_on_cpu::dynamic<{kind}>();"
    return f"static ::cuda_on_cpu::DynamicShared<{kind}> {name};"


def _static(body: str) -> str | None:
    """Variables in static shared memory; None if the declaration has another form."""
    alignment = " ".join(f"__align__({a[a.index('(') + 1 : -1]})" for a in _ALIGNMENT.findall(body))
    kind, made = "", []
    for piece in _split(_ALIGNMENT.sub(" ", body)):
        match = _DECLARATOR.fullmatch(piece.strip())
        if match is None or (not kind and not match["type"]):
            return None
        kind = kind or " ".join(match["type"].split())
        name, hidden = match["name"], f"{match['name']}_in_shared_memory"
        made.append(
            f"static thread_local {alignment} {kind} {hidden}{' '.join(match['sizes'].split())}; "
            f"auto& {name} = ::cuda_on_cpu::opaque({hidden});"
        )
    return " ".join(made)


def _split(text: str) -> Iterator[str]:
    """Split at commas outside brackets."""
    depth, start = 0, 0
    for i, character in enumerate(text):
        depth += (character in "<([") - (character in ">)]")
        if character == "," and depth == 0:
            yield text[start:i]
            start = i + 1
    yield text[start:]


_SCOPE = re.compile(r'(?:\bextern\s*"C"|\bnamespace\b[\w\s:]*)\s*\Z')


def _in_function(plain: str, position: int) -> bool:
    """True if a position is inside braces other than those of namespaces and `extern "C"`."""
    opened: list[bool] = []
    for brace in re.finditer(r"[{}]", plain[:position]):
        if brace.group() == "{":
            opened.append(_SCOPE.search(plain, max(0, brace.start() - 120), brace.start()) is None)
        elif opened:
            opened.pop()
    return any(opened)
