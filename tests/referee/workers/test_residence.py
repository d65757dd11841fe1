"""What lies in and beside a call's clock, with real workers: resident inputs, old outputs, threads, pages."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from agentforge.isolation import procfs
from agentforge.referee import Referee
from agentforge.referee.timing import warming
from agentforge.referee.workers.client import WorkerClient

from ..judging import examined, problem

SUMS = problem("return x.sum(-1)", "torch.randn(512, 4096)")
"""8 MiB of inputs, 2 KiB of outputs."""
PAGES = 2048


def faults_of_calls(client: WorkerClient, fill: Callable[[int], None], calls: int = 6) -> list[int]:
    """Page faults of some calls with fresh contents."""
    found = []
    for number in range(calls):
        fill(number % 2)
        before = procfs.page_faults(client.worker.pid)
        client.call(number % 2)
        found.append(procfs.page_faults(client.worker.pid) - before)
    return found


@pytest.mark.slow
def test_no_worker_faults_its_inputs_in_a_call(referee: Referee) -> None:
    with examined(referee, SUMS) as context:
        for client in (*context.baselines.clients.values(), context.candidate):
            assert min(faults_of_calls(client, context.prepared.inputs.fill, 12)) < PAGES // 16


def test_nothing_of_a_worker_runs_between_calls(referee: Referee) -> None:
    busy = (
        "        super().__init__()",
        "        super().__init__()\n        import threading\n"
        "        threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()",
    )
    with examined(referee, SUMS, busy) as context:
        client = context.candidate
        client.call(0)
        assert client.worker.settle()
        before = client.worker.cpu_seconds()
        time.sleep(0.05)
        assert client.worker.cpu_seconds() == before


def test_releasing_an_old_output_is_on_the_clock(referee: Referee) -> None:
    slow = (
        "return x.sum(-1)",
        "import time, weakref\n"
        "        y = x.sum(-1)\n"
        "        weakref.finalize(y, time.sleep, 0.2)\n"
        "        return y",
    )
    with examined(referee, SUMS, slow) as context:
        took = [context.candidate.call(0, keep=1) for _ in range(3)]
    assert sum(took) > 0.2e9  # in its own call if views of it are kept, otherwise in the third one


def test_a_write_to_the_inputs_is_seen_and_ends_with_its_call(referee: Referee) -> None:
    writes = ("return x.sum(-1)", "y = x.sum(-1)\n        x.zero_()\n        return y")
    with examined(referee, SUMS, writes) as context:
        client, content = context.candidate, context.prepared.inputs.copies(0)[0]
        client.call(0)
        (seen,) = client.fetch_inputs(0)
        assert not seen.value.any()
        client.call(0)
        (answer,) = client.fetch(0)
        assert (answer.value - content.sum(-1)).abs().max() < 1e-2


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "mib"), [("512, 2048", 4), ("1024, 8448", 33)])
def test_all_workers_fault_their_outputs_alike(
    referee: Referee, shape: str, mib: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The eager worker has served as the reference, the others have just started."""
    monkeypatch.setattr(warming, "_LIMIT_S", 60.0)  # whatever else this machine does
    with examined(referee, problem("return x * 2", f"torch.randn({shape})")) as context:
        clients = (*context.baselines.clients.values(), context.candidate)
        for client in clients:
            warming.warm(client, (4, 1))
        found = {c.name: faults_of_calls(c, context.prepared.inputs.fill) for c in clients}
    pages = (mib << 20) // 4096
    assert max(map(max, found.values())) - min(map(min, found.values())) < pages // 8, found
    if mib < 32:
        assert max(map(max, found.values())) < pages // 8, "memory of freed outputs is used again"
