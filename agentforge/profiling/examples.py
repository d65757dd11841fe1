"""The calls of a target that are captured and timed: one for each of its workloads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch.utils._pytree import tree_map_only

from agentforge.problems.describe import to_device
from agentforge.problems.kernelbench import Problem
from agentforge.referee.inputs.inputs import draw
from agentforge.referee.workers.memory.shared_memory import DTYPES, contiguous_strides
from agentforge.schema import TensorInput, Workload

from .graph.capture import Example


def examples_of(
    problem: Problem, workloads: Sequence[Workload], seed: int, device: torch.device
) -> list[Example]:
    """Arguments for each workload, drawn under a seed; a single one has no name."""
    found = []
    for workload in workloads:
        if workload.source == "spec":
            generator = torch.Generator().manual_seed(seed)
            args, kwargs = workload.arguments(partial(_drawn, generator=generator))
        else:
            args, kwargs = problem.of(workload.key).inputs(seed)
        args, kwargs = tree_map_only(torch.Tensor, _leaf, to_device((args, kwargs), device))
        found.append(Example(args, kwargs, workload.name if len(workloads) > 1 else ""))
    return found


def expanded_notes(workloads: Sequence[Workload]) -> list[str]:
    """What a user should know about inputs that `_leaf` makes dense."""
    inputs = [i for w in workloads for i in w.inputs if isinstance(i, TensorInput)]
    names = dict.fromkeys(i.name for i in inputs if i.strides and _expanded(i.shape, i.strides))
    return [
        f"input {name} is expanded, and kernels run only for a dense one: call contiguous() on it"
        for name in names
    ]


def _expanded(shape: Sequence[int], strides: Sequence[int]) -> bool:
    return any(step == 0 and size > 1 for size, step in zip(shape, strides, strict=True))


def _leaf(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as the referee passes it: dense if it is expanded, without the operators that computed it.

    torch refuses to copy it with them.
    """
    dense = tensor.layout is torch.strided and not tensor.is_nested
    if dense and _expanded(tensor.shape, tensor.stride()):
        tensor = tensor.contiguous()
    return tensor if tensor.is_leaf else tensor.detach()


def _drawn(spec: TensorInput, generator: torch.Generator) -> torch.Tensor:
    strides = spec.strides or contiguous_strides(spec.shape)
    value = torch.empty_strided(spec.shape, strides, dtype=DTYPES[spec.dtype.value])
    draw(value, spec.distribution, generator)
    return value
