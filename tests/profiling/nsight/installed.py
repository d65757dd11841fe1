"""An installation of Nsight Compute: `ncu` is a program with ncu's command line and recorded counters.

It runs the command that it is given, and refuses options that ncu does not have. Its report is one that was
written by hand, of the kernels that the filter lets through; `extras/python/ncu_report.py` reads it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from agentforge.languages.command import interpreter

from . import fakes

KERNEL = "softmax"
REFUSED = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Counters"

RECORDED: dict[str, Any] = {
    "kernel": KERNEL,
    "metrics": {
        "gpu__time_duration.sum": [52_000.0, "ns"],
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": [87.5, "%"],
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": [87.5, "%"],
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": [12.25, "%"],
        "dram__bytes_read.sum": [67_108_864.0, "byte"],
        "launch__registers_per_thread": [32.0, "register/thread"],
    },
    "samples": {
        "smsp__pcsamp_sample_count": {"16": 90, "32": 10},
        "smsp__pcsamp_warps_issue_stalled_long_scoreboard": {"16": 80},
    },
    "places": {"16": ["/tmp/build/model_new.py", 7], "32": ["/tmp/build/model_new.py", 9]},
    "rules": [
        {
            "rule_identifier": "CPIStall",
            "name": "Warp Stall",
            "rule_message": {"title": "Long Scoreboard", "message": "Warps wait for memory.", "type": 2},
            "speedup_estimation": {"type": 2, "speedup": 20.0},
        }
    ],
}
OTHER = {**RECORDED, "kernel": "vectorized_elementwise_kernel"}

_NCU = '''#!{python}
"""Stands in for Nsight Compute."""
import argparse, json, pathlib, re, shutil, socket, subprocess, sys

HERE = pathlib.Path(__file__).resolve().parent
parser = argparse.ArgumentParser(prog="ncu", allow_abbrev=False)
parser.add_argument("--version", action="version", version="Nsight Compute\\nVersion {version} (x)")
parser.add_argument("--query-metrics", action="store_true")
parser.add_argument("--chips")
parser.add_argument("--export", type=pathlib.Path)
parser.add_argument("--force-overwrite", action="store_true")
parser.add_argument("--target-processes", choices=["all", "application-only"])
parser.add_argument("--profile-from-start", choices=["on", "off"])
parser.add_argument("--clock-control", choices=["none", "base"], default="base")
parser.add_argument("--replay-mode", choices=["kernel", "application", "range"])
parser.add_argument("--set", choices=["full", "basic", "detailed"])
parser.add_argument("--import-source", choices=["yes", "no"])
parser.add_argument("--launch-count", type=int)
parser.add_argument("--metrics", default="")
parser.add_argument("--kernel-name-base", choices=["function", "mangled", "demangled"])
parser.add_argument("--kernel-name", default="regex:.")
parser.add_argument("target", nargs=argparse.REMAINDER)
given = parser.parse_args()
if given.query_metrics:
    print(pathlib.Path(HERE, "query.txt").read_text())
    sys.exit(0)
assert given.clock_control == "none" and given.profile_from_start == "off"
server = socket.create_server(("127.0.0.1", 0))  # as ncu talks to what it profiles
server.settimeout(5)
socket.create_connection(server.getsockname(), timeout=5).close()
code = subprocess.run(given.target, check=False).returncode
if code:
    print(f"==ERROR== The application returned an error code ({{code}}).")
    sys.exit(code)
refused = pathlib.Path(HERE, "refused.txt").read_text()
if refused:
    print(refused)
    sys.exit(1)
lacking = pathlib.Path(HERE, "lacks.txt").read_text()
if lacking and lacking in given.metrics:
    print(f"==ERROR== Failed to find metric regex:^{{lacking}}")
    sys.exit(1)
if pathlib.Path(HERE, "recorded.ncu-rep").is_file():
    shutil.copyfile(HERE / "recorded.ncu-rep", given.export)
    sys.exit(0)
kind, _, pattern = given.kernel_name.partition(":")
found = [k for k in json.loads((HERE / "recorded.json").read_text()) if re.search(pattern, k["kernel"])]
if not found:
    print("==WARNING== No kernels were profiled.\\nAvailable Kernels:\\n1. another")
    sys.exit(0)
given.export.write_text(json.dumps(found[: given.launch_count]))
'''

_QUERY = """\
gpu__time_duration Counter ns
gpu__dram_throughput Throughput %
gpu__compute_memory_throughput Throughput %
sm__throughput Throughput %
dram__bytes_read Counter byte
"""


def install(
    folder: Path,
    *,
    version: str = "2025.3.1.0",
    refused: str = "",
    report: Path | None = None,
    kernel: str = KERNEL,
    lacks: str = "",
) -> Path:
    """An installation below `folder`.

    Args:
        folder: is made.
        version: that it has.
        refused: what it prints instead of collecting anything.
        report: a real one, which it gives out as what it collected.
        kernel: of which the recorded counters are.
        lacks: a metric that it lists, and does not find.

    Returns:
        The folder to put on PATH.
    """
    module = folder / "extras" / "python"
    module.mkdir(parents=True)
    program = folder / "ncu"
    program.write_text(_NCU.format(python=interpreter(), version=version))
    program.chmod(0o755)
    (folder / "refused.txt").write_text(refused)
    (folder / "lacks.txt").write_text(lacks)
    (folder / "query.txt").write_text(_QUERY)
    if report is not None:
        shutil.copyfile(report, folder / "recorded.ncu-rep")
        return folder
    (folder / "recorded.json").write_text(json.dumps([{**RECORDED, "kernel": kernel}, OTHER]))
    shutil.copyfile(fakes.__file__, module / "ncu_report.py")
    return folder
