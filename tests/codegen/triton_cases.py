"""What the playbook's Triton is checked on: each form of a generated kernel, and regions with a plan each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from agentforge.agents import Task
from agentforge.agents.playbook.coder import PlaybookCoder
from agentforge.agents.playbook.planner import PlaybookPlanner
from agentforge.codegen.triton.kernels import Blocks
from agentforge.codegen.triton.program import generate_triton
from agentforge.knowledge import KnowledgeBase
from agentforge.resources import resource
from agentforge.schema import Context, Definition, SourceFile
from agentforge.store import Store
from agentforge.testing.agents import make_task

from .compiled import problem
from .test_codegen import FAMILIES

_randn = torch.randn

CASES: dict[str, tuple[str, list[torch.Tensor]]] = {
    **FAMILIES,
    "long rows": (
        "h = x0 * 2 + x1\n"
        "return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6), F.softmax(h, -1),\n"
        "    torch.cat((h, x0), -1).amax(-1))",
        [_randn(5, 300), _randn(300)],
    ),
    "few long rows": (
        "return x0.sum(), (x0 * x1).mean(-1), x0.amax(), F.mse_loss(x0, x1), x0.softmax(-1)",
        [_randn(2, 70_000), _randn(2, 70_000)],
    ),
    "casts to half types": (
        "return x0.half().float(), x0.bfloat16().t().float() * 2, x0.half() > 0.1",
        [_randn(6, 40)],
    ),
    "several blocks": (
        "return F.gelu(x0 + x1) * x2, x3.t() + 1",
        [_randn(37, 91), _randn(91), _randn(37, 91), _randn(40, 33)],
    ),
    "integers": (
        "return (x0 // -7, x0 % -7, torch.fmod(x0, -7), torch.div(x0, -7, rounding_mode='trunc'), x1 % 0.7,\n"
        "    torch.fmod(x1, 0.7), (x2 * 1000003) % 977, x3 - 3 > 250, x0 << 5, x3 >> 3)",
        [
            torch.randint(-50, 50, (6, 40)),
            _randn(6, 40) * 5,
            torch.randint(-(1 << 31), 1 << 31, (6, 40)).int(),
            torch.randint(0, 256, (6, 40)).byte(),
        ],
    ),
}
"""By name: the body of a forward over x0, x1, ... and its inputs."""
_SMALL: dict[str, dict[str, int]] = {
    "long rows": {"max_block": 64, "block": 64},
    "several blocks": {"block": 128},
}
"""Blocks that bring small tensors to several of them."""


@dataclass(frozen=True)
class Region:
    """A region as profiling extracts it, and the card that is to be carried out."""

    op_type: str
    card: str
    body: str
    inputs: list[torch.Tensor]


_ATEN = "aten = torch.ops.aten\n"
_ROPE = (
    "q = x0.view(2, 9, 3, 32).transpose(1, 2)\n"
    "r = torch.cat((-q[..., 16:], q[..., :16]), -1)\n"
    "return q * x1 + r * x2"
)
REGIONS: dict[str, Region] = {
    "rmsnorm spelled out": Region(
        "norm", "triton-row-program",
        "h = x0 + x1\nreturn x2 * (h * aten.rsqrt.default(h.pow(2).mean(-1, keepdim=True) + 1e-6)), h",
        [_randn(4, 7, 96), _randn(4, 7, 96), _randn(96)],
    ),
    "rmsnorm": Region(
        "norm", "triton-rmsnorm", "return aten.rms_norm.default(x0 + x1, [96], x2, 1e-5)",
        [_randn(28, 96), _randn(28, 96), _randn(96)],
    ),
    "layernorm": Region(
        "norm", "triton-layernorm", "return aten.layer_norm.default(x0, [77], x1, x2) + x0",
        [_randn(5, 6, 77), _randn(77), _randn(77)],
    ),
    "softmax": Region(
        "softmax", "triton-softmax", "return aten.softmax.int(aten.mul.Tensor(x0, 0.3), -1)",
        [_randn(3, 11, 130)],
    ),
    "log-softmax": Region(
        "softmax", "triton-softmax", "return aten.log_softmax.int(x0, 1)", [_randn(33, 57).half()]
    ),
    "cross-entropy": Region(
        "cross_entropy", "triton-cross-entropy",
        "return aten.cross_entropy_loss.default(x0, x1, None, 1, 3)",
        [_randn(33, 57), torch.randint(0, 57, (33,))],
    ),
    "attention": Region(
        "attention", "triton-flash-attention",
        "s = aten.div.Tensor(aten.matmul.default(x0, aten.transpose.int(x1, -2, -1)), 4.0)\n"
        "return aten.matmul.default(aten.softmax.int(s, -1), x2)",
        [_randn(1, 2, 37, 16), _randn(1, 2, 41, 16), _randn(1, 2, 41, 16)],
    ),
    "product with gelu": Region(
        "gemm_epilogue", "triton-matmul-epilogue",
        "return aten.gelu.default(aten.linear.default(x0, x1, x2))",
        [_randn(2, 9, 24), _randn(20, 24), _randn(20)],
    ),
    "gated products": Region(
        "gated_activation", "triton-gated-mlp",
        "return aten.mul.Tensor(aten.linear.default(x0, x1), aten.silu.default(aten.linear.default(x0, x2)))",
        [_randn(2, 9, 40), _randn(20, 40), _randn(20, 40)],
    ),
    "pointwise": Region(
        "pointwise", "triton-row-program", "return aten.silu.default(x0) * x1 + x2",
        [_randn(9, 50), _randn(9, 50), _randn(50)],
    ),
    "rotary embedding": Region(
        "rope", "triton-row-program", _ROPE, [_randn(2, 9, 96), _randn(9, 32), _randn(9, 32)]
    ),
    "reduction": Region("reduction", "triton-row-program", "return x0.sum(0), x0.amax(-1)", [_randn(19, 23)]),
}  # fmt: skip


def gpu_task(region: Region, store: str) -> Task:
    """What the agents are shown of a region on a GPU."""
    definition, workload = problem(_ATEN + region.body, region.inputs)
    definition = definition.model_copy(update={"op_type": region.op_type})
    context = Context(op_type=region.op_type, architecture="sm_90")
    task = make_task()
    bottleneck = task.bottleneck.model_copy(update={"definition": definition, "workloads": (workload,)})
    hardware = replace(task.hardware, device="NVIDIA H100", architecture="sm_90", threads=132)
    with Store(store) as kept:
        playbooks = [resource("knowledge_base", "playbook")]
        strategies = KnowledgeBase(kept, playbooks).retrieve(context, ("triton",), "cuda")
    return replace(
        task,
        bottleneck=bottleneck,
        hardware=hardware,
        context=context,
        strategies=strategies,
        languages=("triton",),
    )


def written(name: str) -> tuple[Definition, list[torch.Tensor], Sequence[SourceFile], dict[str, Any]]:
    """A case's definition, inputs and sources; of a region also what was planned."""
    if name in CASES:
        body, inputs = CASES[name]
        definition, workload = problem(body, inputs)
        blocks = Blocks(**_SMALL.get(name, {}))  # type: ignore[arg-type]
        return definition, inputs, generate_triton(definition, (workload,), blocks), {}
    region = REGIONS[name]
    task = gpu_task(region, "sqlite://")
    offered = [s.id for s in task.strategies]
    wanted = tuple(s for s in task.strategies if s.id == region.card)
    plan = PlaybookPlanner().plan(replace(task, strategies=wanted), None)
    assert plan is not None, f"{region.card} is not among {offered}"
    solution = PlaybookCoder().code(task, plan, None).solution
    about = {"offered": offered, "language": solution.spec.language, "author": solution.author}
    return task.bottleneck.definition, region.inputs, solution.sources, about
