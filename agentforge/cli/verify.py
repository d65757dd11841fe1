"""`agentforge verify`: one candidate against one problem, in KernelBench's convention."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import _options, _print, _text

if TYPE_CHECKING:
    from agentforge.schema import Evaluation


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def verify(
        reference: Annotated[Path, typer.Argument(help="File with Model, get_inputs(), get_init_inputs().")],
        solution: Annotated[Path, typer.Argument(help="File with ModelNew, or a solution's folder.")],
        level: Annotated[
            str, typer.Option("--level", help="quick (a first verdict, never verified) or full.")
        ] = "full",
        device: _options.Device = "auto",
        config: _options.Config = None,
        json: _options.Json = False,
    ) -> None:
        """Judge one candidate against one problem.

        Exit code: 0 verified (at --level quick: passed), 1 verdict against the candidate, 2 bad usage,
        3 the referee itself failed.
        """
        progress = None if json else _print.aside
        evaluation = judge(reference, solution, level, device, config, progress)
        if json:
            _print.as_json(summary(evaluation))
        else:
            show(evaluation)
        raise typer.Exit(exit_code(evaluation))


def judge(
    reference: Path,
    solution: Path,
    level: str,
    device: str,
    config: list[str] | None,
    progress: Callable[[str], None] | None,
) -> Evaluation:
    """Load both files and ask the referee.

    Raises:
        AgentForgeError: a file, an option or the machine cannot be used.
    """
    from agentforge.schema import Level, UsageError

    if level not in tuple(Level):
        raise UsageError(f"--level takes quick or full, not {level!r}")
    settings = _options.settings(config)
    from agentforge.devices import detect
    from agentforge.frontends import FrontendOptions, load_target
    from agentforge.harness import Referee
    from agentforge.languages import read_solution

    spec = detect(device)
    if not solution.exists():
        raise UsageError(f"{solution} does not exist: give a file with ModelNew, or a solution's folder")
    read_solution(solution, "-")  # before the reference is run: what cannot be read is told at once
    target = load_target(str(reference), FrontendOptions(device=spec.kind))
    candidate = read_solution(solution, target.definition.hash)
    with Referee(settings.referee, device=spec, cache=settings.cache) as referee:
        return referee.evaluate(
            target.definition, target.workloads, candidate, level=Level(level), progress=progress
        )


def exit_code(evaluation: Evaluation) -> int:
    """0 verified, or passed where only `quick` was asked for; 3 harness failure; else 1."""
    from agentforge.schema import EvaluationStatus, Evidence, Level

    if evaluation.status is EvaluationStatus.HARNESS_ERROR:
        return 3
    unproven = evaluation.level is Level.QUICK and evaluation.evidence is not Evidence.SUSPICIOUS
    return 0 if evaluation.verified or (evaluation.passed and unproven) else 1


def summary(evaluation: Evaluation) -> dict[str, Any]:
    """The JSON answer: what a program reads first, then the whole evaluation's other parts."""
    body = evaluation.model_dump(mode="json")
    first = ("status", "evidence", "reasons", "stages")
    performance = body.pop("performance")
    return {
        **{key: body.pop(key) for key in first},
        "speedup": performance["speedup"] if performance else {},
        "environment": body.pop("environment"),
        "performance": performance,
        **body,
    }


def show(evaluation: Evaluation) -> None:
    """The verdict for a person."""
    _print.line(f"{evaluation.status.value}, {evaluation.evidence.value} ({evaluation.seconds:.1f} s)")
    for reason in evaluation.reasons:
        _print.line(f"  {reason}")
    _print.table(
        ["stage", "status", "seconds", ""],
        ((s.name, s.status.value, f"{s.seconds:.2f}", s.detail) for s in evaluation.stages),
    )
    for d in evaluation.diagnostics:
        where = f"{d.file}:{d.line}: " if d.file else ""
        _print.line(f"{where}{d.severity}: {d.message}")
    if evaluation.performance is not None:
        for name, value in evaluation.performance.speedup.items():
            baseline = _text.seconds(evaluation.performance.baseline_s[name])
            _print.line(f"speedup over {name} ({baseline}): {_text.interval(value.model_dump())}")
        control = _text.interval(evaluation.performance.control.model_dump())
        _print.line(f"control, the same baseline twice: {control}")
