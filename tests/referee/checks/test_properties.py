"""Exact integers, other types, gradients: each catches wrong answers and accepts
right ones."""

from __future__ import annotations

import pytest

from agentforge.referee import Referee
from agentforge.referee.checks.correctness.dtypes import DTypes
from agentforge.referee.checks.correctness.exact_integers import ExactIntegers
from agentforge.referee.checks.correctness.gradients import Gradients
from agentforge.referee.checks.correctness.layouts import Layouts
from agentforge.referee.checks.correctness.sharpened import Sharpened
from agentforge.referee.checks.correctness.stability import Stability
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.schema import Definition, DType, EvaluationStatus, TargetError

from ..judging import examined, judge, problem, stage

LONG_SUM = problem("return x.sum(dim=1)", "torch.randn(4, 65536)")
LINEAR = problem("return self.linear(x)", "torch.randn(16, 32)", "self.linear = torch.nn.Linear(32, 24)")
SQUARE = problem("return x @ x1", "torch.randn(32, 32), torch.randn(32, 32)")
SOFTMAX = problem("return torch.softmax(x, dim=1)", "torch.randn(32, 48)")
GATE = problem(
    "return torch.sigmoid(x * self.weight) * x",
    "torch.randn(16, 32)",
    "self.weight = torch.nn.Parameter(torch.randn(32))",
    differentiable=True,
)
TYPED = problem("return torch.tanh(x) * 2", "torch.randn(16, 32)", dtypes=(DType.BFLOAT16, DType.FLOAT64))


def refused(referee: Referee, definition: Definition, it: object, *changes: tuple[str, str]) -> WorkerFailure:
    with examined(referee, definition, *changes) as context, pytest.raises(WorkerFailure) as info:
        it.run(context)  # type: ignore[attr-defined]
    return info.value


def passed(referee: Referee, definition: Definition, it: object, *changes: tuple[str, str]) -> str:
    with examined(referee, definition, *changes) as context:
        return str(it.run(context))  # type: ignore[attr-defined]


# -- exact integers


def test_a_sum_that_leaves_one_term_out_is_no_exact_integer(referee):
    almost = ("x.sum(dim=1)", "x[:, 1:].sum(dim=1) + 0 * x[:, 0]")
    nearly = ("x.sum(dim=1)", "x.sum(dim=1) + torch.sign(x[:, 0]) * 5e-5")
    assert "exact for small integers" in passed(referee, LONG_SUM, ExactIntegers())
    assert "exact" in passed(
        referee, LONG_SUM, ExactIntegers(), ("x.sum(dim=1)", "x.flip(1).cumsum(1)[:, -1]")
    )
    assert refused(referee, LONG_SUM, ExactIntegers(), almost).status is EvaluationStatus.INCORRECT_NUMERICAL
    # An error below the tolerance that is no integer's either is the tolerance's business.
    assert "exact" in passed(referee, LONG_SUM, ExactIntegers(), nearly)


def test_operators_without_exact_integers_are_left_alone(referee):
    assert "does not give exact integers" in passed(referee, SOFTMAX, ExactIntegers())


# -- variants


def test_one_column_that_a_weight_would_spread_is_no_variant(referee):
    scaled = problem(
        "return x * self.scale", "torch.randn(16, 32)", "self.scale = torch.nn.Parameter(torch.randn(32))"
    )
    strict = (
        "return x",
        "y = torch.empty_like(x)\n        y[:] = x * self.scale[: x.shape[1]]\n        return y #",
    )
    with examined(referee, scaled, strict) as context:
        told = Layouts().run(context)
    assert "broadcast by the reference: 1 columns" in told
    assert "1 rows" in told.split("right: ")[1].split(";")[0]
    assert "17 rows" in told


# -- other types


def test_types_that_the_definition_asks_for(referee):
    assert passed(referee, TYPED, DTypes()) == ("right: bfloat16, large bfloat16, float64, large float64")
    assert refused(referee, TYPED, DTypes(), ("torch.tanh(x)", "torch.tanh(x.float())")).status is (
        EvaluationStatus.INCORRECT_DTYPE
    )
    through_half = ("torch.tanh(x)", "torch.tanh(x.float()).to(x.dtype)")
    assert refused(referee, TYPED, DTypes(), through_half).status is EvaluationStatus.INCORRECT_NUMERICAL
    strict = ("return torch", "assert x.dtype == torch.float32\n        return torch")
    assert refused(referee, TYPED, DTypes(), strict).status is EvaluationStatus.RUNTIME_ERROR
    assert "no other types" in passed(referee, SOFTMAX, DTypes())


def test_types_are_tried_with_large_inputs(referee):
    half, drawn = (DType.FLOAT16,), "4 * torch.randn(16, 64)"
    halves = problem("return torch.linalg.vector_norm(x, dim=1)", drawn, dtypes=half)
    squares = ("torch.linalg.vector_norm(x, dim=1)", "(x * x).sum(1, dtype=torch.float32).sqrt().to(x.dtype)")
    failure = refused(referee, halves, DTypes(), squares)
    assert failure.status is EvaluationStatus.INCORRECT_NUMERICAL
    assert "with float16 values up to 1024" in failure.reason
    own = problem("return (x * x).sum(1).sqrt()", drawn, dtypes=half)
    assert "not defined by the reference: large float16" in passed(referee, own, DTypes())


def test_types_change_a_definition_only_where_there_are_any():
    assert SOFTMAX.hash == SOFTMAX.model_copy(update={"dtypes": ()}).hash
    assert TYPED.hash != TYPED.model_copy(update={"dtypes": ()}).hash


# -- gradients


@pytest.mark.slow
def test_gradients_are_compared_where_they_are_asked_for(referee):
    told = passed(referee, GATE, Gradients())
    assert "the gradient of input 0" in told
    assert "the gradient of weight" in told
    assert "no backward pass" in passed(referee, LINEAR, Gradients())


GATE_BY_HAND = """
class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return torch.sigmoid(x * w) * x

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        s = torch.sigmoid(x * w)
        d = s * (1 - s)
        return g * (s + x * w * d), (g * x * x * d).sum(0)


class Model"""


@pytest.mark.slow
def test_a_backward_pass_written_by_hand(referee):
    by_hand = (
        ("class Model", GATE_BY_HAND),
        ("torch.sigmoid(x * self.weight) * x\n", "Gate.apply(x, self.weight)\n"),
    )
    assert "right" in passed(referee, GATE, Gradients(), *by_hand)
    forgets = (*by_hand, ("(s + x * w * d)", "s"))
    failure = refused(referee, GATE, Gradients(), *forgets)
    assert failure.status is EvaluationStatus.INCORRECT_NUMERICAL
    assert "in the backward pass the gradient of input 0" in failure.reason


@pytest.mark.slow
def test_a_backward_pass_that_overflows_for_large_inputs(referee):
    eighth = problem(
        "return torch.sigmoid(8 * x * self.weight) * x",
        "torch.randn(64, 128)",  # so many that mixed magnitudes always have one that overflows
        "self.weight = torch.nn.Parameter(torch.rand(128) + 0.5)",
        differentiable=True,
    )
    by_hand = (
        (
            "class Model",
            GATE_BY_HAND.replace("sigmoid(x * w) * x", "sigmoid(8 * x * w) * x")
            .replace("x * w * d", "8 * x * w * d")
            .replace("g * x * x * d", "8 * g * x * x * d")
            .replace("s = torch.sigmoid(x * w)", "s = torch.sigmoid(8 * x * w)"),
        ),
        ("torch.sigmoid(8 * x * self.weight) * x\n", "Gate.apply(x, self.weight)\n"),
    )
    assert "with mixed magnitudes: the gradient of input 0" in passed(referee, eighth, Gradients(), *by_hand)
    wrong = ("s = torch.sigmoid(8 * x * w)", "e = torch.exp(8 * x * w)\n        s = e / (1 + e)")
    failure = refused(referee, eighth, Gradients(), *by_hand, wrong)
    assert "in the backward pass with mixed magnitudes" in failure.reason


def test_another_call_before_the_backward_pass_changes_nothing(referee):
    """As two towers with one set of weights have it."""
    kept = GATE_BY_HAND.replace("ctx.save_for_backward(x, w)", "Gate.kept = x, w").replace(
        "ctx.saved_tensors", "Gate.kept"
    )
    by_hand = (
        ("class Model", kept),
        ("torch.sigmoid(x * self.weight) * x\n", "Gate.apply(x, self.weight)\n"),
    )
    failure = refused(referee, GATE, Gradients(), *by_hand)
    assert "in the backward pass after another call" in failure.reason


OVERWRITES = """
class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        y = torch.sigmoid(x * w) * x
        ctx.kept = KEPT
        return y

    @staticmethod
    def backward(ctx, g):
        KEPT = ctx.kept
        s = torch.sigmoid(x * w)
        into_w = (g * x * x * s * (1 - s)).sum(0)
        into_x = g * (s + x * w * s * (1 - s))
        return OVER.copy_(into_x), into_w


class Model"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("over", "kept", "told"),
    [("g", "(x, w)", "the gradient of out"), ("x", "(x, w)", "input 0"), ("y", "(x, w, y)", "out")],
)
def test_a_backward_pass_leaves_what_belongs_to_its_caller(referee, over, kept, told):
    """`x + gate(x)` gives one gradient to both branches."""
    by_hand = (
        ("class Model", OVERWRITES.replace("KEPT", kept).replace("OVER", over)),
        ("torch.sigmoid(x * self.weight) * x\n", "Gate.apply(x, self.weight)\n"),
    )
    failure = refused(referee, GATE, Gradients(), *by_hand)
    assert failure.status is EvaluationStatus.CHEATING
    assert f"its backward pass writes to {told}, and" in failure.reason


def test_an_answer_without_a_backward_pass_is_refused(referee):
    detached = ("* x\n", "* x.detach()\n")
    assert refused(referee, GATE, Gradients(), detached).status is EvaluationStatus.INCORRECT_NUMERICAL
    evaluation = judge(referee, GATE, ("return torch", "x = x.detach() * 1\n        return torch"))
    assert not evaluation.passed
    assert "gradient" in stage(evaluation, "gradients").detail


def test_a_reference_without_gradients_is_a_clear_error(referee):
    rounded = problem("return torch.argmax(x, dim=1)", "torch.randn(8, 8)", differentiable=True)
    with pytest.raises(TargetError, match="asks for gradients"):
        judge(referee, rounded)


def test_gradients_that_are_noise_in_the_reference_are_no_verdict(referee):
    normalised = problem(
        "return torch.nn.functional.layer_norm(x + self.shift, (32,)) * torch.arange(32.0)",
        "torch.randn(16, 32)",
        "self.shift = torch.nn.Parameter(torch.zeros(1))",
        differentiable=True,
    )
    told = passed(referee, normalised, Gradients())
    assert "input 0" in told
    assert "shift" not in told


# -- unusual inputs


def test_infinities_are_tried_where_the_answer_is_defined(referee):
    clipped = problem("return torch.clamp(x, max=3.0)", "torch.randn(16, 32)")
    assert "some infinities" in passed(referee, clipped, Stability()).split("not exact")[0]
    wrong = ("torch.clamp(x, max=3.0)", "torch.clamp(x.nan_to_num(posinf=0.0), max=3.0)")
    assert refused(referee, clipped, Stability(), wrong).status is EvaluationStatus.INCORRECT_NUMERICAL


def test_nothing_sharper_is_needed_where_usual_inputs_tell(referee):
    assert "usual inputs expose" in passed(referee, SOFTMAX, Sharpened())
