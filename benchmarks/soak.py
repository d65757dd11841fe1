"""Run many evaluations with one referee, with random faults: nothing may leak, and no verdict may be wrong.

    python benchmarks/soak.py --evaluations 1000          # writes benchmarks/results/soak.json
    python benchmarks/soak.py --seconds 600 --out FILE    # as many as fit

Besides honest kernels there are candidates that crash, hang, fork, allocate too much memory, exit, print or
send invalid answers. Workers are also killed from outside during an evaluation. After each evaluation, the
child processes, open descriptors, temporary folders and shared memory must be unchanged. Memory is judged by
its slope.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import linear_regression
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import psutil  # noqa: E402
from _provenance import provenance  # noqa: E402
from _published import whole_or_elsewhere  # noqa: E402

from agentforge.config import RefereeSettings  # noqa: E402
from agentforge.devices import detect  # noqa: E402
from agentforge.frontends import FrontendOptions, load_target  # noqa: E402
from agentforge.isolation import procfs  # noqa: E402
from agentforge.languages import read_solution  # noqa: E402
from agentforge.referee import EvaluationRequest, Referee  # noqa: E402
from agentforge.schema import Solution, Target  # noqa: E402

RESULTS = HERE / "results" / "soak.json"
KILLED = "worker killed from outside"
_HONEST_SHARE = 0.5
_MAX_STEP_MB = 0.02
"""Largest growth of the referee's memory per evaluation, in the second half, that counts as flat."""
_ENOUGH_FOR_A_SLOPE, _TOLD_EVERY = 200, 50

REFERENCE = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2


def get_inputs():
    return [torch.randn(64, 96)]


def get_init_inputs():
    return []
"""
HEAD = "import ctypes, os, signal, subprocess, sys, threading, time\nimport torch\n"
MODEL = """

class ModelNew(torch.nn.Module):
    def forward(self, x):
        {fault}
        return torch.relu(x) * 2
"""
FIND_CHANNEL = """

def channel():
    frame = sys._getframe()
    while frame is not None:
        server = frame.f_locals.get("self")
        if hasattr(server, "_handlers"):
            return server._channel
        frame = frame.f_back
"""
FAULTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "crash": ("ctypes.string_at(0)", ("CRASHED",)),
    "abort": ("os.abort()", ("CRASHED",)),
    "leave": ("os._exit(3)", ("CRASHED",)),
    "hang": ("time.sleep(60)", ("TIMEOUT",)),
    "stop itself": ("os.kill(os.getpid(), signal.SIGSTOP)", ("TIMEOUT",)),
    "raise": ("raise ValueError('no')", ("RUNTIME_ERROR",)),
    "eat memory": ("held = [bytearray(1 << 28) for _ in range(400)]", ("OUT_OF_MEMORY", "TIMEOUT")),
    "children": ("[subprocess.Popen(['sleep', '60']) for _ in range(8)]", ()),
    "threads": (
        "[threading.Thread(target=time.sleep, args=(60,), daemon=True).start() for _ in range(8)]",
        (),
    ),
    "daemon": ("os.fork() or (os.setsid(), time.sleep(60), os._exit(0))", ()),
    "descriptors": ("held = [os.dup(1) for _ in range(100)]", ()),
    "files": ("open(os.path.join(os.environ['HOME'], str(time.time())), 'wb').write(bytes(1 << 20))", ()),
    "print": ("print('x' * 100000)", ()),
    "rubbish": ("channel().sock.sendall(b'\\x00\\x00\\x00\\x05hello')", ("CHEATING",)),
    "huge message": ("channel().sock.sendall(b'\\xff' * 64)", ("CHEATING",)),
    "hang up": ("channel().sock.close()", ()),
    "wrong": ("x = x + 1", ("INCORRECT_NUMERICAL",)),
}
"""What a candidate does in its call, and the correct statuses; none if any verdict is correct."""


def solutions(target: Target, folder: Path) -> dict[str, Solution]:
    """One solution per fault, and an honest one under the empty name."""
    made: dict[str, Solution] = {}
    for name, fault in {"": "pass", **{n: f for n, (f, _) in FAULTS.items()}}.items():
        path = folder / f"candidate_{len(made)}.py"
        path.write_text(HEAD + FIND_CHANNEL + MODEL.format(fault=fault))
        made[name] = read_solution(path, target.definition.hash)
    return made


@contextmanager
def killer(chance: random.Random) -> Iterator[None]:
    """Kill a worker, the candidate's or a baseline's, some milliseconds after the evaluation began."""

    def strike() -> None:
        time.sleep(chance.uniform(0.0, 0.4))
        zygotes = {c.pid for c in psutil.Process().children()}
        workers = [c for c in psutil.Process().children(recursive=True) if c.pid not in zygotes]
        if workers:
            with suppress(psutil.Error):
                chance.choice(workers).kill()

    thread = threading.Thread(target=strike)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def folders() -> list[Path]:
    """Temporary folders of this process's referees."""
    return list(Path(tempfile.gettempdir()).glob(f"agentforge-referee-{os.getpid()}-*"))


def here() -> set[psutil.Process | Path]:
    """This process's descendants and its referees' folders."""
    return {*psutil.Process().children(recursive=True), *folders()}


def held() -> dict[str, int]:
    """Resources that this process and its descendants use now."""
    gc.collect()  # a failure's traceback and its frames reference each other, and keep files open
    me = psutil.Process()
    names = []
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            names.append(str(entry.readlink()))
    return {
        "processes": sum(not procfs.is_zombie(c.pid) for c in me.children(recursive=True)),
        "descriptors": len(names),
        "shared memory": sum("memfd:" in name for name in names),
        "folders": sum(len([x for x in f.iterdir() if x.is_dir()]) for f in folders()),
    }


def told(process: psutil.Process) -> str:
    """Hint for finding the origin of a leftover process."""
    with suppress(psutil.Error):
        return f"{process.pid}: {' '.join(process.cmdline())}, {process.status()}, below {process.ppid()}"
    return f"{process.pid}, which has ended since"


def settled(usual: dict[str, int]) -> dict[str, int]:
    """Resources after dying processes have ended, at most two seconds later."""
    deadline = time.monotonic() + 2
    now = held()
    while time.monotonic() < deadline and any(v > usual[k] for k, v in now.items()):
        time.sleep(0.05)
        now = held()
    return now


def judge_all(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Evaluate until the count or the time is reached."""
    (folder / "reference.py").write_text(REFERENCE)
    target = load_target(str(folder / "reference.py"), FrontendOptions())
    made = solutions(target, folder)
    chance = random.Random(arguments.seed)
    settings = RefereeSettings(
        build_timeout_s=1.0,  # a first call may take longer than others by this much
        call_timeout_s=3.0,
        compile_baseline=False,
        random_seeds=1,
        task_seconds=0.2,
        quick_blocks=2,
        quick_seconds=0.05,
        threads=1,
    )
    verdicts: Counter[str] = Counter()
    problems: list[str] = []
    series: list[dict[str, float]] = []
    begin = time.monotonic()

    def evaluate(referee: Referee, name: str) -> str:
        return referee.evaluate(
            EvaluationRequest(target.definition, target.workloads, made[name])
        ).status.value

    before = here()  # what the caller has; a test run has some
    with Referee(settings, device=detect("auto"), cache=folder / "cache") as referee:
        evaluate(referee, "")
        usual = held()
        while len(series) < arguments.evaluations and time.monotonic() - begin < arguments.seconds:
            name = "" if chance.random() < _HONEST_SHARE else chance.choice([*FAULTS, KILLED])
            if name == KILLED:
                with killer(chance):
                    status = evaluate(referee, "")
                # after any kill, the next verdict is correct and all workers are back
                if (after := evaluate(referee, "")) != "PASSED":
                    problems.append(f"{len(series)}: {after} after {KILLED}")
            else:
                status = evaluate(referee, name)
            wanted = FAULTS[name][1] if name in FAULTS else () if name == KILLED else ("PASSED",)
            broken = name in FAULTS and status == "HARNESS_ERROR"
            if broken or (wanted and status not in wanted):
                problems.append(
                    f"{len(series)}: {name or 'honest'} is {status}, not {' or '.join(wanted) or 'a verdict'}"
                )
            verdicts[f"{name or 'honest'}: {status}"] += 1
            now = settled(usual)
            problems += [f"{len(series)}: {k} {usual[k]} -> {v} after {name or 'honest'}"
                         for k, v in now.items() if v > usual[k]]  # fmt: skip
            usual = {k: max(v, usual[k]) for k, v in now.items()}
            series.append({**now, "memory_mb": psutil.Process().memory_info().rss / 1e6})
            if len(series) % _TOLD_EVERY == 0:
                print(f"{len(series)} in {time.monotonic() - begin:.0f} s; problems: {problems}", flush=True)
    if left := [told(x) if isinstance(x, psutil.Process) else str(x) for x in here() - before]:
        problems.append(f"left after closing: {left}")
    half = [s["memory_mb"] for s in series[len(series) // 2 :]]
    growth = linear_regression(range(len(half)), half).slope if len(half) > 1 else 0.0
    if len(series) >= _ENOUGH_FOR_A_SLOPE and growth > _MAX_STEP_MB:
        problems.append(f"memory grows by {growth:.2f} MB with each evaluation")
    return {
        "evaluations": len(series),
        "seconds": round(time.monotonic() - begin, 1),
        "seed": arguments.seed,
        "verdicts": dict(sorted(verdicts.items())),
        "first": series[0],
        "last": series[-1],
        "memory_growth_mb_per_evaluation": round(growth, 4),
        "problems": problems,
    }


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--evaluations", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=3600.0, help="time limit in seconds")
    parser.add_argument("--seed", type=int, default=1)
    return whole_or_elsewhere(parser, argv, RESULTS)


def main() -> int:
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        result = judge_all(options, Path(folder))
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps({"provenance": provenance(), **result}, indent=1) + "\n")
    print(json.dumps(result, indent=1))
    return 1 if result["problems"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
