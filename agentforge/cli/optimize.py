"""`agentforge optimize`: a model, a kernel or words go in, something verified and faster comes out."""

from __future__ import annotations

from typing import Annotated

import typer

from . import _options


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def optimize(
        target: Annotated[
            str,
            typer.Argument(
                help="file.py, file.py:ClassName or hf:CONFIG.json; a kernel with --reference; a C or C++ "
                "file with --from sequential; nothing with --intent.",
            ),
        ] = "",
        device: _options.Device = "auto",
        minutes: _options.Minutes = None,
        attempts: _options.Attempts = None,
        dollars: _options.Dollars = None,
        out: _options.Out = None,
        reference: Annotated[
            str,
            typer.Option(
                "--reference",
                metavar="TARGET",
                help="The target is a kernel of yours (ModelNew in a .py file or a folder, or bare C++) that "
                "computes the same as this one: go on from it.",
            ),
        ] = "",
        origin: Annotated[
            str,
            typer.Option("--from", metavar="KIND", help="sequential: make a C or C++ function parallel."),
        ] = "",
        intent: Annotated[
            str,
            typer.Option(
                "--intent",
                metavar="WORDS",
                help="What to compute, in words: a model writes the reference and its inputs first.",
            ),
        ] = "",
        input_shape: _options.InputShape = None,
        input_dtype: _options.InputDType = None,
        dtype: _options.DType = "float32",
        init_args: _options.InitArgs = "",
        tokens: _options.Tokens = None,
        llm: _options.LLM = None,
        planner: _options.Agent = None,
        coder: _options.Agent = None,
        judge: _options.Agent = None,
        record: _options.Record = None,
        config: _options.Config = None,
        json: _options.Json = False,
    ) -> None:
        """Make a model faster: profile it, search for kernels, put the verified ones in, prove it.

        Ctrl-C leaves a run that `agentforge runs resume` continues.
        """
        settings = _options.settings(
            config,
            budget__minutes=minutes,
            budget__attempts=attempts,
            budget__dollars=dollars,
            budget__tokens=tokens,
            search__planner=planner or llm,
            search__coder=coder or llm,
            search__judge=judge or llm,
            llm__record=record,
        )
        from agentforge.devices import detect

        from ._report import campaign
        from ._start import choose

        kind = detect(device).kind
        start = choose(
            target,
            reference=reference,
            origin=origin,
            intent=intent,
            shapes=input_shape or [],
            options=_options.frontend_options(input_shape, input_dtype, dtype, init_args, kind),
        )
        campaign(
            lambda on_event: start(settings, device=device, out=out, on_event=on_event),
            as_json=json,
        )
