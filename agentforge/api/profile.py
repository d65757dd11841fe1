"""`agentforge.profile`: where a model's time goes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from .arguments import naming_arguments
from .tables import Bottlenecks
from .targets import as_target, load_settings, where_of

if TYPE_CHECKING:
    import torch

    from agentforge.config import Settings
    from agentforge.schema import Profile


@naming_arguments
def profile(
    model: torch.nn.Module | str | os.PathLike[str],
    example_inputs: Any = None,
    *,
    device: str | torch.device = "auto",
    dtype: str | torch.dtype = "",
    init_args: Sequence[Any] | Mapping[str, Any] | None = None,
    generate: str = "",
    shapes: str = "",
    settings: Settings | Mapping[str, Any] | Sequence[str] | None = None,
    progress: bool = False,
) -> ProfileResult:
    """Measure where a model's time goes in one call, in a process of its own.

    Args:
        model: as for `optimize`.
        example_inputs: as for `optimize`.
        device: as for `optimize`.
        dtype: as for `optimize`.
        init_args: as for `optimize`.
        generate: as for `optimize`.
        shapes: as for `optimize`.
        settings: as for `optimize`.
        progress: print lines of progress on stderr.

    Returns:
        The profile; `.bottlenecks` prints as a table and converts with `.to_frame()`.

    Raises:
        AgentForgeError: the model or an input cannot be used; the message says what to do.
    """
    chosen = load_settings(settings)
    from agentforge.config import check_threads
    from agentforge.devices import detect, measure_roofline, with_threads
    from agentforge.profiling import profile_target
    from agentforge.referee.workers.device_backend import backend_for

    check_threads(chosen.referee)
    spec = with_threads(detect(where_of(model, device)), chosen.referee.threads)
    target = as_target(model, example_inputs, spec.torch_device, chosen, init_args, generate, shapes, dtype)
    tell = _tell if progress else None
    with backend_for(spec).lock(chosen.cache, progress=tell):
        roofline = measure_roofline(spec, chosen.cache)
        return ProfileResult(profile_target(target, spec, roofline, progress=tell, ablation=True))


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class ProfileResult:
    """Where a model's time goes.

    Attributes:
        bottlenecks: call sites of one operator each, those with most to gain first.
        total_s: median seconds of one eager call.
        device: what it was measured on.
        notes: what a reader must know, for example a module that could not be captured.
        record: the whole profile as it is stored.
    """

    def __init__(self, record: Profile) -> None:
        self.record = record
        self.bottlenecks = Bottlenecks(record.bottlenecks)
        self.total_s = record.total_s
        self.device = record.device
        self.notes = record.notes

    def __repr__(self) -> str:
        head = f"one call takes {self.total_s * 1e3:.3g} ms on {self.device}"
        return "\n".join([head, repr(self.bottlenecks), *(f"note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        head = f"<p>one call takes {self.total_s * 1e3:.3g} ms on {escape(self.device)}</p>"
        notes = "".join(f"<p>note: {escape(note)}</p>" for note in self.notes)
        return f"{head}{self.bottlenecks._repr_html_()}{notes}"
