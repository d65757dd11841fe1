"""The file that has the weights of a live module."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agentforge.schema import Target, UsageError

if TYPE_CHECKING:
    import torch

_FILE = re.compile(r"^_WEIGHTS = Path\((.+)\)$", re.MULTILINE)


def check_weights(target: Target) -> None:
    """Refuse a live module whose weights are gone: its source would draw others.

    Raises:
        UsageError: they cannot be read here.
    """
    found = _FILE.search(target.definition.reference) if target.origin.startswith("live:") else None
    if found is not None and not os.access(file := ast.literal_eval(found[1]), os.R_OK):
        raise UsageError(
            f"{target.name} needs its weights, and {file} cannot be read: give the model again, to "
            "agentforge.optimize(model, inputs), or of a finished run to agentforge.resume(run, model=model)"
        )


def recomputed(model: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Tensors beside parameters and buffers that are computed from them when a module is called: by the old
    `torch.nn.utils.weight_norm` and `spectral_norm`, and by `torch.nn.utils.prune`."""
    import torch
    from torch.nn.utils.prune import BasePruningMethod
    from torch.nn.utils.spectral_norm import SpectralNorm
    from torch.nn.utils.weight_norm import WeightNorm

    for module in model.modules():
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm | SpectralNorm | BasePruningMethod):
                name = hook._tensor_name if isinstance(hook, BasePruningMethod) else hook.name
                value = vars(module).get(name)
                if isinstance(value, torch.Tensor):
                    yield value
