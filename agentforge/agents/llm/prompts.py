"""Render the Jinja2 templates in `prompts/`. A name without a value is an error."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from jinja2 import (
    ChoiceLoader,
    Environment,
    FileSystemLoader,
    FunctionLoader,
    StrictUndefined,
    TemplateNotFound,
)

from agentforge.agents._base import Task
from agentforge.knowledge import line_of
from agentforge.languages import language_info, languages
from agentforge.llm import MEASURED_BEGIN, MEASURED_END
from agentforge.resources import resource
from agentforge.schema import CardKind, Evaluation, TensorInput, Workload

from .history import precedents, shown_files

_CATEGORIES = {
    "norm": "rows",
    "reduction": "rows",
    "pooling": "rows",
    "softmax": "softmax",
    "cross_entropy": "softmax",
    "attention": "softmax",
}
"""Worked example by operator class. For others, such as whole references, the operators decide."""

_OPERATORS = {
    "scan": ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"),
    "softmax": ("softmax", "cross_entropy", "nll_loss", "attention", "logsumexp"),
    "rows": ("norm", "mean", "sum", "var", "std", "amax", "amin", "pool", "prod"),
}
"""Words in the names of operators by worked example, the first example that fits."""


_OF_GPUS = ("triton", "cuda", "cupy")
"""Languages whose kernels need a GPU to be timed."""


def _of_plugin(template: str) -> str | None:
    """The text of a plug-in language: what its `LanguageInfo.prompts` has below `coder`."""
    match PurePosixPath(template).parts:
        case ("coder", "languages", file):
            language, place = file.removesuffix(".md.j2"), "language.md.j2"
        case ("coder", "examples", language, file):
            place = f"examples/{file}"
        case _:
            return None
    if language not in languages.names():
        return None
    folder = language_info(language).prompts
    path = folder / place if folder is not None else None
    return path.read_text(encoding="utf-8") if path is not None and path.is_file() else None


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=ChoiceLoader([FunctionLoader(_of_plugin), FileSystemLoader(resource("prompts"))]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        autoescape=False,  # prompts are not HTML
    )
    environment.globals.update(measured_begin=MEASURED_BEGIN, measured_end=MEASURED_END)
    return environment


def render(template: str, **values: Any) -> str:
    """Render a prompt."""
    return _environment().get_template(template).render(**values).strip()


def exists(template: str) -> bool:
    """True if the prompt exists."""
    try:
        _environment().get_template(template)
    except TemplateNotFound:
        return False
    return True


def problem(task: Task) -> str:
    """The first part of the system prompt, the same for every role and attempt of a bottleneck.

    It precedes the role's own part, so that vendors cache one prefix for all of them.
    """
    return render(
        "shared/problem.md.j2",
        definition=task.bottleneck.definition,
        workloads=[_described(w) for w in task.bottleneck.workloads],
        hardware=task.hardware,
        calls=len(task.bottleneck.call_sites),
        simulated=simulated(task),
    )


def with_advice(
    prompt: str, task: Task, kinds: Collection[CardKind], evaluation: Evaluation | None, words: str
) -> str:
    """The prompt with the knowledge base's cards of these kinds at its end, so that no prefix changes.

    Like a measurement, they are no part of what a replayed recording compares.
    """
    cards = task.advise(kinds, evaluation, words) if task.advise is not None else ()
    task.served.update(card.id for card in cards)
    lines = [line_of(card) for card in cards]
    return f"{prompt}\n{render('shared/advice.md.j2', lines=lines)}" if lines else prompt


def with_precedents(prompt: str, task: Task, language: str) -> str:
    """The prompt with verified solutions of earlier runs at its end.

    Like cards, they depend on the database, and are no part of what a replayed recording compares.
    """
    found = precedents(task, language)
    shown = [
        {"strategy": p.strategy, "speedup": math.exp(p.log_speedup), "files": shown_files(p.solution)}
        for p in found
    ]
    same = all(p.solution.definition == task.bottleneck.definition.hash for p in found)
    return f"{prompt}\n{render('coder/precedents.md.j2', shown=shown, same=same)}" if shown else prompt


def with_directive(prompt: str, task: Task) -> str:
    """The prompt with the fragment that was drawn for the attempt, if any, at its end.

    Which one is drawn depends on measurements, so it is no part of what a replayed recording compares.
    """
    return f"{prompt}\n{render('coder/directive.md.j2', text=task.directive)}" if task.directive else prompt


def with_target(prompt: str, task: Task) -> str:
    """The prompt with what the search policy wants of the machine code at its end."""
    return f"{prompt}\n\n{render('shared/target.md.j2', aim=task.aim)}" if task.aim else prompt


def simulated(task: Task) -> str:
    """The language of GPU kernels if no GPU is here, so that they are judged and not timed; else empty."""
    here = task.hardware.architecture.startswith("sm_")
    return "" if here else next((x for x in task.languages if x in _OF_GPUS), "")


def example(task: Task, language: str) -> str:
    """The worked example for the operator's category."""
    found = _by_operators(task)
    known = _CATEGORIES.get(task.bottleneck.definition.op_type)
    category = found if found == "scan" or known is None else known  # a scan counts as a reduction
    found = f"coder/examples/{language}/{category}.md.j2"
    return render(found if exists(found) else f"coder/examples/{language}/pointwise.md.j2")


def _by_operators(task: Task) -> str:
    """The example whose operators occur in the region, or in its reference if no operator is known."""
    b = task.bottleneck
    names = [name for site in b.call_sites for name in site.operators]
    words = set(re.findall(r"[a-z_]+", " ".join(names or [b.definition.reference]).lower()))
    fitting = (n for n, signs in _OPERATORS.items() if any(sign in word for word in words for sign in signs))
    return next(fitting, "pointwise")


def _described(workload: Workload) -> dict[str, Any]:
    return {
        "name": workload.name,
        "weight": workload.weight,
        "inputs": [
            f"{i.name}: {i.dtype.value}[{', '.join(map(str, i.shape))}]"
            + (f", strides {list(i.strides)}" if i.strides else "")
            if isinstance(i, TensorInput)
            else f"{i.name} = {i.value!r}"
            for i in workload.inputs
        ],
    }
