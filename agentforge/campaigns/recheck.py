"""An artifact, judged again: with this torch, compiler and driver, is it still right and still faster?"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from agentforge.config import Settings
from agentforge.runs import verify
from agentforge.schema import (
    AgentForgeError,
    Definition,
    Evaluation,
    Evidence,
    FrozenModel,
    Interval,
    Level,
    Permission,
    UsageError,
    baseline_name,
)
from agentforge.stitch.precision import permitted
from agentforge.stitch.proof import seen_runs
from agentforge.stitch.sources import FOLDER


class Recheck(FrozenModel):
    """What became of one artifact."""

    artifact: str
    mode: str = ""
    """What runs in its call: `kernels`, `compile`, `eager`, ..."""
    ok: bool = False
    """It is right, and faster if it is not `eager`."""
    right: bool | None = None
    """It passed every check, and each of its kernels ran as often as expected; None if it was not judged."""
    faster: bool | None = None
    """Verified, with the low end of the speedup above 1; None if that is not decided, or it is `eager`."""
    baseline: str = "eager"
    """Of the speedups: the fastest one when the artifact was made."""
    before: Interval | None = None
    """Speedup when the artifact was made."""
    now: Interval | None = None
    changed: dict[str, tuple[str, str]] = {}
    """Versions then and now, by program, if they differ; empty for one that was not there."""
    sentence: str = ""
    evaluation: Evaluation | None = None


def recheck(folder: Path, settings: Settings, progress: Callable[[str], None] | None = None) -> Recheck:
    """Build an artifact's sources with the tools of now, and judge them at level full.

    What the artifact cannot be judged for, for example a GPU that is missing, is in the sentence.

    Raises:
        UsageError: the folder is no artifact.
    """
    plan, report, definition = _read(folder)
    name = folder.name or str(folder)
    made = report.get("performance") or {}
    baseline = str(made.get("best_baseline") or "eager")
    before = (made.get("speedup") or {}).get(baseline)
    bare = Recheck(
        artifact=str(folder),
        mode=str(plan.get("mode", "")),
        baseline=baseline,
        before=Interval.model_validate(before) if before else None,
    )
    try:
        solution = folder / "kernelbench_solution.py"
        evaluation = verify(definition, solution, Level.FULL, str(plan["device"]), settings, progress)
    except AgentForgeError as error:
        return bare.model_copy(update={"sentence": f"{name} cannot be judged here: {error}"})
    return judged(bare, report, evaluation)


def judged(bare: Recheck, report: Mapping[str, Any], evaluation: Evaluation) -> Recheck:
    """An artifact with the verdict of now; `report` is the content of its `report.json`."""
    idle = _idle(report, evaluation)
    right = evaluation.passed and evaluation.evidence is not Evidence.SUSPICIOUS and not idle
    performance = evaluation.performance if right else None
    now = performance.speedup.get(bare.baseline) if performance else None
    decided = now is not None and evaluation.verified and bare.mode != "eager"
    faster = now.low > 1 if now is not None and decided else None
    changed = _changed(report, evaluation)
    return bare.model_copy(
        update={
            "ok": right and (bare.mode == "eager" or faster is True),
            "right": right,
            "faster": faster,
            "now": now,
            "changed": changed,
            "evaluation": evaluation,
            "sentence": _sentence(bare, right, faster, now, idle or list(evaluation.reasons), changed),
        }
    )


class _Made(BaseModel):
    """The part of a `report.json` that this module reads."""

    class Made(BaseModel):
        """The artifact's speed when it was made."""

        best_baseline: str | None = None
        speedup: dict[str, Interval] | None = None

    class Kernel(BaseModel):
        """A kernel, and how often one forward runs it."""

        name: str
        runs_expected: int

    class Provenance(BaseModel):
        """Where the artifact was made."""

        class Environment(BaseModel):
            """Versions by program."""

            toolchain: dict[str, str] | None = None

        environment: Environment | None = None

    performance: Made | None = None
    kernels: tuple[Kernel, ...] = ()
    precision: dict[str, Any] | None = None
    provenance: Provenance | None = None


def check_artifact(folder: Path) -> None:
    """Refuse a folder that is no artifact.

    Raises:
        UsageError: it lacks a file, or one has a wrong content.
    """
    _read(folder)


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, Any], Definition]:
    """Plan, report and definition of an artifact."""
    try:
        plan, report = (json.loads((folder / name).read_text()) for name in ("plan.json", "report.json"))
        reference = (folder / "reference_model.py").read_text()
        if not (isinstance(report, dict) and isinstance(plan["device"], str)):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(
            f"{folder} is no artifact: give the folder with plan.json and report.json that a run wrote"
        ) from error
    modules = folder.absolute() / FOLDER
    root = str(modules) if modules.is_dir() else None
    definition = Definition(name="artifact", op_type="model", reference=reference, import_root=root)
    try:
        _Made.model_validate(report)
        precision = report.get("precision") or {}
        if precision.get("installed"):
            fields = {k: v for k, v in precision.items() if k in Permission.model_fields}
            definition = permitted(definition, Permission.model_validate(fields))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"{folder}/report.json is not as a run wrote it ({place}: {first['msg']}): "
            "give the folder that a run wrote"
        ) from error
    return plan, report, definition


def _idle(report: Mapping[str, Any], evaluation: Evaluation) -> list[str]:
    """Kernels that did not run as often as when the artifact was made."""
    if not evaluation.passed:
        return []
    seen, expected = seen_runs(evaluation), {k["name"]: k["runs_expected"] for k in report.get("kernels", ())}
    return [
        f"kernel {name} ran {seen.get(name, 0)} times in one forward, not {runs}"
        for name, runs in expected.items()
        if seen.get(name, 0) != runs
    ]


def _changed(report: Mapping[str, Any], evaluation: Evaluation) -> dict[str, tuple[str, str]]:
    environment = (report.get("provenance") or {}).get("environment") or {}
    then, now = environment.get("toolchain") or {}, evaluation.environment.toolchain
    names = sorted(then.keys() | now.keys()) if then else []
    return {n: (then.get(n, ""), now.get(n, "")) for n in names if then.get(n, "") != now.get(n, "")}


def _sentence(
    bare: Recheck,
    right: bool,
    faster: bool | None,
    now: Interval | None,
    reasons: list[str],
    changed: Mapping[str, tuple[str, str]],
) -> str:
    why = f": {reasons[0]}" if reasons else ""
    measured = f": {now} over {baseline_name(bare.baseline)}" if now else ""
    measured += f", {bare.before} when it was made" if now and bare.before else ""
    if not right:
        said = f"is no longer right{why}"
    elif bare.mode == "eager":
        said = "is still right, and runs the original model"
    elif faster is None:
        said = f"is still right; whether it is faster is not decided{why or measured}"
    else:
        said = f"is still right and {'still' if faster else 'no longer'} faster{measured}"
    versions = ", ".join(f"{n} {a or 'none'} is now {b or 'none'}" for n, (a, b) in changed.items())
    name = Path(bare.artifact).name or bare.artifact
    return " ".join(f"{name} {said}{f' ({versions})' if versions else ''}".split())
