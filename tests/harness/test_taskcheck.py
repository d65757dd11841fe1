"""Can the task tell right from wrong? Weak tasks are told, contents that tell more are found and used."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from agentforge.harness import Referee
from agentforge.harness.contents import HARD_TO_ROUND, sharper
from agentforge.harness.taskcheck import TaskReport
from agentforge.harness.tolerance import Bound
from agentforge.schema import EvaluationStatus, Evidence

from .judging import WORKLOAD, judge, problem, quick_referee, stage

LINEAR = problem("return self.linear(x)", "torch.randn(16, 32)", "self.linear = torch.nn.Linear(32, 24)")
TINY_INPUT = problem("return x + 1e-7 * x1", "torch.randn(64, 64), torch.randn(64, 64)")
ALWAYS_POSITIVE = problem("return torch.relu(x)", "torch.rand(32, 32)")
SOFTMAX_OF_ONE = problem("return torch.softmax(x, dim=1)", "torch.randn(64, 1)")
AVERAGED = problem("return x.mean(dim=1)", "torch.rand(8, 16384)")


@pytest.fixture(scope="module")
def referee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Referee]:
    with quick_referee(tmp_path_factory.mktemp("cache")) as it:
        yield it


def test_an_ordinary_task_tells_them_all(referee):
    report = referee.bench(LINEAR, [WORKLOAD]).check_task()
    assert report.weaknesses == []
    assert report.sharpened == {}
    assert report.tried >= 8
    assert report.untried == 0


def test_a_constant_answer_is_a_weak_task_and_its_verdict_says_so(referee):
    evaluation = judge(referee, SOFTMAX_OF_ONE)
    assert evaluation.status is EvaluationStatus.PASSED
    assert evaluation.evidence is Evidence.SUSPICIOUS
    assert "cannot tell its own mean" in evaluation.reasons[0]
    assert "not told: its own mean" in stage(evaluation, "task").detail


def test_what_makes_no_difference_is_a_note_and_no_weakness(referee):
    unused = problem("return torch.tanh(x)", "torch.randn(32, 32), torch.randn(32, 32)")
    evaluation = judge(referee, unused)
    assert evaluation.evidence is Evidence.UNVERIFIED, evaluation.reasons
    assert "ignores input 1" in evaluation.environment.notes["task"]


def test_an_input_that_hardly_matters_is_made_to_matter(referee):
    course = referee.bench(TINY_INPUT, [WORKLOAD]).courses[0]
    report = referee.bench(TINY_INPUT, [WORKLOAD]).check_task()
    assert report.weaknesses == []
    assert any("ignores input 1" in name for names in report.sharpened.values() for name in names)
    assert course.sharper
    ignores = judge(referee, TINY_INPUT, ("x + 1e-7 * x1", "x.clone()"))
    assert ignores.status is EvaluationStatus.INCORRECT_NUMERICAL
    assert stage(ignores, "sharpened").status is EvaluationStatus.INCORRECT_NUMERICAL
    assert judge(referee, TINY_INPUT).evidence is Evidence.UNVERIFIED


def test_a_copy_that_usual_inputs_do_not_tell_is_refused(referee):
    assert judge(referee, ALWAYS_POSITIVE, ("torch.relu(x)", "x.clone()")).status is (
        EvaluationStatus.INCORRECT_NUMERICAL
    )
    assert judge(referee, ALWAYS_POSITIVE).evidence is Evidence.UNVERIFIED


def test_rounding_that_averages_out_is_told_by_inputs_that_are_hard_to_round(referee):
    report = referee.bench(AVERAGED, [WORKLOAD]).check_task()
    assert report.weaknesses == []
    evaluation = judge(referee, AVERAGED, ("x.mean", "x.half().float().mean"))
    assert evaluation.status is EvaluationStatus.INCORRECT_NUMERICAL
    assert judge(referee, AVERAGED).evidence is Evidence.UNVERIFIED


def test_without_time_nothing_is_claimed(referee):
    bench = referee.bench(LINEAR, [WORKLOAD])
    bench._task = None
    settings = bench.settings
    bench.settings = settings.model_copy(update={"task_seconds": 0.0})
    report = bench.check_task()
    assert report.tried == 0
    assert "not tried for lack of time" in report.notes()[0]


def test_hard_to_round_inputs_round_down_in_half_precision():
    x = torch.rand(4096) * 7 + 0.01
    moved = HARD_TO_ROUND.change(x)
    error = (moved.half().float() - moved) / moved
    assert bool((error < -0.5 * 2**-13).all())
    assert torch.allclose(moved, x, rtol=2e-3)


def test_contents_change_what_they_say():
    tensors = [torch.ones(3), torch.ones(3), torch.ones(3, dtype=torch.int64)]
    only = next(c for c in sharper(3) if c.name == "input 1 64 times as large")
    only.apply(tensors)
    assert [float(t[0]) for t in tensors] == [1, 64, 1]


def test_a_tightened_bound_is_half():
    assert Bound(2.0, 4.0, 6.0, 0.5).scaled(0.5) == Bound(1.0, 2.0, 3.0, 0.5)


def test_reports_of_several_workloads_become_one():
    report = TaskReport(["zeros"], tried=2)
    report.add(TaskReport(["zeros", "its own mean"], sharpened={"zeros": ["a"]}, tried=3, untried=1))
    assert report.passing == ["zeros", "its own mean"]
    assert (report.tried, report.untried) == (5, 1)
    assert "a told by zeros" in "; ".join(report.describe())
