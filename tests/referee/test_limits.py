"""Every verdict comes in time, and nothing is left behind: slow calls, daemons."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from agentforge.config import RefereeSettings
from agentforge.isolation import procfs
from agentforge.isolation.cgroups import MemoryGroup
from agentforge.isolation.sandboxes import sandboxes
from agentforge.referee import EvaluationRequest, Referee
from agentforge.referee.workers.protocol import ChannelTimeout, pair
from agentforge.schema import Evaluation, EvaluationStatus, Evidence, Level

from .judging import DEVICE, WORKLOAD, problem, solution_of

DEFINITION = problem("return torch.relu(x)", "torch.randn(64, 64)")
DAEMON = """
import ctypes, os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        ctypes.CDLL(None).prctl(15, b"a-daemon-of-test", 0, 0, 0)
        while True:
            pass
    os._exit(0)
os.wait()
import torch
"""


def judge(cache: Path, *changes: tuple[str, str], **fields: object) -> Evaluation:
    """At level quick, with settings `fields`."""
    settings = RefereeSettings(
        threads=1, compile_baseline=False, quick_blocks=2, quick_seconds=0.1, task_seconds=0
    )
    settings = settings.model_copy(update=fields)
    solution = solution_of(DEFINITION, *changes)
    with Referee(settings, device=DEVICE, cache=cache) as referee:
        return referee.evaluate(EvaluationRequest(DEFINITION, [WORKLOAD], solution, Level.QUICK))


@pytest.mark.slow
def test_one_slow_call_is_ended_by_the_limit_of_the_evaluation(tmp_path: Path) -> None:
    """It may take an hour by its own limit."""
    slow = ("return torch.relu(x)", "import time\n        time.sleep(600)\n        return torch.relu(x)")
    limits = {"call_timeout_s": 3600.0, "evaluation_timeout_s": 6.0}
    evaluation = judge(tmp_path, slow, **limits)
    assert evaluation.status is EvaluationStatus.TIMEOUT
    # On a very busy machine the first limit, 6 s, can pass before the candidate has started.
    assert evaluation.reasons[0].startswith("the evaluation took more than")


@pytest.mark.parametrize("name", ["namespaces", "rlimits"])
def test_a_daemon_that_spins_is_found_and_ended(name: str, tmp_path: Path) -> None:
    if not sandboxes.create(name).available().ok:
        pytest.skip(f"{name} does not work here")
    evaluation = judge(tmp_path, ("import torch\n", DAEMON), sandbox=name)
    # Work after the answer; if the daemon got too little processor time for that, a process too many.
    assert evaluation.evidence is Evidence.SUSPICIOUS, evaluation.reasons
    deadline = time.monotonic() + 30
    while (left := _named("a-daemon-of-tes")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left


def _named(name: str) -> list[int]:
    """Living processes with a name, which has at most 15 bytes."""
    found = []
    for pid in procfs.all_pids():
        try:
            if Path(f"/proc/{pid}/comm").read_text().strip() == name and not procfs.is_zombie(pid):
                found.append(pid)
        except OSError:
            continue
    return found


def test_a_channel_with_a_deadline_waits_no_longer() -> None:
    ours, theirs = pair()
    assert not ours.arrives(0.01)
    ours.deadline = time.monotonic()
    with pytest.raises(ChannelTimeout):
        ours.arrives(0.01)
    theirs.sendall(b"x")
    assert ours.arrives(0.01), "what is there already may be read"
    ours.close()
    theirs.close()


def test_shared_memory_counts_without_a_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryGroup, "of", lambda *_: None)
    hides = (
        "return torch.relu(x)",
        "import mmap, time\n"
        "        kept = [mmap.mmap(-1, 1 << 30) for _ in range(3)]\n"
        "        for memory in kept:\n"
        "            for place in range(0, 1 << 26, 4096):\n"
        "                memory[place] = 1\n"
        "            memory.madvise(mmap.MADV_DONTNEED)\n"
        "        time.sleep(5)\n"
        "        return torch.relu(x)",
    )
    evaluation = judge(tmp_path, hides, memory_bytes=256 << 20)
    assert evaluation.status is EvaluationStatus.OUT_OF_MEMORY, evaluation.reasons
