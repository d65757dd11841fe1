"""Compare answers to transformed inputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from agentforge.referee.baselines.answers import right_answer
from agentforge.referee.baselines.nearby import NotDefined
from agentforge.referee.inputs.transforms import Content, ProbeInput
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.schema import EvaluationStatus

from .._base import CheckContext
from .variants import allowed_nearby


def compare_on(contents: Sequence[Content], context: CheckContext) -> str:
    """Compare answers for these inputs; those for which the reference is not well defined are skipped.

    Returns:
        The inputs that were compared and those that were skipped.

    Raises:
        WorkerFailure: an answer is wrong.
    """
    prepared, candidate = context.prepared, context.candidate
    inputs = list(enumerate(prepared.inputs.tensors(0)))
    contents = [prepared.inputs.fitted(c) for c in contents if any(c.concerns(*of) for of in inputs)]
    if not contents:
        return "no inputs that can be changed"
    done: list[str] = []
    skipped: list[str] = []
    for content in contents:
        prepared.inputs.fill(0)
        content.apply(prepared.inputs.tensors(0))
        answer = right_answer(context.baselines, prepared, content)
        if answer is None:
            skipped.append(content.name)
            continue
        candidate.call(0)
        got = candidate.fetch(0)
        given = (context, prepared, answer.outputs, answer.bounds)
        wider = cache(partial(allowed_nearby, *given, every=content.ties))
        finite, situation = content.defined == "finite", f"with {content.name}"
        try:
            context.comparator.check(got, *given[2:], situation, wider if finite else None)
        except NotDefined:
            skipped.append(content.name)
            continue
        refuse_aliases(context, situation)
        done.append(content.name)
        probe = ProbeInput.of(content, answer, prepared.bounds)
        spoils = content.defined != "finite" and prepared.state  # what calls change is compared afterwards
        if probe is not None and not spoils and not wider.cache_info().misses:
            context.unusual[prepared.workload.hash].contents.append(probe)
    text = f"right for: {', '.join(done) or 'none'}"
    return text + (f"; the reference itself is not exact for: {', '.join(skipped)}" if skipped else "")


def refuse_aliases(context: CheckContext, situation: str = "") -> None:
    """Refuse a candidate whose answer to slot 0 is an input's memory, if the reference's is not.

    Raises:
        WorkerFailure: CHEATING.
    """
    shared = context.candidate.aliases(0)
    if shared and shared - context.baselines.eager.aliases(0):
        reason = f"{situation} its output shares memory with an input, and the reference's output does not"
        raise WorkerFailure(EvaluationStatus.CHEATING, reason.strip())
