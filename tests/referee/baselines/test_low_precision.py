"""What a lower precision costs the reference, and the bound that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from agentforge.referee import Referee
from agentforge.referee.baselines.low_precision import LowPrecision
from agentforge.referee.comparison.tolerance import LARGEST_BOUND
from agentforge.schema import Definition, EvaluationStatus, Evidence, Level, Precision

from ..judging import judge, problem, quick_referee, stage

LINEAR = "self.one = torch.nn.Linear(96, 128); self.two = torch.nn.Linear(128, 32)"
FORWARD = "return self.two(torch.relu(self.one(x)))"
STRICT = problem(FORWARD, "torch.randn(64, 96)", LINEAR)
BF16 = STRICT.model_copy(update={"precision": "bf16", "tolerance": STRICT.tolerance})
IN_BF16 = (
    FORWARD,
    "low = lambda layer, x: torch.nn.functional.linear("
    "x.bfloat16(), layer.weight.bfloat16(), layer.bias.bfloat16()).float()\n"
    "        return low(self.two, torch.relu(low(self.one, x)))",
)


def eight_bits(tensor: str) -> str:
    return (
        f"({tensor} / ({tensor}.abs().amax(1, keepdim=True) / 127).clamp_min(1e-30)).round()"
        f" * ({tensor}.abs().amax(1, keepdim=True) / 127).clamp_min(1e-30)"
    )


IN_INT8 = (
    FORWARD,
    f"q = lambda t: {eight_bits('t')}\n"
    "        low = lambda layer, x: torch.nn.functional.linear(q(x), q(layer.weight), layer.bias)\n"
    "        return low(self.two, torch.relu(low(self.one, x)))",
)
IN_FOUR_BITS = (IN_INT8[0], IN_INT8[1].replace("127", "7"))


@pytest.mark.parametrize("precision", ["bf16", "int8"])
@pytest.mark.parametrize(
    "compute",
    [
        lambda x, w, b: F.linear(x, w, b),
        lambda x, w, b: F.linear(x, w),
        lambda x, w, b: x @ w.t() + b,
        lambda x, w, b: torch.addmm(b, x, w.t()),
        lambda x, w, b: F.linear(x.view(2, 8, 64), w, b).view(16, 32),
    ],
)
@pytest.mark.parametrize("inference", [True, False])
def test_a_product_with_a_weight_is_rounded(
    precision: Precision, compute: Callable[..., torch.Tensor], inference: bool
) -> None:
    torch.manual_seed(0)
    x, w, b = torch.randn(16, 64), torch.nn.Parameter(torch.randn(32, 64)), torch.randn(32)
    with torch.inference_mode(inference), torch.no_grad():
        exact = compute(x, w, b)
        with LowPrecision(precision, [w]):
            low = compute(x, w, b)
    assert low.dtype is torch.float32
    assert 1e-3 < float((low - exact).norm() / exact.norm()) < 2e-2


@torch.no_grad()
def test_other_products_and_types_stay() -> None:
    a, b, w = torch.randn(16, 16), torch.randn(16, 16), torch.randn(16, 16)
    with LowPrecision("bf16", [w]):
        both, wide = a @ b, a.double() @ w.double()
        with_nan = torch.full((1, 16), torch.nan) @ w
    assert torch.equal(both, a @ b)
    assert torch.equal(wide, a.double() @ w.double())
    assert with_nan.isnan().all()
    with LowPrecision("int8", [w]):
        assert torch.equal(torch.zeros(3, 16) @ w, torch.zeros(3, 16))


@pytest.fixture(scope="module")
def referee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Referee]:
    with quick_referee(Path(tmp_path_factory.mktemp("cache"))) as found:
        yield found


@pytest.mark.slow
def test_without_a_permission_lower_precision_is_wrong(referee: Referee) -> None:
    for change in (IN_BF16, IN_INT8):
        assert judge(referee, STRICT, change).status is EvaluationStatus.INCORRECT_NUMERICAL


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "change"), [("bf16", IN_BF16), ("int8", IN_INT8)])
def test_with_it_the_verdict_is_as_for_any_right_answer(
    referee: Referee, precision: str, change: tuple[str, str]
) -> None:
    allowed = STRICT.model_copy(update={"precision": precision})
    evaluation = judge(referee, allowed, change, level=Level.FULL)
    assert evaluation.status is EvaluationStatus.PASSED, evaluation.reasons
    assert evaluation.evidence is not Evidence.SUSPICIOUS, evaluation.reasons
    assert evaluation.correctness is not None
    most = 2 * LARGEST_BOUND  # twice as much is allowed for transformed inputs
    assert evaluation.correctness.reference_error < 1e-6 < 1e-3 < evaluation.correctness.tolerance <= most
    stability = stage(evaluation, "stability").detail
    assert all(name in stability for name in ("some NaN", "some infinities", "zeros"))
    assert "edges" not in {s.name for s in evaluation.stages}


WRONG: dict[str, tuple[str, str]] = {
    "zeros": (FORWARD, "return torch.zeros(64, 32)"),
    "four bits": IN_FOUR_BITS,
    "a wrong activation": ("torch.relu", "torch.sigmoid"),
    "no second bias": ("return self.two", "return -self.two.bias + self.two"),
    "one wrong row": (FORWARD, "y = self.two(torch.relu(self.one(x))); y[-1] = y[0]; return y"),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_what_is_wrong_stays_wrong(referee: Referee, change: tuple[str, str]) -> None:
    evaluation = judge(referee, BF16, change)
    assert evaluation.status is EvaluationStatus.INCORRECT_NUMERICAL


def test_a_task_that_accepts_zeros_stays_weak(referee: Referee) -> None:
    constant = problem("return x @ x.t() * 1e-30 + 1", "torch.randn(8, 8)")
    allowed: Definition = constant.model_copy(update={"precision": "bf16"})
    evaluation = judge(referee, allowed, ("x @ x.t() * 1e-30 + 1", "torch.ones(8, 8)"))
    assert evaluation.evidence is Evidence.SUSPICIOUS
