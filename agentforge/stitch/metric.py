"""The user's metric of a model, in a child process: of the original, or with an artifact installed."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from agentforge.isolation.child_process import ChildFailure, run_child
from agentforge.problems.kernelbench import import_root, load_problem
from agentforge.schema import Definition, Permission, Target, TargetError

from .runtime.artifact import Artifact
from .runtime.products import LOWERED

_TIMEOUT_S = 600.0
"""Wall time of one metric, the model's construction included."""
_SEED = 0


def metric_value(
    target: Target,
    permission: Permission,
    artifact: Path | None = None,
    *,
    timeout_s: float = _TIMEOUT_S,
    end: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> float:
    """Call the metric with the target's model, on the same seed each time.

    Args:
        artifact: folder that is installed in the model first; None leaves the model as it is.
        end: monotonic time at which the call is ended; None for no other limit than `timeout_s`.

    Raises:
        TargetError: there is no finite number, or less than half of the metric's calls used what the artifact
            changes; one sentence.
        TimeEnded: `end` came first.
    """
    whose = "the optimized model" if artifact else "the original model"
    payload = {
        "definition": target.definition.model_dump(mode="json"),
        "device": target.device,
        "metric": permission.metric,
        "artifact": str(artifact) if artifact else "",
        "name": f"the metric {permission.function} with {whose}",
    }
    try:
        answer = run_child(
            f"{__name__}:call_metric", payload, timeout_s=timeout_s, end=end, progress=progress
        )
    except ChildFailure as failure:
        why = " ".join(str(failure).split())[:300]
        raise TargetError(f"{payload['name']} failed: {why}; call it once by hand and fix it") from failure
    return float(answer)


def call_metric(payload: Mapping[str, Any], report: Callable[[str], None]) -> float:
    """In the child: build the model, install the artifact, call the metric.

    Raises:
        TargetError: see `metric_value`.
    """
    definition, name = Definition.model_validate(payload["definition"]), payload["name"]
    with import_root(definition.import_root):
        function = _function(payload["metric"])
        report("building the model")
        model = load_problem(definition).build(_SEED).to(torch.device(payload["device"]))
        artifact = Artifact(Path(payload["artifact"])) if payload["artifact"] else None
        fitting: list[bool] = []
        if artifact is not None:
            model = artifact.optimize(model)
            fitting = watch(model, lambda: artifact.calls().get(LOWERED, 0))
        report(f"running {name}")
        torch.manual_seed(_SEED)
        with torch.no_grad():
            value = _number(function(model), name)
    if artifact is not None and not artifact.calls().get(LOWERED):
        raise TargetError(
            f"{name} says nothing about lower precision: it never called the model with arguments like the "
            "example's; use the same shapes and dtypes there"
        )
    if 2 * sum(fitting) < len(fitting):
        raise TargetError(
            f"{name} says little about lower precision: {sum(fitting)} of its {len(fitting)} calls of the "
            "model had arguments like the example's; use the same shapes and dtypes in most of them"
        )
    return value


def watch(model: torch.nn.Module, runs: Callable[[], int]) -> list[bool]:
    """A list that gets an item for each later call of the model: whether `runs` grew in it."""
    found: list[bool] = []
    before: list[int] = []
    model.register_forward_pre_hook(lambda *_: before.append(runs()))
    model.register_forward_hook(lambda *_: found.append(runs() > before.pop()))
    return found


def _function(metric: str) -> Callable[[torch.nn.Module], object]:
    """Import the metric's file, with its folder first on the path."""
    file, _, name = metric.rpartition(":")
    sys.path.insert(0, str(Path(file).parent))
    spec = importlib.util.spec_from_file_location("agentforge_metric", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise TargetError(
            f"{file} has no function {name}: name one that takes the model and returns a number"
        )
    return function


def _number(value: Any, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        kind = type(value).__name__
        raise TargetError(f"{name} returned a {kind}: it must return one finite number") from error
    if not math.isfinite(number):
        raise TargetError(f"{name} returned {number}: it must return one finite number")
    return number
