"""Compare the referee's ratios with those of a plain loop in a user's process.

    python benchmarks/agreement.py                    # the standard set
    python benchmarks/agreement.py --only softmax --sizes 64KiB,1MiB,32MiB --minutes 5
    python benchmarks/agreement.py --table            # write the table into docs/referee-timing.md

The referee judges a kernel that the playbook's compiler generates, at level `full`. After each block of the
referee's timing, the plain loop (`loops/plain_loop.py`) measures one block too. A record has both ratios of
eager to a party: `ours`, `compile` (torch.compile), and `eager` (the same again, which is 1). Ratios agree if
they differ by at most 5 %, or if one lies in the other's 95 % interval. Otherwise a record names the cause:

- `allocator`: eager or the party has other page faults per call than in the loop.
- `handover`: each call takes the referee the same time longer. With that time the loop's ratio agrees.
- `cache`: a loop that writes each input directly before its call, as the referee does, agrees.
- `cache and handover`: both together.
- `pause`: a loop that also waits 5 ms before each call agrees: threads sleep and processors halt. The referee
  stops its workers between calls, so theirs do too.
- `pause and handover`: both together.
- `unknown`.

A case is `disturbed` if other programs ran, processor time was stolen, or a control was off by more than 10%.
Results are written after each case. A later run skips the cases that this commit, without changes,
has measured undisturbed.
Inputs up to 32 MiB go through all checks first, larger ones only through those that timing needs: the others
take minutes then.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from _provenance import provenance, same_code  # noqa: E402
from loops.operators import OPERATORS  # noqa: E402
from loops.plain_loop import PARTIES, Job, PlainLoop  # noqa: E402
from loops.records import MOST_OTHERS, Group, compared, summary, table, title  # noqa: E402

from agentforge.codegen import Options, flags_of, generate  # noqa: E402
from agentforge.config import RefereeSettings  # noqa: E402
from agentforge.devices import DeviceSpec, detect  # noqa: E402
from agentforge.frontends import FrontendOptions, load_target  # noqa: E402
from agentforge.isolation import procfs  # noqa: E402
from agentforge.languages import languages, run_command  # noqa: E402
from agentforge.referee import EvaluationRequest, Referee, pipeline  # noqa: E402
from agentforge.referee.checks import PIPELINE  # noqa: E402
from agentforge.referee.result import performance  # noqa: E402
from agentforge.referee.timing.patience import others_running, processor_jiffies, stolen  # noqa: E402
from agentforge.referee.timing.timer import GroupTimes, Timer, TurnShape  # noqa: E402
from agentforge.referee.workers.client import WorkerClient  # noqa: E402
from agentforge.schema import BuildSpec, Level, Performance, Solution, Target  # noqa: E402
from tools.generated import GeneratedPart  # noqa: E402

RESULTS = HERE / "results" / "agreement.json"
TABLE = GeneratedPart("docs/referee-timing.md", "agreement", "benchmarks/agreement.py --table")
CHECKED_BYTES = 32 << 20
"""Inputs up to this size go through all checks."""
_TIMING_CHECKS = ("smoke", "placement", "random", "endurance", "agreement")
_LOOKS, _BETWEEN_S = 40, 0.05


class InterleavedTimer(Timer):
    """The referee's timer; after each of its blocks the plain loop measures one."""

    job: Job
    groups: list[Group]

    def run(self, blocks: int, seconds: float, least: int, until: float = math.inf) -> GroupTimes:
        """See `Timer.run`."""
        self._group = Group(GroupTimes())
        with PlainLoop(self.job) as self._plain:
            self._group.times = super().run(blocks, seconds, least, until)
        self.groups.append(self._group)
        return self._group.times

    def _block(self, shape: TurnShape, times: GroupTimes) -> None:
        self._group.others.append(others_running())
        super()._block(shape, times)
        self._baselines.stop()
        self._candidate.worker.stop()
        before, begin = processor_jiffies(), time.monotonic()
        self._group.add(self._plain.block())
        self._group.steal.append(stolen(before, processor_jiffies()))
        self._patience.waited += time.monotonic() - begin  # no part of the referee's time

    def _call(self, client: WorkerClient, call: Any, *, watched: bool) -> tuple[int, Any, float]:
        before = procfs.page_faults(client.worker.pid)
        found = super()._call(client, call, watched=watched)
        if call.timed:
            self._group.faults.setdefault(client.name, []).append(
                procfs.page_faults(client.worker.pid) - before
            )
        return found


@contextmanager
def interleaved(job: Job, *, checks: bool) -> Iterator[list[Group]]:
    """Interleave the referee's timing with the plain loop; gives the groups of its next verdict.

    Args:
        job: of the plain loop.
        checks: run all checks, not only those that timing needs.
    """
    kept: list[Group] = []

    class Timing(InterleavedTimer):
        groups: list[Group] = []

    Timing.job = job

    def combined(groups: Sequence[Sequence[GroupTimes]], *rest: Any) -> Performance:
        kept.extend(g for times in groups for g in Timing.groups if g.times is times[0])
        return performance(groups, *rest)

    some = tuple(check for check in PIPELINE if checks or check.name in _TIMING_CHECKS)
    with ExitStack() as stack:
        for name, value in (("Timer", Timing), ("performance", combined), ("PIPELINE", some)):
            stack.enter_context(mock.patch.object(pipeline, name, value))
        yield kept


def own_kernel(target: Target, device: DeviceSpec) -> Solution:
    """The kernel that the playbook starts with."""
    options = Options.of({}, threads=device.threads, cache_bytes=device.cache_bytes[-1])
    return Solution(
        name=f"own-{target.definition.name}",
        definition=target.definition.hash,
        author="playbook",
        spec=BuildSpec(language="cpp", flags=flags_of(options)),
        sources=generate(target.definition, target.workloads, options),
    )


def measure(
    name: str, nbytes: int, referee: Referee, folder: Path, checked_bytes: int = CHECKED_BYTES
) -> dict[str, Any]:
    """One case: the referee and the plain loop on one operator of one size.

    Args:
        name: of the operator.
        nbytes: of its inputs.
        referee: may be warm.
        folder: for sources and objects; `cache` in it is the referee's.
        checked_bytes: inputs up to this size go through all checks.

    Raises:
        SystemExit: the kernel does not build, or the plain loop fails.
    """
    begin, device, settings = time.monotonic(), referee.device, referee.settings
    path, cache = folder / f"{name}.py", folder / "cache"
    path.write_text(OPERATORS[name].source(nbytes))
    target = load_target(str(path), FrontendOptions())
    solution = own_kernel(target, device)
    with tempfile.TemporaryDirectory(dir=folder) as built:
        result = languages.create("cpp").build(
            solution, Path(built), cache=cache, run=run_command, timeout_s=settings.build_timeout_s
        )
        if not result.ok:
            raise SystemExit(f"{name}: its kernel does not build: {result.log[-500:]}")
        job = Job(
            reference=target.definition.reference,
            solution=Path(built),
            threads=settings.threads,
            cache_bytes=device.cache_bytes[-1],
            parties=tuple(p for p in PARTIES if p != "compile" or settings.compile_baseline),
            compiled=cache / "inductor",
        )
        request = EvaluationRequest(target.definition, target.workloads, solution, Level.FULL)
        with interleaved(job, checks=nbytes <= checked_bytes) as groups:
            evaluation = referee.evaluate(request)
    case: dict[str, Any] = {
        "operator": name,
        "bytes": nbytes,
        "verdict": f"{evaluation.status.value}, {evaluation.evidence.value}",
        "reasons": list(evaluation.reasons),
        "seconds": round(time.monotonic() - begin, 1),
        "stages_s": {k: round(v, 2) for k, v in evaluation.seconds_by_stage().items() if v >= 0.1},
        "provenance": provenance(),
    }
    if not groups:
        return {**case, "disturbed": "nothing was timed", "records": {}}
    return {**case, "blocks": sum(len(g.steal) for g in groups), **compared(groups)}


def busy() -> float:
    """Mean number of threads of other programs that run."""
    seen = []
    for _ in range(_LOOKS):
        seen.append(others_running())
        time.sleep(_BETWEEN_S)
    return statistics.fmean(seen)


def cases(only: str, sizes: Sequence[int]) -> list[tuple[str, int]]:
    """Operators with sizes in bytes; the largest first, as the last ones may have no time left."""
    chosen = [(n, size) for n, o in OPERATORS.items() if fnmatch(n, only) for size in sizes or o.sizes]
    return sorted(chosen, key=lambda case: -case[1])


def parsed_size(text: str) -> int:
    """Bytes of `64KiB` or `512MiB`.

    Raises:
        argparse.ArgumentTypeError: it is not of this form.
    """
    match = re.fullmatch(r"(\d+)\s*(KiB|MiB)", text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write 64KiB or 512MiB")
    return int(match[1]) << (10 if match[2] == "KiB" else 20)


def measure_all(arguments: argparse.Namespace) -> None:
    """Measure the missing cases; write after each."""
    result: dict[str, Any] = json.loads(arguments.out.read_text()) if arguments.out.is_file() else {}
    found = result.setdefault("cases", {})
    end, commit = time.monotonic() + arguments.minutes * 60, provenance()["commit"]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agreement-")))
        settings = RefereeSettings()
        referee = stack.enter_context(Referee(settings, device=detect("cpu"), cache=folder / "cache"))
        for name, nbytes in cases(arguments.only, arguments.sizes):
            key = title(name, nbytes)
            done = found.get(key)
            if done and not done["disturbed"] and same_code(done["provenance"]["commit"], commit):
                continue
            if time.monotonic() > end:
                print("no time is left; run it again for the rest")
                break
            found[key] = case = measure(name, nbytes, referee, folder)
            result |= {"provenance": provenance(), "summary": summary(found)}
            arguments.out.write_text(json.dumps(result, indent=1) + "\n")
            print(f"{key}: {case['seconds']} s, {case['disturbed'] or 'undisturbed'}", flush=True)
            print(table({key: case}, heading=False), end="", flush=True)
    print(json.dumps(summary(found)))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="*", help="pattern of the operators' names")
    parser.add_argument(
        "--sizes", default=[], type=lambda text: [parsed_size(x) for x in text.split(",")],
        help="bytes of all inputs, such as 64KiB,32MiB; default: those of the standard set",
    )  # fmt: skip
    parser.add_argument("--minutes", type=float, default=25.0, help="begin no case after that")
    parser.add_argument("--busy", action="store_true", help="measure also if other programs run")
    parser.add_argument(
        "--table", action="store_true", help="only write the table into docs/referee-timing.md"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.table:
        found = json.loads(arguments.out.read_text())["cases"]
        TABLE.write(table(found))
        return 0
    if not arguments.busy and (others := busy()) > MOST_OTHERS:
        print(f"{others:.1f} threads of other programs run; wait for an idle machine, or give --busy")
        return 2
    os.environ.setdefault("OMP_NUM_THREADS", str(RefereeSettings().threads))
    measure_all(arguments)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
