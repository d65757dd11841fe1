"""All that only a GPU can tell, in pieces of at most eight minutes each; the most wanted ones first.

    python benchmarks/gpu/run.py list
    python benchmarks/gpu/run.py operators --output benchmarks/results
    python benchmarks/gpu/run.py operators --dry

Writes gpu-PIECE.json with device, driver, versions, date and command, again and again while it works: what
was measured before a piece is cut off is kept. `--dry` goes the same ways on tiny sizes without a GPU and
writes nothing. Exit code 1 where something failed, 2 where there is no GPU or a package is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent), str(ROOT)]

Answer = dict[str, Any]
AGENTFORGE = [sys.executable, "-m", "agentforge.cli"]
LIMIT_S = 8 * 60
_TAIL = 6000
_FEW = ("pydantic", "pyyaml", "numpy", "psutil", "torch", "triton")
"""Packages that are enough for kernels on their own."""
_KERNELS = ("operators", "tune", "attacks", "ncu")
"""Pieces that need no more than those."""


@dataclass(frozen=True)
class Run:
    """One piece's circumstances."""

    left: float
    """Seconds."""
    output: Path
    dry: bool
    keep: Callable[[Answer], None]
    """Writes what is known so far."""


def operators(run: Run) -> Answer:
    """Our kernels at AutoKernel's sizes against eager, torch.compile max-autotune and a copy."""
    from gpu.operators import measure

    return measure(run.left, run.dry, run.keep)


def verdict(run: Run) -> Answer:
    """Source to verdict for a CUDA kernel at 4096 x 4096."""
    from gpu.verdict import measure

    if not run.dry:
        return measure()
    found = measure("null", 64)
    return {**found, "ok": all(v["status"] == "PASSED" for v in found["verdicts"])}


def tests(run: Run) -> Answer:
    """Every test that needs a GPU."""
    names = ("languages", "kernels", "stitch", "harness", "devices", "profiling")
    folders = [f"tests/{name}" for name in names if (ROOT / "tests" / name).is_dir()]
    options = ["-q", "-rs", "-m", "gpu", "--continue-on-collection-errors", *(["--co"] if run.dry else [])]
    return command([sys.executable, "-m", "pytest", *options, *folders], run.left)


def tune(run: Run) -> Answer:
    """Every point of our kernels' tuning spaces, at one size: are the defaults the best."""
    from gpu.operators import tune

    return tune(run.left, run.dry, run.keep)


def optimize(run: Run) -> Answer:
    """`agentforge optimize` on two examples, end to end."""
    targets = ["examples/llama_block.py", "examples/gpt2.py"][: 1 if run.dry else 2]
    runs: dict[str, Answer] = {}
    end = time.monotonic() + run.left
    for number, target in enumerate(targets):
        share = (end - time.monotonic()) / (len(targets) - number) - 5
        minutes = 0.1 if run.dry else share / 90
        argv = [*AGENTFORGE, "optimize", target, "--device", "cpu" if run.dry else "cuda"]
        runs[target] = command([*argv, "--minutes", f"{minutes:.1f}"], share)
        run.keep({"runs": runs})
    return {"ok": all(r["ok"] for r in runs.values()), "runs": runs}


def attacks(run: Run) -> Answer:
    """What cheats a timer on a GPU: another stream, a persisting L2 carve-out, a failed launch."""
    from gpu.attacks import attempt

    return attempt(run.dry)


def feedback(run: Run) -> Answer:
    """Nsight Compute in `optimize`, in each sandbox: metrics, class and findings of what passed."""
    from gpu.feedback import measure

    if not run.dry:
        return measure(run.left)
    found = measure(20.0, device="cpu")
    return {**found, "ok": not any(one["error"] for one in found["sandboxes"].values())}


def ncu(run: Run) -> Answer:
    """A small Nsight Compute report of one of our kernels, to keep as test data."""
    program = [sys.executable, str(HERE / "one_kernel.py"), *(["--dry"] if run.dry else [])]
    if run.dry:
        return command(program, run.left)
    report = run.output / "softmax_4096"
    profiler = ["ncu", "--set", "detailed", "--clock-control", "none", "--force-overwrite", "-o", str(report)]
    which = ["--kernel-name", "regex:softmax", "--launch-skip", "3", "--launch-count", "1"]
    answer = command([*profiler, *which, *program], run.left)
    file = report.with_suffix(".ncu-rep")
    return {**answer, "report": file.name, "bytes": file.stat().st_size if file.is_file() else 0}


def profile(run: Run) -> Answer:
    """`agentforge profile`: kernels bound to operators, the host's share."""
    device = "cpu" if run.dry else "cuda"
    return command([*AGENTFORGE, "profile", "examples/gpt2.py", "--device", device, "--json"], run.left)


PIECES: dict[str, Callable[[Run], Answer]] = {
    piece.__name__: piece
    for piece in (operators, verdict, tests, tune, optimize, attacks, feedback, ncu, profile)
}


def command(argv: list[str], seconds: float) -> Answer:
    """Run a program; how it ended, and the end of what it said."""
    begin = time.monotonic()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=max(1.0, seconds), cwd=ROOT, env=environment,
            check=False,
        )  # fmt: skip
        code, said = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        said = error.stdout.decode(errors="replace") if isinstance(error.stdout, bytes) else ""
        code, said = -1, f"{said}\nstopped after {seconds:.0f} s"
    except OSError as error:
        code, said = -1, str(error)
    spent = time.monotonic() - begin
    return {"ok": code == 0, "exit": code, "seconds": round(spent, 1), "said": said[-_TAIL:]}


def missing(piece: str) -> list[str]:
    """Packages that a piece needs and this Python lacks."""
    wanted = list(_FEW)
    if piece not in _KERNELS:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
        wanted += [requirement.partition(">=")[0] for requirement in project]
    return sorted({name for name in wanted if not installed(name)})


def installed(name: str) -> bool:
    """Whether a package is here, by the name under which it is installed."""
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


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


def measure(piece: str, output: Path) -> int:
    """Do a piece on the GPU that is here; its exit code."""
    from _provenance import provenance

    from agentforge.harness.gpu import Telemetry

    telemetry = Telemetry()
    head = {**provenance(), "driver": driver(), "before": telemetry.read().model_dump(), "piece": piece}
    output.mkdir(parents=True, exist_ok=True)
    place = output / f"gpu-{piece}.json"

    def keep(answer: Answer) -> None:
        place.write_text(json.dumps({**head, "ok": False, "cut_off": True, **answer}, indent=1) + "\n")

    answer = PIECES[piece](Run(LIMIT_S - 20.0, output, False, keep))
    keep({**answer, "cut_off": False, "after": telemetry.read().model_dump()})
    print(f"{place}: {'ok' if answer['ok'] else 'FAILED'}")
    return 0 if answer["ok"] else 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("piece", choices=["list", *PIECES])
    parser.add_argument("--output", type=Path, default=HERE.parent / "results")
    parser.add_argument("--dry", action="store_true", help="go the same ways without a GPU, on tiny sizes")
    chosen = parser.parse_args()
    if chosen.piece == "list":
        for name, piece in PIECES.items():
            print(f"{name:10} {(piece.__doc__ or '').strip()}")
        return 0
    if lacks := missing(chosen.piece):
        print(
            f"{chosen.piece} needs packages that {sys.executable} lacks: pip install {' '.join(lacks)}",
            file=sys.stderr,
        )
        return 2
    if chosen.dry:
        answer = PIECES[chosen.piece](Run(LIMIT_S, chosen.output, True, lambda _: None))
        print(json.dumps(answer, indent=1))
        return 0 if answer["ok"] else 1
    reason = no_gpu()
    if reason:
        print(f"benchmarks/gpu measures on an NVIDIA GPU alone: {reason}", file=sys.stderr)
        return 2
    return measure(chosen.piece, chosen.output)


if __name__ == "__main__":
    raise SystemExit(main())
