"""What a candidate's process says of itself."""

from __future__ import annotations

import pytest

from agentforge.referee import Referee
from agentforge.referee.checks.behaviour.attestation import Attestation, _found_again, _missed, _operator_uses
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.schema import Definition, ReasonCode
from tests.referee.judging import examined, problem

_LOWER = 'torch.set_float32_matmul_precision("medium")'
_PLAIN = problem("return x @ x1", "torch.rand(8, 16), torch.rand(16, 4)")
_LOWERED = problem(
    f"{_LOWER}\nout = x @ x1\ntorch.set_float32_matmul_precision('highest')\nreturn out",
    "torch.rand(8, 16), torch.rand(16, 4)",
)


def _codes(referee: Referee, definition: Definition, *changes: tuple[str, str]) -> tuple[ReasonCode, ...]:
    with examined(referee, definition, *changes) as context:
        Attestation().run(context)
        return tuple(code for code, _ in context.findings.suspicions)


@pytest.mark.parametrize(
    "change",
    [
        ("import torch", f"import torch\n{_LOWER}"),
        ("import torch", "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True"),
        ("return x @", "torch.backends.mkldnn.matmul.fp32_precision = 'bf16'\n        return x @"),
    ],
)
def test_a_lower_precision_for_the_whole_process_is_suspicious(
    referee: Referee, change: tuple[str, str]
) -> None:
    assert _codes(referee, _PLAIN, change) == (ReasonCode.LOWER_PRECISION,)


def test_a_lower_precision_during_the_call_alone_is_suspicious_too(referee: Referee) -> None:
    forward = _LOWERED.reference.partition("(self, x, x1):\n")[2].partition("\n\ndef")[0]
    assert _codes(referee, _PLAIN, ("        return x @ x1", forward)) == (ReasonCode.LOWER_PRECISION,)


def test_what_the_reference_sets_a_solution_may_set(referee: Referee) -> None:
    assert _codes(referee, _LOWERED) == ()
    assert _codes(referee, _PLAIN) == ()


_DRAWS = problem("noise = torch.rand(3)\nreturn x @ x1", "torch.rand(8, 16), torch.rand(16, 4)")


@pytest.mark.parametrize(
    "line", ["torch.manual_seed(3)", "torch.rand(3)", "random.seed(3)", "numpy.random.seed(3)"]
)
def test_a_call_leaves_the_generators_of_the_process_alone(referee: Referee, line: str) -> None:
    changes = (
        ("import torch", "import random\nimport numpy\nimport torch"),
        ("return x @", f"{line}\n        return x @"),
    )
    assert _codes(referee, _PLAIN, *changes) == (ReasonCode.SHARED_GENERATOR,)


def test_a_generator_of_its_own_is_free_and_so_is_what_the_reference_draws_from(referee: Referee) -> None:
    own = "torch.rand(3, generator=torch.Generator().manual_seed(3))"
    assert _codes(referee, _PLAIN, ("return x @", f"{own}\n        return x @")) == ()
    assert _codes(referee, _DRAWS, ("torch.rand(3)", "torch.rand(5)")) == ()


_SOFTMAX = problem("return torch.softmax(x, -1)", "torch.randn(512, 1024)", policy="custom-only")
_HIDDEN = """
lib = torch.library.Library("attestation_hidden", "DEF")
for n in range(250):
    lib.define(f"nothing_{n}(Tensor x) -> Tensor")
    lib.impl(f"nothing_{n}", lambda x: torch.empty(0), "CPU")
lib.define("view(Tensor x) -> Tensor")
lib.impl("view", lambda x: torch.softmax(x, -1), "CPU")
"""


@pytest.mark.parametrize(
    "body",
    [
        "return torch.ops.attestation_hidden.view(x)",
        "for n in range(250 * torch._C._len_torch_dispatch_stack()):\n"
        "            getattr(torch.ops.attestation_hidden, f'nothing_{n % 250}')(x)\n"
        "        return torch.softmax(x, -1)",
    ],
)
def test_operators_do_not_hide_behind_names(referee: Referee, body: str) -> None:
    changes = ("import torch", f"import torch\n{_HIDDEN}"), ("return torch.softmax(x, -1)", body)
    assert ReasonCode.FOREIGN_OPERATORS in _codes(referee, _SOFTMAX, *changes)


def test_a_wait_while_it_is_watched_does_not_hide_operators(referee: Referee) -> None:
    wait = "import time\n        torch._C._len_torch_dispatch_stack() and time.sleep(1)\n        return torch"
    change = "return torch.softmax", f"{wait}.softmax"
    assert ReasonCode.FOREIGN_OPERATORS in _codes(referee, _SOFTMAX, change)


@pytest.mark.parametrize(
    ("name", "spent", "shares"),
    [("aten.gelu", 600_000, [0.6]), ("aten.gelu", 29_000, []), ("aten.gelu", 200_000, []),
     ("", 400_000, []), ("", 900_000, [0.9]), ("", 9_000_000, [1.0])],
)  # fmt: skip
def test_what_was_missed_counts_if_it_takes_long(name: str, spent: int, shares: list[float]) -> None:
    assert [use.share for use in _missed({name: [spent, 1_000_000]})] == shares


def test_what_only_one_look_missed_is_a_pause() -> None:
    usual, held_up = {"aten.gelu": [600_000, 10**6]}, {"aten.gelu": [600_000, 10**6], "": [900_000, 10**6]}
    replies = iter([{"other": held_up}, {"other": usual}, {"other": {}}, {"other": held_up}])
    found = _found_again(_missed(held_up), lambda: next(replies))
    assert [use.name for use in found] == ["aten.gelu"]
    assert _found_again(found, lambda: next(replies)) == []
    assert _found_again([], lambda: next(replies)) == []


@pytest.mark.parametrize("answer", [[], {"a": 1}, {"a": ["x", 1]}, {1: [1, 1]}])
def test_a_false_list_of_what_was_missed_is_no_answer(answer: object) -> None:
    with pytest.raises(WorkerFailure):
        _missed(answer)


def test_operators_beyond_the_longest_list_count_together() -> None:
    uses = _operator_uses({f"aten.op{n}.default": [1, 1 + n] for n in range(300)}, 1_000)
    assert len(uses) == 201
    assert uses[0].name == "aten.op299.default"
    assert uses[-1].name == "100 more operators" and uses[-1].calls == 100
