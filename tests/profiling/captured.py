"""Units of one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from agentforge.profiling.graph.capture import Capture, Check, Example, capture_examples


def capture_units(
    model: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], check: Check = lambda unit: None
) -> Capture:
    return capture_examples(model, [Example(args, kwargs)], check)
