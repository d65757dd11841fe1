"""What a candidate's process says of itself."""

from __future__ import annotations

import pytest

from agentforge.referee import Referee
from agentforge.referee.checks.behaviour.attestation import Attestation
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
