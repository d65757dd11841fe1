"""Find the kernels that won in a run or in an artifact."""

from __future__ import annotations

import re
from pathlib import Path

from agentforge.languages import MANIFEST, read_solution
from agentforge.schema import Solution, StitchResult, UsageError
from agentforge.store import Store

from ._base import WinningKernel

_UNKNOWN_DEFINITION = "0" * 16


def winners_of_run(store: Store, run: str) -> tuple[WinningKernel, ...]:
    """Kernels in the result of a run, each with its task.

    Raises:
        UsageError: there is no such run, it has no result yet, or no kernel won.
    """
    found = store.get_run(run)
    result = store.get_record(found.id, StitchResult)
    profile = store.get_profile(found.id)
    if result is None:
        command = f"agentforge runs resume {found.id}{store.options}"
        raise UsageError(f"run {found.id} has no result yet: finish it with {command}")
    alone = result.mode == "kernel"  # no part of a model, so its calls were not counted
    won = {d: s for d, s in result.chosen.items() if alone or d in result.calls}
    if not won or not result.mode.startswith("kernel"):
        kept = result.mode or "nothing"
        raise UsageError(f"no kernel won in run {found.id}, which kept {kept}: choose another run")
    bottlenecks = {b.definition.hash: b for b in profile.bottlenecks} if profile is not None else {}
    kernels = []
    for definition_hash, solution_hash in won.items():
        bottleneck, definition = bottlenecks.get(definition_hash), store.get_definition(definition_hash)
        kernels.append(
            WinningKernel(
                name=f"{_plain(definition.op_type)}_{definition.hash[:6]}",
                solution=store.get_solution(solution_hash),
                definition=definition,
                workload=bottleneck.workloads[0] if bottleneck is not None else None,
                outputs=bottleneck.call_sites[0].outputs if bottleneck is not None else (),
            )
        )
    return tuple(kernels)


def winners_of_artifact(folder: Path) -> tuple[WinningKernel, ...]:
    """Kernels of an artifact's folder; their tasks are unknown.

    Raises:
        UsageError: it is no artifact, or one without kernels of its own.
    """
    if not (folder / "plan.json").is_file():
        raise UsageError(f"{folder} is neither a run nor an artifact: name a run, or a folder with plan.json")
    if (folder / MANIFEST).is_file():
        return (_alone(read_solution(folder, _UNKNOWN_DEFINITION)),)
    kernels = tuple(
        WinningKernel(_plain(place.name), read_solution(place, _UNKNOWN_DEFINITION))
        for place in sorted((folder / "kernels").glob("*"))
        if place.is_dir()
    )
    if not kernels:
        raise UsageError(f"the artifact {folder} has no kernels of its own: choose another one")
    return kernels


def _alone(found: Solution) -> WinningKernel:
    """The kernel of an artifact that is one solution, without the artifact's own files."""
    sources = tuple(s for s in found.sources if s.path not in ("plan.json", "reference.py"))
    return WinningKernel(_plain(found.name), found.model_copy(update={"sources": sources}))


def _plain(name: str) -> str:
    """A Python identifier in small letters."""
    plain = re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_") or "kernel"
    return plain if plain[0].isalpha() else f"k_{plain}"
