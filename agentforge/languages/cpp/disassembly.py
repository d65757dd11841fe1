"""Machine code of a built solution: its hottest-looking loops, and what they consist of.

A loop is found by its backward jump. The heaviest loop has the most and the densest vector arithmetic: jumps
back from rare cases look like long loops with little of it.
"""

from __future__ import annotations

import platform
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from agentforge.languages._base import CommandRunner
from agentforge.languages.untrusted import read_regular
from agentforge.schema import Metric

_MOST_BYTES = 8 << 20
_TIMEOUT_S = 30.0
_MOST_LOOPS = 2
_MOST_LINES = 48
"""Instructions shown of a loop."""
_LISTING = "listing.txt"
_HASHES = "hashes.txt"
_FUNCTION = re.compile(r"^[0-9a-f]+ <(?P<name>.+)>:$")
_INSTRUCTION = re.compile(r"^\s+(?P<address>[0-9a-f]+):\s+(?P<text>\S.*?)\s*$")
_JUMP = re.compile(r"^(?:j\w+|b(?:\.\w+)?|cbn?z|tbn?z)\s.*?\b(?P<target>[0-9a-f]+) <")
_KINDS = {
    "512-bit": r"\bzmm",
    "256-bit": r"\bymm",
    "128-bit packed": r"^v?\w+p[sd]\s.*\bxmm|\bv\d+\.(?:4s|2d|8h)",
    "scalar float": r"^v?\w+s[sd]\s|^f\w+\s+[sd]\d",
    "multiply-add": r"^v?fn?m(?:add|sub|la|ls)",
    "gather or scatter": r"gather|scatter",
    "division or root": r"^v?(?:div|sqrt|fdiv|fsqrt)",
    "stack access": r"\[(?:rsp|rbp|sp)\b",
    "call": r"^(?:call|bl)\b",
}
_STREAMING = re.compile(r"^(?:v?movnt[pdiq]|stnp\b)")
"""Stores past the cache."""
_PREFETCH = re.compile(r"^(?:prefetch|prfm\b)")
_PARALLEL = re.compile(r"\b(?:GOMP_parallel|__kmpc_fork_call)")
"""The call that begins a parallel region of OpenMP."""
_WEIGHTS = {"512-bit": 8, "256-bit": 4, "128-bit packed": 2, "scalar float": 1}
_BITS = {"512-bit": 512, "256-bit": 256, "128-bit packed": 128}
"""Width of vector registers by kind, the widest first."""
Functions = Sequence[tuple[str, Sequence[tuple[int, str]]]]
"""Name of each function, with address and text of its instructions."""


@dataclass(frozen=True)
class _Loop:
    function: str
    first: int
    last: int
    lines: tuple[str, ...]

    @cached_property
    def kinds(self) -> Counter[str]:
        """Number of instructions by kind."""
        return Counter(kind for line in self.lines for kind in _kinds(line))

    @cached_property
    def weight(self) -> float:
        """How much arithmetic it seems to do, times the share of its instructions that do it."""
        done = sum(_WEIGHTS.get(kind, 0) * count for kind, count in self.kinds.items())
        return done * done / len(self.lines)


@lru_cache(maxsize=1 << 15)
def _kinds(line: str) -> tuple[str, ...]:
    return tuple(kind for kind, sign in _KINDS.items() if re.search(sign, line))


def machine_code(folder: Path, run: CommandRunner) -> str:
    """The innermost loops with most arithmetic of a built solution's objects, as text.

    Args:
        folder: of the built solution; the listing is written there.
        run: runs objdump in the sandbox, because the objects are made from untrusted source.
    """
    objects = sorted(folder.rglob("*.so"))
    if not objects:
        return "it has no compiled C++ object"
    listing = disassemble(objects, folder, run)
    return loops_of(listing) if listing is not None else "objdump failed or is not installed"


def disassemble(objects: Sequence[Path], folder: Path, run: CommandRunner) -> str | None:
    """The machine code of some objects, at most 8 MiB of text; None if objdump is missing or fails.

    Args:
        folder: the listing is written there.
        run: as in `machine_code`.
    """
    syntax = "-M intel" if platform.machine() == "x86_64" else ""
    dump = f'objdump -d -C --no-show-raw-insn {syntax} "$@"'
    script = f"rm -f {_LISTING}; {dump} | head -c {_MOST_BYTES} > {_LISTING}"
    done = run(["sh", "-c", script, "sh", *map(str, objects)], cwd=folder, timeout_s=_TIMEOUT_S)
    if done.returncode != 0:
        return None
    try:
        return read_regular(folder / _LISTING, _MOST_BYTES).decode("utf-8", "replace") or None
    except OSError:
        return None


def object_hash(folder: Path, run: CommandRunner) -> str:
    """Hash of what a process would load of a built solution's objects; empty without any or without objcopy.

    Args:
        folder, run: as in `machine_code`.
    """
    objects = sorted(folder.rglob("*.so"))
    if not objects:
        return ""
    dump = f'objcopy -O binary -R .note.gnu.build-id "$1" {_LISTING} && sha256sum < {_LISTING}'
    script = f"rm -f {_HASHES}; while [ $# -gt 0 ]; do {dump} >> {_HASHES} || exit 1; shift; done"
    done = run(["sh", "-c", script, "sh", *map(str, objects)], cwd=folder, timeout_s=_TIMEOUT_S)
    try:
        return read_regular(folder / _HASHES, _MOST_BYTES).decode() if done.returncode == 0 else ""
    except OSError:
        return ""


def loop_metrics(listing: str) -> tuple[Metric, ...]:
    """What the heaviest loop of an object does with registers and memory, and what else the object has.

    `loop_vector_bits` (0 is scalar), `loop_operations` (floating-point instructions, which unrolling
    multiplies), `loop_gathers` and `loop_stack_accesses` are of the heaviest loop. `streaming_stores`,
    `prefetches` and `parallel_regions` are of the whole object. Instructions are counted, not executions.
    """
    functions = list(_functions(listing))
    heaviest = max(_innermost(functions), key=lambda loop: loop.weight, default=None)
    kinds = heaviest.kinds if heaviest else Counter[str]()
    lines = [text for _, code in functions for _, text in code]
    bits = next((width for kind, width in _BITS.items() if kinds[kind]), 0)
    counts = {
        "loop_operations": sum(kinds[kind] for kind in _WEIGHTS),
        "loop_gathers": kinds["gather or scatter"],
        "loop_stack_accesses": kinds["stack access"],
        "streaming_stores": sum(_STREAMING.match(text) is not None for text in lines),
        "prefetches": sum(_PREFETCH.match(text) is not None for text in lines),
        "parallel_regions": sum(_PARALLEL.search(text) is not None for text in lines),
    }
    return (
        Metric(name="loop_vector_bits", value=bits, unit="bit", source="disassembly"),
        *(Metric(name=name, value=count, source="disassembly") for name, count in counts.items()),
    )


def loops_of(listing: str) -> str:
    """The innermost loops with most arithmetic of a disassembly, as text."""
    loops = sorted(_innermost(list(_functions(listing))), key=lambda loop: -loop.weight)[:_MOST_LOOPS]
    if not loops:
        return "its machine code has no loop"
    return "\n\n".join(map(_shown, loops))


def _shown(loop: _Loop) -> str:
    facts = ", ".join(f"{count} {kind}" for kind, count in loop.kinds.items())
    head = f"Innermost loop in {loop.function}: {len(loop.lines)} instructions ({facts or 'no arithmetic'})"
    left = len(loop.lines) - _MOST_LINES
    rest = [f"... {left} more"] if left > 0 else []
    return "\n".join([head, *(f"  {line}" for line in loop.lines[:_MOST_LINES]), *rest])


def _innermost(functions: Functions) -> Iterator[_Loop]:
    for name, code in functions:
        places = {address: n for n, (address, _) in enumerate(code)}
        spans = []
        for n, (address, text) in enumerate(code):
            jump = _JUMP.match(text)
            target = int(jump["target"], 16) if jump else address + 1
            if target <= address and target in places:
                spans.append((places[target], n))
        latest = -1  # first instruction of the latest loop that ends before this one
        for first, last in sorted(spans, key=lambda span: (span[1], -span[0])):
            if first > latest:
                lines = tuple(text for _, text in code[first : last + 1])
                yield _Loop(name, first, last, lines)
                latest = first


def _functions(listing: str) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    name, code = "", list[tuple[int, str]]()
    for line in listing.splitlines():
        if found := _FUNCTION.match(line):
            if code:
                yield name, code
            name, code = found["name"], []
        elif found := _INSTRUCTION.match(line):
            code.append((int(found["address"], 16), " ".join(found["text"].split("#")[0].split())))
    if code:
        yield name, code
