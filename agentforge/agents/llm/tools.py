"""Tools that a coder may call before it answers. Candidates run only by the task's check, in the sandbox."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from agentforge.agents._base import Task
from agentforge.llm import ToolCall, ToolSpec
from agentforge.schema import Evaluation, EvaluationStatus, Level, Solution, Strategy, StrategyRecord

from . import facts
from .history import told_findings
from .prompts import render
from .role import Objection

_MOST_CHARACTERS = 12_000
"""Of one result."""
_MOST_CARDS = 3
_MOST_CARD = 1500
_MOST_FINDINGS = 12
_SPENT = "the run's budget is used up: answer now with the code"

_CODE = {
    "type": "object",
    "properties": {
        "code": {
            "type": "string",
            "description": "FILE and EDIT blocks, as in an answer. Without it: the code sent last.",
        }
    },
}
_NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
_QUERY = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
_DESCRIPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "compile": ("Compile code: errors with their source lines, or what the compiler did with loops.", _CODE),
    "check": ("Compile code and compare one call with the reference: which elements are wrong.", _CODE),
    "quick_time": (
        "Compare code on more inputs and time it briefly beside eager PyTorch and torch.compile. To hand in "
        "the code that you sent last, answer DONE.",
        _CODE,
    ),
    "disassembly": ("Machine code of the innermost loops, with counts of vector instructions.", _CODE),
    "knowledge": ("Techniques for such regions with their measured results, by words.", _QUERY),
    "inductor_code": ("The code that torch.compile generates for this region.", _NOTHING),
}

Read = Callable[[str], Solution]
"""Reads FILE and EDIT blocks, which apply to the code as it was written last; raises `Objection`."""


class CoderTools:
    """The tools of one draft.

    Args:
        task: the region; its `check` evaluates.
        read: reads code and raises `Objection`.
        written: solutions so far, the newest last; code that a tool gets is appended.
    """

    def __init__(self, task: Task, read: Read, written: list[Solution]) -> None:
        self._task = task
        self._read = read
        self._written = written
        offered = {"compile": self._compile, "check": self._check, "quick_time": self._time}
        self._tools: dict[str, Callable[[dict[str, Any]], str]] = {
            **offered,
            **({"disassembly": self._disassembly} if task.machine_code else {}),
            **({"knowledge": self._knowledge} if task.strategies else {}),
            **({"inductor_code": self._inductor} if "cpp" in task.languages else {}),
        }

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools, as the model sees them; none if nothing can be checked."""
        if self._task.check is None:
            return ()
        return tuple(
            ToolSpec(name=name, description=_DESCRIPTIONS[name][0], parameters=_DESCRIPTIONS[name][1])
            for name in self._tools
        )

    def __call__(self, call: ToolCall) -> str:
        """The result of a call; a wrong call gets a result too."""
        tool = self._tools.get(call.name)
        if tool is None:
            return f"there is no tool {call.name!r}: the tools are {', '.join(self._tools)}"
        try:
            arguments = json.loads(call.arguments or "{}", strict=False)
        except (ValueError, RecursionError) as error:
            return f"the arguments of {call.name} are no JSON ({error}): send one object"
        known = _DESCRIPTIONS[call.name][1]["properties"]
        if not isinstance(arguments, dict):
            return (
                f"the arguments of {call.name} are no object: send one with {', '.join(known) or 'nothing'}"
            )
        for name, value in arguments.items():
            if name not in known:
                return f"{call.name} has no argument {name!r}: it takes {', '.join(known) or 'none'}"
            if not isinstance(value, str):
                return f"the argument {name!r} of {call.name} must be a text"
        try:
            return tool(arguments)[:_MOST_CHARACTERS]
        except Objection as objection:
            return f"the code cannot be used: {objection}"

    def _code(self, arguments: dict[str, Any]) -> Solution:
        text = arguments.get("code", "")
        if text.strip():
            self._written.append(self._read(text))
        elif not self._written:
            raise Objection("there is none yet: send it as `code`")
        return self._written[-1]

    def _evaluated(self, arguments: dict[str, Any], level: Level) -> tuple[Solution, Evaluation | None]:
        solution = self._code(arguments)
        return solution, self._task.check(solution, level) if self._task.check else None

    def _compile(self, arguments: dict[str, Any]) -> str:
        solution, evaluation = self._evaluated(arguments, Level.SMOKE)
        if evaluation is None:
            return _SPENT
        if evaluation.status is EvaluationStatus.COMPILE_ERROR:
            return failure(solution, evaluation)
        findings = [f"- {finding}" for finding in told_findings(evaluation)[:_MOST_FINDINGS]]
        values = facts.prompt_lines(facts.of_evaluation(evaluation))
        return "\n".join(["it compiles", *findings, *values])

    def _check(self, arguments: dict[str, Any]) -> str:
        solution, evaluation = self._evaluated(arguments, Level.SMOKE)
        if evaluation is None:
            return _SPENT
        if not evaluation.passed:
            return failure(solution, evaluation)
        return "one call was right" + _errors(evaluation)

    def _time(self, arguments: dict[str, Any]) -> str:
        solution, evaluation = self._evaluated(arguments, Level.SMOKE)
        if evaluation is not None and evaluation.passed:
            solution, evaluation = self._evaluated({}, Level.QUICK)
        if evaluation is None:
            return _SPENT
        if not evaluation.passed:
            return failure(solution, evaluation)
        performance = evaluation.performance
        if performance is None:
            return f"it is right, and it cannot be timed here: {'; '.join(evaluation.reasons)}"
        lines = [f"it is right; one call takes {performance.latency_s * 1e6:.4g} us (a brief measurement)"]
        for name, seconds in performance.baseline_s.items():
            gain = performance.speedup[name]
            lines.append(
                f"{name}: {seconds * 1e6:.4g} us, so it is {gain.point:.3g}x as fast "
                f"(95% interval {gain.low:.3g} to {gain.high:.3g})"
            )
        if performance.sol_s:
            lines.append(f"speed of light: {performance.sol_s * 1e6:.4g} us")
        lines += [f"- {finding}" for finding in told_findings(evaluation)[:_MOST_FINDINGS]]
        if evaluation.suspicious:
            lines.append(f"it will not be kept, because it is suspicious: {'; '.join(evaluation.reasons)}")
        return "\n".join(lines) + _errors(evaluation)

    def _disassembly(self, arguments: dict[str, Any]) -> str:
        solution = self._code(arguments)
        return self._task.machine_code(solution) if self._task.machine_code else ""

    def _knowledge(self, arguments: dict[str, Any]) -> str:
        if "query" not in arguments:
            return "the argument 'query' is missing: name a technique or an operator"
        words = set(re.findall(r"[a-z0-9]+", arguments["query"].lower()))
        cards = [card for card in self._task.strategies if not card.claimed]
        ranked = sorted(cards, key=lambda card: -len(words & _words(card)))
        found = [card for card in ranked if words & _words(card)][:_MOST_CARDS]
        self._task.served.update(card.id for card in found)
        return "\n\n".join(map(_card, found)) or (
            f"no technique has these words; there are: {', '.join(card.id for card in cards)}"
        )

    def _inductor(self, arguments: dict[str, Any]) -> str:
        from agentforge.codegen.inductor import inductor_solution

        bottleneck = self._task.bottleneck
        with self._task.exclusive or nullcontext():
            solution = inductor_solution(bottleneck.definition, bottleneck.workloads[0])
        if solution is None:
            return "torch.compile gives no code for this region that could be shown on its own"
        return "\n\n".join(f"{source.path}\n{source.content}" for source in solution.sources)


def failure(solution: Solution, evaluation: Evaluation) -> str:
    """What fails in the code: diagnostics with their source lines, or the wrong elements."""
    return render("coder/failure.md.j2", **facts.of_verdict(solution, evaluation))


def _errors(evaluation: Evaluation) -> str:
    found = evaluation.correctness
    if found is None:
        return ""
    return (
        f"\nrelative error {found.max_relative_error:.3g}, allowed {found.tolerance:.3g}, "
        f"the reference's own error {found.reference_error:.3g}"
    )


def _words(card: Strategy) -> set[str]:
    text = " ".join((card.id, card.title, card.summary, card.body, *(x.text for x in card.lessons)))
    return set(re.findall(r"[a-z0-9]+", text.lower()))


def _card(card: Strategy) -> str:
    lessons = [f"- learned here: {lesson.text}" for lesson in card.lessons[:3]]
    wins = [_wins(record) for record in card.records if record.n][:2]
    return "\n".join([f"{card.id}: {card.title}", card.summary, card.body[:_MOST_CARD], *wins, *lessons])


def _wins(record: StrategyRecord) -> str:
    whole, credit = math.exp(record.mean_log_speedup), record.mean_credit
    said = (
        f"- {record.n} verified results in {record.context.shape_class or 'any shape'}, on average "
        f"{whole:.3g}x the best baseline"
    )
    return said if credit is None else f"{said}, {math.exp(credit):.3g}x without what they were built on"
