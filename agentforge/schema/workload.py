"""`Workload`: one concrete input configuration of a `Definition`."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field

from ._base import FrozenModel, NonEmptyString, content_hash
from .definition import DType


class Distribution(FrozenModel):
    """Where the values of an input come from, as seen in the real model."""

    kind: Literal["normal", "uniform", "integers", "bernoulli", "constant"] = "normal"
    """`normal(a, b)` mean and standard deviation; `uniform(a, b)`; `integers` in [a, b);
    `bernoulli` true with probability a; `constant` a."""
    a: float = 0.0
    """First parameter."""
    b: float = 1.0
    """Second parameter."""


class TensorInput(FrozenModel):
    """A tensor argument."""

    type: Literal["tensor"] = "tensor"
    name: NonEmptyString
    """Parameter name in `forward`."""
    shape: tuple[int, ...]
    """Sizes; empty for a 0-d tensor."""
    dtype: DType
    """Element type."""
    strides: tuple[int, ...] | None = None
    """Strides in elements; None for contiguous."""
    distribution: Distribution = Distribution()
    """How fresh values are drawn."""
    keyword: bool = False
    """True if `forward` takes it by name."""

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the dense tensor."""
        return self.numel * self.dtype.itemsize


class ScalarInput(FrozenModel):
    """A Python scalar, string or None passed as it is."""

    type: Literal["scalar"] = "scalar"
    name: NonEmptyString
    value: int | float | bool | str | None
    keyword: bool = False


InputSpec = Annotated[TensorInput | ScalarInput, Field(discriminator="type")]


class Workload(FrozenModel):
    """One concrete input configuration."""

    name: NonEmptyString
    """Unique within its definition, for example `8192x4096`."""
    source: Literal["spec", "reference"] = "spec"
    """`spec`: the referee draws inputs from `inputs`. `reference`: the reference's own `get_inputs()`
    is run under a fresh secret seed, in the reference's process; `inputs` says what it gave."""
    inputs: tuple[InputSpec, ...] = ()
    """Arguments of `forward`, positional ones first."""
    weight: float = Field(default=1.0, gt=0)
    """Calls of this configuration in one run of the target."""
    key: str = ""
    """What `get_inputs` takes, if the reference lists several `workloads`; empty for no argument. Means over
    workloads with keys are geometric: they are no calls of one run, and each counts the same."""

    @cached_property
    def hash(self) -> str:
        unsaid = {"name", "weight", *(() if self.key else ("key",))}
        return content_hash(self.model_dump(mode="json", exclude=unsaid))

    def arguments(self, value_of: Callable[[TensorInput], Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments of `forward`, with `value_of(input)` for each tensor."""
        values = [(i, value_of(i) if isinstance(i, TensorInput) else i.value) for i in self.inputs]
        return (
            tuple(value for spec, value in values if not spec.keyword),
            {spec.name: value for spec, value in values if spec.keyword},
        )

    @property
    def nested(self) -> bool:
        """Whether `inputs` has items of lists, tuples or dicts: a dot in a name leads into one."""
        return any("." in i.name for i in self.inputs)

    @property
    def tokens(self) -> int:
        """Tokens of a step of a generation; 0 for another workload."""
        return sum(i.numel for i in self.inputs if isinstance(i, TensorInput) and i.name == "input_ids")

    @property
    def nbytes(self) -> int:
        """Bytes of all tensor inputs."""
        return sum(i.nbytes for i in self.inputs if isinstance(i, TensorInput))
