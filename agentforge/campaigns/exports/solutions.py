"""A campaign's verified solutions in the layout of its suite: FlashInfer Trace, SOL-ExecBench or GPU MODE.

Each definition has one solution for each arm: the one that was judged on all workloads, or one that runs the
kernels that were verified for a call's shapes, and the reference for other ones.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agentforge.exports import write_texts
from agentforge.languages import builds_at_import
from agentforge.languages.solutions.single_file import export_single_file
from agentforge.schema import BuildSpec, Solution, SourceFile, SuiteProblem, UsageError
from agentforge.store import Store

from ..report import CampaignReport
from .by_shape import ENTRY_FILE, entry_files, shape_kernels
from .stitched import nothing_here, stitched_solution

SUITES = ("flashinfer", "sol", "gpu-mode")
"""Suites whose layouts this module writes."""


def export_solutions(store: Store, report: CampaignReport, folder: Path) -> list[Path]:
    """Write a campaign's verified solutions; files of an earlier export are replaced.

    Those that SOL-ExecBench does not build are left out: see `not_built`.

    Returns:
        `solutions/agentforge/OP_TYPE/DEFINITION/NAME.json` for FlashInfer Trace, `PROBLEM/solution_ARM.json`
        for SOL-ExecBench, `TASK/submission_ARM.py` for GPU MODE.

    Raises:
        UsageError: the campaign has no verified solution, or the folder cannot be written.
    """
    name, form = report.campaign.name, report.campaign.suite.partition(":")[0]
    without = not_built(store, report)
    problems = {problem.id: problem for problem in store.campaign_problems(name)}
    texts: dict[str, str] = {}
    for arm in report.campaign.arms:
        tasks: dict[str, list[tuple[SuiteProblem, Solution]]] = {}
        for item in report.of_arm(arm.name).values():
            solution, problem = stitched_solution(store, item), problems[item.problem]
            left_out = f"{item.problem} ({item.arm})" in without
            if solution is not None and problem.source and not left_out:  # an import may have neither
                tasks.setdefault(_task(problem), []).append((problem, solution))
        for task, found in tasks.items():
            texts.update(_files(form, task, arm.name, found))
    if not texts and without:
        raise UsageError(
            f"each verified solution of campaign {name} compiles with load or load_inline of torch, which "
            "SOL-ExecBench forbids: write artifacts with --format artifacts"
        )
    if not texts:
        raise UsageError(nothing_here(report, "solution"))
    return write_texts(texts, folder)


def not_built(store: Store, report: CampaignReport) -> tuple[str, ...]:
    """`PROBLEM (ARM)` of each verified solution for SOL-ExecBench that it does not build.

    For solutions in Python its `driver/templates/eval_driver.py` replaces `load` and `load_inline` of
    `torch.utils.cpp_extension` by an error.
    """
    if report.campaign.suite.partition(":")[0] != "sol":
        return ()
    found = ((item, stitched_solution(store, item)) for item in report.items)
    return tuple(f"{item.problem} ({item.arm})" for item, one in found if one and builds_at_import(one))


def _task(problem: SuiteProblem) -> str:
    """The definition or, for GPU MODE, the task of a problem."""
    kind = problem.native.get("kind")
    task = problem.id.rpartition(f"/{kind}")[0] if kind else problem.definition
    return task or problem.id


def _files(
    form: str, task: str, arm: str, items: Sequence[tuple[SuiteProblem, Solution]]
) -> Iterator[tuple[str, str]]:
    problem, solutions = items[0][0], [solution for _, solution in items]
    of_all = [bool(one.workloads) for one, _ in items]
    found = [shape_kernels(solution, whole=w) for solution, w in zip(solutions, of_all, strict=True)]
    kernels = [one for one in found if one and (one.keys or form != "gpu-mode")]
    if not kernels:
        return
    names = () if form == "gpu-mode" else _parameters(problem.source)
    files = entry_files(problem.source, kernels, names=names)
    about = f"kernels for {len(kernels)} of its workloads, each verified by AgentForge"
    if all(of_all):
        judged = sum(len(one.workloads) for one, _ in items)
        about = f"verified by AgentForge on its {judged} workloads in one verdict"
    if form == "gpu-mode":
        sources = tuple(SourceFile(path=path, content=text) for path, text in files.items())
        whole = Solution(
            name=f"{task}: {about}",
            definition=solutions[0].definition,
            author="agentforge",
            spec=BuildSpec(language="python", entry_point=f"{ENTRY_FILE}::custom_kernel"),
            sources=sources,
        )
        yield f"{task}/submission_{_plain(arm)}.py", export_single_file(whole, "custom_kernel")
        return
    on_gpu = any(s.spec.needs_gpu for s in solutions)
    definition = str(problem.native.get("name") or task)
    body: dict[str, Any] = {
        "name": f"{_plain(definition)}_{_plain(arm)}",
        "definition": definition,
        "author": "agentforge",
        "description": about,
        "spec": _spec(form, on_gpu=on_gpu),
        "sources": [{"path": path, "content": text or "\n"} for path, text in files.items()],
    }
    folder = f"solutions/agentforge/{_plain(problem.group or 'other')}/{_plain(definition)}"
    place = f"{folder}/{body['name']}.json" if form == "flashinfer" else f"{task}/solution_{_plain(arm)}.json"
    yield place, json.dumps(body, indent=1) + "\n"


def _spec(form: str, *, on_gpu: bool) -> dict[str, Any]:
    """Of a function that returns its outputs; what it loads builds itself."""
    written = {"language": "python"} if form == "flashinfer" else {"languages": ["pytorch"]}
    hardware = "LOCAL" if form == "sol" else "cuda" if on_gpu else "cpu"
    return {
        **written,
        "target_hardware": [hardware],
        "entry_point": f"{ENTRY_FILE}::run",
        "dependencies": ["torch"],
        "destination_passing_style": False,
    }


def _parameters(source: str) -> tuple[str, ...]:
    """Names of the arguments of `Model.forward`."""
    (model,) = (n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == "Model")
    (forward,) = (n for n in model.body if isinstance(n, ast.FunctionDef) and n.name == "forward")
    return tuple(argument.arg for argument in forward.args.args[1:])


def _plain(name: str) -> str:
    return re.sub(r"[^\w-]", "_", name)
