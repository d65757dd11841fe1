"""Time from C++ source to verdict: the referee, the same without process isolation, and load_inline.

    python benchmarks/referee_speed.py                     # writes benchmarks/results/referee_speed.json
    python benchmarks/referee_speed.py --repetitions 9 --load-inline 3
    python benchmarks/referee_speed.py --part verdicts --seconds 500   # again and again, until none is left
    python benchmarks/referee_speed.py --part verdicts --sample 60 --seconds 1140     # at most 20 minutes

One operator (SiLU) on 1024 x 1024 float32 at level `quick`. Every repetition has a new source, so no cache
helps. The three ways take turns. `referee` is warm, as during a run: baselines and forkservers are running;
the time of a cold one is reported separately. `in_process` makes the same calls and comparisons as functions
of this process; the cost of isolation comes from verdicts with equally many timed blocks. `load_inline` is a
fresh process that compiles, compares three times and times: the minimum that such scripts do.

`verdicts` judges the honest kernels of the adversarial corpus at level `full`, with default settings and one
referee, as a search does. It writes each verdict at once and goes on where it stopped, unless the commit is
another one. `median_s` and `percentile_95_s` are of those that were verified; `stages_s` are means.
`--sample` takes a part of the corpus, always the same one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "adversarial")]

import numpy as np  # noqa: E402
import psutil  # noqa: E402
from _in_process import InProcessReferee  # noqa: E402
from _provenance import provenance, same_code  # noqa: E402
from corpus import Problems, load_cases  # noqa: E402

from agentforge.config import RefereeSettings  # noqa: E402
from agentforge.devices import detect  # noqa: E402
from agentforge.frontends import FrontendOptions, load_target  # noqa: E402
from agentforge.languages import read_solution  # noqa: E402
from agentforge.referee import EvaluationRequest, Referee  # noqa: E402
from agentforge.referee.timing.timer import Timer  # noqa: E402
from agentforge.schema import (  # noqa: E402
    Definition,
    Evaluation,
    EvaluationStatus,
    Level,
    Solution,
    Target,
)

RESULTS = HERE / "results" / "referee_speed.json"
SIDE, LARGE_SIDE = 1024, 4096
GOAL_S, GOAL_TIMES, GOAL_SPLIT_S = 2.5, 12.0, 0.3
GOAL_VERDICT_S = 15.0
GOAL_MEMORY_TIMES, GOAL_MEMORY_MB = 3, 500
_SAMPLE_S = 0.1

REFERENCE = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.silu(x)


def get_inputs():
    return [torch.randn({side}, {side})]


def get_init_inputs():
    return []
"""
KERNEL = """// {tag}
#include <cmath>
#include <cstdint>

extern "C" void silu(const float* x, float* out, int64_t n) {{
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; ++i) out[i] = x[i] / (1.0f + std::exp(-x[i]));
}}
"""
ENTRY = """import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lib.silu(x, out, x.numel())
        return out
"""


def target(side: int, folder: Path) -> Target:
    """The problem at one size."""
    path = folder / f"silu_{side}.py"
    path.write_text(REFERENCE.format(side=side))
    return load_target(str(path), FrontendOptions())


def fresh(definition: Definition, folder: Path) -> Solution:
    """A solution that is in no cache."""
    here = Path(tempfile.mkdtemp(dir=folder))
    (here / "kernel.cpp").write_text(KERNEL.format(tag=secrets.token_hex(8)))
    (here / "model_new.py").write_text(ENTRY)
    return read_solution(here, definition.hash)


def judged(referee: Referee, problem: Target, folder: Path) -> tuple[float, Evaluation]:
    """Seconds of one verdict on a fresh solution."""
    solution = fresh(problem.definition, folder)
    start = time.perf_counter()
    evaluation = referee.evaluate(EvaluationRequest(problem.definition, problem.workloads, solution))
    seconds = time.perf_counter() - start
    if evaluation.status is not EvaluationStatus.PASSED:
        raise SystemExit(f"the kernel was judged {evaluation.status.value}: {'; '.join(evaluation.reasons)}")
    return seconds, evaluation


def load_inline(folder: Path) -> float:
    """Seconds of the load_inline script."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, str(HERE / "_load_inline_candidate.py"), secrets.token_hex(4)],
        env={**os.environ, "TORCH_EXTENSIONS_DIR": str(folder / "extensions")},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - start


@contextmanager
def peak_memory(found: dict[str, Any]) -> Iterator[None]:
    """Sampled peak memory in MB: resident memory of this process, and the proportional set size of it and all
    its descendants, by kind of process at that moment."""
    done = threading.Event()

    def watch() -> None:
        me = psutil.Process()
        while not done.wait(_SAMPLE_S):
            sizes: dict[str, float] = {}
            for process in [me, *me.children(recursive=True)]:
                with suppress(OSError, psutil.Error):
                    text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
                    name = "referee" if process == me else kind_of(process)
                    share = int(text.split("\nPss:", 1)[1].split(None, 1)[0]) / 1e3
                    sizes[name] = round(sizes.get(name, 0.0) + share, 1)
            found["referee_mb"] = max(found.get("referee_mb", 0.0), me.memory_info().rss / 1e6)
            if sum(sizes.values()) > found.get("peak_mb", 0.0):
                found["peak_mb"], found["whose_mb"] = sum(sizes.values()), sizes

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def kind_of(process: psutil.Process) -> str:
    """The role of a process below the referee."""
    command = process.cmdline()
    if "agentforge.referee.workers.forkserver" in command:  # its forks have its command line
        return f"{process.name()} workers"
    return Path(command[0]).name if command else "ended"


def memory(side: int, folder: Path, settings: RefereeSettings) -> dict[str, Any]:
    """Peak memory of one quick verdict, starting with a cold referee."""
    problem = target(side, folder)
    found: dict[str, Any] = {"tensors_mb": 2 * 4 * side * side / 1e6}
    with Referee(settings, device=detect("auto"), cache=folder / "cache") as referee, peak_memory(found):
        judged(referee, problem, folder)
    found["allowed_mb"] = GOAL_MEMORY_TIMES * found["tensors_mb"] + GOAL_MEMORY_MB
    return {key: round(value, 1) if isinstance(value, float) else value for key, value in found.items()}


def stages(evaluations: Sequence[Evaluation]) -> dict[str, float]:
    """Median seconds by stage; a stage that occurs twice counts as one."""
    sums: list[dict[str, float]] = []
    for evaluation in evaluations:
        sums.append({})
        for stage in evaluation.stages:
            sums[-1][stage.name] = sums[-1].get(stage.name, 0.0) + stage.seconds
    return {name: round(statistics.median(s.get(name, 0.0) for s in sums), 4) for name in sums[0]}


@contextmanager
def equal_blocks() -> Iterator[None]:
    """Force equally many timed blocks for every way; otherwise the number of repeated blocks is random."""
    with mock.patch.object(Timer, "_wanted", lambda _, times, blocks, *__: times.blocks < blocks):
        yield


def compare(repetitions: int, inline: int, settings: RefereeSettings, folder: Path) -> dict[str, Any]:
    """All ways in turn."""
    problem = target(SIDE, folder)
    device, cache = detect("auto"), folder / "cache"
    seconds: dict[str, list[float]] = {"referee": [], "in_process": [], "load_inline": []}
    equal: dict[str, list[float]] = {"referee": [], "in_process": []}
    details: dict[str, list[Evaluation]] = {"referee": [], "in_process": []}
    start = time.perf_counter()
    with (
        Referee(settings, device=device, cache=cache) as referee,
        InProcessReferee(settings, device=device, cache=cache) as trusting,
    ):
        judged(referee, problem, folder)
        cold = time.perf_counter() - start
        judged(trusting, problem, folder)
        for number in range(repetitions):
            for name, judge in (("referee", referee), ("in_process", trusting)):
                took, evaluation = judged(judge, problem, folder)
                seconds[name].append(took)
                details[name].append(evaluation)
                with equal_blocks():
                    equal[name].append(judged(judge, problem, folder)[0])
            if number < inline:
                seconds["load_inline"].append(load_inline(folder))
    medians = {name: statistics.median(values) for name, values in seconds.items() if values}
    split = [a - b for a, b in zip(equal["referee"], equal["in_process"], strict=True)]
    return {
        "seconds": {name: [round(s, 3) for s in values] for name, values in seconds.items()},
        "seconds_with_equal_blocks": {name: [round(s, 3) for s in values] for name, values in equal.items()},
        "median_s": {name: round(value, 3) for name, value in medians.items()},
        "cold_referee_s": round(cold, 1),
        "stages_s": {name: stages(found) for name, found in details.items()},
        "sandbox": details["referee"][0].environment.sandbox,
        "trust_split_and_sandbox_s": round(statistics.median(split), 3),
        "times_faster_than_load_inline": round(medians.get("load_inline", 0.0) / medians["referee"], 1),
    }


def verdicts(
    before: dict[str, Any],
    only: str,
    sample: int,
    limit_s: float,
    settings: RefereeSettings,
    folder: Path,
) -> Iterator[dict[str, Any]]:
    """Judge honest kernels that have no verdict of this commit yet; the whole result after each.

    Args:
        before: an earlier result.
        only: pattern of the cases' names.
        sample: the most cases, drawn under a fixed seed.
        limit_s: begin no further verdict after this many seconds.
        settings: of the referee.
        folder: for its cache.
    """
    about = provenance()
    commit = about["commit"]
    found: dict[str, Any] = before.get("cases", {}) if same_code(before.get("commit", ""), commit) else {}
    begin, problems = time.perf_counter(), Problems()
    honest = [c for c in load_cases() if c.kind == "honest" and fnmatch(c.name, only)]
    drawn = random.Random(0).sample(honest, min(sample, len(honest)))
    cases = [c for c in drawn if c.name not in found]
    with Referee(settings, device=detect("cpu"), cache=folder / "cache") as referee:
        for case in cases:
            if time.perf_counter() - begin > limit_s:
                return
            definition, workloads = problems.get(case)
            solution = read_solution(case.path, definition.hash)
            evaluation = referee.evaluate(EvaluationRequest(definition, workloads, solution, Level.FULL))
            found[case.name] = {
                "seconds": round(evaluation.seconds, 2),
                "evidence": evaluation.evidence.value,
                "reasons": evaluation.reasons,
                "stages_s": {k: round(v, 3) for k, v in evaluation.seconds_by_stage().items()},
            }
            print(f"{case.name}: {evaluation.evidence.value} in {evaluation.seconds:.1f} s", flush=True)
            yield {"commit": commit, "provenance": about, **verdict_summary(found), "cases": found}


def verdict_summary(cases: dict[str, Any]) -> dict[str, Any]:
    """Median and 95th percentile of the seconds of verified verdicts, and mean seconds by stage."""
    verified = [case for case in cases.values() if case["evidence"] == "verified"]
    if not verified:
        return {"judged": len(cases), "verified": 0}
    names = dict.fromkeys(name for case in verified for name in case["stages_s"])
    means = {n: statistics.fmean(case["stages_s"].get(n, 0.0) for case in verified) for n in names}
    seconds = [case["seconds"] for case in verified]
    return {
        "judged": len(cases),
        "verified": len(verified),
        "median_s": round(statistics.median(seconds), 2),
        "percentile_95_s": round(float(np.percentile(seconds, 95)), 2),
        "stages_s": {n: round(s, 3) for n, s in sorted(means.items(), key=lambda item: -item[1])},
    }


def goals(result: dict[str, Any]) -> dict[str, bool]:
    """Which goals the measurements meet."""
    met = {}
    if "median_s" in result:
        met[f"quick verdict in {GOAL_S} s"] = result["median_s"]["referee"] <= GOAL_S
        split = result["trust_split_and_sandbox_s"]
        met[f"trust split and sandbox cost {GOAL_SPLIT_S} s"] = split <= GOAL_SPLIT_S
        faster = result["times_faster_than_load_inline"]
        met[f"{GOAL_TIMES:g} times faster than load_inline"] = faster >= GOAL_TIMES
    if "median_s" in result.get("verdicts", {}):
        met[f"median verified verdict in {GOAL_VERDICT_S:g} s"] = (
            result["verdicts"]["median_s"] <= GOAL_VERDICT_S
        )
    sizes = [result["memory"][str(side)] for side in (SIDE, LARGE_SIDE)] if "memory" in result else []
    if sizes:
        name = f"memory {GOAL_MEMORY_TIMES} x tensors + {GOAL_MEMORY_MB} MB"
        met[f"{name}, the referee"] = all(m["referee_mb"] <= m["allowed_mb"] for m in sizes)
        met[f"{name}, all processes"] = all(m["peak_mb"] <= m["allowed_mb"] for m in sizes)
    return met


def _before(path: Path) -> dict[str, Any]:
    """An earlier result, whose other parts stay."""
    found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--load-inline", type=int, default=3, help="repetitions of the load_inline script")
    parser.add_argument(
        "--part",
        choices=("all", "speed", "memory", "verdicts"),
        default="all",
        help="all: speed and memory; a part that is not measured stays as it was",
    )
    parser.add_argument("--only", default="*", help="verdicts: pattern of the cases' names")
    parser.add_argument("--sample", type=int, default=sys.maxsize, help="verdicts: judge at most N cases")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="verdicts: begin none after that")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    settings = RefereeSettings()
    result = _before(arguments.out)
    with tempfile.TemporaryDirectory(prefix="referee-speed-") as temporary:
        folder = Path(temporary)
        if arguments.part == "verdicts":
            before, only = result.get("verdicts", {}), arguments.only
            parts = verdicts(before, only, arguments.sample, arguments.seconds, settings, folder)
            for result["verdicts"] in parts:
                arguments.out.write_text(json.dumps(result, indent=1) + "\n")
        if arguments.part in ("all", "memory"):
            # first, because this process's memory has not grown yet
            result["memory"] = {str(side): memory(side, folder, settings) for side in (SIDE, LARGE_SIDE)}
            result["memory"]["provenance"] = provenance()
        if arguments.part in ("all", "speed"):
            result |= compare(arguments.repetitions, arguments.load_inline, settings, folder)
            result["provenance"] = provenance()
    result["goals"] = goals(result)
    arguments.out.parent.mkdir(exist_ok=True)
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
