"""Beside other programs: a copy of the reference is never verified with a gain."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from agentforge.config import RefereeSettings
from agentforge.referee import EvaluationRequest, Referee
from agentforge.referee.checks.agreement import noise
from agentforge.referee.result import performance
from agentforge.referee.timing.timer import GroupTimes
from agentforge.schema import Interval, Level, Performance, ReasonCode

from ..judging import DEVICE, WORKLOAD, problem, solution_of

BUSY_LOOPS = (
    "while True: pass",
    "import time\nwhile True:\n sum(range(400_000)); time.sleep(0.01)",
    "import time\nwhile True:\n sum(range(20_000_000)); time.sleep(0.7)",
)


@pytest.fixture
def load() -> Iterator[None]:
    """A process that never rests, one that often works for a moment, and one that works now and then."""
    with ExitStack() as stack:
        for source in BUSY_LOOPS:
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", source]))
            stack.callback(process.kill)
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("load")
def test_a_copy_gains_nothing_beside_real_load(tmp_path: Path) -> None:
    definition = problem("return torch.softmax(x, dim=1)", "torch.randn(64, 1024)")
    settings = RefereeSettings(compile_baseline=False, full_seconds=0.5, patience_s=0.5)
    with Referee(settings, device=DEVICE, cache=tmp_path) as referee:
        request = EvaluationRequest(definition, [WORKLOAD], solution_of(definition), Level.FULL)
        evaluation = referee.evaluate(request)
    assert evaluation.passed, evaluation.reasons
    assert evaluation.performance is not None
    assert not (evaluation.verified and evaluation.performance.speedup["eager"].low > 1)


def test_a_copy_gains_nothing_under_simulated_load() -> None:
    """Turns of one program on a processor that something else takes in long stretches."""
    random = np.random.default_rng(7)
    gains = 0
    for _ in range(300):
        groups = [[_disturbed(random, copies=1.0)] for _ in range(3)]
        gains += performance(groups, [1.0], None).speedup["eager"].low > 1
    assert gains <= 2


def test_what_is_certain_of_a_large_gain_is_reported_under_simulated_load() -> None:
    random = np.random.default_rng(8)
    found = [
        performance([[_disturbed(random, copies=5.0)] for _ in range(3)], [1.0], None) for _ in range(50)
    ]
    certain = [p.speedup["eager"].at_least for p in found if p.speedup["eager"].low > 1]
    assert len(certain) > 25
    assert all(low is None or 1 < low < 5 for low in certain)


def _disturbed(random: np.random.Generator, copies: float) -> GroupTimes:
    """A process group: each turn takes up to three times as long while the other program runs."""
    names = ["eager", "control", "candidate"]
    seconds: dict[str, list[float]] = {name: [] for name in names}
    slower = 1.0
    for _ in range(8):
        for name in random.permutation(names):
            if random.random() < 0.2:
                slower = random.uniform(1.0, 3.0)
            usual = 1e-3 / (copies if name == "candidate" else 1.0)
            seconds[name].append(usual * slower * random.lognormal(0, 0.05))
    return GroupTimes(seconds)


def measured(low: float, high: float, *, deviation: float, processor: float) -> Performance:
    one = Interval(point=1.0, low=1 / deviation, high=deviation)
    return Performance(
        latency_s=1e-3,
        baseline_s={"eager": 1e-3},
        speedup={"eager": Interval(point=(low * high) ** 0.5, low=low, high=high)},
        control=one,
        deviation=deviation,
        processor_ratio={"eager": processor},
        blocks=8,
        processes=3,
    )


@pytest.mark.parametrize(
    ("low", "high", "deviation", "processor", "code"),
    [
        (0.5, 2.0, 1.5, 1.0, ReasonCode.NOISY_CONTROL),
        (0.5, 2.0, 1.01, 1.0, ReasonCode.GROUPS_DISAGREE),
        (1.4, 4.0, 1.5, 2.0, None),
        (1.4, 4.0, 1.5, 0.9, ReasonCode.NOISY_CONTROL),
        (1.4, 1.5, 1.01, 0.9, None),
        (0.95, 1.05, 1.01, 1.0, None),
        (0.2, 0.9, 1.5, 0.5, None),
    ],
)
def test_what_a_busy_machine_leaves_undecided(
    low: float, high: float, deviation: float, processor: float, code: ReasonCode | None
) -> None:
    assert noise(measured(low, high, deviation=deviation, processor=processor), "eager") is code
