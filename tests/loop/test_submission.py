"""What someone outside the loop hands in is judged whatever the minutes are, until the run's own limit."""

from __future__ import annotations

import pytest

from agentforge.loop import BudgetMeter, Proposal, RunLog, Supervisor, make_supervisor, submit
from agentforge.schema import AttemptStatus, Budget, Level, Plan, Solution, TimeEnded

from .conftest import Bench
from .scripted import bottleneck, profile, written

REGION = bottleneck("a", sol_s=1e-6)
GIVEN = Proposal(REGION.definition.hash, Plan(strategy="given"), written(REGION, {"speed": 2.0}))


def supervisor(bench: Bench, limit_s: float | None) -> Supervisor:
    run = bench.store.get_run("run")
    meter = BudgetMeter(run.budget, seconds_used=999.0, limit_s=limit_s, clock=lambda: 0.0)
    return make_supervisor(profile(REGION), RunLog(bench.store, run), meter, bench.session({}))


@pytest.mark.parametrize("bench", [Budget(minutes=1)], indirect=True)
@pytest.mark.parametrize(("limit_s", "end"), [(600.0, 570.0), (None, None)])
def test_a_given_kernel_has_until_the_runs_own_limit(
    bench: Bench, limit_s: float | None, end: float | None
) -> None:
    attempt = submit(supervisor(bench, limit_s), GIVEN)
    assert attempt.status is AttemptStatus.DONE
    assert bench.referee.deadlines == [end, end]
    assert len(bench.store.promotions("run")) == 1


def test_a_given_kernel_that_the_limit_cut_off_is_judged_when_it_is_handed_in_again(bench: Bench) -> None:
    def late(solution: Solution, level: Level) -> None:
        raise TimeEnded("the run's time ended")

    bench.referee.before = late
    assert submit(supervisor(bench, 600.0), GIVEN, 1).status is AttemptStatus.CODED
    bench.referee.before = lambda solution, level: None
    assert submit(supervisor(bench, 600.0), GIVEN, 1).status is AttemptStatus.DONE
