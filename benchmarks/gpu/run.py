"""All measurements that need a GPU, in pieces of at most eight minutes, the most important first.

    python benchmarks/gpu/run.py all --minutes 45
    python benchmarks/gpu/run.py list
    python benchmarks/gpu/run.py operators --output benchmarks/results
    python benchmarks/gpu/run.py operators --only softmax
    python benchmarks/gpu/run.py operators --dry

Writes gpu-PIECE.json with device, driver, versions, date and command, repeatedly during the run, so that an
interrupted piece keeps its results. `--only` writes gpu-PIECE-part.json instead: a part is no result of the
piece. `--dry` follows the same code path on tiny sizes without a GPU and writes nothing. The exit code is 1
if something failed, and 2 if there is no GPU or a package is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
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
"""Packages that are enough to run the kernels alone."""
EXAMPLES = ("llama_block", "gpt2", "dlrm")
"""Targets of `optimize`, one a run: the first one, unless `--only` names another."""
_KERNELS = ("operators", "tune", "attacks", "ncu")
"""Pieces that need only those packages."""


@dataclass(frozen=True)
class Run:
    """Options of a piece."""

    left: float
    """Seconds."""
    output: Path
    dry: bool
    keep: Callable[[Answer], None]
    """Writes the results so far."""
    only: tuple[str, ...] = ()
    """Names of parts, as `parts` lists them; all if empty."""


def ladder(run: Run) -> Answer:
    """What this GPU can do, rung by rung, and what AgentForge does without; later pieces need not ask."""
    from agentforge.config import load_settings
    from agentforge.devices import detect
    from agentforge.devices.fallbacks import remember
    from agentforge.ladder import RungResult, climb

    rungs: list[Answer] = []

    def note(result: RungResult) -> None:
        rungs.append(result.model_dump(mode="json"))
        run.keep({"rungs": rungs})

    found = climb(on_rung=note)
    if found.broken is None:
        remember(detect("cuda"), load_settings([]).cache, found.fallbacks)
    ok = found.broken is None or run.dry
    return {"ok": ok, "rungs": rungs, "fallbacks": list(found.fallbacks)}


def operators(run: Run) -> Answer:
    """Our kernels at AutoKernel's sizes against eager, torch.compile max-autotune, Liger and a copy."""
    from gpu.operators import measure

    return measure(run.left, run.dry, run.keep, run.only)


def verdict(run: Run) -> Answer:
    """One verdict in `load_inline`, Triton and CuPy; source to verdict for a CUDA kernel at 4096 x 4096."""
    from gpu.verdict import measure

    if not run.dry:
        return measure(run.left, run.keep, run.only)
    found = measure(run.left, run.keep, run.only, "null", 64)
    every_one = (*found["verdicts"], *found["others"].values())
    return {**found, "ok": all(v["status"] == "PASSED" for v in every_one)}


def tests(run: Run) -> Answer:
    """Every test that needs a GPU, except the ladder, which is a piece of its own."""
    names = ("languages", "kernels", "stitch", "referee", "devices", "profiling")
    folders = [f"tests/{name}" for name in names if (ROOT / "tests" / name).is_dir()]
    options = ["-rs", "-m", "gpu", "--continue-on-collection-errors"]
    options += ["-q", "--co"] if run.dry else ["-v"]
    return command([sys.executable, "-m", "pytest", *options, *folders], run.left)


def tune(run: Run) -> Answer:
    """All settings of the shipped kernels' tuning spaces at one size: are the defaults the best?"""
    from gpu.operators import tune

    return tune(run.left, run.dry, run.keep, run.only)


def optimize(run: Run) -> Answer:
    """`agentforge optimize` on an example, end to end; others by `--only gpt2` or `--only dlrm`."""
    target = f"examples/{run.only[0] if run.only else EXAMPLES[0]}.py"
    share = run.left - 5
    minutes = 0.1 if run.dry else search_minutes(share)
    argv = [*AGENTFORGE, "optimize", target, "--device", "cpu" if run.dry else "cuda"]
    done = command([*argv, "--minutes", f"{minutes:.2f}"], share)
    return {"ok": done["ok"], "runs": {target: done}}


def search_minutes(share: float) -> float:
    """Minutes of search for an `optimize` that may take `share` seconds; an H100 took 193 s beside 0.7."""
    return max(0.1, min(share / 400, (share - 200) / 60))


def attacks(run: Run) -> Answer:
    """Attacks on a timer on a GPU: another stream, a persisting L2 carve-out, a failed launch."""
    from _provenance import commit

    from gpu.attacks import attempt
    from gpu.sitting import finished

    before = {} if run.dry or run.only else finished(run.output, "attacks", "attacks", commit())
    return attempt(run.left, run.dry, run.keep, run.only, before)


def feedback(run: Run) -> Answer:
    """Nsight Compute in `optimize`, in each sandbox: metrics, class and findings of passed attempts."""
    from gpu.feedback import TARGET, large, measure

    with tempfile.TemporaryDirectory() as folder:
        target = large(Path(folder), 64 if run.dry else 16384) if run.only else TARGET
        if not run.dry:
            return measure(run.left, search_minutes, run.keep, target)
        found = measure(20.0, search_minutes, run.keep, target, device="cpu")
    return {**found, "ok": not any(one["error"] for one in found["sandboxes"].values())}


def ncu(run: Run) -> Answer:
    """A small Nsight Compute report of a shipped kernel, to keep as test data."""
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
    """`agentforge profile`: kernels attributed to operators, the host's share."""
    device = "cpu" if run.dry else "cuda"
    return command([*AGENTFORGE, "profile", "examples/gpt2.py", "--device", device, "--json"], run.left)


def landscapes(run: Run) -> Answer:
    """Landscapes of ten operators for the policy lab; it resumes: give it a sitting of its own."""
    from search.landscape import REPETITIONS
    from search.record import FOR_A_GPU, record_all

    out = run.output / "gpu-landscapes.jsonl.gz"
    with tempfile.TemporaryDirectory() as folder:
        if run.dry:
            out = Path(folder) / out.name
        names, device = (FOR_A_GPU[:1], "cpu") if run.dry else (FOR_A_GPU, "cuda")
        found = record_all(names, 0 if run.dry else 1, 1.0 if run.dry else run.left / 60, device, out)
    verdicts = {name: sum(map(len, one.verdicts.values())) for name, one in found.items()}
    missing = {name: len(one.solutions) * REPETITIONS - verdicts[name] for name, one in found.items()}
    ok = run.dry or (len(found) == len(FOR_A_GPU) and not any(missing.values()))
    return {"ok": ok, "verdicts": verdicts, "missing": missing}


PIECES: dict[str, Callable[[Run], Answer]] = {
    piece.__name__: piece
    for piece in (
        ladder, tests, verdict, operators, optimize, attacks, tune, feedback, ncu, profile, landscapes,
    )
}  # fmt: skip


def command(argv: list[str], seconds: float) -> Answer:
    """Run a program; return its exit status and the end of its output."""
    begin = time.monotonic()
    # Unbuffered: what a program that takes too long has said is an answer too.
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
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
    """Packages that a piece needs and that are not installed."""
    wanted = list(_FEW)
    if piece not in _KERNELS:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
        wanted += [requirement.partition(">=")[0] for requirement in project]
    return sorted({name for name in wanted if not installed(name)})


def parts(piece: str) -> list[str]:
    """What `--only` may name in a piece."""
    if piece == "attacks":
        from gpu.hostile import ATTACKS

        return [attack.name for attack in ATTACKS]
    if piece == "optimize":
        return list(EXAMPLES)
    if piece == "feedback":
        return ["large"]
    if piece == "verdict":
        from gpu.verdict import PARTS

        return list(PARTS)
    if piece in ("operators", "tune"):
        from gpu.operators import OPERATORS

        return list(OPERATORS)
    return []


def installed(name: str) -> bool:
    """True if a package is installed under this distribution name."""
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


def no_gpu() -> str:
    """Why this machine cannot measure, in one sentence; empty if it can."""
    from agentforge.devices import detect
    from agentforge.schema import AgentForgeError

    try:
        detect("cuda")
    except AgentForgeError as error:
        return str(error)
    return ""


def driver() -> str:
    """Version of the driver, name and identity of each GPU; empty if nvidia-smi is missing (containers)."""
    query = ["nvidia-smi", "--query-gpu=driver_version,name,uuid,vbios_version", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def measure(piece: str, output: Path, seconds: float, only: tuple[str, ...] = ()) -> int:
    """Run a piece on this GPU; return its exit code."""
    from _provenance import provenance

    from agentforge.referee.timing.gpu.telemetry import Telemetry, visible_gpu

    telemetry = Telemetry(visible_gpu())
    head = {**provenance(), "driver": driver(), "before": telemetry.read().model_dump(), "piece": piece}
    output.mkdir(parents=True, exist_ok=True)
    place = output / (f"gpu-{piece}-part.json" if only else f"gpu-{piece}.json")

    kept: Answer = {}

    def keep(answer: Answer) -> None:
        kept.update(answer)
        place.write_text(json.dumps({**head, "ok": False, "cut_off": True, **answer}, indent=1) + "\n")

    try:
        answer = PIECES[piece](Run(seconds - 20.0, output, False, keep, only))
    except Exception:
        traceback.print_exc()
        answer = {**kept, "ok": False, "failed": traceback.format_exc()[-_TAIL:]}
    keep({**answer, "cut_off": False, "after": telemetry.read().model_dump()})
    print(f"{place}: {'ok' if answer['ok'] else 'FAILED'}")
    return 0 if answer["ok"] else 1


def every(what: str, minutes: float, output: Path) -> int:
    """All pieces in one sitting, or only the page of their results; return the exit code."""
    from _provenance import provenance

    from gpu.sitting import piece_command, sit, write_page

    if what == "page":
        write_page(output)
        return 0
    if reason := no_gpu():
        print(f"benchmarks/gpu needs an NVIDIA GPU: {reason}", file=sys.stderr)
        return 2
    fates = sit(minutes, output, provenance()["commit"], piece_command(output))
    return 0 if set(fates.values()) <= {"ok", "measured before"} else 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("piece", choices=["all", "list", "page", *PIECES])
    parser.add_argument("--minutes", type=float, default=45.0, help="of `all`, which resumes what it began")
    parser.add_argument("--seconds", type=float, default=LIMIT_S, help="of one piece")
    parser.add_argument("--output", type=Path, default=HERE.parent / "results")
    parser.add_argument(
        "--only",
        metavar="NAME",
        nargs="+",
        default=(),
        help="of verdict, operators, optimize, attacks, tune, feedback",
    )
    parser.add_argument("--dry", action="store_true", help="run the same code without a GPU, on tiny sizes")
    chosen = parser.parse_args()
    output = chosen.output.resolve()  # programs that a piece starts run in another folder
    paths = [str(HERE.parent), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)  # for all programs that a piece starts
    if chosen.piece == "list":
        for name, piece in PIECES.items():
            print(f"{name:10} {(piece.__doc__ or '').strip()}")
        return 0
    if chosen.piece in ("all", "page"):
        return every(chosen.piece, chosen.minutes, output)
    if lacks := missing(chosen.piece):
        print(
            f"{chosen.piece} needs packages that {sys.executable} lacks: pip install {' '.join(lacks)}",
            file=sys.stderr,
        )
        return 2
    known = parts(chosen.piece) if chosen.only else []
    if wrong := [name for name in chosen.only if name not in known]:
        parser.error(f"{chosen.piece} has no {', '.join(wrong)}; it has {', '.join(known) or 'no parts'}")
    if chosen.piece == "optimize" and len(chosen.only) > 1:
        parser.error("optimize takes one target a run")
    if chosen.dry:
        answer = PIECES[chosen.piece](Run(LIMIT_S, output, True, lambda _: None, tuple(chosen.only)))
        print(json.dumps(answer, indent=1))
        return 0 if answer["ok"] else 1
    reason = no_gpu()
    if reason:
        print(f"benchmarks/gpu needs an NVIDIA GPU: {reason}", file=sys.stderr)
        return 2
    return measure(chosen.piece, output, chosen.seconds, tuple(chosen.only))


if __name__ == "__main__":
    raise SystemExit(main())
