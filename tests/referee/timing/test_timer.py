"""When a process group has been timed long enough: widths and the control decide, never who is faster."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentforge.referee import Referee
from agentforge.referee.checks import CheckContext
from agentforge.referee.comparison.comparator import OutputComparator
from agentforge.referee.timing import patience as waiting
from agentforge.referee.timing import timer as timing
from agentforge.referee.timing.cpu_affinity import ProcessorPerThread
from agentforge.referee.timing.deferred_work import Overheads
from agentforge.referee.timing.patience import Patience
from agentforge.referee.timing.timer import GroupTimes, Timer, TurnShape, turn_shape
from agentforge.referee.workers.client import WorkerClient

from ..judging import examined, judge, problem

LEAST, BLOCKS = 8, 24


def times_of(*controls: float, candidate: float = 0.5, spread: float = 1.01) -> GroupTimes:
    """One block for each number: how much slower the control was than the same baseline."""
    blocks = range(len(controls))
    return GroupTimes({"eager": [1.0 for _ in blocks], "control": list(controls),
                       "candidate": [candidate * spread ** (n % 2) for n in blocks]})  # fmt: skip


def wanted(times: GroupTimes, used: float, extra: float = 3.0) -> bool:
    timer = object.__new__(Timer)
    timer._overheads = Overheads(0)
    return timer._wanted(times, BLOCKS, LEAST, used, extra)


def timer_of(context: CheckContext) -> Timer:
    client, comparator, patience = context.candidate, OutputComparator(), Patience(0.0, threads=1)
    placement = ProcessorPerThread([client], 1)
    return Timer(context.baselines, client, context.prepared, comparator, placement, patience)


def test_the_least_is_done_whatever_it_costs() -> None:
    assert wanted(times_of(*[1.0] * (LEAST - 1)), used=100.0)
    assert not wanted(times_of(*[1.0] * LEAST), used=1.0)
    assert wanted(times_of(*[1.0] * LEAST, spread=2.0), used=0.5)


def test_enough_blocks_end_it_before_the_time_does() -> None:
    assert not wanted(times_of(*[1.0] * BLOCKS, spread=2.0), used=0.1)


@pytest.mark.parametrize("done", [8, 12])
def test_an_interval_that_decides_ends_it_at_the_next_look(done: int) -> None:
    assert not wanted(times_of(*[1.0] * done), used=0.1)
    assert wanted(times_of(*[1.0] * (done + 1)), used=0.1)
    assert wanted(times_of(*[1.0] * done, spread=2.0), used=0.1)
    assert wanted(times_of(*[1.0] * done, candidate=1.0, spread=1.1), used=0.1)


@pytest.mark.parametrize("candidate", [0.1, 0.5, 3.0])
def test_an_unsteady_control_is_given_more_time_and_not_for_ever(candidate: float) -> None:
    unsteady = times_of(*[1.4, 0.7] * LEAST, candidate=candidate)
    assert wanted(unsteady, used=3.9)
    assert not wanted(unsteady, used=4.1)
    assert not wanted(unsteady, used=2.1, extra=1.0)
    assert not wanted(times_of(*[1.4, 0.7] * BLOCKS, candidate=candidate), used=1.5)


def test_disturbed_blocks_are_made_up_for() -> None:
    assert wanted(times_of(*[1.0] * 6, 9.0, 8.0), used=2.0)
    assert not wanted(times_of(*[1.0] * 8, 9.0, 8.0), used=2.0)


def test_patience_is_spent_once() -> None:
    patience = Patience(2.0, threads=1)
    patience.spend(1.5)
    patience.spend(-1.0)
    assert patience.left == 0.5
    patience.spend(1.0)
    assert patience.left == 0.0


def test_waiting_ends_when_the_processors_are_free_or_the_patience_is_spent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loadavg = tmp_path / "loadavg"
    monkeypatch.setattr(waiting, "_LOADAVG", loadavg)
    loadavg.write_text("9.0 9.0 9.0 1/200 4000")
    idle = Patience(60.0, threads=1)
    idle.wait()
    assert (idle.left, idle.waited) == (60.0, 0.0)
    loadavg.write_text(f"0.0 0.0 0.0 {(os.cpu_count() or 1) + 1}/200 4000")
    busy = Patience(0.2, threads=1)
    busy.wait()
    assert busy.left == 0.0
    assert busy.waited >= 0.15


def test_short_calls_have_company() -> None:
    assert turn_shape(1e-4, 1 << 10).calls > turn_shape(1e-2, 1 << 10).calls > turn_shape(1.0, 1 << 10).calls
    assert turn_shape(1.0, 1 << 27) == turn_shape(1e-2, 1 << 10) == TurnShape(1, 3)


def test_few_calls_that_do_the_work_of_all_are_found(referee: Referee) -> None:
    reference = problem("import time\ntime.sleep(0.01)\nreturn x * 2", "torch.randn(64)")
    saves_up = (
        "time.sleep(0.01)",
        "self.calls = getattr(self, 'calls', 0) + 1\n        time.sleep(0.04 if self.calls % 4 == 0 else 0)",
    )
    found = judge(referee, reference, saves_up)
    said = [*found.reasons, *(s.detail for s in found.stages)]
    assert any("few calls do all" in text for text in said), said
    assert not found.verified


@pytest.mark.timing
def test_calls_that_do_the_work_of_others_count_with_their_mean(referee: Referee) -> None:
    reference = problem("import time\ntime.sleep(0.01)\nreturn x * 2", "torch.randn(64)")
    a_little = (
        "time.sleep(0.01)",
        "self.calls = getattr(self, 'calls', 0) + 1\n"
        "        time.sleep(0.016 if self.calls % 4 == 0 else 0.008)",
    )
    found = judge(referee, reference, a_little)
    assert found.passed and found.performance is not None, found.reasons
    assert 0.9 < found.performance.speedup["eager"].point < 1.1


def test_which_calls_count_differs_from_turn_to_turn(referee: Referee) -> None:
    with examined(referee, problem("return x * 2", "torch.randn(64)")) as context:
        timer = timer_of(context)
        turns = [tuple(c.timed for c in timer._calls(TurnShape(2, 3))) for _ in range(64)]
    assert {sum(turn) for turn in turns} == {3}
    assert not any(turn[0] for turn in turns)
    assert len(set(turns)) > 1


def test_all_parties_are_looked_at_alike(referee: Referee, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking at memory between calls fills caches, which the next call feels."""
    looks: dict[str, Counter[str]] = {}

    def counted(name: str) -> None:
        real = getattr(WorkerClient, name)

        def look(client: WorkerClient, *args: Any) -> Any:
            looks.setdefault(client.name, Counter())[name] += 1
            return real(client, *args)

        monkeypatch.setattr(WorkerClient, name, look)

    reference = problem("return torch.tanh(x)", "torch.randn(64, 64)")
    with examined(referee, reference) as context:
        timer = timer_of(context)
        for name in ("_runs", "of_files", "wrote_to_inputs"):
            counted(name)
        timer.run(4, 0.1, 4)
    looks["eager"]["of_files"] -= 1  # one more before the first block
    for name in ("of_files", "wrote_to_inputs"):
        assert len({found[name] for found in looks.values()}) == 1
        assert min(found[name] for found in looks.values()) >= 4  # a disturbed block is repeated
    reads = [found["_runs"] for found in looks.values()]
    assert len(reads) == 3 and max(reads) - min(reads) <= 1 < min(reads)  # one more before the first block


def test_stolen_blocks_are_discarded_within_the_planned_time_alone(
    referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "stolen", lambda *_: 1.0)
    monkeypatch.setattr(timing.Overheads, "undecided", False)  # a busy machine asks for more blocks
    with examined(referee, problem("return torch.tanh(x)", "torch.randn(64, 64)")) as context:
        times = timer_of(context).run(24, 1e-3, 4)
    assert 4 <= times.blocks + times.redone < 12
    assert times.steal == 1.0


def test_a_doubt_asks_for_no_more_turns_when_the_evaluation_s_time_is_over() -> None:
    timer: Any = object.__new__(Timer)
    timer._overheads = SimpleNamespace(undecided=True)
    enough = times_of(*[1.0] * LEAST)
    assert timer._wanted(enough, BLOCKS, LEAST, 1.0, 0.0)
    assert not timer._wanted(enough, BLOCKS, LEAST, 1.0, 0.0, late=True)
    assert timer._wanted(times_of(*[1.0] * (LEAST - 1)), BLOCKS, LEAST, 1.0, 0.0, late=True)
