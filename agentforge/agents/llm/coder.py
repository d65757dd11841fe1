"""The coder: writes a whole solution, or an edit of its parent."""

from __future__ import annotations

from typing import Any

from agentforge.agents._base import CannotCode, Draft, Past, Task
from agentforge.agents.playbook.facts import speedup
from agentforge.llm import Response
from agentforge.schema import BuildSpec, Plan, Solution, SourceFile

from . import facts
from .asking import Objection, Role
from .blocks import Unreadable, sources
from .history import cheated, contrast
from .prompts import example, exists, problem, render

ENTRY = "model_new.py"
_MOST_LOG = 1500
_MOST_FINDINGS = 8


class LLMCoder:
    """Asks a model for code. Stateless."""

    def __init__(self, role: Role) -> None:
        self.name = role.model.spec
        self._role = role

    def code(self, task: Task, plan: Plan, parent: Past | None) -> Draft:
        """See `Coder.code`."""
        language = plan.language
        if not exists(f"coder/languages/{language}.md.j2"):
            raise CannotCode(
                f"there is no prompt for solutions in {language}: choose cpp, cuda, triton or python"
            )
        base = _base(plan, parent)
        prompt = render(
            _situation(base),
            plan=plan,
            language=language,
            parent=_shown(base),
            contrast=contrast(task, leave_out=base.id if base else None),
        )

        def take(response: Response, again: bool) -> Solution:
            return self._solution(task, plan, base, response)

        system = (
            render("coder/system.md.j2") + "\n\n" + render(f"coder/languages/{language}.md.j2"),
            problem(task) + "\n\n" + example(task, language),
        )
        solution, usage = self._role.ask(system, prompt, take, attempt=task.attempt)
        return Draft(solution, usage)

    def _solution(self, task: Task, plan: Plan, base: Past | None, response: Response) -> Solution:
        definition = task.bottleneck.definition
        try:
            files = sources(response.text, base.solution if base else None)
        except Unreadable as problem_:
            raise Objection(str(problem_)) from problem_
        _check(files, plan.language)
        solution = Solution(
            name=f"{plan.strategy}-{definition.op_type}",
            definition=definition.hash,
            author=response.model,
            spec=BuildSpec(language=plan.language),
            sources=files,
            description=f"{plan.strategy}: {plan.diagnosis}",
            parameters=plan.parameters,
        )
        if any(p.solution is not None and p.solution.hash == solution.hash for p in task.past):
            raise Objection("this is the same code as that of an earlier attempt: change it")
        return solution


def _check(files: tuple[SourceFile, ...], language: str) -> None:
    """What can be told without a compiler."""
    by_path = {file.path: file.content for file in files}
    if "class ModelNew" not in by_path.get(ENTRY, ""):
        raise Objection(f"{ENTRY} with `class ModelNew` is missing")
    suffix = {"cpp": ".cpp", "cuda": ".cu"}.get(language)
    if suffix is not None and not any(path.endswith(suffix) for path in by_path):
        raise Objection(f"the kernels' file is missing: write it as `FILE: kernel{suffix}`")


def _base(plan: Plan, parent: Past | None) -> Past | None:
    """The parent that is built upon: none where the plan changes the strategy, or where it cheated."""
    if parent is None or parent.solution is None or cheated(parent):
        return None
    if parent.solution.spec.language != plan.language:
        return None  # a seed from the compiler, for example
    failed = parent.evaluation is not None and not parent.evaluation.passed
    if failed and parent.plan is not None and parent.plan.strategy != plan.strategy:
        return None
    return parent


def _situation(base: Past | None) -> str:
    """One prompt for each error class, one for a success, one for a blank page."""
    if base is None or base.critique is None:
        return "coder/write.md.j2"
    if base.critique.error_class:
        template = f"coder/repair_{base.critique.error_class}.md.j2"
        return template if exists(template) else "coder/repair_crash.md.j2"
    return "coder/improve.md.j2"


def _shown(base: Past | None) -> dict[str, Any] | None:
    """The parent as the prompts name it."""
    if base is None or base.solution is None:
        return None
    evaluation = base.evaluation
    return {
        "files": base.solution.sources,
        "critique": base.critique,
        "speedup": speedup(evaluation),
        "facts": facts.shown(facts.of_evaluation(evaluation)) if evaluation else [],
        "status": evaluation.status.value if evaluation else "",
        "reasons": evaluation.reasons[:4] if evaluation else (),
        "diagnostics": [d for d in evaluation.diagnostics if d.severity == "error"][:8] if evaluation else [],
        "worst": evaluation.correctness.worst if evaluation and evaluation.correctness else "",
        "findings": evaluation.findings[:_MOST_FINDINGS] if evaluation else (),
        "log": evaluation.log[-_MOST_LOG:] if evaluation else "",
    }
