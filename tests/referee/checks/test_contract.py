"""What belongs to an answer beside tensors: inputs that the reference writes to, its state, numbers."""

from __future__ import annotations

import pytest

from agentforge.referee.timing import timer
from agentforge.schema import EvaluationStatus, Evidence, ReasonCode

from ..judging import judge, problem, stage

FUSED = problem(
    "x1.add_(x)\nreturn x1 * torch.rsqrt(x1.square().mean(1, keepdim=True) + 1e-6) * self.weight",
    "torch.randn(16, 64), torch.randn(16, 64)",
    "self.weight = torch.nn.Parameter(torch.randn(64))",
)
APART = ("x1.add_(x)", "x1 = x1 + x")
STEPS = 'self.register_buffer("steps", torch.zeros((), dtype=torch.int64))'
MEAN = 'self.register_buffer("mean", torch.zeros(64))'
STATISTICS = problem(
    "self.steps += 1\nself.mean.lerp_(x.mean(0), 0.1)\nreturn torch.tanh(x)",
    "torch.randn(256, 64)",
    f"{STEPS}\n        {MEAN}",
)
COUNT, FOLLOW = ("self.steps += 1", "pass"), ("self.mean.lerp_(x.mean(0), 0.1)", "pass")
LOSS = problem(
    "y = torch.tanh(x)\nreturn y, float((y + 0.1).sum().item()), x.shape[0]", "torch.randn(512, 512)"
)
NAMED = problem(
    'return {"loss": x.sum(), "scaled": x * 2, "parts": {1: x + 1, 0: x - 1}}', "torch.randn(16, 64)"
)


@pytest.mark.parametrize(
    "change",
    [
        APART,
        ("x1.add_(x)", "x1[:8].add_(x[:8])\n        x1 = torch.cat([x1[:8], x1[8:] + x[8:]])"),
        ("x1.add_(x)", "x1.copy_((x1 + x).half())"),
    ],
    ids=["never", "half of it", "in half precision"],
)
def test_what_the_reference_writes_to_its_inputs_is_a_part_of_the_answer(referee, change):
    assert judge(referee, FUSED, change).status is EvaluationStatus.INCORRECT_NUMERICAL


def test_an_update_in_other_words_is_right(referee):
    evaluation = judge(referee, FUSED, ("x1.add_(x)", "torch.add(x, x1, out=x1)"))
    assert evaluation.status is EvaluationStatus.PASSED
    assert "a part of its answer" in stage(evaluation, "mutation").detail


def test_other_inputs_must_stay_as_they_are(referee):
    evaluation = judge(referee, FUSED, ("x1.add_(x)", "x1.add_(x)\n        x[3, 3] = 1.0"))
    assert evaluation.status is EvaluationStatus.CHEATING
    assert "input 0" in stage(evaluation, "mutation").detail


def test_inputs_stay_as_they_are_in_timed_calls_too(referee):
    later = (
        "x1.add_(x)",
        "self.calls = getattr(self, 'calls', 0) + 1\n"
        "        x1.add_(x)\n"
        "        x = x.mul_(2) if self.calls > 36 else x",
    )
    evaluation = judge(referee, FUSED, later)
    assert stage(evaluation, "mutation").status is EvaluationStatus.PASSED
    assert evaluation.status is EvaluationStatus.CHEATING
    assert "in a timed call" in evaluation.reasons[0]


@pytest.mark.parametrize(
    "changes",
    [[COUNT], [FOLLOW], [("0.1", "0.2")], [("self.steps += 1", "self.steps.fill_(1)")]],
    ids=["no count", "no statistics", "other momentum", "one for ever"],
)
def test_state_that_is_not_kept(referee, changes):
    evaluation = judge(referee, STATISTICS, *changes)
    assert evaluation.status is EvaluationStatus.INCORRECT_NUMERICAL
    assert stage(evaluation, "state").status is EvaluationStatus.INCORRECT_NUMERICAL


def test_state_that_is_kept_for_a_check_alone(referee, monkeypatch):
    monkeypatch.setattr(timer, "_LOOK_AT_STATE", 1.0)
    until_nobody_looks = (
        FOLLOW[0],
        "if not torch.equal(self.mean, getattr(self, 'left', self.mean + 1)):\n"
        "            self.careful = 4\n"
        "        self.careful -= 1\n"
        f"        if self.careful >= 0:\n            {FOLLOW[0]}\n"
        "        self.left = self.mean.clone()",
    )
    evaluation = judge(referee, STATISTICS, until_nobody_looks)
    assert stage(evaluation, "state").status is EvaluationStatus.PASSED
    assert stage(evaluation, "timing").status is EvaluationStatus.INCORRECT_NUMERICAL
    assert "after timed calls its buffer mean" in evaluation.reasons[0]
    assert judge(referee, STATISTICS).status is EvaluationStatus.PASSED


def test_state_that_is_kept_is_right_in_other_words_too(referee):
    other = ("self.mean.lerp_(x.mean(0), 0.1)", "self.mean = self.mean * 0.9 + x.sum(0) * (0.1 / 256)")
    evaluation = judge(referee, STATISTICS, other)
    assert evaluation.status is EvaluationStatus.PASSED
    assert "the same steps, mean" in stage(evaluation, "state").detail


def test_without_a_buffer_of_that_name_a_solution_is_suspicious(referee):
    evaluation = judge(referee, STATISTICS, COUNT, (STEPS, "pass"))
    assert evaluation.status is EvaluationStatus.PASSED
    assert evaluation.evidence is Evidence.SUSPICIOUS
    assert ReasonCode.STATE_MISSING in evaluation.codes


KEPT = 'self.register_buffer("last", torch.zeros(64, 64))'
COPY = problem("self.last.copy_(x)\nreturn torch.tanh(x)", "torch.randn(64, 64)", KEPT)
VIEW = problem("self.last = x\nreturn torch.tanh(x)", "torch.randn(64, 64)", KEPT)
COPIED_IF_ASKED = (
    "def forward(self, x):",
    "def state_dict(self, *of, **named):\n        self.last = self.last.clone()\n"
    "        return super().state_dict(*of, **named)\n\n    def forward(self, x):",
)


@pytest.mark.parametrize("more", [[], [COPIED_IF_ASKED]], ids=["always", "until somebody looks"])
def test_state_is_no_view_of_an_input(referee, more):
    wrong = judge(referee, COPY, ("self.last.copy_(x)", "self.last = x"), *more)
    assert stage(wrong, "state").status is EvaluationStatus.INCORRECT_NUMERICAL
    assert "reused the memory of their inputs" in wrong.reasons[0]
    assert judge(referee, COPY, ("self.last.copy_(x)", "self.last = x * 1")).status is EvaluationStatus.PASSED


@pytest.mark.parametrize("other", ["self.last = x", "self.last = x * 1"])
def test_state_may_be_a_view_of_an_input_if_the_references_is(referee, other):
    right = judge(referee, VIEW, ("self.last = x", other))
    assert right.status is EvaluationStatus.PASSED, right.reasons


def test_a_python_number_has_bounds_from_the_references_error(referee):
    other = ("(y + 0.1).sum().item()", "sum(row.sum().item() for row in y + 0.1)")
    assert judge(referee, LOSS, other).status is EvaluationStatus.PASSED
    for wrong in ("y.sum().item()", "(y.half() + 0.1).sum().item()"):
        evaluation = judge(referee, LOSS, ("(y + 0.1).sum().item()", wrong))
        assert evaluation.status is EvaluationStatus.INCORRECT_NUMERICAL
    evaluation = judge(referee, LOSS, ("float((y + 0.1).sum().item())", "(y + 0.1).sum()"))
    assert evaluation.status is EvaluationStatus.INCORRECT_SHAPE
    evaluation = judge(referee, LOSS, ("x.shape[0]", "x.shape[0] + 1"))
    assert evaluation.status is EvaluationStatus.INCORRECT_NUMERICAL


def test_the_order_of_a_dictionary_does_not_matter(referee):
    other = '{"scaled": x + x, "parts": {0: x - 1, 1: x + 1}, "loss": x.sum()}'
    right = NAMED.reference.split("return ")[1].splitlines()[0]
    assert judge(referee, NAMED, (right, other)).status is EvaluationStatus.PASSED
    wrong = other.replace("{0: x - 1, 1: x + 1}", "{0: x + 1, 1: x - 1}")
    assert judge(referee, NAMED, (right, wrong)).status is EvaluationStatus.INCORRECT_NUMERICAL


BOUNDED = problem(
    "return self.table(x)", "torch.randint(0, 64, (128,))",
    "self.table = torch.nn.Embedding(64, 8, max_norm=1.0)",
)  # fmt: skip


def test_parameters_that_calls_change_are_state(referee):
    right = judge(referee, BOUNDED)
    assert right.status is EvaluationStatus.PASSED, right.reasons
    assert "the same table.weight" in stage(right, "state").detail
    aside = ("self.table(x)", "torch.nn.functional.embedding(x, self.table.weight.clone(), max_norm=1.0)")
    wrong = judge(referee, BOUNDED, aside)
    assert stage(wrong, "state").status is EvaluationStatus.INCORRECT_NUMERICAL


def test_state_may_be_kept_in_inference_mode(referee):
    inference = (
        "def forward(self, x):",
        "@torch.inference_mode()\n    def forward(self, x):\n        self.mean = self.mean * 1",
    )
    evaluation = judge(referee, STATISTICS, inference)
    assert evaluation.status is EvaluationStatus.PASSED, evaluation.reasons
