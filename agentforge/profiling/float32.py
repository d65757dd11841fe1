"""How exactly torch multiplies float32 matrices in this process, which the model's file may have set."""

from __future__ import annotations

import torch

_EXACT = "highest"


def matmul_precision() -> str:
    """`highest`, `high` or `medium`, as `torch.set_float32_matmul_precision` names them."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # a newer setting, `fp32_precision`, contradicts this one
        return "medium" if torch.backends.mkldnn.matmul.fp32_precision == "bf16" else "high"


def product_dtype(device: str) -> str:
    """Dtype in which float32 matrices are multiplied on a type of device: `float32`, `tf32` or `bfloat16`."""
    found = matmul_precision()
    if found == _EXACT:
        return "float32"
    return "bfloat16" if found == "medium" and device == "cpu" else "tf32"


def precision_line() -> str:
    """A line of Python that sets this process's precision in another one; empty for torch's default."""
    found = matmul_precision()
    return "" if found == _EXACT else f'torch.set_float32_matmul_precision("{found}")\n'


def precision_notes() -> list[str]:
    """What a user should know about a setting that is not torch's default."""
    found = matmul_precision()
    if found == _EXACT:
        return []
    return [f"the model's file sets torch's precision of float32 products to {found!r}: so do all regions"]
