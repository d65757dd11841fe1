"""How SOL-ExecBench draws inputs whose names or descriptions say what they hold.

The names, the ranges and their order are those of its `core/bench/io.py` at 8d2237d.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from agentforge.schema import DType

_ANY_SHAPE, _MATRIX, _SQUARE = range(3)
_RULES = (
    (r"[^:]*norm[0-9]*_weight:.*", _ANY_SHAPE, "_torch.ones({shape})"),
    (r"[^:]*norm[0-9]*_bias:.*", _ANY_SHAPE, "_torch.zeros({shape})"),
    (
        r"(attention|causal)_mask:.*|[^:]*:(?=.*attention mask).*causal.*",
        _SQUARE,
        "_torch.full({shape}, _torch.finfo({dtype}).min, dtype={dtype}).triu(1)",
    ),
    (
        r"(x|text|aspect_ratio|drop|attention)_mask:.*"
        r"|[^:]*_mask:.*(binary|\{0, 1\}|0 or 1|1\.0 for valid|0\.0 for masked).*",
        _ANY_SHAPE,
        "_torch.randint(0, 2, {shape})",
    ),
    (r"(cos|cos_cached|rope_cos):.*", _ANY_SHAPE, "_torch.randn({shape}).clamp(-{pi}, {pi}).cos()"),
    (r"(sin|sin_cached|rope_sin):.*", _ANY_SHAPE, "_torch.randn({shape}).clamp(-{pi}, {pi}).sin()"),
    (
        r"([^:]*_)?((rstd|std|var)[0-9]*|variance):.*|variance[0-9]*:.*",
        _ANY_SHAPE,
        "(_torch.randn({shape}).abs() + 0.1)",
    ),
    (r"A_cumsum:.*", _ANY_SHAPE, "_torch.empty({shape}).uniform_(-0.1, 0.0).cumsum(-1)"),
    (r"A_log:.*", _ANY_SHAPE, "_torch.empty({shape}).uniform_(-5.0, -1.0)"),
    (r"A:.*", _ANY_SHAPE, "_torch.empty({shape}).uniform_(-1.0, -0.001)"),
    (r"g:.*", _ANY_SHAPE, "_torch.empty({shape}).uniform_(-5.0, 0.0)"),
    (
        r"(attn_weights|attention_weights|routing_weights):.*|[^:]*:(?=.*softmax).*output.*",
        _ANY_SHAPE,
        "_torch.randn({shape}).softmax(-1)",
    ),
    (
        r"weight[0-9]*:.*|[^:]*_(weights?|projs?|weight_matrix)[0-9]*:.*",
        _MATRIX,
        "(_torch.randn({shape}) / {root})",
    ),
)
"""For each rule, a pattern of `NAME:DESCRIPTION`, the shapes that the rule is for, and the values. The first
rule that fits counts."""


def named_input(name: str, description: str, dtype: DType, shape: Sequence[int]) -> str:
    """The values of a floating-point input, as `NamedInput` says."""
    said = f"{name}:{description.lower()}"
    for pattern, least, values in _RULES:
        if _has(least, shape) and re.fullmatch(pattern, said, re.DOTALL):
            root = math.sqrt(shape[-1] or 1) if shape else 1.0
            return values.format(shape=list(shape), dtype=f"_torch.{dtype.value}", pi=math.pi, root=root)
    return ""


def _has(least: int, shape: Sequence[int]) -> bool:
    if least == _ANY_SHAPE:
        return True
    return len(shape) >= 2 and (least == _MATRIX or shape[-1] == shape[-2])
