"""What a run of `optimize` begins with: a model, a kernel, a sequential function, or words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from agentforge.schema import UsageError

if TYPE_CHECKING:
    from agentforge.analysis import Report
    from agentforge.config import Settings
    from agentforge.frontends import FrontendOptions
    from agentforge.loop import OnEvent

_NATIVE = (".c", ".cc", ".cpp", ".cxx", ".cu")


class Start(Protocol):
    """Begins a run and sees it through."""

    def __call__(self, settings: Settings, *, device: str, out: Path | None, on_event: OnEvent) -> Report:
        """See `agentforge.campaigns.optimize`."""
        ...


def choose(
    target: str, *, reference: str, origin: str, intent: str, shapes: Sequence[str], options: FrontendOptions
) -> Start:
    """How to begin, by what was given.

    Args:
        target: what the user points at; empty with an intent.
        reference: what the target, a kernel, computes.
        origin: `sequential`, or empty.
        intent: what to compute, in words.
        shapes: `--input-shape`.
        options: what the user said of a model's inputs.

    Raises:
        UsageError: the options do not go together.
    """
    if sum(map(bool, (reference, origin, intent))) > 1:
        raise UsageError("--reference, --from and --intent are three ways to begin: give one of them")
    if intent:
        return _words(target, intent)
    if not target:
        raise UsageError('say what to optimize: a file.py, or --intent "what it computes"')
    if origin:
        return _sequential(target, origin, shapes)
    if reference:
        return _kernel(target, reference, options)
    if Path(target).suffix in _NATIVE:
        raise UsageError(
            f"{Path(target).name} is no model: say what it computes with --reference ref.py, or for a "
            "sequential function --from sequential"
        )
    return _model(target, options)


def _model(target: str, options: FrontendOptions) -> Start:
    def start(settings: Settings, *, device: str, out: Path | None, on_event: OnEvent) -> Report:
        from agentforge.campaigns import optimize

        return optimize(target, options, settings, device=device, out=out, on_event=on_event)

    return start


def _kernel(target: str, reference: str, options: FrontendOptions) -> Start:
    def start(settings: Settings, *, device: str, out: Path | None, on_event: OnEvent) -> Report:
        from agentforge.campaigns import optimize_kernel

        return optimize_kernel(
            Path(target), reference, options, settings, device=device, out=out, on_event=on_event
        )

    return start


def _sequential(target: str, origin: str, shapes: Sequence[str]) -> Start:
    if origin != "sequential":
        raise UsageError(f"--from {origin} is not known: it is --from sequential, for a C or C++ function")
    sizes = _sizes(shapes)

    def start(settings: Settings, *, device: str, out: Path | None, on_event: OnEvent) -> Report:
        from agentforge.campaigns import optimize_sequential

        return optimize_sequential(Path(target), sizes, settings, device=device, out=out, on_event=on_event)

    return start


def _words(target: str, intent: str) -> Start:
    if target:
        raise UsageError(f"--intent writes the reference itself: leave out {target}")

    def start(settings: Settings, *, device: str, out: Path | None, on_event: OnEvent) -> Report:
        from agentforge.campaigns import optimize_intent

        return optimize_intent(intent, settings, device=device, out=out, on_event=on_event)

    return start


def _sizes(shapes: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """`--input-shape n=1024` by parameter.

    Raises:
        UsageError: one has no name or does not read.
    """
    from agentforge.frontends import FrontendOptions
    from agentforge.frontends.module import parse_inputs

    inputs = parse_inputs(FrontendOptions(input_shapes=tuple(shapes)))
    if any(not i.keyword for i in inputs):
        raise UsageError("with --from sequential a size has its parameter's name: --input-shape n=1048576")
    return {i.keyword: i.shape for i in inputs}
