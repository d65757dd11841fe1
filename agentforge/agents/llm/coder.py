"""The LLM coder: writes a whole solution, or edits its parent."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from agentforge.agents._base import Draft, Past, Task, call_failed, cheated
from agentforge.languages import language_info, languages
from agentforge.languages.normal import normalised
from agentforge.languages.tune import BadTune, tunables
from agentforge.llm import CallFailed, CannotAfford, Response
from agentforge.schema import (
    AgentForgeError,
    BuildSpec,
    CannotCode,
    CardKind,
    Evaluation,
    EvaluationStatus,
    Level,
    Plan,
    Solution,
    SourceFile,
)

from . import facts
from .edits import Unreadable, sources
from .history import HEADER, contrast, shown_files, told_findings
from .prompts import (
    example,
    exists,
    problem,
    render,
    simulated,
    with_advice,
    with_directive,
    with_precedents,
    with_target,
)
from .role import Feedback, Objection, Role, sum_of
from .tools import CoderTools
from .yardstick import Yardstick, yardstick

MOST_REPLIES = 4
"""Most times that a model is shown what fails in its code before the code becomes an attempt."""

REPAIRABLE = frozenset(EvaluationStatus) - {
    EvaluationStatus.PASSED,
    EvaluationStatus.CHEATING,
    EvaluationStatus.HARNESS_ERROR,
    EvaluationStatus.UNSUPPORTED,
}
"""Failures that the model is shown; the others are for the search to decide about."""

_DONE = re.compile(r"\A\W*DONE\W*\Z")
"""An answer that hands in the code which a tool got last."""
_EDITED = "an EDIT applies to the files as you wrote them last"
_WRITE = "coder/write.md.j2"
_IMPROVE = "coder/improve.md.j2"
_FREE = (_WRITE, _IMPROVE, "coder/repair_slower.md.j2")
"""Prompts that ask for more than the smallest change."""
_MOST_FINDINGS = 8


class _Verdicts:
    """A task's check that keeps its verdicts. Thread-safe."""

    def __init__(self, task: Task) -> None:
        self._check = task.check
        self._speedup = task.best_baseline.speedup
        self._found: dict[tuple[str, Level], Evaluation] = {}

    def check(self, solution: Solution, level: Level) -> Evaluation | None:
        """See `Check`."""
        found = self._check(solution, level) if self._check is not None else None
        if found is not None:
            self._found[solution.hash, level] = found
        return found

    def rank(self, solution: Solution) -> tuple[bool, bool, float]:
        """Whether a solution passed the most thorough of its checks, without suspicion, and its speedup; 0
        without a time."""
        levels = (Level.QUICK, Level.SMOKE)
        found = next((e for level in levels if (e := self._found.get((solution.hash, level)))), None)
        if found is None:
            return False, False, 0.0
        return found.passed, not found.suspicious, self._speedup(found) or 0.0


class LLMCoder:
    """Asks a model for code."""

    def __init__(self, role: Role) -> None:
        self.name = role.model.spec
        self._role = role
        self._yardsticks: dict[str, Yardstick] = {}

    def code(self, task: Task, plan: Plan, parent: Past | None) -> Draft:
        """See `Coder.code`. Of several drafts, the fastest right one by a brief measurement is returned."""
        verdicts = _Verdicts(task)
        task = replace(task, check=verdicts.check) if task.check else replace(task, drafts=1)
        if task.drafts == 1:
            return self._draft(task, plan, parent, 1, verdicts)
        numbers = range(1, task.drafts + 1)
        with ThreadPoolExecutor(task.drafts) as pool:
            under_way = [pool.submit(self._draft, task, plan, parent, n, verdicts) for n in numbers]
        failed = [call.exception() for call in under_way]
        for error in filter(None, failed):
            if isinstance(error, AgentForgeError) or not isinstance(error, Exception):
                raise error  # it ends the run, not a draft
        drafts = [call.result() for call, error in zip(under_way, failed, strict=True) if error is None]
        paid = [error for error in failed if isinstance(error, CallFailed | CannotAfford)]
        lost = sum_of(error.usage for error in paid)
        if paid and not drafts:
            paid[0].usage = lost
            raise paid[0]
        if not drafts:
            raise next(error for error in failed if error is not None)
        for draft in drafts:
            verdicts.check(draft.solution, Level.QUICK)
        best = max(drafts, key=lambda draft: verdicts.rank(draft.solution))
        return Draft(best.solution, sum_of([*(draft.usage for draft in drafts), lost]))

    def _draft(self, task: Task, plan: Plan, parent: Past | None, number: int, verdicts: _Verdicts) -> Draft:
        language = plan.language
        if not exists(f"coder/languages/{language}.md.j2"):
            known = ", ".join(name for name in languages.names() if exists(f"coder/languages/{name}.md.j2"))
            raise CannotCode(f"there is no prompt for solutions in {language}: choose one of {known}")
        base = _base(plan, parent)
        own = base.solution if base else None
        prompt = render(
            template := _template(base),
            yardstick=self._yardstick(task) if template == _WRITE else None,
            simulated=simulated(task),
            plan=plan,
            language=language,
            parent=_shown(task, base),
            with_change=base is not None and _with_change(task, plan, base),
            contrast=contrast(task, leave_out=base.id if base else None),
        )
        if template in _FREE:
            prompt = with_precedents(prompt, task, language)
            prompt = with_directive(prompt, task)
        prompt = with_target(prompt, task)
        words = f"{task.context.op_type} {plan.strategy} {plan.diagnosis} {' '.join(plan.steps)}"
        prompt = with_advice(prompt, task, (CardKind.HARDWARE,), base.evaluation if base else None, words)
        if task.tunable:
            prompt += "\n\n" + render("coder/tune.md.j2")
        if task.drafts > 1:
            prompt += f"\n\nThis is draft {number} of {task.drafts}. Carry the plan out in your own way."

        written: list[Solution] = []  # the newest code last
        failing: list[Solution] = []

        def read(text: str, author: str = "") -> Solution:
            return self._solution(task, plan, written[-1] if written else own, text, author)

        def take(response: Response, again: bool) -> Solution:
            solution = (
                written[-1]
                if written and _DONE.search(response.text)
                else read(response.text, response.model)
            )
            written.append(solution)
            if any(solution.hash == earlier.hash for earlier in failing):
                raise Objection(f"this is the same code as before: change it ({_EDITED})")
            for level in (Level.SMOKE, Level.QUICK) if task.check and len(failing) < MOST_REPLIES else ():
                evaluation = task.check(solution, level) if task.check else None
                if evaluation is not None and evaluation.status in REPAIRABLE:
                    failing.append(solution)
                    raise Feedback(_reply(solution, evaluation))
                if level is Level.SMOKE and task.twin is not None and (why := task.twin(solution)):
                    raise Objection(f"{why}: change what the processor does ({_EDITED})")
            return solution

        system = (
            problem(task),
            render("coder/system.md.j2") + "\n\n" + render(f"coder/languages/{language}.md.j2"),
            example(task, language),
        )
        tools = CoderTools(task, read, written)
        try:
            solution, usage = self._role.ask(
                system,
                prompt,
                take,
                attempt=task.attempt,
                feedback=MOST_REPLIES,
                tools=tools.specs,
                run_tool=tools,
                newest=lambda: _as_written(written[-1]) if written else "",
            )
        except (CallFailed, CannotAfford) as failure:
            if not written:
                raise
            best = max(reversed(written), key=verdicts.rank)  # the newest one if none was better
            return Draft(best, failure.usage)  # what was written is an attempt, though it may fail
        return Draft(solution, usage)

    def _yardstick(self, task: Task) -> Yardstick:
        """Measured once for a region; a replay needs none, because it does not compare measured text."""
        region = task.bottleneck.definition.hash
        if region not in self._yardsticks:
            replays = self.name.startswith("replay:")
            self._yardsticks[region] = yardstick(replace(task, measure=None) if replays else task)
        return self._yardsticks[region]

    def _solution(self, task: Task, plan: Plan, base: Solution | None, text: str, author: str) -> Solution:
        """The solution in an answer; edits apply to `base`."""
        definition = task.bottleneck.definition
        try:
            files = sources(text, base)
        except Unreadable as problem_:
            raise Objection(str(problem_)) from problem_
        spec = _spec(plan.language, base)
        _check(files, spec)
        files = _with_vector_math(files) if plan.language == "cpp" else files
        solution = Solution(
            name=f"{plan.strategy}-{definition.op_type}",
            definition=definition.hash,
            author=author or self._role.model.model,
            spec=spec,
            sources=files,
            description=f"{plan.strategy}: {plan.diagnosis}",
            parameters=plan.parameters,
        )
        if task.tunable:
            try:
                tunables(solution)
            except BadTune as bad:
                raise Objection(str(bad)) from bad
        own_text = normalised(solution)
        if any(p.solution is not None and normalised(p.solution) == own_text for p in task.past):
            raise Objection("this is the same code as that of an earlier attempt: change it")
        return solution


def _as_written(solution: Solution) -> str:
    """The files, for a conversation whose earlier turns are left out."""
    files = (f"FILE: {file.path}\n```\n{file.content.rstrip()}\n```" for file in shown_files(solution))
    return "\n\n".join(("The files as you wrote them last:", *files))


def _spec(language: str, base: Solution | None) -> BuildSpec:
    """How it is built and entered: as `base`, whose files it keeps, in the same language."""
    return base.spec if base is not None and base.spec.language == language else BuildSpec(language=language)


def _check(files: tuple[SourceFile, ...], spec: BuildSpec) -> None:
    """Check what needs no compiler."""
    by_path = {file.path: file.content for file in files}
    if f"class {spec.entry_class}" not in by_path.get(spec.entry_file, ""):
        raise Objection(f"{spec.entry_file} with `class {spec.entry_class}` is missing")
    kernel_file = language_info(spec.language).kernel_file
    if not any(path.endswith(PurePosixPath(kernel_file).suffix) for path in by_path):
        raise Objection(f"the kernels' file is missing: write it as `FILE: {kernel_file}`")


def _reply(solution: Solution, evaluation: Evaluation) -> str:
    """What fails in the code, as the next turn of the conversation."""
    return render("coder/feedback.md.j2", **facts.of_verdict(solution, evaluation))


def _with_vector_math(files: tuple[SourceFile, ...]) -> tuple[SourceFile, ...]:
    """The files, with the header of the playbook's kernels if they include it and do not write it."""
    written = {file.path for file in files}
    if HEADER in written or not any(f'#include "{HEADER}"' in file.content for file in files):
        return files
    from agentforge.codegen import environment  # it needs torch, and most answers need none of it

    header = environment().get_template(f"{HEADER}.j2").render(libm=False)
    return (*files, SourceFile(path=HEADER, content=header))


def _base(plan: Plan, parent: Past | None) -> Past | None:
    """The parent to build on; None if the plan changes the strategy or the parent cheated."""
    if parent is None or parent.solution is None or cheated(parent):
        return None
    if parent.solution.spec.language != plan.language:
        return None  # for example a seed from the compiler
    failed = parent.evaluation is not None and not parent.evaluation.passed
    if failed and parent.plan is not None and parent.plan.strategy != plan.strategy:
        return None
    return parent


def _with_change(task: Task, plan: Plan, base: Past) -> bool:
    """Whether the prompt shows the judge's change to `base`.

    A repair and the plan that carries the change out need it. Otherwise only the first attempt on `base` sees
    it, so that siblings do not all carry out the same change; one with a target of its own does not.
    """
    if plan.change or (base.critique is not None and base.critique.kind == "repair"):
        return True
    built = (past.id for past in task.past if past.parent == base.id and not call_failed(past))
    return task.aim is None and next(built, task.attempt) == task.attempt


def _template(base: Past | None) -> str:
    """Choose the prompt: one per error class, one after a success, one without a parent."""
    if base is None or base.critique is None:
        return _WRITE
    if base.critique.error_class:
        template = f"coder/repair_{base.critique.error_class}.md.j2"
        return template if exists(template) else "coder/repair_crash.md.j2"
    return _IMPROVE


def _shown(task: Task, base: Past | None) -> dict[str, Any] | None:
    """The parent as the prompts name it."""
    if base is None or base.solution is None:
        return None
    evaluation = base.evaluation
    return {
        **facts.of_verdict(base.solution, evaluation),
        "files": shown_files(base.solution),
        "critique": base.critique,
        "speedup": task.best_baseline.speedup(evaluation),
        "findings": told_findings(evaluation)[:_MOST_FINDINGS] if evaluation else (),
    }
