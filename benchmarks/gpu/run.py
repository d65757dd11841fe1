"""All that only a GPU can tell, in pieces of at most eight minutes each.

    python benchmarks/gpu/run.py list
    python benchmarks/gpu/run.py operators --output benchmarks/results

Writes gpu-PIECE.json with device, driver, versions, date and command. Exit code 1 where something failed, 2
where there is no GPU.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent), str(ROOT)]

Answer = dict[str, Any]
AGENTFORGE = str(Path(sys.executable).with_name("agentforge"))
LIMIT_S = 8 * 60
_TAIL = 6000


def tests(left: float, output: Path) -> Answer:
    """Every test of languages, kernels, referee, devices, profiling and stitching that needs a GPU."""
    names = ("languages", "kernels", "stitch", "harness", "devices", "profiling")
    folders = [f"tests/{name}" for name in names if (ROOT / "tests" / name).is_dir()]
    return command([sys.executable, "-m", "pytest", "-q", "-rs", "-m", "not slow", *folders], left)


def operators(left: float, output: Path) -> Answer:
    """Our kernels at AutoKernel's sizes against eager, torch.compile and CUDA graphs."""
    from gpu.operators import measure

    return measure(left)


def verdict(left: float, output: Path) -> Answer:
    """Source to verdict for a CUDA kernel at 4096 x 4096."""
    from gpu.verdict import measure

    return measure()


def profile(left: float, output: Path) -> Answer:
    """`agentforge profile`: kernels bound to operators, the host's share."""
    return command([AGENTFORGE, "profile", "examples/gpt2.py", "--device", "cuda", "--json"], left)


def optimize(left: float, output: Path) -> Answer:
    """`agentforge optimize` on two examples, end to end."""
    targets = ["examples/llama_block.py", "examples/gpt2.py"]
    runs = {}
    for number, target in enumerate(targets):
        share = left / (len(targets) - number) - 5
        begin = time.monotonic()
        runs[target] = command(
            [AGENTFORGE, "optimize", target, "--device", "cuda", "--minutes", f"{share / 90:.1f}"], share
        )
        left -= time.monotonic() - begin
    return {"ok": all(r["ok"] for r in runs.values()), "runs": runs}


def ncu(left: float, output: Path) -> Answer:
    """A small Nsight Compute report of one of our kernels, to keep as test data."""
    report = output / "softmax_4096"
    program = str(HERE / "one_kernel.py")
    profiler = ["ncu", "--set", "detailed", "--clock-control", "none", "--force-overwrite", "-o", str(report)]
    which = ["--kernel-name", "regex:softmax", "--launch-skip", "3", "--launch-count", "1"]
    argv = [*profiler, *which, sys.executable, program]
    answer = command(argv, left)
    file = report.with_suffix(".ncu-rep")
    return {**answer, "report": file.name, "bytes": file.stat().st_size if file.is_file() else 0}


def feedback(left: float, output: Path) -> Answer:
    """Nsight Compute in `optimize`, in each sandbox: metrics, class and findings of what passed."""
    from gpu.feedback import measure

    return measure(left)


def attacks(left: float, output: Path) -> Answer:
    """What cheats a timer on a GPU: another stream, a persisting L2 carve-out, a failed launch."""
    from gpu.attacks import attempt

    return attempt()


PIECES: dict[str, Callable[[float, Path], Answer]] = {
    "tests": tests,
    "operators": operators,
    "verdict": verdict,
    "profile": profile,
    "optimize": optimize,
    "ncu": ncu,
    "feedback": feedback,
    "attacks": attacks,
}


def command(argv: list[str], seconds: float) -> Answer:
    """Run a program; how it ended, and the end of what it said."""
    begin = time.monotonic()
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=max(1.0, seconds), cwd=ROOT, check=False
        )
        code, said = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        said = error.stdout.decode(errors="replace") if isinstance(error.stdout, bytes) else ""
        code, said = -1, f"{said}\nstopped after {seconds:.0f} s"
    except OSError as error:
        code, said = -1, str(error)
    spent = time.monotonic() - begin
    return {"ok": code == 0, "exit": code, "seconds": round(spent, 1), "said": said[-_TAIL:]}


def no_gpu() -> str:
    """Why nothing can be measured here, in one sentence; empty where it can."""
    from agentforge.devices import detect
    from agentforge.schema import AgentForgeError

    try:
        detect("cuda")
    except AgentForgeError as error:
        return str(error)
    return ""


def driver() -> str:
    """Version of the driver, name and identity of each GPU."""
    query = ["nvidia-smi", "--query-gpu=driver_version,name,uuid,vbios_version", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("piece", choices=["list", *PIECES])
    parser.add_argument("--output", type=Path, default=HERE.parent / "results")
    chosen = parser.parse_args()
    if chosen.piece == "list":
        for name, piece in PIECES.items():
            print(f"{name:10} {(piece.__doc__ or '').strip()}")
        return 0
    reason = no_gpu()
    if reason:
        print(f"benchmarks/gpu measures on an NVIDIA GPU alone: {reason}", file=sys.stderr)
        return 2
    from _provenance import provenance

    from agentforge.harness.gpu import Telemetry

    telemetry = Telemetry()
    before = telemetry.read()
    chosen.output.mkdir(parents=True, exist_ok=True)
    answer = PIECES[chosen.piece](LIMIT_S - 20.0, chosen.output)
    body = {
        **provenance(),
        "driver": driver(),
        "before": before.model_dump(),
        "after": telemetry.read().model_dump(),
        "piece": chosen.piece,
        **answer,
    }
    place = chosen.output / f"gpu-{chosen.piece}.json"
    place.write_text(json.dumps(body, indent=1) + "\n")
    print(f"{place}: {'ok' if answer['ok'] else 'FAILED'}")
    return 0 if answer["ok"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
