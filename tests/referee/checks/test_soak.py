"""More calls if few of them seem to work for many."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentforge.referee import Referee
from agentforge.referee.checks import When
from agentforge.referee.checks.behaviour import soak
from agentforge.referee.checks.behaviour.soak import Soak

from ..judging import examined, problem


@pytest.mark.parametrize(("doubtful", "rounds", "doubts"), [(0, 1, 0), (1, 2, 0), (2, 3, 0), (9, 3, 1)])
def test_what_a_machine_does_now_and_then_is_measured_again(
    referee: Referee, monkeypatch: pytest.MonkeyPatch, doubtful: int, rounds: int, doubts: int
) -> None:
    seen: list[int] = []

    def rare_work(efforts: list[soak.Effort]) -> Iterator[str]:
        seen.append(len(efforts))
        if len(seen) <= doubtful:
            yield "few calls work for many"

    monkeypatch.setattr(soak, "rare_work", rare_work)
    monkeypatch.setattr(soak, "_CALLS", (20, 21))
    with examined(referee, problem("return x * 2", "torch.randn(64)")) as context:
        said = Soak(When.BEFORE_TIMING).run(context)
    assert said == f"{20 * rounds} more calls were right"
    assert len(seen) == rounds
    assert len(context.doubts_now) == doubts
    assert seen == sorted(seen)  # all rounds count
