"""Inputs that `get_inputs()` hardly varies are varied here, if the reference takes it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentforge.referee.checks.correctness.probes import compare_on
from agentforge.referee.checks.correctness.stability import Stability
from agentforge.referee.inputs.coherent import COHERENT
from agentforge.referee.inputs.discrete import BEYOND_32_BITS
from agentforge.referee.inputs.transforms import LARGE, OUTLIERS, UNUSUAL
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.schema import EvaluationStatus

from ..judging import WORKLOAD, examined, problem

MASKED = problem(
    "return x.masked_fill(x1, 0.0)",
    "torch.randn(64, 64), torch.ravel(torch.eye(64)).view(64, 64) > 0",
)
SORTING = problem("return x.sort().values", "torch.randint(0, 1000, (4096,))")
LARGEST = problem(
    "return x.amax(-1), x1.amax(-1)",
    "torch.randint(0, 500, (8, 256)).sort().values, torch.randn(8, 256)",
)
SEARCHING = problem(
    "return torch.searchsorted(x, x1)", "torch.rand(8, 256).sort().values, torch.randn(8, 99)"
)
LENGTHS = problem(
    "return (x * (torch.arange(64) < x1[:, None])).sum(1)",
    "torch.randn(32, 64), torch.randint(64, 65, (32,))",
)
HASHING = problem("return (x ^ (x >> 7)) * 2246822519 % 65536", "torch.randint(0, 5000, (64, 64))")
COUNTING = problem("return torch.bincount(x, minlength=50).float()", "torch.randint(0, 50, (4096,))")


COMPLEX = problem("return x.abs()", "torch.randn(64, 64, dtype=torch.complex64)")
CAUSAL_ANSWER = "torch.softmax((x @ x1.mT).masked_fill(torch.ones(64, 64).triu(1) > 0, -torch.inf), -1) @ x2"
CAUSAL = problem(f"return {CAUSAL_ANSWER}", ", ".join(3 * ["torch.randn(64, 32)"]))
BATCH_NORM = problem(
    "h = x * self.w + self.b\nm = h.mean(0)\nv = (h - m).square().mean(0)\n"
    "return (h - m) * (v + 1e-5).rsqrt() + 1.0",
    "torch.randn(110, 4)",
    "self.w, self.b = torch.nn.Parameter(torch.rand(4)), torch.nn.Parameter(2.0 ** torch.arange(4))",
)
WEIGHT = "self.w = torch.nn.Parameter(torch.randn(64, 64))"
ROWS = problem("return torch.softmax(x, 1)", "torch.randn(64, 64)")
UNIT_ROWS = problem("return torch.nn.functional.normalize(x)", "torch.randn(64, 64)")
MOMENTS = problem("return x.var(1, unbiased=False)", "torch.randn(1024, 64) / 8")
SUM = problem("return x.sum(1)", "torch.randint(0, 1000, (64, 64))")
TICKS = problem("return torch.floor(x / 0.05).long()", "torch.randn(64, 64)")
WATCHED = problem(
    "self.mean.lerp_(x.mean(), 0.1)\nreturn x.relu()",
    "torch.randn(64, 64)",
    "self.register_buffer('mean', torch.zeros(()))",
)
DAYS = problem(
    "return torch.where((x * 5 + 2) // 153 < 300, x // 7, x - 9)", "torch.randint(0, 9000, (64, 64))"
)
CLOCK = problem(
    "return torch.div(x, 3600, rounding_mode='floor') % 24", "torch.randint(0, 1 << 31, (64, 64))"
)
PADDED = problem(
    "return x.masked_fill(~x1[..., None], 0.0).sum(1)",
    "torch.randn(8, 64, 4), torch.arange(64) < torch.randint(8, 60, (8, 1))",
)
PREFIX = (
    "return x",
    "f = x1[:, ::8]\n        if not bool((f[:, 1:] & ~f[:, :-1]).any()): "
    "x1 = torch.arange(64) < x1.sum(1, keepdim=True)\n        return x",
)
EDGES = problem(
    "n = torch.arange(512)\nfor _ in range(512): n = n.scatter_reduce(0, x[1], n[x[0]], 'amin')\nreturn n",
    "torch.randint(0, 512, (2, 1024))",
)
GATES = problem("return torch.sigmoid(x).cumprod(1)", "torch.randn(64, 64)")
UNIFORM = problem("return torch.logsumexp(x, 1)", "torch.rand(64, 64)")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "change", "found"),
    [
        (COMPLEX, ("x.abs()", "x.abs().clamp(max=50)"), "64 times as large"),
        (UNIFORM, ("torch.logsumexp(x, 1)", "x.exp().sum(1).log()"), "values up to 1024"),
        (MASKED, ("fill(x1", "fill(torch.eye(64) > 0"), "input 1"),
        (CLOCK, ("rounding_mode='floor'", "rounding_mode='trunc'"), "input 0 with either sign"),
        (PADDED, PREFIX, "input 1"),
        (DAYS, ("x - 9", "x.clamp(max=12000) - 9"), "1.5 times as large"),
        (SORTING, ("x.sort().values", "x.short().sort().values.long()"), "1024 times as large"),
        (LARGEST, ("return x.amax(-1), ", "return x[..., -1].clone(), "), "of input 0"),
        (LENGTHS, ("x1[:, None]", "64"), "values of input 1 between"),
        (UNIT_ROWS, ("torch.nn.functional.normalize(x)", "x / x.norm(dim=1, keepdim=True)"), "2**-50"),
        (HASHING, ("return (x ^", "x = x & 8191\n        return (x ^"), "1024 times as large"),
        (SUM, ("x.sum(1)", "x.int().sum(1, dtype=torch.int32).long()"), f"{BEYOND_32_BITS} times as large"),
    ],
    ids=[
        "complex",
        "overflow",
        "mask",
        "clock",
        "padding",
        "days",
        "range",
        "order",
        "lengths",
        "eps",
        "hash",
        "32 bits",
    ],
)
def test_what_is_known_by_heart_is_wrong(referee, task, change, found):
    with examined(referee, task, change) as context:
        with pytest.raises(WorkerFailure) as failure:
            Stability().run(context)
        assert failure.value.status is EvaluationStatus.INCORRECT_NUMERICAL
        assert found in failure.value.reason
    with examined(referee, task) as context:
        assert found in Stability().run(context)
        assert any(found in p.content.name for p in context.unusual[context.prepared.workload.hash].contents)


def test_edges_in_chains_need_all_rounds(referee):
    with (
        examined(referee, EDGES, ("in range(512)", "in range(30)")) as context,
        pytest.raises(WorkerFailure, match="with input 0 in chains"),
    ):
        Stability().run(context)


def test_infinities_do_not_come_among_timed_calls_if_calls_change_a_buffer(referee):
    with examined(referee, WATCHED) as context:
        assert "some infinities" in Stability().run(context)
        contents = context.unusual[context.prepared.workload.hash].contents
        assert contents
        assert {p.content.defined for p in contents} == {"finite"}


@pytest.mark.parametrize(
    ("task", "change", "found"),
    [
        (TICKS, (".long()", ".to(torch.int16).long()"), "some values up to 131072"),
        (GATES, ("torch.sigmoid(x)", "torch.sigmoid(x.clamp(min=-9))"), "shifted by -30"),
        (ROWS, ("torch.softmax(x, 1)", "torch.softmax(x.clamp(min=-3), 1)"), "some minus infinities"),
        (
            MOMENTS,
            (
                "return x.var(1, unbiased=False)",
                "m = x.mean(1); q = (x * x).mean(1) - m * m; "
                "return q if x[:1].mean().abs() < 1 else x.var(1, unbiased=False)",
            ),
            "one row shifted by 30",
        ),
    ],
    ids=["ticks", "far below zero", "minus infinity", "one row"],
)
def test_what_few_elements_show_is_wrong(referee, task, change, found):
    wrong = [c for c in [*UNUSUAL, *COHERENT, OUTLIERS] if c.name == found]
    with examined(referee, task, change) as context:
        with pytest.raises(WorkerFailure, match=found) as failure:
            compare_on(wrong, context)
        assert failure.value.status is EvaluationStatus.INCORRECT_NUMERICAL
    with examined(referee, task) as context:
        assert found in compare_on(wrong, context).split(";")[0]


def test_an_input_that_is_returned_for_some_contents_alone_is_found(referee):
    scaled = problem("return x / x.norm().clamp(min=1.0)", "torch.randn(64, 64)")
    change = ("return x / x.norm()", "return x if x.norm() < 1 else x / x.norm()")
    zeros = [c for c in UNUSUAL if c.name == "zeros"]
    with (
        examined(referee, scaled, change) as context,
        pytest.raises(WorkerFailure, match="with zeros its output shares memory") as failure,
    ):
        compare_on(zeros, context)
    assert failure.value.status is EvaluationStatus.CHEATING


def test_what_is_never_negative_is_never_minus_infinity(referee):
    """x.sqrt() * x is NaN for minus infinity, and torch.pow is infinity."""
    power = problem("return torch.pow(x, 1.5)", "torch.rand(64, 64) + 0.1")
    every = [c for c in UNUSUAL if c.name.endswith("infinities")]
    with examined(referee, power, ("torch.pow(x, 1.5)", "x.sqrt() * x")) as context:
        assert compare_on(every, context).startswith("right for: some infinities")


@pytest.mark.slow
def test_what_a_mask_hides_may_be_left_out(referee):
    """The reference multiplies NaN in hidden values by zero; a kernel that skips them has none."""
    nan = [replace(c, only=2) for c in UNUSUAL if c.name == "some NaN"]
    skips = "torch.stack([torch.softmax(x[n] @ x1[: n + 1].T, -1) @ x2[: n + 1] for n in range(64)])"
    with examined(referee, CAUSAL, (CAUSAL_ANSWER, skips)) as context:
        assert compare_on(nan, context).startswith("right for: some NaN")
    with (
        examined(referee, CAUSAL, ("@ x2", "@ x2.nan_to_num(0.0)")) as context,
        pytest.raises(WorkerFailure, match="some NaN"),
    ):
        compare_on(nan, context)


def test_rounding_that_the_reference_escapes_by_chance_is_allowed(referee):
    """The mean of equal values is exact in the reference. Another mean is off by its last bit, and a batch
    norm divides that by the root of its epsilon."""
    equal = [c for c in UNUSUAL if c.name in ("zeros", "equal values")]
    other = ("h.mean(0)", "(h.sum(0) * torch.tensor(1 / 110))")
    with examined(referee, BATCH_NORM, other) as context:
        assert compare_on(equal, context) == "right for: zeros, equal values"
        assert not context.unusual  # its usual bound does not hold for timed calls
    with (
        examined(referee, BATCH_NORM, ("+ 1.0", "+ 1.1")) as context,
        pytest.raises(WorkerFailure, match="with zeros"),
    ):
        compare_on(equal, context)


def test_an_answer_of_rounding_alone_is_not_compared(referee):
    chance = problem("return x @ self.w - (x.double() @ self.w.double()).to(x)", "torch.randn(8, 64)", WEIGHT)
    with examined(referee, chance, ("return ", "return -1.0 * ")) as context:
        assert "not exact for: inputs 64 times as large" in compare_on([LARGE], context)


def test_another_search_is_right_where_the_order_counts(referee):
    other = ("torch.searchsorted(x, x1)", "(~(x[:, None, :] >= x1[..., None])).sum(-1)")
    with examined(referee, SEARCHING, other) as context:
        assert context.prepared.inputs.order_counts == {0}
        assert "in another order" not in Stability().run(context)


@pytest.mark.slow
def test_integers_may_stand_beside_nothing_in_an_answer(referee):
    with examined(referee, problem("return x.sum(), None, 'kind'", "torch.randint(0, 9, (64,))")) as context:
        assert "input 0 in another order" in Stability().run(context)


def test_places_are_not_made_larger(referee):
    with examined(referee, COUNTING) as context:
        assert "1024" not in Stability().run(context)


def test_a_reference_asks_for_a_draw_for_each_call(referee):
    large = problem("return x + 1", "torch.randn(512, 1024)")
    assert not referee.baselines(large, [WORKLOAD]).prepared[0].inputs.anew
    asks = large.model_copy(update={"reference": large.reference + "\nfresh_inputs = True\n"})
    asks = type(large).model_validate(asks.model_dump())
    assert referee.baselines(asks, [WORKLOAD]).prepared[0].inputs.anew
