"""`agentforge profile`: rank the bottlenecks of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from agentforge.views import bottlenecks as _bottlenecks
from agentforge.views import output as _print
from agentforge.views import text as _text

from .. import _options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentforge.schema import Bottleneck, CallSite, Profile

_FEW, _LEAST_SHARE = 12, 0.005
"""Bottlenecks that are always shown; of more, the last ones below this share of the time are not."""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    @_options.expanded
    def profile(
        target: Annotated[str, typer.Argument(help="file.py, file.py:ClassName or hf:CONFIG.json")],
        device: _options.Device = "auto",
        inputs: _options.Inputs = _options.Inputs(),
        config: _options.Config = None,
        json: _options.Json = False,
    ) -> None:
        """Show where a model's time goes, ranked by the time that better kernels could save."""
        settings = _options.settings(config)
        from agentforge.config import check_threads
        from agentforge.devices import detect, measure_roofline, with_threads
        from agentforge.frontends import load_target
        from agentforge.profiling import profile_target

        check_threads(settings.referee)
        spec = with_threads(detect(device), settings.referee.threads)
        progress = None if json else _print.aside
        options = inputs.frontend_options(spec.torch_device, progress)
        loaded = load_target(target, options, settings.frontend_options)
        from agentforge.referee.workers.device_backend import backend_for  # it needs torch

        with backend_for(spec).lock(settings.cache, progress=progress):
            roofline = measure_roofline(spec, settings.cache)
            result = profile_target(loaded, spec, roofline, progress=progress, ablation=json)
        if json:
            _print.as_json(result)
        else:
            show(result)


def show(profile: Profile) -> None:
    """The bottlenecks as a table."""
    _print.line(
        f"one forward takes {_text.seconds(profile.total_s)} on {profile.device} "
        f"(median of {profile.traces} traces, {profile.attributed:.0%} attributed)"
    )
    shown = _worth_showing(profile.bottlenecks)
    _print.table(*_bottlenecks.table(shown))
    if rest := profile.bottlenecks[len(shown) :]:
        share = sum(b.share for b in rest)
        _print.line(f"{len(rest)} more take {share:.1%} of the time together; --json has them")
    if others := profile.without_kernel():
        _print.line("time of other parts, for which no kernel is written:")
        _print.table(
            ["part", "operators", "share", "time"],
            (
                (
                    s.name,
                    _operators(s),
                    f"{s.calls * s.time_s / profile.total_s:.1%}",
                    _text.seconds(s.calls * s.time_s),
                )
                for s in others
            ),
        )
    for note in profile.notes:
        _print.line(f"note: {note}")


def _worth_showing(bottlenecks: Sequence[Bottleneck]) -> Sequence[Bottleneck]:
    """The bottlenecks without the last ones that take next to no time."""
    last = max((n for n, b in enumerate(bottlenecks, 1) if b.share >= _LEAST_SHARE), default=0)
    return bottlenecks[: max(last, _FEW)]


def _operators(site: CallSite) -> str:
    """The operators of a call site that has no definition; its module was not captured if it names none."""
    names = dict.fromkeys(o.removesuffix(".default") for o in site.operators)
    return ", ".join([*names][:3]) or "not captured"
