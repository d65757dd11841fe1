"""Two models of one solution in one process."""

from __future__ import annotations

import pytest

from agentforge.referee.checks.correctness.second_instance import SecondInstance
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.schema import EvaluationStatus

from ..judging import examined, problem

TASK = problem(
    "return x * self.gain", "torch.randn(64, 32)", "self.gain = torch.nn.Parameter(torch.rand(32) + 0.5)"
)
GIVEN = problem(
    "return x * self.gain", "torch.randn(64, 32)", "self.gain = torch.nn.Parameter(torch.arange(32.0) % 7)"
)
COUNTS = problem(
    "self.calls += 1\nreturn x * self.gain",
    "torch.randn(64, 32)",
    "self.gain = torch.nn.Parameter(torch.rand(32)); self.register_buffer('calls', torch.zeros(()))",
)
HALF = problem(
    "return x * self.gain[:16].sum()",
    "torch.randn(64, 32)",
    "self.gain = torch.nn.Parameter(torch.rand(32) + 0.5)",
)
NONE = problem("return x * 2", "torch.randn(64, 32)")
FORWARD = "return x * self.gain"
BY_VERSION = (
    "if self.__dict__.get('made', (None,))[0] != self.gain._version:\n"
    "            self.made = self.gain._version, self.gain.detach().clone()\n"
    "        return x * self.made[1]"
)
BY_ADDRESS = (
    "key = self.gain.data_ptr(), self.gain._version\n"
    "        if key not in KEPT:\n            KEPT[key] = self.gain.detach().clone()\n"
    "        return x * KEPT[key]"
)
AT_FIRST = (
    "if 'made' not in self.__dict__:\n            self.made = self.gain.detach().clone()\n"
    "        return x * self.made"
)
OF_THE_LAST = AT_FIRST.replace("self.made =", "self.made = KEPT['gain'] =").replace(
    "* self.made", "* KEPT['gain']"
)
OF_THE_FIRST = "return x * KEPT.setdefault('gain', self.gain.detach().clone())"
TOO_MANY = (
    "        super().__init__()",
    "        super().__init__()\n        KEPT[len(KEPT)] = 1 // (1 - len(KEPT))",
)
KEEPS = "import torch", "import torch\n\nKEPT = {}"


@pytest.mark.parametrize(
    "forward", [FORWARD, BY_VERSION, BY_ADDRESS, AT_FIRST], ids=["plain", "version", "address", "first"]
)
def test_each_with_its_own_weights_is_right(referee, forward):
    with examined(referee, TASK, KEEPS, (FORWARD, forward)) as context:
        assert SecondInstance().run(context) == "right beside a second one with other weights"


def test_weights_that_do_not_matter_are_no_other_weights(referee):
    """The change takes elements by chance; it must be the same one for the reference and the candidate."""
    with examined(referee, HALF) as context:
        for _ in range(12):
            assert SecondInstance().run(context) == "right beside a second one with other weights"


@pytest.mark.parametrize(
    ("forward", "told"),
    [(OF_THE_LAST, "after a second instance"), (OF_THE_FIRST, "answers as the first one does")],
    ids=["last", "first"],
)
def test_weights_that_all_share_are_wrong(referee, forward, told):
    with examined(referee, TASK, KEEPS, (FORWARD, forward)) as context:
        with pytest.raises(WorkerFailure, match=told) as info:
            SecondInstance().run(context)
        assert info.value.status is EvaluationStatus.INCORRECT_NUMERICAL


def test_a_second_one_may_have_what_every_constructor_makes(referee):
    made = "self.gain = torch.nn.Parameter(torch.arange(32.0) % 7)"
    packs = made, f"{made}; self.made = self.gain.detach().clone()"
    with examined(referee, GIVEN, packs, (FORWARD, "return x * self.made")) as context:
        assert SecondInstance().run(context) == "right beside a second one with other weights"


def test_one_that_cannot_be_constructed_twice_is_left_alone(referee):
    with examined(referee, TASK, KEEPS, TOO_MANY) as context:
        assert "cannot be constructed" in SecondInstance().run(context)
        context.candidate.call(0)


@pytest.mark.parametrize("task", [COUNTS, NONE])
def test_without_weights_or_with_state_there_is_no_second_one(referee, task):
    with examined(referee, task) as context:
        assert "no weights for a second one" in SecondInstance().run(context)


def test_the_reference_has_its_weights_again_afterwards(referee):
    with examined(referee, TASK, KEEPS, (FORWARD, OF_THE_FIRST)) as context:
        context.prepared.inputs.fill(0)
        before = context.baselines.expect(context.prepared, 0)[0].value
        x = context.prepared.inputs.copies(0)[0]
        ratio = before / x
        with pytest.raises(WorkerFailure):
            SecondInstance().run(context)
        after = context.baselines.expect(context.prepared, 0)[0].value
        now = context.prepared.inputs.copies(0)[0]
        assert ((after / now - ratio).abs() < 1e-5).all()
