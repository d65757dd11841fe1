"""The `triton` language: `@triton.jit` kernels in a `ModelNew` file, with or without a GPU."""

from .language import Triton

__all__ = ["Triton"]
