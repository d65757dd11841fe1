"""Choose the kind of run that `optimize` starts: for a model, a kernel, a sequential function or an
intent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentforge.schema import UsageError

if TYPE_CHECKING:
    from agentforge.frontends import FrontendOptions
    from agentforge.runs import RunStart

_NATIVE = (".c", ".cc", ".cpp", ".cxx", ".cu")


def choose(target: str, *, reference: str, origin: str, intent: str, options: FrontendOptions) -> RunStart:
    """The beginning of the kind of run that the options ask for.

    Args:
        target: model or file; empty with an intent.
        reference: a model that computes the same as the target, a kernel.
        origin: `sequential`, or empty.
        intent: the computation, in words.
        options: how to load a model; its input shapes are also the sizes of a sequential function.

    Raises:
        UsageError: the options do not go together.
    """
    if sum(map(bool, (reference, origin, intent))) > 1:
        raise UsageError("--reference, --from and --intent exclude each other: give one of them")
    if options.generate and (reference or origin or intent):
        raise UsageError(
            "--generate goes with hf:CONFIG.json alone: leave out --reference, --from and --intent"
        )
    if options.shapes and (reference or origin or intent):
        raise UsageError("--shapes goes with a model alone: leave out --reference, --from and --intent")
    if intent and target:
        raise UsageError(f"--intent takes no target: leave out {target}")
    if origin not in ("", "sequential"):
        raise UsageError(f"--from {origin} is unknown: use --from sequential, for a C or C++ function")
    if not (intent or target):
        raise UsageError(
            'name a target, for example model.py, or describe one with --intent "softmax over rows"'
        )
    if not (intent or origin or reference) and Path(target).suffix in _NATIVE:
        raise UsageError(
            f"{Path(target).name} is not a PyTorch model: add --reference ref.py if it is a kernel, or "
            "--from sequential if it is a sequential function"
        )
    given = _given(options)
    if intent and given:
        raise UsageError(f"--intent describes the inputs too: leave out {', '.join(given)}")
    if origin and (ignored := [name for name in given if name != "--input-shape"]):
        raise UsageError(
            f"--from sequential takes --input-shape NAME=SIZES alone: leave out {', '.join(ignored)}"
        )
    from agentforge import runs  # each kind loads on its own

    if intent:
        return runs.IntentStart(intent)
    if origin:
        return runs.SequentialStart(Path(target), _sizes(options.input_shapes))
    if reference:
        return runs.KernelStart(Path(target), reference, options)
    return runs.ModelStart(target, options)


def _given(options: FrontendOptions) -> list[str]:
    """The options about inputs and constructor that the user gave."""
    given = {
        "--input": options.inputs,
        "--input-shape": options.input_shapes,
        "--input-dtype": options.input_dtypes,
        "--init-args": options.init_args,
        "--dtype": options.dtype != "float32",
    }
    return [name for name, value in given.items() if value]


def _sizes(shapes: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """`--input-shape n=1024` by parameter.

    Raises:
        UsageError: a shape has no name or cannot be parsed.
    """
    from agentforge.frontends import FrontendOptions
    from agentforge.frontends.input_options import parse_inputs

    inputs = parse_inputs(FrontendOptions(input_shapes=tuple(shapes)))
    if any(not i.keyword for i in inputs):
        raise UsageError("with --from sequential, each size names its parameter: --input-shape n=1048576")
    return {i.keyword: i.shape for i in inputs}
