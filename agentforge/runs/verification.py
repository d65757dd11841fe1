"""One verdict: one candidate against one reference, without a run and without the database."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from agentforge.config import Settings, check_threads
from agentforge.schema import Definition, Evaluation, Level, Solution, UsageError, Workload


def verify(
    reference: str | Definition,
    candidate: Path | Solution,
    level: str,
    device: str,
    settings: Settings,
    progress: Callable[[str], None] | None = None,
) -> Evaluation:
    """Load reference and candidate, and ask the referee.

    Args:
        reference: the path of a file in KernelBench's convention, or a definition.
        candidate: a file with `ModelNew`, the folder of a solution, or a solution.
        level: `quick` or `full`.

    Raises:
        AgentForgeError: a file, an option or the machine cannot be used.
    """
    if level not in (Level.QUICK, Level.FULL):
        raise UsageError(f"level takes quick or full, not {level!r}")
    check_threads(settings.referee)
    _check_reference(reference, settings)
    from agentforge.ladder import find_device
    from agentforge.referee import EvaluationRequest, Referee

    spec = find_device(device, settings.cache, progress)
    _solution(candidate, "-")  # a solution that cannot be read is reported before the reference runs
    with Referee(settings.referee, device=spec, cache=settings.cache) as referee:
        # Its workers import torch meanwhile.
        definition, workloads = _problem(reference, spec.torch_device, settings)
        solution = _solution(candidate, definition.hash)
        request = EvaluationRequest(definition, workloads, solution, Level(level))
        return referee.evaluate(request, progress=progress)


def _check_reference(reference: str | Definition, settings: Settings) -> None:
    from agentforge.frontends import frontend_for

    if isinstance(reference, str) and frontend_for(reference, settings.frontend_options).name == "module":
        raise UsageError(
            f"verify reads the inputs from the reference, and {reference} names a class alone: give a file "
            "with class Model, get_inputs() and get_init_inputs()"
        )


def _solution(candidate: Path | Solution, definition: str) -> Solution:
    from agentforge.languages import read_solution

    if isinstance(candidate, Solution):
        return candidate
    if not candidate.exists():
        raise UsageError(
            f"{candidate} does not exist: give a file with ModelNew, or the folder of a solution"
        )
    return read_solution(candidate, definition)


def _problem(
    reference: str | Definition, torch_device: str, settings: Settings
) -> tuple[Definition, tuple[Workload, ...]]:
    from agentforge.frontends import FrontendOptions, load_target, make_target

    if not isinstance(reference, Definition):
        target = load_target(reference, FrontendOptions(device=torch_device), settings.frontend_options)
        return target.definition, target.workloads
    probed = make_target(
        name=reference.name,
        origin=reference.name,
        source=reference.reference,
        import_root=reference.import_root,
        device=torch_device,
    )
    return reference, probed.workloads
