"""Which errors mean that memory ran out. On a CPU torch raises a RuntimeError, without a type or a code."""

from __future__ import annotations

_WORDS = (
    "can't allocate memory",
    "not enough memory",
    "bad_alloc",
    "MemoryError",
    "Cannot allocate memory",
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "Triton Error [CUDA]: out of memory",
    "failed: out of memory",  # the launcher of .cu kernels, in the driver's words
)
"""Words of the messages of torch, the C++ runtime and launchers of kernels, which have no code."""


def is_out_of_memory(error: BaseException, message: str) -> bool:
    """Whether an error with this text is Python's, torch's or the C++ runtime's for memory that ran out."""
    named = type(error).__name__ == "OutOfMemoryError"  # torch's; this package imports no torch
    return isinstance(error, MemoryError) or named or says_out_of_memory(message)


def says_out_of_memory(text: str) -> bool:
    """Whether a message or a worker's log contains one of the words for memory that ran out."""
    return any(word in text for word in _WORDS)
