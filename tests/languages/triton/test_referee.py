"""The referee judges Triton kernels on a machine without a GPU: honest, wrong, cheating, crashing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentforge.config import RefereeSettings
from agentforge.devices import detect
from agentforge.languages.triton.language import solution_targets
from agentforge.referee import EvaluationRequest, Referee
from agentforge.schema import (
    Definition,
    DType,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Level,
    ReasonCode,
    Solution,
    TensorInput,
    Workload,
    WorkPolicy,
)
from agentforge.testing.language import make_solution

pytest.importorskip("triton", reason="Triton is not installed")

REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x, y):
        return torch.relu(x + y) * 0.5

def get_inputs():
    return [torch.randn(37, 61), torch.randn(37, 61)]

def get_init_inputs():
    return []
"""

HEAD = """
import torch
import triton
import triton.language as tl

@triton.jit
def fused(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    y = tl.load(y_ptr + i, mask=i < n, other=0.0)
    z = tl.maximum(x + y, 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(o_ptr + i, z * 0.5, mask=i < n)

class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        o = torch.empty_like(x)
        n = x.numel()
        fused[(triton.cdiv(n, 1024),)](x, y, o, n, BLOCK=1024)
        return o
"""
CHEAT = HEAD.replace("        return o", "        return torch.relu(x + y) * 0.5")


def definition(policy: WorkPolicy = "anything-faster") -> Definition:
    return Definition(name="fused", op_type="pointwise", reference=REFERENCE, policy=policy)


def workload(dtype: DType = DType.FLOAT32) -> Workload:
    inputs = tuple(TensorInput(name=n, shape=(37, 61), dtype=dtype) for n in ("x", "y"))
    return Workload(name="37x61", inputs=inputs)


def solution(source: str, of: Definition, flags: tuple[str, ...] = ()) -> Solution:
    return make_solution("triton", {"model_new.py": source}, flags, of.hash)


@pytest.fixture(scope="module")
def referee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Referee]:
    settings = RefereeSettings(threads=1, compile_baseline=False, random_seeds=2)
    with Referee(settings, device=detect("cpu"), cache=tmp_path_factory.mktemp("cache")) as found:
        yield found


def judge(
    referee: Referee,
    source: str,
    *,
    level: Level = Level.QUICK,
    policy: WorkPolicy = "anything-faster",
    dtype: DType = DType.FLOAT32,
    flags: tuple[str, ...] = (),
) -> Evaluation:
    of = definition(policy)
    return referee.evaluate(
        EvaluationRequest(of, [workload(dtype)], solution(source, of, flags), level=level)
    )


@pytest.mark.slow
@pytest.mark.parametrize("level", [Level.QUICK, Level.FULL])
def test_honest_kernel_is_right_and_of_unknown_speed(referee: Referee, level: Level) -> None:
    verdict = judge(referee, HEAD, level=level, policy="custom-only")
    assert verdict.status is EvaluationStatus.PASSED, verdict.reasons
    assert verdict.evidence is Evidence.UNVERIFIED
    assert verdict.performance is None
    assert len(verdict.reasons) == 1 and "no GPU here" in verdict.reasons[0]
    assert verdict.correctness is not None and verdict.correctness.checked_calls > 3
    assert [u.name for u in verdict.kernels if u.own] == ["fused"]
    assert {(r.kernel, r.target) for r in verdict.resources} == {
        ("fused(BLOCK=1024)", t) for t in solution_targets(solution(HEAD, definition("custom-only")))
    }
    assert all(r.registers > 0 and r.occupancy for r in verdict.resources)
    engaged = {s.name: s.detail for s in verdict.stages}["engagement"]
    assert "without fused its answer is wrong" in engaged


@pytest.mark.slow
def test_half_precision_is_judged_by_its_own_rounding(referee: Referee) -> None:
    for dtype in (DType.BFLOAT16, DType.FLOAT16):
        verdict = judge(referee, HEAD, dtype=dtype)
        assert verdict.status is EvaluationStatus.PASSED, verdict.reasons


@pytest.mark.slow
def test_wrong_kernel(referee: Referee) -> None:
    verdict = judge(referee, HEAD.replace("0.5, mask", "0.51, mask"))
    assert verdict.status is EvaluationStatus.INCORRECT_NUMERICAL


def test_unmasked_tail_is_found(referee: Referee) -> None:
    """Wrong in a way that many inputs do not show: the rest of the block is written too."""
    verdict = judge(referee, HEAD.replace("* 0.5, mask=i < n)", "* 0.5)"))
    assert verdict.status is EvaluationStatus.RUNTIME_ERROR
    assert "model_new.py:12" in verdict.reasons[0] and "outside every tensor" in verdict.reasons[0]


@pytest.mark.slow
def test_kernel_that_does_none_of_the_work(referee: Referee) -> None:
    verdict = judge(referee, CHEAT, policy="custom-only")
    assert verdict.evidence is Evidence.SUSPICIOUS
    assert ReasonCode.IDLE_KERNELS in verdict.codes, verdict.reasons


def test_kernel_that_is_never_launched(referee: Referee) -> None:
    source = CHEAT.replace("        fused[(triton.cdiv(n, 1024),)](x, y, o, n, BLOCK=1024)\n", "")
    verdict = judge(referee, source)
    assert verdict.evidence is Evidence.SUSPICIOUS


@pytest.mark.slow
def test_runs_but_does_not_compile(referee: Referee) -> None:
    """The interpreter takes any Python; the compiler says which line it cannot translate."""
    loop = "    by = 0.0\n    for part in [0.25, 0.25]:\n        by += part\n"
    source = HEAD.replace("    tl.store(o_ptr", loop + "    tl.store(o_ptr").replace(
        "* 0.5, mask", "* by, mask"
    )
    verdict = judge(referee, source)
    assert verdict.status is EvaluationStatus.COMPILE_ERROR, verdict.reasons
    assert verdict.diagnostics[0].file == "model_new.py" and verdict.diagnostics[0].line == 13


@pytest.mark.slow
def test_more_shared_memory_than_there_is(referee: Referee) -> None:
    kernel = """
@triton.jit
def product(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    y = tl.load(y_ptr + at, mask=inside, other=0.0)
    tl.store(o_ptr + at, tl.dot(x, y), mask=inside)
"""
    source = HEAD.replace("class ModelNew", kernel + "\nclass ModelNew").replace(
        "        return o", "        product[(1,)](x, y, torch.empty_like(x), n, BLOCK=128)\n        return o"
    )
    verdict = judge(referee, source, flags=("--target=sm_86",))
    assert verdict.status is EvaluationStatus.COMPILE_ERROR, verdict.reasons
    assert "shared memory" in verdict.reasons[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "status", "says"),
    [
        (("(triton.cdiv(n, 1024),)", "(1, 70000)"), EvaluationStatus.RUNTIME_ERROR, "the grid's y is 70000"),
        (("BLOCK=1024)", "BLOCK=1024, num_warps=64)"), EvaluationStatus.RUNTIME_ERROR, "num_warps is 64"),
        (("BLOCK=1024)", "BLOCK=1000)"), EvaluationStatus.RUNTIME_ERROR, "power of 2"),
        (("tl.program_id(0)", "tl.program_id(0"), EvaluationStatus.COMPILE_ERROR, "model_new.py:8"),
    ],
)
def test_impossible_launches(
    referee: Referee, change: tuple[str, str], status: EvaluationStatus, says: str
) -> None:
    verdict = judge(referee, HEAD.replace(*change))
    assert verdict.status is status and says in verdict.reasons[0], verdict.reasons


def test_unknown_target(referee: Referee) -> None:
    verdict = judge(referee, HEAD, flags=("--target=sm_42",))
    assert verdict.status is EvaluationStatus.COMPILE_ERROR
    assert "unknown target 'sm_42'" in verdict.reasons[0]


@pytest.mark.slow
def test_crash_stays_in_the_child(referee: Referee) -> None:
    """Addresses that come out of memory cannot be checked: a wild one kills the process, and only that."""
    source = HEAD.replace(
        "    tl.store(o_ptr",
        "    wild = (i.to(tl.int64) * 4096).to(tl.pointer_type(tl.float32))\n"
        "    tl.store(wild, x)\n    tl.store(o_ptr",
    )
    verdict = judge(referee, source)
    assert verdict.status is EvaluationStatus.CRASHED, verdict.reasons
    assert judge(referee, HEAD).status is EvaluationStatus.PASSED
