"""`agentforge profile`: the ranked bottlenecks only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import _options, _print, _text

if TYPE_CHECKING:
    from agentforge.schema import Bottleneck, Profile


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def profile(
        target: Annotated[str, typer.Argument(help="file.py, file.py:ClassName or hf:CONFIG.json")],
        device: _options.Device = "auto",
        input_shape: _options.InputShape = None,
        input_dtype: _options.InputDType = None,
        dtype: _options.DType = "float32",
        init_args: _options.InitArgs = "",
        config: _options.Config = None,
        json: _options.Json = False,
    ) -> None:
        """Show where a model's time goes, ranked by what is still to be had."""
        settings = _options.settings(config)
        from agentforge.devices import detect, measure_roofline
        from agentforge.frontends import load_target
        from agentforge.profiling import profile_target

        spec = detect(device)
        options = _options.frontend_options(input_shape, input_dtype, dtype, init_args, spec.kind)
        loaded = load_target(target, options)
        progress = None if json else _print.aside
        result = profile_target(loaded, spec, measure_roofline(spec, settings.cache), progress=progress)
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
    _print.table(
        ["bottleneck", "sites", "share", "time", "light", "bound", "to gain", "limit", ""],
        (
            (
                b.definition.name,
                len(b.call_sites),
                f"{b.share:.1%}",
                _text.seconds(b.time_s),
                _text.seconds(b.sol_s),
                b.bound,
                _text.seconds(b.gain_s),
                f"{b.speedup_limit:.2f}x",
                _remark(b),
            )
            for b in profile.bottlenecks
        ),
    )
    for note in profile.notes:
        _print.line(f"note: {note}")


def _remark(bottleneck: Bottleneck) -> str:
    """Whether we leave it alone, and on a GPU whose kernels run there now."""
    from agentforge.profiling.kernels import family

    now = {family(kernel) for site in bottleneck.call_sites for kernel in site.kernels}
    return ", ".join([*([] if bottleneck.optimizable else ["vendor library"]), *sorted(now)])
