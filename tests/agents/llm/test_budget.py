"""A proposer that could pass the budget stops the search; a resume goes on where it was."""

from __future__ import annotations

import pytest

from agentforge.llm import CannotAfford
from tests.loop.conftest import Bench, bench
from tests.loop.scripted import bottleneck, profile

__all__ = ["bench"]


@pytest.mark.slow
def test_the_search_stops_and_can_go_on(bench: Bench) -> None:
    script = [{"speed": 2.0}, CannotAfford("the budget of 1 dollars could be passed")]
    result = bench.search(profile(bottleneck("a")), {"a": script})
    assert result.out_of_budget
    assert "could be passed" in result.reason
    assert result.attempts == 1
    assert len(result.wins) == 1
    again = bench.search(profile(bottleneck("a")), {"a": [{"speed": 2.0}, {"speed": 3.0}]})
    assert again.attempts == 2
    assert [a.number for a in bench.store.attempts("run")] == [1, 2]
    assert not again.out_of_budget
