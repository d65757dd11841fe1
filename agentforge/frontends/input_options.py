"""Inputs that the user describes: `--input NAME=SHAPE[:DTYPE]`, `--input-shape` and `--input-dtype`."""

from __future__ import annotations

from dataclasses import dataclass

from agentforge.schema import DType, UsageError

from ._base import FrontendOptions

_INTEGERS = {DType.INT64, DType.INT32, DType.INT16, DType.INT8, DType.UINT8}
INDEX_LIMIT = 16
"""Exclusive upper bound of integer inputs: they may index a table of unknown size."""


@dataclass(frozen=True)
class InputOption:
    """One `--input` or `--input-shape` with its dtype."""

    keyword: str
    """Empty for a positional input."""
    shape: tuple[int, ...]
    dtype: DType
    chosen: bool = False
    """True if the user named the dtype."""

    @property
    def is_integer(self) -> bool:
        return self.dtype in _INTEGERS

    @property
    def expression(self) -> str:
        """Python expression that draws the input."""
        sizes = "".join(f"{s}, " for s in self.shape)
        if self.is_integer:
            return f"torch.randint(0, {INDEX_LIMIT}, ({sizes}), dtype=torch.{self.dtype.value})"
        if self.dtype is DType.BOOL:
            return f"torch.rand(({sizes})) < 0.5"
        if self.dtype is DType.COMPLEX64:
            return f"torch.randn(({sizes}), dtype=torch.complex64)"
        drawn = f"torch.randn({sizes.rstrip(', ')})" if self.shape else "torch.randn(())"
        return drawn if self.dtype is DType.FLOAT32 else f"{drawn}.to(torch.{self.dtype.value})"


def parse_inputs(options: FrontendOptions) -> tuple[InputOption, ...]:
    """Parse `--input-shape` with `--input-dtype`, then `--input`.

    Raises:
        UsageError: a shape or a dtype is invalid.
    """
    default = parse_dtype(options.dtype, "--dtype")
    if len(options.input_dtypes) > len(options.input_shapes):
        raise UsageError(
            "each --input-dtype goes with one --input-shape, and there are fewer of these; "
            "write --input NAME=SIZES:DTYPE for the dtype of one input by name"
        )
    inputs = []
    for index, text in enumerate(options.input_shapes):
        keyword, _, sizes = text.rpartition("=")
        dtypes = options.input_dtypes
        named = dtypes[min(index, len(dtypes) - 1)] if dtypes else ""
        dtype = parse_dtype(named, "--input-dtype") if named else default
        shape = _shape(sizes, keyword, f"--input-shape {text!r} does not read; write 1,512 or name=1,512")
        inputs.append(InputOption(keyword, shape, dtype, bool(named)))
    for text in options.inputs:
        keyword, equals, described = text.partition("=")
        sizes, _, named = described.partition(":")
        advice = f"--input {text!r} does not read; write name=1,512 or name=1,512:int64"
        if not equals:
            raise UsageError(advice)
        dtype = parse_dtype(named, "--input") if named else default
        inputs.append(InputOption(keyword, _shape(sizes, keyword or "=", advice), dtype, bool(named)))
    return tuple(inputs)


def _shape(sizes: str, keyword: str, advice: str) -> tuple[int, ...]:
    try:
        shape = tuple(int(s) for s in sizes.split(",") if s.strip())
    except ValueError:
        shape = (-1,)
    if any(s < 0 for s in shape) or (keyword and not keyword.isidentifier()):
        raise UsageError(advice)
    return shape


def parse_dtype(name: str, option: str) -> DType:
    """A dtype by its name, with or without `torch.`.

    Raises:
        UsageError: there is none of this name; `option` names the source.
    """
    try:
        return DType(name.removeprefix("torch."))
    except ValueError as error:
        known = ", ".join(d.value for d in DType)
        raise UsageError(f"{option} {name!r} is not known; choose one of: {known}") from error
