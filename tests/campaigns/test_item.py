"""The budget of an item's run after several visits."""

from __future__ import annotations

import pytest

from agentforge.campaigns.item import visited, without
from agentforge.schema import Budget, RunStatus, UsageError
from tests.store import nouns

ONE = Budget(minutes=2.0, attempts=5)


def test_each_visit_has_the_budget_once_more() -> None:
    assert visited(ONE, 1) == ONE
    assert visited(ONE, 3) == Budget(minutes=6.0, attempts=15)


@pytest.mark.parametrize(
    ("status", "used", "minutes"),
    [
        (RunStatus.FINISHED, 90.0, 4.0),
        (RunStatus.FINISHED, 600.0, 12.0),  # integration took it beyond its minutes
        (RunStatus.SEARCHING, 600.0, 12.0),  # its worker died in the second visit, which had 12 minutes
    ],
)
def test_a_visit_of_a_run_that_took_longer_has_time_left(
    status: RunStatus, used: float, minutes: float
) -> None:
    had = Budget(minutes=2.0 if status is RunStatus.FINISHED else 12.0)
    run = nouns.run(status=status, seconds_used=used, budget=had)
    assert visited(ONE, 2, run) == Budget(minutes=minutes, attempts=10)


def test_runs_that_were_given_up_count_against_the_share() -> None:
    share = Budget(minutes=2.0, dollars=1.0)
    assert without(ONE, 5.0) == ONE, "there is no limit"
    assert without(share, 0.0) == share
    assert without(share, 0.75) == Budget(minutes=2.0, dollars=0.25)
    with pytest.raises(UsageError, match=r"spent 1\.00 dollars, and its share of --dollars is 1\.00"):
        without(share, 1.0)
