"""`Definition`: an operator's contract."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import Literal

from pydantic import Field

from ._base import FrozenModel, NonEmptyString, content_hash


class DType(StrEnum):
    """Element types, by torch's names (those of the FlashInfer Trace schema, and float64, complex, uint8)."""

    FLOAT64 = "float64"
    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E5M2 = "float8_e5m2"
    COMPLEX64 = "complex64"
    INT64 = "int64"
    INT32 = "int32"
    INT16 = "int16"
    INT8 = "int8"
    UINT8 = "uint8"
    BOOL = "bool"

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return _ITEMSIZE[self]

    @property
    def is_floating(self) -> bool:
        return self.value.startswith(("float", "bfloat"))


_ITEMSIZE = {
    DType.FLOAT64: 8,
    DType.FLOAT32: 4,
    DType.FLOAT16: 2,
    DType.BFLOAT16: 2,
    DType.FLOAT8_E4M3FN: 1,
    DType.FLOAT8_E5M2: 1,
    DType.COMPLEX64: 8,
    DType.INT64: 8,
    DType.INT32: 4,
    DType.INT16: 2,
    DType.INT8: 1,
    DType.UINT8: 1,
    DType.BOOL: 1,
}

WorkPolicy = Literal["custom-only", "vendor-gemm-allowed", "anything-faster"]
"""Whose code may do the work: the candidate's own kernels alone, those beside the vendor's GEMM and
convolution, or whatever is faster (an end-to-end model)."""


Precision = Literal["bf16", "int8"]
"""Operands of products: `bf16` is bfloat16 with sums in float32, `int8` is 8 bits with sums in int32."""


class TolerancePolicy(FrozenModel):
    """How far an output may be from the reference, in units of the reference's own rounding error.

    The bound for an output is `factor` times the error of the reference in its own dtype against the
    reference in float64, by relative L2 norm and by element, and never less than `floor_ulps` units in the
    last place of the output's dtype at the output's own scale.
    """

    factor: float = Field(default=8.0, gt=0)
    """Allowed multiple of the reference's own error against float64."""
    floor_ulps: float = Field(default=16.0, ge=0)
    """Least allowance, in units in the last place at the scale of the output."""


class Definition(FrozenModel):
    """An operator's contract, in KernelBench's convention.

    `reference` is a Python source with `class Model(torch.nn.Module)`, `get_inputs()` and
    `get_init_inputs()`. A solution's `ModelNew` takes the same init arguments, the same state_dict and
    the same inputs. The names `Definition`, `Workload`, `Solution` and `Evaluation` are those of the
    FlashInfer Trace schema (https://bench.flashinfer.ai/docs/flashinfer-trace).
    """

    name: NonEmptyString
    """Unique and readable, for example `rmsnorm_8192x4096_float32_1f2e`."""
    op_type: NonEmptyString
    """Operator class that strategies are indexed by: `pointwise`, `norm`, `softmax`, `cross_entropy`,
    `rope`, `gated_activation`, `gemm_epilogue`, `reduction`, `pooling`, `attention`, `gemm`, `conv`,
    `embedding`, `experts` (of a mixture), `model` (a whole target), `other`."""
    reference: NonEmptyString
    """Python source in KernelBench's convention."""
    import_root: str | None = None
    """Folder put on `sys.path` while the reference is imported; None for a self-contained source."""
    policy: WorkPolicy = "anything-faster"
    """Whose code may do the work."""
    tolerance: TolerancePolicy = TolerancePolicy()
    """Allowed error."""
    differentiable: bool = False
    """True if gradients are part of the contract."""
    finite: bool = False
    """True if inputs never hold NaN or infinities, so that a solution may do anything with them. An example
    is a KV cache: whether NaN in its unused part reaches the output depends on how a mask is applied."""
    precision: Precision | None = None
    """Lower precision that the user allowed for products with weights: the error of the reference with such
    products is then allowed too. Never set by default."""
    dtypes: tuple[DType, ...] = ()
    """Other types of floating-point inputs that a solution must be right for, beside the workloads' own."""
    description: str = ""
    """For people and prompts."""
    tags: tuple[str, ...] = ()
    """For grouping and filtering, for example `kernelbench:level1`."""

    @property
    def whole_model(self) -> bool:
        """Whether this is a whole model, not a region of one."""
        return self.op_type == "model"

    @cached_property
    def hash(self) -> str:
        """Hash of what affects behaviour: everything but name, description and tags."""
        unset = {name for name in ("dtypes", "finite", "precision") if not getattr(self, name)}
        exclude = {"name", "description", "tags"} | unset
        return content_hash(self.model_dump(mode="json", exclude=exclude))
