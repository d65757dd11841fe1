"""Record landscapes: each point of the playbook for some definitions, judged three times.

    python benchmarks/search/record.py --minutes 150          # all definitions, on an idle machine
    python benchmarks/search/record.py --only 'softmax*' --minutes 10
    python benchmarks/search/record.py --shapes               # some of them again, in another size
    python benchmarks/search/record.py --list

A landscape has all points of the applicable strategies: `--depth` limits how many parameters differ from a
strategy's first values. Each different solution gets three quick verdicts. They are made in three passes over
all solutions in another order each time, so that they differ as verdicts at different times do. The file is
written each minute and after each pass. A later run goes on with the verdicts that are missing.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from itertools import product
from pathlib import Path
from random import Random

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

from _provenance import provenance  # noqa: E402
from agreement import busy  # noqa: E402
from loops.operators import OPERATORS, Operator  # noqa: E402
from loops.records import MOST_OTHERS  # noqa: E402

from agentforge.agents import Task  # noqa: E402
from agentforge.agents.playbook.coder import PlaybookCoder  # noqa: E402
from agentforge.config import RefereeSettings, Settings  # noqa: E402
from agentforge.devices import DeviceSpec, Roofline, measure_roofline  # noqa: E402
from agentforge.frontends import FrontendOptions, load_target  # noqa: E402
from agentforge.knowledge import KnowledgeBase, context_for  # noqa: E402
from agentforge.ladder import find_device  # noqa: E402
from agentforge.profiling import profile_target  # noqa: E402
from agentforge.referee import EvaluationRequest, Evaluator, Referee  # noqa: E402
from agentforge.resources import resource  # noqa: E402
from agentforge.runs.pipeline import hardware  # noqa: E402
from agentforge.runs.run_settings import for_device  # noqa: E402
from agentforge.schema import CannotCode, Evaluation, Level, Plan, Solution, UsageError  # noqa: E402
from agentforge.search import cell_of  # noqa: E402
from agentforge.store import Store  # noqa: E402
from search.landscape import (  # noqa: E402
    REPETITIONS,
    SHAPES,
    Landscape,
    Point,
    Value,
    Verdict,
    read,
    run,
    write,
)

RESULTS = HERE.parent / "results" / "landscapes.jsonl.gz"
LEAST_BYTES, MOST_BYTES = 1 << 20, 16 << 20
"""Of a definition's inputs: smaller ones are all noise, and larger ones take long."""
_MIDDLE_BYTES = 4 << 20
_KEEP_S = 60.0
_ONCE = ("open", "baselines")

_ROWS = "torch.randn({n}, 1024)"
DEFINITIONS = {
    **OPERATORS,
    "softcap": Operator("pointwise", "torch.tanh(x / 30.0) * 30.0", _ROWS, 4096, (8 << 20,)),
    "squared_error": Operator(
        "reduction", "(x - y).pow(2).mean(dim=-1)", _ROWS + ", " + _ROWS, 8192, (8 << 20,), names="x, y"
    ),
    "modulate": Operator(
        "norm", "self.norm(x) * (1 + scale) + shift", _ROWS + ", torch.randn(1024), torch.randn(1024)",
        4096, (4 << 20,), "self.norm = torch.nn.LayerNorm(1024, elementwise_affine=False)",
        "x, scale, shift",
    ),
    "groupnorm_silu": Operator(
        "norm", "F.silu(self.norm(x))", "torch.randn({n}, 64, 32, 32)", 262144, (4 << 20,),
        "self.norm = torch.nn.GroupNorm(8, 64)",
    ),
    "rotary": Operator(
        "rope", "x * cos + torch.cat((-x[..., 64:], x[..., :64]), dim=-1) * sin",
        "torch.randn({n}, 256, 128), torch.randn(256, 128), torch.randn(256, 128)", 131072, (4 << 20,),
        names="x, cos, sin",
    ),
    "attention": Operator(
        "attention", "torch.softmax(q @ k.transpose(-1, -2) * 0.125, dim=-1) @ v",
        ", ".join(["torch.randn({n}, 4, 256, 64)"] * 3), 3 * 262144, (3 << 20,), names="q, k, v",
    ),
    "swiglu": Operator(
        "gated_activation", "F.silu(self.gate(x)) * self.up(x)", "torch.randn({n}, 512)", 2048, (1 << 20,),
        "self.gate, self.up = torch.nn.Linear(512, 1024), torch.nn.Linear(512, 1024)",
    ),
    "pool_relu": Operator(
        "pooling", "torch.relu(F.avg_pool2d(x, 2))", "torch.randn({n}, 32, 64, 64)", 524288, (4 << 20,)
    ),
}  # fmt: skip
OTHER_SHAPES = {
    f"{name}@{size >> 20}MiB": replace(operator, sizes=(size,))
    for name, operator in DEFINITIONS.items()
    for size in (MOST_BYTES if operator.sizes[0] < _MIDDLE_BYTES else LEAST_BYTES,)
}
"""Each definition in another size: a large one if it is small, else a small one."""
HELD_OUT = (
    "wide_softmax", "cross_entropy", "rmsnorm", "column_mean", "gelu_bias_residual", "attention", "swiglu",
    "batchnorm_relu",
)  # fmt: skip
"""A policy becomes the default by these alone."""
FOR_A_GPU = (
    "softmax", "gelu", "layernorm", "rmsnorm", "cross_entropy", "silu_mul", "row_sum", "rotary", "attention",
    "swiglu",
)  # fmt: skip
"""Ten operators for one sitting on a lent GPU."""


@dataclass(frozen=True)
class Bench:
    """What all recordings share."""

    device: DeviceSpec
    roofline: Roofline
    referee: Evaluator
    knowledge: KnowledgeBase
    language: str
    folder: Path

    def task(self, name: str) -> Task:
        """The region of a definition that takes most of its time, as a run shows it to its planner."""
        path, operator = self.folder / f"{name}.py", {**DEFINITIONS, **OTHER_SHAPES}[name]
        path.write_text(operator.source(min(max(operator.sizes[0], LEAST_BYTES), MOST_BYTES)))
        target = load_target(str(path), FrontendOptions(device=self.device.torch_device))
        profile = profile_target(target, self.device, self.roofline)
        region = max(profile.bottlenecks, key=lambda b: b.time_s)
        context, languages = context_for(region, self.device), (self.language,)
        strategies = self.knowledge.retrieve(context, languages, self.device.kind)
        known = hardware(self.device, self.roofline)
        return Task(region, known, context, strategies, languages)

    def verdict(self, task: Task, solution: Solution) -> Verdict:
        """One quick verdict."""
        region = task.bottleneck
        calls = sum(w.weight for w in region.workloads)
        found = self.referee.evaluate(
            EvaluationRequest(
                region.definition, region.workloads, solution, Level.QUICK, region.sol_s / calls
            )
        )
        return as_verdict(found)


def as_verdict(found: Evaluation) -> Verdict:
    """What a landscape keeps of an evaluation. Starting workers and baselines happens once per run, not per
    verdict, so it is not part of the seconds."""
    stages = found.seconds_by_stage()
    started = sum(stages.get(stage, 0.0) for stage in _ONCE)
    timed = found.performance.speedup_over_best if found.performance and found.performance.speedup else None
    return Verdict(
        status=found.status,
        speedup=timed.point if timed else None,
        low=timed.low if timed else None,
        high=timed.high if timed else None,
        seconds=round(max(0.0, found.seconds - started), 3),
        build_s=round(stages.get("build", 0.0), 3),
        cell=cell_of(found),
    )


def settings_of(space: dict[str, tuple[Value, ...]], depth: int) -> Iterator[dict[str, Value]]:
    """All settings of these parameters that differ in at most `depth` of them from their first values."""
    for values in product(*space.values()):
        if sum(v != every[0] for v, every in zip(values, space.values(), strict=True)) <= depth:
            yield dict(zip(space, values, strict=True))


def points(task: Task, depth: int) -> tuple[list[Point], dict[str, Solution]]:
    """The playbook's points for a task, and their different solutions by hash."""
    found, solutions, coder = list[Point](), dict[str, Solution](), PlaybookCoder()
    for strategy in task.strategies:
        for parameters in settings_of({k: tuple(v) for k, v in strategy.parameters.items() if v}, depth):
            plan = Plan(
                strategy=strategy.id,
                language=task.languages[0],
                template=strategy.template,
                parameters=parameters,
            )
            try:
                solution = coder.code(task, plan, None).solution
            except CannotCode as error:
                found.append(Point(strategy=strategy.id, parameters=parameters, refused=str(error)[:200]))
                continue
            solutions.setdefault(solution.hash, solution)
            found.append(Point(strategy=strategy.id, parameters=parameters, solution=solution.hash))
    return found, solutions


def record(
    name: str,
    bench: Bench,
    depth: int,
    end: float,
    before: Landscape | None,
    keep: Callable[[Landscape], None],
) -> Landscape:
    """The landscape of one definition, with the verdicts that there is time for.

    Args:
        end: by the monotonic clock; no verdict begins after it.
        before: an earlier recording, whose verdicts are used again.
        keep: is given the landscape from time to time.
    """
    task = bench.task(name)
    region = task.bottleneck
    gains = bench.knowledge.expected_gains(task.context, task.languages, bench.device.kind)
    old: dict[str, tuple[Verdict, ...]] = {}
    if before is not None and before.definition == region.definition.hash:
        # another profile may find other strategies applicable, whose points would drop verdicts
        old, known = before.verdicts, {s.id: s for s in bench.knowledge.strategies()}
        gains = {name: gain for name, gain in before.strategies if name in known}
        task = replace(task, strategies=tuple(known[name] for name in gains))
    every, solutions = points(task, depth)
    begun = Landscape(
        name=name,
        held_out=name in HELD_OUT,
        definition=region.definition.hash,
        op_type=task.context.op_type,
        context=task.context,
        reference=region.definition.reference,
        time_s=region.time_s,
        sol_s=region.sol_s,
        reachable_s=max(region.sol_s, region.time_s - region.gain_s),
        strategies=tuple((s.id, gains[s.id]) for s in task.strategies),
        points=tuple(every),
        verdicts={},
        provenance={**provenance(), "depth": depth},
    )
    found = {s: list(old.get(s, ())) for s in solutions}

    def now() -> Landscape:
        return begun.model_copy(update={"verdicts": {s: tuple(v) for s, v in found.items() if v}})

    kept = time.monotonic()
    for repetition in range(REPETITIONS):
        order = [s for s in solutions if len(found[s]) <= repetition]
        Random(repetition).shuffle(order)
        for solution in order:
            if time.monotonic() > end:
                return now()
            found[solution].append(bench.verdict(task, solutions[solution]))
            if time.monotonic() > kept + _KEEP_S:
                keep(now())
                kept = time.monotonic()
        keep(now())
    return now()


def check_same(before: Landscape, depth: int) -> None:
    """Check that a recording can go on.

    Raises:
        UsageError: it was begun at another depth or on another machine.
    """
    own = {**provenance(), "depth": depth}
    for what in ("depth", "device", "threads"):
        known = before.provenance.get(what)
        if known != own[what]:
            raise UsageError(
                f"{before.name} was recorded with {what} {known}, not {own[what]}: give another --out"
            )


def record_all(
    names: Sequence[str], depth: int, minutes: float, device_kind: str, out: Path
) -> dict[str, Landscape]:
    """Record the definitions of these names that are not complete; all in the file come back."""
    end = time.monotonic() + minutes * 60
    found = read(out) if out.is_file() else {}

    def keep(one: Landscape) -> None:
        found[one.name] = one
        write(out, found.values())

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="landscapes-")))
        device, cache = find_device(device_kind, Settings().cache), folder / "cache"
        store = Store(f"sqlite:///{folder / 'experience.db'}")
        stack.callback(store.close)
        bench = Bench(
            device=device,
            roofline=measure_roofline(device, cache),
            referee=stack.enter_context(Referee(RefereeSettings(), device=device, cache=cache)),
            knowledge=KnowledgeBase(store, (resource("knowledge_base", "playbook"),)),
            language=for_device(Settings(), device).search.language,
            folder=folder,
        )
        for name in names:
            before = found.get(name)
            if before is not None:
                check_same(before, depth)
                if before.complete:
                    continue
            if time.monotonic() > end:
                print("no time is left; run it again for the rest")
                break
            begin = time.monotonic()
            keep(record(name, bench, depth, end, before, keep))
            print(summary(found[name]), f"{time.monotonic() - begin:.0f} s", flush=True)
    return found


def summary(one: Landscape) -> str:
    """One line."""
    made = sum(map(len, one.verdicts.values()))
    return (
        f"{one.name}: {len(one.points)} points, {len(one.solutions)} solutions, "
        f"{made} of {REPETITIONS * len(one.solutions)} verdicts, best {math.exp(one.best):.2f}x"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="*", help="pattern of the definitions' names")
    parser.add_argument("--minutes", type=float, default=150.0, help="begin no verdict after that")
    parser.add_argument(
        "--depth", type=int, default=9, help="most parameters that differ from the first values"
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--busy", action="store_true", help="measure also if other programs run")
    parser.add_argument("--list", action="store_true", help="only list the definitions and what is recorded")
    parser.add_argument("--shapes", action="store_true", help="record the definitions in another size")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    definitions = OTHER_SHAPES if chosen.shapes else DEFINITIONS
    chosen.out = chosen.out or (SHAPES if chosen.shapes else RESULTS)
    if chosen.list:
        known = read(chosen.out) if chosen.out.is_file() else {}
        for name in definitions:
            print(summary(known[name]) if name in known else f"{name}: not recorded",
                  "(held out)" if name in HELD_OUT else "")  # fmt: skip
        return 0
    if not chosen.busy and (others := busy()) > MOST_OTHERS:
        print(f"{others:.1f} threads of other programs run; wait for an idle machine, or give --busy")
        return 2
    names = [name for name in definitions if fnmatch(name, chosen.only)]
    record_all(names, chosen.depth, chosen.minutes, chosen.device, chosen.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(run(main))
