"""Child process of a range of shapes: run the model at each shape."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from agentforge.isolation.memory_errors import is_out_of_memory
from agentforge.problems.kernelbench import load_problem
from agentforge.referee.inputs.inputs import draw
from agentforge.referee.workers.memory.shared_memory import DTYPES
from agentforge.schema import Target, TargetError, TensorInput, Workload
from agentforge.visible import first_line


def check_shapes(payload: dict[str, Any], report: Callable[[str], None]) -> dict[str, Any]:
    """Child process: run the model once at each shape.

    Args:
        payload: `target` (JSON) and `device`.

    Returns:
        `notes`: sentences for the user.

    Raises:
        TargetError: the model fails at a shape.
        Exception: torch's own if memory runs out.
    """
    target = Target.model_validate(payload["target"])
    problem = load_problem(target.definition)
    model = problem.build(0).to(payload["device"])
    for workload in (*target.workloads, *target.probes):
        report(f"running {workload.name}")
        _run(target.name, model, workload, payload["device"])
    return {"notes": [f"the calls have {len(target.workloads)} shapes; times are sums over them"]}


def _run(name: str, model: torch.nn.Module, workload: Workload, device: str) -> None:
    args, kwargs = workload.arguments(partial(_drawn, device=device))
    try:
        with torch.no_grad():
            model(*args, **kwargs)
    except Exception as error:
        if is_out_of_memory(error, str(error)):
            raise
        raise TargetError(
            f"{name} fails at {workload.name} ({type(error).__name__}: {first_line(error)}); "
            "give --shapes a range that it accepts, and dimensions that must be equal together: "
            "length:q.1+mask.0=8..64"
        ) from error


def _drawn(spec: TensorInput, device: str) -> torch.Tensor:
    value = torch.empty(spec.shape, dtype=DTYPES[spec.dtype.value])
    draw(value, spec.distribution, torch.Generator().manual_seed(0))
    return value.to(device)
