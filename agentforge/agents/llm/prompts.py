"""Prompts: Jinja2 templates in `prompts/`, where a name that is not given is an error."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateNotFound

from agentforge.agents._base import Task
from agentforge.resources import resource
from agentforge.schema import TensorInput, Workload

_CATEGORIES = {
    "norm": "rows",
    "reduction": "rows",
    "pooling": "rows",
    "softmax": "softmax",
    "cross_entropy": "softmax",
    "attention": "softmax",
}
"""Operator class to the worked example that is shown; the rest see the pointwise one."""


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(resource("prompts")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        autoescape=False,  # prompts are no HTML
    )


def render(template: str, **values: Any) -> str:
    """A prompt.

    Args:
        template: path below `prompts/`.
        values: everything that it names.
    """
    return _environment().get_template(template).render(**values).strip()


def exists(template: str) -> bool:
    """Whether there is such a prompt."""
    try:
        _environment().get_template(template)
    except TemplateNotFound:
        return False
    return True


def problem(task: Task) -> str:
    """The part of the system prompt that is the same for every role and attempt of a bottleneck."""
    return render(
        "shared/problem.md.j2",
        definition=task.bottleneck.definition,
        workloads=[_described(w) for w in task.bottleneck.workloads],
        hardware=task.hardware,
        calls=len(task.bottleneck.call_sites),
    )


def example(task: Task, language: str) -> str:
    """The worked example of the operator's category."""
    category = _CATEGORIES.get(task.bottleneck.definition.op_type, "pointwise")
    return render(f"coder/examples/{language}/{category}.md.j2")


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
