"""Command lines of `ncu`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

MOST_LAUNCHES = 8
"""Kernel launches that are profiled: each is replayed some forty times."""


def query_command(ncu: str, chip: str = "") -> list[str]:
    """Lists the metrics of this machine's chip, or of a named one (`gh100`)."""
    return [ncu, "--query-metrics", *(["--chips", chip] if chip else [])]


def profile_command(
    ncu: str,
    target: Sequence[str],
    report: Path,
    *,
    kernels: Sequence[str] = (),
    metrics: Sequence[str] = (),
    launches: int = MOST_LAUNCHES,
) -> list[str]:
    """Profiles what `target` launches between `cudaProfilerStart` and `cudaProfilerStop`.

    Clocks are left as they are: ncu's own default would lock them to the base clock and change the very thing
    that is measured, and other processes use the device too. Caches are flushed before each replay (ncu's
    default), as the referee does before each call.

    Args:
        ncu: path of the program.
        target: command line of the process; it warms up before it starts the profiler.
        report: file to write, ending in `.ncu-rep`.
        kernels: function names of own kernels; empty for all.
        metrics: collected beside the full set of sections, which the rules need.
        launches: at most so many.
    """
    command = [
        ncu,
        "--export",
        str(report),
        "--force-overwrite",
        "--target-processes",
        "all",
        "--profile-from-start",
        "off",
        "--clock-control",
        "none",
        "--replay-mode",
        "kernel",
        "--set",
        "full",
        "--import-source",
        "yes",
        "--launch-count",
        str(launches),
    ]
    if metrics:
        command += ["--metrics", ",".join(metrics)]
    if kernels:
        command += ["--kernel-name-base", "function", "--kernel-name", kernel_filter(kernels)]
    return [*command, *target]


def read_command(python: str, report: Path, answer: Path, folders: Sequence[Path]) -> list[str]:
    """Reads a report and writes what it says as JSON: see `reader`."""
    module = f"{__package__}.reader"
    return [python, "-m", module, str(report), str(answer), *map(str, folders)]


def kernel_filter(kernels: Sequence[str]) -> str:
    """ncu's filter for exactly these function names.

    Triton and templates append to a name (`_0d1d2`, `<float>`), which the filter allows.
    """
    names = "|".join(re.escape(name) for name in dict.fromkeys(kernels))
    return f"regex:^({names})(_[0-9a-z]+)?$"
