"""`agentforge optimize`: make a model, a kernel or a described computation faster."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import _options

Target = Annotated[
    str,
    typer.Argument(
        help="file.py, file.py:ClassName or hf:CONFIG.json. With --reference: a kernel. With --from "
        "sequential: a C or C++ file. With --intent: nothing.",
    ),
]
Reference = Annotated[
    str,
    typer.Option(
        "--reference",
        metavar="TARGET",
        help="A PyTorch model that computes the same as the target. The target is then your kernel "
        "(ModelNew in a .py file or a folder, or plain C++), and the search starts from it.",
    ),
]
Origin = Annotated[
    str,
    typer.Option("--from", metavar="KIND", help="sequential: the target is a sequential C or C++ function."),
]
Intent = Annotated[
    str,
    typer.Option(
        "--intent",
        metavar="WORDS",
        help="The computation, in words. A language model first writes a PyTorch reference for it.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    @_options.expanded
    def optimize(
        target: Target = "",
        device: _options.Device = "auto",
        limits: _options.Limits = _options.Limits(),
        out: _options.Out = None,
        reference: Reference = "",
        origin: Origin = "",
        intent: Intent = "",
        inputs: _options.Inputs = _options.Inputs(),
        agents: _options.AgentChoice = _options.AgentChoice(),
        lower: _options.LowerPrecision = _options.LowerPrecision(),
        patience: _options.Patience = None,
        config: _options.Config = None,
        json: _options.Json = False,
    ) -> None:
        """Make a model faster: profile it, search for kernels, and replace regions by the verified ones.

        Ctrl-C stops a run; `agentforge runs resume` continues it.
        """
        permission = lower.permission()
        settings = _options.settings(
            config,
            search__planner=agents.planner or agents.llm,
            search__coder=agents.coder or agents.llm,
            search__judge=agents.judge or agents.llm,
            search__agents=agents.agents,
            llm__record=agents.record,
            referee__patience_s=patience,
            **{f"budget__{name}": limit for name, limit in limits.given().items()},
        )
        from agentforge.views import output

        from .._dispatch import choose
        from .._report import follow

        aside = None if json else output.aside
        options = inputs.frontend_options(progress=aside)
        start = choose(target, reference=reference, origin=origin, intent=intent, options=options)
        from agentforge.runs.checks import check_start

        # The next import takes seconds.
        where = check_start(start, settings, device=device, out=out, permission=permission, progress=aside)
        from agentforge.runs import start_run

        follow(
            lambda on_event: start_run(
                start, settings, device=where, out=out, permission=permission, on_event=on_event
            ),
            config,
            as_json=json,
        )
