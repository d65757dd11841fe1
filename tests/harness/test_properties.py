"""Exact integers, metamorphic relations, other types, gradients: each catches what is wrong and passes what
is right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from agentforge.harness import Referee
from agentforge.harness.candidate import Candidate
from agentforge.harness.leaves import Leaf
from agentforge.harness.party import PartyFailure
from agentforge.harness.relations import holds, related, relations
from agentforge.harness.stages import Edges, Gradients, Relations, Sharpened, Stability, Types
from agentforge.harness.tolerance import Bound
from agentforge.harness.variants import Variants
from agentforge.schema import Definition, DType, EvaluationStatus, TargetError

from .judging import examined, judge, problem, quick_referee, stage

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


@pytest.fixture(scope="module")
def referee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Referee]:
    with quick_referee(tmp_path_factory.mktemp("cache")) as it:
        yield it


def refused(referee: Referee, definition: Definition, it: object, *changes: tuple[str, str]) -> PartyFailure:
    with examined(referee, definition, *changes) as context, pytest.raises(PartyFailure) as info:
        it.run(context)  # type: ignore[attr-defined]
    return info.value


def passed(referee: Referee, definition: Definition, it: object, *changes: tuple[str, str]) -> str:
    with examined(referee, definition, *changes) as context:
        return str(it.run(context))  # type: ignore[attr-defined]


# -- exact integers


def test_a_sum_that_leaves_one_term_out_is_no_exact_integer(referee):
    almost = ("x.sum(dim=1)", "x[:, 1:].sum(dim=1) + 0 * x[:, 0]")
    nearly = ("x.sum(dim=1)", "x.sum(dim=1) + torch.sign(x[:, 0]) * 5e-5")
    assert "exact for small integers" in passed(referee, LONG_SUM, Edges())
    assert "exact" in passed(referee, LONG_SUM, Edges(), ("x.sum(dim=1)", "x.flip(1).cumsum(1)[:, -1]"))
    assert refused(referee, LONG_SUM, Edges(), almost).status is EvaluationStatus.INCORRECT_NUMERICAL
    # An error below the tolerance that is no integer's either is the tolerance's business.
    assert "exact" in passed(referee, LONG_SUM, Edges(), nearly)


def test_operators_without_exact_integers_are_left_alone(referee):
    assert "does not give exact integers" in passed(referee, SOFTMAX, Edges())


# -- relations


def test_relations_of_the_reference_are_found_by_trying(referee):
    softmax = passed(referee, SOFTMAX, Relations())
    assert "the rows in another order" in softmax
    assert "the columns in another order" in softmax
    assert "twice as large" not in softmax
    assert "a part of the batch alone" in softmax
    product = passed(referee, SQUARE, Relations())
    assert "inputs twice as large" in product
    assert "negated inputs" in product
    assert "twice as large" not in passed(referee, LINEAR, Relations())


def test_an_error_within_the_tolerance_that_depends_on_the_place_is_found(referee):
    by_place = (
        "return torch.softmax(x, dim=1)",
        "y = torch.softmax(x, dim=1)\n"
        "        sign = torch.where(torch.arange(y.shape[0]) % 2 == 0, 1.0, -1.0)[:, None]\n"
        "        return y * (1 + 3.86e-6 * sign)",
    )
    many_rows = problem("return torch.softmax(x, dim=1)", "torch.randn(512, 48)")
    failure = refused(referee, many_rows, Relations(), by_place)
    assert failure.status is EvaluationStatus.INCORRECT_NUMERICAL
    assert "beside its own answer" in failure.reason


def test_a_kernel_for_one_shape_may_refuse_a_part_of_a_batch(referee):
    strict = ("return torch", "assert x.shape == (32, 48)\n        return torch")
    assert "a part of the batch alone is refused" in passed(referee, SOFTMAX, Relations(), strict)


def test_a_wrong_answer_to_a_part_of_a_batch_is_none(referee):
    off = ("return x", "x = x + (x.shape[0] != 4)\n        return x")
    failure = refused(referee, LONG_SUM, Relations(), off)
    assert "with the first part alone" in failure.reason


def test_the_candidate_is_as_before_after_its_relations(referee):
    with examined(referee, SOFTMAX) as context:
        Relations().run(context)
        context.course.inputs.fill(0)
        expected = context.bench.expect(context.course, 0)
        context.candidate.call(0)
        context.judge.check(context.candidate.fetch(0), expected, context.course.bounds, "afterwards")


def test_relations_of_shapes_that_have_none():
    assert list(relations([torch.zeros(1, 1)], [Leaf("out", None)])) == []
    assert list(relations([], [Leaf("out", torch.zeros(()))])) == []


def test_what_does_not_hold_is_no_relation():
    x = torch.randn(8, 4)
    bound = [Bound(1e-6, 1e-6, 0.0, 0.0)]
    (rows, same) = next(iter(relations([x], [Leaf("out", x)])))
    after = rows.change([x])
    assert holds(rows, [Leaf("out", x)], [Leaf("out", after[0])], bound)
    assert not holds(same, [Leaf("out", x)], [Leaf("out", after[0])], bound)
    assert torch.equal(related(rows, [Leaf("out", x)])[0].value, after[0])


def test_one_column_that_a_weight_would_spread_is_no_variant(referee):
    scaled = problem(
        "return x * self.scale", "torch.randn(16, 32)", "self.scale = torch.nn.Parameter(torch.randn(32))"
    )
    strict = (
        "return x",
        "y = torch.empty_like(x)\n        y[:] = x * self.scale[: x.shape[1]]\n        return y #",
    )
    with examined(referee, scaled, strict) as context:
        candidate = Candidate(context.candidate, Path("unused"))
        told = Variants(context.bench, candidate, context.judge).run(context.course)
    assert "broadcast by the reference: 1 columns" in told
    assert "1 rows" in told.split("right: ")[1].split(";")[0]
    assert "17 rows" in told


# -- other types


def test_types_that_the_definition_asks_for(referee):
    assert passed(referee, TYPED, Types()) == "right: bfloat16, float64"
    assert refused(referee, TYPED, Types(), ("torch.tanh(x)", "torch.tanh(x.float())")).status is (
        EvaluationStatus.INCORRECT_DTYPE
    )
    through_half = ("torch.tanh(x)", "torch.tanh(x.float()).to(x.dtype)")
    assert refused(referee, TYPED, Types(), through_half).status is EvaluationStatus.INCORRECT_NUMERICAL
    strict = ("return torch", "assert x.dtype == torch.float32\n        return torch")
    assert refused(referee, TYPED, Types(), strict).status is EvaluationStatus.RUNTIME_ERROR
    assert "no other types" in passed(referee, SOFTMAX, Types())


def test_types_change_a_definition_only_where_there_are_any():
    assert SOFTMAX.hash == SOFTMAX.model_copy(update={"dtypes": ()}).hash
    assert TYPED.hash != TYPED.model_copy(update={"dtypes": ()}).hash


# -- gradients


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
    assert "usual inputs tell" in passed(referee, SOFTMAX, Sharpened())
