"""The checker of a suite's own format, or its tolerance, on what a run produced, after the referee's verdict.

Solution and checker are foreign code: each has a process of its own in the candidates' sandbox. The checker's
verdict is shown beside the referee's and changes nothing: only verified solutions reach it.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from pydantic import ValidationError

from agentforge.config import Settings
from agentforge.isolation.scratch import Scratch
from agentforge.ladder import find_device
from agentforge.languages import CommandResult
from agentforge.languages.command import interpreter
from agentforge.languages.untrusted import read_regular
from agentforge.referee import Presenter
from agentforge.schema import (
    AgentForgeError,
    Definition,
    NativeVerdict,
    Solution,
    StitchResult,
    TimeEnded,
    Workload,
)
from agentforge.store import Store

from ..scores import has_kernels
from .tolerance import CRITERION, SuiteTolerance

_TIMEOUT_S = 300.0
"""Of each of the two processes, if there is that much time."""
_MOST_BYTES = 1 << 16
_MODULE = "agentforge.campaigns.native.inside"


def check_natively(
    store: Store, run_id: str, settings: Settings, device: str, ends: float = math.inf,
    tolerance: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """Ask the checker about a run's proven kernels, and keep what it says as the run's `NativeVerdict`.

    Why the checker could not be asked is kept too.

    Args:
        settings: under which the run worked.
        device: kind of device that it measured on.
        ends: monotonic time at which the checker is ended.
        tolerance: fields of a `SuiteTolerance`, which judges instead of the task's own checker.

    Raises:
        StoreError: the database cannot be used.
    """
    stitched, known = store.get_record(run_id, StitchResult), store.get_record(run_id, NativeVerdict)
    if stitched is None or not has_kernels(stitched):
        return
    if not (stitched.proven and stitched.solution and stitched.evaluation):
        return
    if known is not None and known.evaluation == stitched.evaluation:
        return
    from agentforge.referee import Referee  # it needs torch, and items without a checker do not

    target = store.get_target(store.get_run(run_id).target)
    solution = store.get_solution(stitched.solution)
    try:
        own = None if tolerance is None else SuiteTolerance.model_validate(tolerance)
        _left_s(ends)  # to start the referee takes a while
        spec = find_device(device, settings.cache)
        with Referee(settings.referee, device=spec, cache=settings.cache) as referee:
            asked = target.definition, target.workloads, solution, ends, own
            accepted, message = native_verdict(referee, *asked)
    except ValidationError as error:  # a campaign that an earlier version began has the suite's own text
        accepted, message = None, f"{CRITERION} cannot be read: {error.errors()[0]['msg']}"
    except AgentForgeError as error:
        accepted, message = None, str(error)
    found = NativeVerdict(evaluation=stitched.evaluation, accepted=accepted, message=message)
    by = {} if tolerance is None else {"criterion": CRITERION}
    store.save_record(run_id, found.model_copy(update=by))


def native_verdict(
    presenter: Presenter,
    definition: Definition,
    workloads: Sequence[Workload],
    solution: Solution,
    ends: float = math.inf,
    tolerance: SuiteTolerance | None = None,
) -> tuple[bool | None, str]:
    """Whether a definition's own checker accepts a solution's answer to inputs of the referee's.

    Args:
        definition: its reference has `native_check(model, tensors, output)`, unless there is a `tolerance`.
        workloads: the first one gives the inputs.
        ends: as for `check_natively`.
        tolerance: judges instead.

    Returns:
        The verdict, None if there is none, and the checker's words or the reason.

    Raises:
        HarnessError, TargetError: the solution or the reference cannot be prepared.
        TimeEnded: no time is left.
    """
    with closing(Scratch("native")) as scratch:
        shown = scratch.path
        shown.chmod(0o755)
        contract, bounds = shown / "definition.json", shown / "tolerance.json"
        contract.write_text(definition.model_dump_json())
        bounds.write_text(tolerance.model_dump_json() if tolerance else "")
        for file in (contract, bounds):
            file.chmod(0o644)  # the checker's process may be another user's
        with presenter.subject(definition, workloads[:1], solution, programs=[shown]) as subject:
            requests, results = subject.command()[-1], subject.results
            output, verdict = results / "output.pt", results / "verdict.json"
            # -P: the solution could leave modules in the folder that it may write to.
            program = [interpreter(), "-P", "-m", _MODULE]
            done = subject.run([*program, "answer", requests, str(output)], timeout_s=_left_s(ends))
            if done.returncode != 0:
                return None, f"the solution gave no answer to check ({_last(done)})"
            try:
                verdict.unlink(missing_ok=True)  # a pipe left there would block the reader
                paths = map(str, (requests, contract, output, verdict, bounds))
                done = subject.run([*program, "check", *paths], timeout_s=_left_s(ends))
                said = json.loads(read_regular(verdict, _MOST_BYTES))
                return bool(said["accepted"]), " ".join(str(said["message"]).split())
            except (OSError, ValueError, TypeError, KeyError):
                return None, f"the checker gave no verdict ({_last(done)})"


def _left_s(ends: float) -> float:
    left_s = ends - time.monotonic()
    if left_s <= 0:
        raise TimeEnded("no time was left for the task's own checker")
    return min(_TIMEOUT_S, left_s)


def _last(done: CommandResult) -> str:
    """The last line that a process printed."""
    if done.timed_out:
        return f"no end after {done.seconds:.0f} s"
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:300]
