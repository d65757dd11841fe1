"""Parse the output of NVRTC, nvcc and ptxas into `Diagnostic`s and `ResourceUsage`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from agentforge.languages.occupancy import occupancy, target_limits
from agentforge.schema import Diagnostic, ResourceUsage, UsageError

from ..source import HEADERS

_MOST = 50
_MESSAGE = re.compile(
    r"^(?P<file>[^\s(][^(\n]*)\((?P<line>\d{1,9})\):\s*(?P<severity>catastrophic error|error|warning|remark)"
    r"(?:\s*#[\w-]+)?:\s*(?P<message>.*)$"
)
_PLAIN = re.compile(
    r"^(?:nvrtc|nvcc|ptxas)[^:]{0,200}?:?\s{0,8}(?P<severity>fatal|error|warning)\s*:\s*(?P<message>.*)$"
)
_STATIC_LIMIT = 48 << 10
"""Bytes of shared memory that a kernel may declare statically; more must be dynamic."""


def parse_diagnostics(log: str) -> tuple[Diagnostic, ...]:
    """Messages with file and line, errors first; continuation lines are joined. Never raises."""
    found: list[Diagnostic] = []
    for line in log.splitlines():
        match = _MESSAGE.match(line)
        if match:
            kind = match["severity"]
            found.append(
                Diagnostic(
                    severity="error" if "error" in kind else "warning",
                    message=match["message"].strip(),
                    file=match["file"].removeprefix("./"),
                    line=int(match["line"]),
                )
            )
            continue
        plain = _PLAIN.match(line)
        if plain:
            severity = "warning" if plain["severity"] == "warning" else "error"
            found.append(Diagnostic(severity=severity, message=plain["message"].strip()))
    kept = list(dict.fromkeys(found))
    return tuple(sorted(kept, key=lambda d: d.severity != "error")[:_MOST])


def placed(found: Diagnostic, source: str) -> Diagnostic:
    """A message with the file and line that the reader knows: a header's, or the source's own.

    Args:
        source: path of the compiled source; with its first line, as `model_new.py:12`, if it is a part.
    """
    if not found.line:
        return found
    place = Path(found.file)
    if place.suffix in HEADERS or not place.suffix:
        return found.model_copy(update={"file": place.name if place.is_absolute() else found.file})
    file, _, first = source.partition(":")
    return found.model_copy(update={"file": file, "line": found.line + int(first or 1) - 1})


_ENTRY = re.compile(r"Compiling entry function '(?P<kernel>[^']+)' for '(?P<target>[^']+)'")
_SPILLS = re.compile(
    r"(\d{1,9}) bytes stack frame, (\d{1,9}) bytes spill stores, (\d{1,9}) bytes spill loads"
)
_USED = re.compile(r"Used (?P<registers>\d{1,9}) registers(?:.*?(?P<shared>\d{1,9}) bytes smem)?")


def parse_resources(log: str, threads: Mapping[str, int]) -> tuple[ResourceUsage, ...]:
    """Parse the output of `ptxas --verbose`; never raises.

    Args:
        threads: declared threads per block (`__launch_bounds__`) by kernel.
    """
    found: list[ResourceUsage] = []
    kernel, target, spills = "", "", (0, 0, 0)
    for line in log.splitlines():
        entry, spilled, used = _ENTRY.search(line), _SPILLS.search(line), _USED.search(line)
        if entry:
            kernel, target, spills = _plain_name(entry["kernel"]), entry["target"], (0, 0, 0)
        elif spilled:
            spills = (int(spilled[1]), int(spilled[2]), int(spilled[3]))
        elif used and kernel:
            found.append(
                _usage(kernel, target, int(used["registers"]), int(used["shared"] or 0), spills, threads)
            )
            kernel = ""
    return tuple(found)


def _plain_name(symbol: str) -> str:
    """`softmax` for `_Z7softmaxIfEvPKT_`: the name of a C++ function outside namespaces."""
    match = re.match(r"_Z(\d{1,4})(\w+)", symbol)
    return match[2][: int(match[1])] if match else symbol


def _usage(
    kernel: str,
    target: str,
    registers: int,
    shared: int,
    spills: tuple[int, int, int],
    threads: Mapping[str, int],
) -> ResourceUsage:
    block = threads.get(kernel, 0)
    fraction = None
    if block:
        try:
            fraction = occupancy(target, threads=block, registers=registers, shared_bytes=shared)
        except UsageError:
            fraction = None
    return ResourceUsage(
        kernel=kernel,
        target=target,
        registers=registers,
        shared_bytes=shared,
        spill_store_bytes=spills[1],
        spill_load_bytes=spills[2],
        threads=block,
        occupancy=fraction,
    )


def too_much_shared(usage: ResourceUsage, file: str, line: int) -> Diagnostic | None:
    """Error for a kernel that declares too much static shared memory: ptxas names no line."""
    if usage.shared_bytes <= _STATIC_LIMIT:
        return None
    try:
        most = target_limits(usage.target).shared_bytes_block
    except UsageError:
        most = _STATIC_LIMIT
    return Diagnostic(
        message=f"kernel {usage.kernel} declares {usage.shared_bytes} bytes of shared memory; "
        f"at most {_STATIC_LIMIT} may be declared; `extern __shared__` may use {most} on {usage.target}",
        file=file,
        line=line,
    )
