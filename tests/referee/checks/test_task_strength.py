"""Can the task tell right from wrong? Weak tasks are reported; inputs that expose more are found and used."""

from __future__ import annotations

import pytest
import torch

from agentforge.referee.baselines.task_report import TaskReport
from agentforge.referee.checks.task_strength import task_report
from agentforge.referee.comparison.tolerance import Bound, derive, halved, measure
from agentforge.referee.inputs.transforms import HARD_TO_ROUND, exposing_contents
from agentforge.schema import EvaluationStatus, Evidence, TolerancePolicy

from ..judging import WORKLOAD, judge, problem, stage

LINEAR = problem("return self.linear(x)", "torch.randn(16, 32)", "self.linear = torch.nn.Linear(32, 24)")
TINY_INPUT = problem("return x + 1e-7 * x1", "torch.randn(64, 64), torch.randn(64, 64)")
ALWAYS_POSITIVE = problem("return torch.relu(x)", "torch.rand(32, 32)")
SOFTMAX_OF_ONE = problem("return torch.softmax(x, dim=1)", "torch.randn(64, 1)")
AVERAGED = problem("return x.mean(dim=1)", "torch.rand(8, 16384)")


def test_an_ordinary_task_tells_them_all(referee):
    report = task_report(referee.baselines(LINEAR, [WORKLOAD]))
    assert report.weaknesses == []
    assert report.sharpened == {}
    assert report.tried >= 8
    assert report.untried == 0


def test_a_constant_answer_is_a_weak_task_and_its_verdict_says_so(referee):
    evaluation = judge(referee, SOFTMAX_OF_ONE)
    assert evaluation.status is EvaluationStatus.PASSED
    assert evaluation.evidence is Evidence.SUSPICIOUS
    assert "cannot tell its own mean" in evaluation.reasons[0]
    assert "not rejected: its own mean" in stage(evaluation, "task").detail


def test_what_makes_no_difference_is_a_note_and_no_weakness(referee):
    unused = problem("return torch.tanh(x)", "torch.randn(32, 32), torch.randn(32, 32)")
    evaluation = judge(referee, unused)
    assert evaluation.evidence is Evidence.UNVERIFIED, evaluation.reasons
    assert "ignores input 1" in evaluation.environment.notes["task"]


@pytest.mark.slow
def test_an_input_that_never_changes_and_cannot_is_named(referee):
    threes = "torch.randn(32, 32), torch.randint(3, 4, (32,))"
    fixed = problem("assert bool((x1 == 3).all())\nreturn x * 2", threes)
    evaluation = judge(referee, fixed)
    assert evaluation.evidence is Evidence.SUSPICIOUS
    assert evaluation.reasons[0].startswith("input 1 never changes")
    assert judge(referee, problem("return x * x1", threes)).evidence is Evidence.UNVERIFIED


def test_numbers_that_are_drawn_once_are_named(referee):
    draws = problem("return x * x1", "torch.randn(64), int(torch.randint(1, 1 << 40, ()))")
    evaluation = judge(referee, draws)
    assert evaluation.evidence is Evidence.SUSPICIOUS
    assert "draws Python numbers" in str(evaluation.reasons)


def test_nan_everywhere_is_a_weak_task(referee):
    nan = problem("return x * torch.nan", "torch.randn(32, 32)")
    assert "cannot tell NaN everywhere" in "; ".join(judge(referee, nan).reasons)


def test_an_input_that_hardly_matters_is_made_to_matter(referee):
    prepared = referee.baselines(TINY_INPUT, [WORKLOAD]).prepared[0]
    report = task_report(referee.baselines(TINY_INPUT, [WORKLOAD]))
    assert report.weaknesses == []
    assert any("ignores input 1" in name for names in report.sharpened.values() for name in names)
    assert prepared.exposing
    ignores = judge(referee, TINY_INPUT, ("x + 1e-7 * x1", "x.clone()"))
    assert ignores.status is EvaluationStatus.INCORRECT_NUMERICAL
    assert stage(ignores, "sharpened").status is EvaluationStatus.INCORRECT_NUMERICAL
    assert judge(referee, TINY_INPUT).evidence is Evidence.UNVERIFIED


def test_a_copy_that_usual_inputs_do_not_tell_is_refused(referee):
    assert judge(referee, ALWAYS_POSITIVE, ("torch.relu(x)", "x.clone()")).status is (
        EvaluationStatus.INCORRECT_NUMERICAL
    )
    assert judge(referee, ALWAYS_POSITIVE).evidence is Evidence.UNVERIFIED


@pytest.mark.slow
def test_rounding_that_averages_out_is_told_by_inputs_that_are_hard_to_round(referee):
    report = task_report(referee.baselines(AVERAGED, [WORKLOAD]))
    assert report.weaknesses == []
    evaluation = judge(referee, AVERAGED, ("x.mean", "x.half().float().mean"))
    assert evaluation.status is EvaluationStatus.INCORRECT_NUMERICAL
    assert judge(referee, AVERAGED).evidence is Evidence.UNVERIFIED


def test_without_time_nothing_is_claimed(referee):
    baselines = referee.baselines(LINEAR, [WORKLOAD])
    baselines.task = None
    settings = baselines.settings
    baselines.settings = settings.model_copy(update={"task_seconds": 0.0})
    report = task_report(baselines)
    assert report.tried == 0
    assert "not tried for lack of time" in report.notes()[0]


def test_a_slow_reference_is_still_tried_with_constants_and_less_precision(referee):
    """If its first call takes all of the time, the likeliest shortcuts would otherwise pass."""
    product = problem(
        "return self.linear(x)",
        "torch.randn(32, 512).to(torch.bfloat16)",
        "self.linear = torch.nn.Linear(512, 96, dtype=torch.bfloat16)",
    )
    baselines = referee.baselines(product, [WORKLOAD])
    baselines.task = None
    baselines.settings = baselines.settings.model_copy(update={"task_seconds": 1e-9})
    report = task_report(baselines)
    assert report.sharpened["half the tolerance"] == ["an answer from 8-bit weights"]
    assert report.weaknesses == []
    assert report.tried >= 6
    assert report.untried > 0


def test_hard_to_round_inputs_round_down_in_half_precision():
    x = torch.rand(4096) * 7 + 0.01
    moved = HARD_TO_ROUND.change(x)
    error = (moved.half().float() - moved) / moved
    assert bool((error < -0.5 * 2**-13).all())
    assert torch.allclose(moved, x, rtol=2e-3)


def test_contents_change_what_they_say():
    tensors = [torch.ones(3), torch.ones(3), torch.ones(3, dtype=torch.int64)]
    only = next(c for c in exposing_contents(3) if c.name == "input 1 64 times as large")
    only.apply(tensors)
    assert [float(t[0]) for t in tensors] == [1, 64, 1]


def test_a_tightened_bound_is_half():
    assert Bound(2.0, 4.0, 6.0, 0.5).scaled(0.5) == Bound(1.0, 2.0, 3.0, 0.5)


def test_reports_of_several_workloads_become_one():
    report = TaskReport(["zeros"], tried=2)
    report.add(TaskReport(["zeros", "its own mean"], sharpened={"zeros": ["a"]}, tried=3, untried=1))
    assert report.passing == ["zeros", "its own mean"]
    assert (report.tried, report.untried) == (5, 1)
    assert "a rejected by zeros" in "; ".join(report.describe())


def test_8_bit_weights_of_a_16_bit_product_are_told_by_half_the_tolerance(referee):
    product = problem(
        "return self.linear(x)",
        "torch.randn(32, 512).to(torch.bfloat16)",
        "self.linear = torch.nn.Linear(512, 96, dtype=torch.bfloat16)",
    )
    report = task_report(referee.baselines(product, [WORKLOAD]))
    assert report.weaknesses == []
    assert report.sharpened["half the tolerance"] == ["an answer from 8-bit weights"]
    rounded = (
        "return self.linear(x)",
        "w = self.linear.weight\n"
        "        s = w.float().abs().amax(1, keepdim=True) / 127\n"
        "        return torch.nn.functional.linear(x, ((w / s).round() * s).to(x.dtype), self.linear.bias)",
    )
    assert judge(referee, product, rounded).status is EvaluationStatus.INCORRECT_NUMERICAL
    wide = (
        "return self.linear(x)",
        "w, b = self.linear.weight.float(), self.linear.bias.float()\n"
        "        return (x.float() @ w.t() + b).to(x.dtype)",
    )
    assert judge(referee, product, wide).evidence is Evidence.UNVERIFIED


def test_8_bit_precision_that_a_16_bit_mean_cannot_show_is_a_note(referee):
    averaged = problem("return x.mean()", "torch.rand(64, 4096).to(torch.bfloat16)")
    report = task_report(referee.baselines(averaged, [WORKLOAD]))
    assert all("8-bit" not in name for name in report.passing)


def test_half_a_tolerance_leaves_room_for_an_answer_that_rounds_twice():
    """A bfloat16 product, rounded, plus a bias, rounded: honest, and the root of 3 from the reference."""
    x, y = torch.randn(128, 512, dtype=torch.float64), torch.randn(512, 256, dtype=torch.float64)
    bias = torch.randn(256, dtype=torch.float64).bfloat16()
    product = (x @ y).bfloat16().double()
    once, twice = (x @ y + bias).bfloat16(), product.bfloat16() + bias
    exact = x @ y + bias
    usual = derive(once, exact, TolerancePolicy())
    strict = halved(usual)
    assert usual.relative / 2 < strict.relative < usual.relative
    assert strict.element == usual.element / 2
    assert measure(twice, once, strict).relative < 0.9 * strict.relative
    assert halved(Bound(0.1, 0.2, 0.3, 0.001)) == Bound(0.05, 0.1, 0.15, 0.001)


def test_an_epsilon_that_rounding_hides_is_no_weakness_if_it_is_a_buffer(referee):
    root = "return x / torch.sqrt(self.var + self.epsilon)"
    make = "self.var = torch.nn.Buffer(torch.rand(32) + 0.5); self.epsilon = {}(torch.tensor(1e-8))"
    hidden = problem(root, "torch.randn(64, 32)", make.format("torch.nn.Buffer"))
    assert task_report(referee.baselines(hidden, [WORKLOAD])).weaknesses == []
    visible = problem(root, "torch.randn(64, 32)", make.format("torch.nn.Buffer"))
    visible = visible.model_copy(update={"reference": visible.reference.replace("1e-8", "1e-6")})
    (weakness,) = task_report(referee.baselines(visible, [WORKLOAD])).weaknesses
    assert "ignores epsilon" in weakness


def test_a_reference_in_half_precision_need_not_tell_that_from_itself(referee):
    product = "self.linear(x)"
    autocast = f"with torch.autocast('cpu', dtype=torch.bfloat16):\n    return {product}.float()"
    lowered = problem(autocast, "torch.randn(64, 128)", "self.linear = torch.nn.Linear(128, 64)")
    report = task_report(referee.baselines(lowered, [WORKLOAD]))
    assert report.weaknesses == []
    assert not judge(referee, lowered, (product, "self.linear(torch.zeros_like(x))")).passed
    fine = (f"{product}.float()", f"({product}.float() * 1.1)")
    assert not judge(referee, lowered, fine).passed
