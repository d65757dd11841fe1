from __future__ import annotations

import pytest
import torch

from agentforge.isolation.memory_errors import is_out_of_memory


def test_what_torch_says_on_this_cpu_is_recognised() -> None:
    with pytest.raises(RuntimeError) as raised:
        torch.empty(10**15)
    assert is_out_of_memory(raised.value, str(raised.value))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA error"), True),
        (RuntimeError("std::bad_alloc"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("Triton Error [CUDA]: out of memory"), True),
        (RuntimeError("loading the kernels by a driver of CUDA 13.0 failed: out of memory"), True),
        (RuntimeError("the allocation of experts in memory bank 3 is wrong"), False),
        (ValueError("memory"), False),
    ],
)
def test_only_memory_that_ran_out_counts(error: Exception, expected: bool) -> None:
    assert is_out_of_memory(error, str(error)) is expected
