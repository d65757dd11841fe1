"""Weights as training may leave them, in reference and candidate."""

from __future__ import annotations

import pytest
import torch

from agentforge.referee.checks.correctness.trained_weights import CHANGES, TrainedWeights
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.referee.workers.memory.shared_memory import Layout

from ..judging import examined, problem

LARGEST = problem(
    "return (x * self.gain).amax(1)", "torch.randn(64, 32)", "self.gain = torch.nn.Parameter(torch.rand(32))"
)
BOUNDED = problem(
    "return x @ self.w.clamp(-1, 1)",
    "torch.randn(64, 32)",
    "self.w = torch.nn.Parameter(torch.randn(32, 32) / 8)",
)
ROOTS = problem(
    "return x * self.variance.sqrt()",
    "torch.randn(64, 32)",
    "self.variance = torch.nn.Parameter(torch.rand(32) + 0.5)",
)
TABLE = problem(
    "return x @ self.table",
    "torch.randn(64, 32)",
    "self.table = torch.nn.Parameter(torch.rand(32, 32), requires_grad=False)",
)
WIDER = "    def forward(self, x):"
PACKED = f"        self.packed = self.gain.detach().clone()\n\n{WIDER}"
HOOK = (
    "        self.packed = self.gain.detach().clone()\n"
    "        self.register_load_state_dict_post_hook(lambda m, _: m.pack())\n\n"
    "    def pack(self):\n        self.packed = self.gain.detach().clone()\n\n"
)


@pytest.mark.parametrize(
    ("task", "change", "found"),
    [
        (LARGEST, ("(x * self.gain).amax(1)", "torch.where(x > 0, x * self.gain, x).amax(1)"), "both signs"),
        (BOUNDED, (".clamp(-1, 1)", ""), "64 times as large"),
    ],
    ids=["signs", "bound"],
)
def test_what_is_right_for_initial_weights_alone_is_wrong(referee, task, change, found):
    with examined(referee, task, change) as context, pytest.raises(WorkerFailure, match=found):
        TrainedWeights().run(context)
    with examined(referee, task) as context:
        assert f"{found}: right" in TrainedWeights().run(context)


def test_both_have_their_weights_again_afterwards(referee):
    with examined(referee, LARGEST) as context:
        TrainedWeights().run(context)
        weights, prepared = context.baselines.weights, context.prepared
        gain = weights.block.tensor(Layout.from_json(weights.state["gain"]))
        right = (prepared.inputs.tensors(0)[0] * gain).amax(1)
        context.candidate.call(0)
        assert torch.equal(context.candidate.fetch(0)[0].value, right)
        assert torch.equal(context.baselines.expect(prepared, 0)[0].value, right)


def test_weights_for_which_the_reference_is_not_defined_are_left_alone(referee):
    with examined(referee, ROOTS) as context:
        told = TrainedWeights().run(context)
    assert "both signs: not defined by the reference" in told
    assert "64 times as large: right" in told


def test_what_is_not_trained_stays(referee):
    with examined(referee, TABLE) as context:
        assert "no weights" in TrainedWeights().run(context)


def test_what_a_constructor_packed_is_not_compared_unless_a_hook_packs_it_again(referee):
    forward = ("self.gain)", "self.packed)")
    with examined(referee, LARGEST, (WIDER, PACKED), forward) as context:
        assert "keeps what its constructor made" in TrainedWeights().run(context)
    with examined(referee, LARGEST, (WIDER, HOOK + WIDER), forward) as context:
        assert "both signs: right" in TrainedWeights().run(context)


@pytest.mark.parametrize("shape", [(1,), (3,), (64, 5)])
def test_changes_concern_at_least_one_element(shape):
    weight = torch.rand(shape) + 0.5
    signs, large, doubled, exchanged, columns = (change(weight.clone()) for change in CHANGES.values())
    for larger in (large, doubled):
        assert 0 < int((larger != weight).sum()) <= max(1, weight.numel() // 64)
    assert torch.equal(signs.abs(), weight)
    assert bool((signs < 0).any()) == (weight.numel() > 1)
    assert int((exchanged != weight).sum()) == (2 * weight[0].numel() if len(weight) > 1 else 0)
    assert torch.equal(exchanged.sort(0).values, weight.sort(0).values)
    assert int((columns != weight).sum()) == (2 * len(weight) if weight.dim() > 1 else 0)
    assert torch.equal(columns.sort(-1).values, weight.sort(-1).values)
    negative = torch.randn(64) - torch.tensor([9.0] + 63 * [0.0])
    assert torch.equal(CHANGES["weights of both signs"](negative.clone()), negative)


KNOTS = problem(
    "return torch.searchsorted(self.knots.detach(), x)",
    "torch.rand(64, 32) * 4 - 1",
    "self.knots = torch.nn.Parameter(torch.linspace(1, 2, 32))",
)
BLUR = problem(
    "return torch.nn.functional.conv2d(x, self.k[None, None])",
    "torch.randn(2, 1, 32, 32)",
    "line = torch.exp(-torch.linspace(-1, 1, 7) ** 2); self.k = torch.nn.Parameter(torch.outer(line, line))",
)


def test_sorted_weights_stay_sorted_and_symmetric_ones_symmetric(referee):
    by_search = ("torch.searchsorted(self.knots.detach(), x)", "(x[..., None] > self.knots).sum(-1)")
    evenly = (
        "return torch.searchsorted(self.knots.detach(), x)",
        "a, b = self.knots[0], self.knots[-1]; return ((x - a) / (b - a) * 31).ceil().clamp(0, 32).long()",
    )
    with examined(referee, KNOTS, by_search) as context:
        assert "some weights doubled: right" in TrainedWeights().run(context)
    with examined(referee, KNOTS, evenly) as context, pytest.raises(WorkerFailure, match="weights"):
        TrainedWeights().run(context)
    with examined(referee, BLUR, ("self.k[", "self.k.mT[")) as context:
        assert "some weights doubled: right" in TrainedWeights().run(context)


def test_a_kernel_is_separable_at_first_only(referee):
    usual = "torch.nn.functional.conv2d(x, self.k[None, None])"
    across = usual.replace("None])", "None, 3:4] / self.k[3, 3])")
    in_two = f"torch.nn.functional.conv2d({across}, self.k[None, None, :, 3:4])"
    with examined(referee, BLUR, (usual, in_two)) as context, pytest.raises(WorkerFailure, match="weights"):
        TrainedWeights().run(context)


def test_weights_with_several_names_stay(referee):
    tied = problem(
        "return x * self.a * self.b",
        "torch.randn(64, 32)",
        "self.a = torch.nn.Parameter(torch.rand(32)); self.b = self.a",
    )
    with examined(referee, tied) as context:
        assert "no weights" in TrainedWeights().run(context)


GAIN = problem(
    "return x * self.gain", "torch.randn(16, 512)", "self.gain = torch.nn.Parameter(torch.randn(512))"
)
BY_SAMPLE = """sample = self.gain[7:8].clone()
        if not torch.equal(sample, getattr(self, "sample", sample - 1)):
            self.sample, self.packed = sample, self.gain.detach().clone()
        return x * self.packed"""


def test_weights_that_are_known_again_by_a_sample(referee):
    """They are not those of a constructor: if all elements are others, the answer is another."""
    usual = "return x * self.gain"
    found = pytest.raises(WorkerFailure, match=r"64 times as large|exchanged")
    with examined(referee, GAIN, (usual, BY_SAMPLE)) as context, found:
        TrainedWeights().run(context)
    with examined(referee, GAIN, (usual, BY_SAMPLE.replace("[7:8]", ""))) as context:
        assert "two rows of weights exchanged: right" in TrainedWeights().run(context)


AFFINE = problem(
    "return x @ self.w.t() + self.b",
    "torch.randn(64, 32)",
    "self.w = torch.nn.Parameter(torch.randint(-8, 9, (16, 32)).float()); "
    "self.b = torch.nn.Parameter(torch.randn(16))",
)
KEPT = """key = KEY
        if not torch.equal(key, getattr(self, "key", key - 1)):
            self.key, self.kept = key, (self.w.detach().t().clone(), self.b.detach().clone())
        return x @ self.kept[0] + self.kept[1]"""


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("torch.cat([self.w.sum(1), self.b])", "two columns of weights exchanged"),
        ("self.w.detach().clone()", "some of b, and nothing else"),
        ("torch.tensor([self.w._version])", "some of b, and nothing else"),
        ("self.b.detach().clone()", "exchanged|some of w, and nothing else"),
    ],
)
def test_weights_that_are_known_again_by_sums_or_by_others(referee, key, found):
    change = ("return x @ self.w.t() + self.b", KEPT.replace("KEY", key))
    with examined(referee, AFFINE, change) as context, pytest.raises(WorkerFailure, match=found):
        TrainedWeights().run(context)


@pytest.mark.parametrize(
    "key", ["torch.cat([self.w.flatten(), self.b])", "torch.tensor([self.w._version, self.b._version])"]
)
def test_weights_that_are_known_again_by_all_that_changes_are_right(referee, key):
    change = ("return x @ self.w.t() + self.b", KEPT.replace("KEY", key))
    with examined(referee, AFFINE, change) as context:
        assert "some of b, and nothing else, 64 times as large: right" in TrainedWeights().run(context)


SCALED = problem(
    "return x @ self.w.t() * self.c + self.b",
    "torch.randn(64, 32)",
    "self.w = torch.nn.Parameter(torch.randn(16, 32)); self.c = torch.nn.Parameter(torch.rand(32)[:16] + 1); "
    "self.b = torch.nn.Parameter(torch.randn(1))",
)


def test_a_parameter_that_a_constructor_packed_excuses_no_other_and_spoils_none(referee):
    """The smallest one comes first: what follows must have the first weights again."""
    packs = "        self.packed = self.b.detach().clone()\n\n    def forward(self, x):"
    with examined(referee, SCALED, (WIDER, packs), ("+ self.b", "+ self.packed")) as context:
        told = TrainedWeights().run(context)
    assert "some of b, and nothing else, 64 times as large: it keeps what its constructor made" in told
    assert "some of w, and nothing else, 64 times as large: right" in told
