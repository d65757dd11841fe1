"""`agentforge verify`: judge one candidate against one problem, both in KernelBench's convention."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentforge.views import output as _print
from agentforge.views import text as _text

from .. import _options

if TYPE_CHECKING:
    from agentforge.schema import Evaluation


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(name="verify")
    def verify_command(
        reference: Annotated[
            Path, typer.Argument(help="File with Model, get_inputs() and get_init_inputs().")
        ],
        solution: Annotated[Path, typer.Argument(help="File with ModelNew, or the folder of a solution.")],
        level: Annotated[
            str, typer.Option("--level", help="full, or quick for a first verdict that is never `verified`.")
        ] = "full",
        device: _options.Device = "auto",
        patience: _options.Patience = None,
        config: _options.Config = None,
        json: _options.Json = False,
    ) -> None:
        """Judge one candidate: check its outputs against the reference, then time it.

        Exit codes: 0 verified (with --level quick: passed and not suspicious), 1 a verdict against the
        candidate, or not verified, 2 bad usage or something is missing, 3 the referee itself failed.
        """
        from agentforge.runs import verify

        settings = _options.settings(config, referee__patience_s=patience)
        progress = None if json else _print.aside
        evaluation = verify(str(reference), solution, level, device, settings, progress)
        if json:
            _print.as_json(summary(evaluation))
        else:
            show(evaluation)
        raise typer.Exit(exit_status(evaluation))


def exit_status(evaluation: Evaluation) -> int:
    """0 if verified, or if `quick` was asked for and passed; 3 if the referee failed; else 1."""
    from agentforge.schema import EvaluationStatus, Level

    if evaluation.status is EvaluationStatus.HARNESS_ERROR:
        return 3
    unproven = evaluation.level is Level.QUICK and not evaluation.suspicious
    return 0 if evaluation.verified or (evaluation.passed and unproven) else 1


def summary(evaluation: Evaluation) -> dict[str, Any]:
    """The JSON answer: the fields that a program reads first, then the rest of the evaluation."""
    body = evaluation.model_dump(mode="json")
    first = ("status", "evidence", "reasons", "stages")
    performance = body.pop("performance")
    return {
        **{key: body.pop(key) for key in first},
        "speedup": performance["speedup"] if performance else {},
        "environment": body.pop("environment"),
        "performance": performance,
        "seconds_by_stage": evaluation.seconds_by_stage(),
        **body,
    }


def stage_rows(evaluation: Evaluation) -> list[tuple[str, str, str, str]]:
    """The table of stages: one that ran in several process groups is one row, and the seconds add up."""
    from agentforge.schema import EvaluationStatus

    rows = []
    for name, seconds in evaluation.seconds_by_stage().items():
        runs = [s for s in evaluation.stages if s.name == name]
        failed = [s.status.value for s in runs if s.status is not EvaluationStatus.PASSED]
        status = (failed or ["PASSED"])[0] if runs else ""
        details = dict.fromkeys(s.detail for s in runs if s.detail)
        rows.append((name, status, f"{seconds:.2f}", " | ".join(details)))
    return [*rows, ("all", "", f"{evaluation.seconds:.2f}", "")]


def show(evaluation: Evaluation) -> None:
    """Show the verdict."""
    _print.line(f"{evaluation.status.value}, {evaluation.evidence.value} ({evaluation.seconds:.1f} s)")
    for reason in evaluation.reasons:
        _print.line(f"  {reason}")
    _print.table(["stage", "status", "seconds", ""], stage_rows(evaluation))
    for d in evaluation.diagnostics:
        where = f"{d.file}:{d.line}: " if d.file else ""
        _print.line(f"{where}{d.severity}: {d.message}")
    if evaluation.performance is not None:
        for name, value in evaluation.performance.speedup.items():
            baseline = _text.seconds(evaluation.performance.baseline_s[name])
            certain = f"at least {value.at_least:.2f}x: " if value.at_least else ""
            _print.line(f"speedup over {name} ({baseline}): {certain}{value}")
        for name, over in evaluation.performance.workload_speedup.items():
            each = ", ".join(f"{value} over {baseline}" for baseline, value in over.items())
            _print.line(f"workload {name}: {each}")
        _print.line(f"control, the same baseline twice: {evaluation.performance.control}")
