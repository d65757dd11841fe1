"""Weights that a constructor does not give, and that training may."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial

import torch

from agentforge.referee.baselines.answers import right_answer
from agentforge.referee.baselines.nearby import NotDefined
from agentforge.referee.baselines.sealed_weights import Weights
from agentforge.referee.comparison.comparator import accepts
from agentforge.referee.inputs.structure import structure_of
from agentforge.referee.inputs.transforms import Content, ProbeInput
from agentforge.referee.workers.client import WorkerClient
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.referee.workers.memory.shared_memory import Block, Layout
from agentforge.referee.workers.pytree import Leaf

from .._base import FULL_LEVEL, Check, CheckContext, When, raised
from .variants import allowed_nearby

_MOST_BYTES = 256 << 20
"""Weights above this size stay as they are: changing them takes seconds."""
_SHARE, _LARGE, _FEW_SHARE = 4, 64, 256
_MOST_TRIED = 8
"""Parameters, the largest first, of which a wrong answer is asked whether it depends on them."""
_Change = Callable[[torch.Tensor], torch.Tensor]


def _both_signs(weight: torch.Tensor) -> torch.Tensor:
    """A quarter negated, and at least one, if none is negative or none positive."""
    low, high = (float(end) for end in torch.aminmax(weight))
    if weight.numel() < 2 or low < 0 < high:
        return weight
    chosen = torch.randperm(weight.numel())[: max(1, weight.numel() // _SHARE)]
    weight.view(-1)[chosen] *= -1
    return weight


def _some_larger(weight: torch.Tensor, factor: float = _LARGE) -> torch.Tensor:
    """One element in 256, and at least one."""
    step = min(_FEW_SHARE, weight.numel())
    weight.view(-1)[secrets.randbelow(step) :: step] *= factor
    return weight


def _two_exchanged(weight: torch.Tensor) -> torch.Tensor:
    """Two rows, or elements of a vector, change places: no sample of a weight tells, and no sum of it."""
    if weight.dim() and len(weight) > 1:
        one, other = torch.randperm(len(weight))[:2].tolist()
        weight[[one, other]] = weight[[other, one]]
    return weight


def _columns_exchanged(weight: torch.Tensor) -> torch.Tensor:
    """Two elements of each row change places: no sum of a row tells."""
    if weight.dim() > 1 and weight.shape[-1] > 1:
        one, other = torch.randperm(weight.shape[-1])[:2].tolist()
        weight[..., [one, other]] = weight[..., [other, one]]
    return weight


CHANGES: dict[str, _Change] = {
    "weights of both signs": _both_signs,
    "some weights 64 times as large": _some_larger,
    "some weights doubled": partial(_some_larger, factor=2),
    "two rows of weights exchanged": _two_exchanged,
    "two columns of weights exchanged": _columns_exchanged,
}


class TrainedWeights(Check):
    """Loads changed parameters into reference and candidate, and compares their answers to usual inputs.

    Changes for which the reference is not well defined, or much less exact, are skipped. A candidate that
    goes on with what its constructor made of the first parameters, whatever comes, is not compared.
    """

    name = "weights"
    levels = FULL_LEVEL
    when = When.EXAMINATION
    catches = (
        "answers that are right for initial weights alone: for their signs, or within their bounds; and "
        "weights that are known again by a sample, by sums, or by another parameter"
    )

    def run(self, context: CheckContext) -> str:
        baselines, weights = context.baselines, context.baselines.weights
        if not weights.trained or weights.block.nbytes > _MOST_BYTES:
            return "the reference has no weights that can be changed"
        if not (_loads(baselines.eager, weights) and _loads(context.candidate, weights)):
            return "weights that cannot be loaded"
        found = []
        context.prepared.inputs.fill(0)
        before = baselines.expect(context.prepared, 0)
        try:
            for name, changed, alone in _cases(weights):
                try:
                    outcome = _compare(context, name, changed, before, alone=alone)
                except WorkerFailure as failure:
                    # Loading a part of the weights may be more than it was made for.
                    if not (alone and raised(context.candidate, failure) and baselines.eager.worker.running):
                        raise
                    outcome = "refused"
                found.append(f"{name}: {outcome}")
        finally:
            if baselines.eager.worker.running:
                load(baselines.eager, weights, {})
        load(context.candidate, weights, {})
        return "; ".join(found) or "weights already have both signs"


def _cases(weights: Weights) -> Iterator[tuple[str, dict[str, torch.Tensor], bool]]:
    """Names, changed parameters, and whether the others stay untouched, as in training of some layers."""
    for name, change in CHANGES.items():
        if changed := changed_weights(weights, change):
            yield name, changed, False
    changed = changed_weights(weights, _some_larger)
    keys = sorted(changed, key=lambda key: changed[key].numel())
    if len(keys) > 1:
        for key in dict.fromkeys([keys[0], keys[-1], *secrets.SystemRandom().sample(keys, 2)]):
            yield f"some of {key}, and nothing else, {_LARGE} times as large", {key: changed[key]}, True


def changed_weights(weights: Weights, change: _Change) -> dict[str, torch.Tensor]:
    """The parameters that a change changes, by key. Sorted and symmetric ones stay so: they may have to."""
    found = {}
    for key in weights.trained:
        old = weights.block.tensor(Layout.from_json(weights.state[key]))
        has = structure_of(old)
        if old.is_floating_point() and old.itemsize > 1 and old.numel() and not has.rigid:
            new = has.restored(change(old.clone(memory_format=torch.contiguous_format)))
            if not torch.equal(new, old):
                found[key] = new
    return found


def load(
    client: WorkerClient, weights: Weights, changed: dict[str, torch.Tensor], *, alone: bool = False
) -> bool:
    """Give a worker's model the reference's weights, some of them changed.

    Args:
        alone: write to no others.

    Returns:
        Whether all keys match.
    """
    state = {key: weights.state[key] for key in changed} if alone else weights.state
    with copied(weights, changed) as block:
        reply = client.request({"op": "state", "state": state, "anyway": True}, [block.fd])
    return reply["unmatched"] == []


def _loads(client: WorkerClient, weights: Weights) -> bool:
    """Whether a worker's model takes its own weights. Expanded and quantized ones cannot be written."""
    try:
        return load(client, weights, {})
    except WorkerFailure as failure:
        if not raised(client, failure):
            raise
        return False


@contextmanager
def copied(weights: Weights, changed: dict[str, torch.Tensor]) -> Iterator[Block]:
    """The reference's weights, some of them changed, in a block of their own."""
    block = Block.create("changed-weights", weights.block.nbytes)
    try:
        for key, place in weights.state.items():
            layout = Layout.from_json(place)
            block.tensor(layout).copy_(changed.get(key, weights.block.tensor(layout)))
        yield block
    finally:
        block.close()


def _compare(
    context: CheckContext,
    name: str,
    changed: dict[str, torch.Tensor],
    before: Sequence[Leaf],
    *,
    alone: bool = False,
) -> str:
    """Compare the answers with some parameters changed.

    Args:
        before: the reference's answer with its own weights.
        alone: nothing is written to the candidate's other parameters.

    Raises:
        WorkerFailure: the candidate's answer is wrong.
    """
    baselines, prepared = context.baselines, context.prepared
    load(baselines.eager, baselines.weights, changed)
    content = Content(name, torch.clone)
    answer = right_answer(baselines, prepared, content)
    probe = None if answer is None else ProbeInput.of(content, answer, prepared.bounds)
    if answer is None or probe is None:
        return "not defined by the reference"
    got = _answer(context, changed, alone=alone)
    if not accepts(got, answer.outputs, probe.bounds):
        if _keeps_some(context, changed, before):
            return "it keeps what its constructor made of the first ones"
        load(baselines.eager, baselines.weights, changed)
    wider = cache(partial(allowed_nearby, context, prepared, answer.outputs, probe.bounds, every=False))
    try:
        context.comparator.check(got, answer.outputs, probe.bounds, f"with {name}", wider)
    except NotDefined:
        return "not defined by the reference"
    return "right"


def _keeps_some(context: CheckContext, changed: dict[str, torch.Tensor], before: Sequence[Leaf]) -> bool:
    """Whether the candidate's answer does not change with a parameter, although the reference's does.

    It must not follow that parameter either if all elements of all parameters change.
    """
    others, bounds = changed_weights(context.baselines.weights, _all_others), context.prepared.bounds
    for key in sorted(changed, key=lambda key: changed[key].numel(), reverse=True)[:_MOST_TRIED]:
        one = {key: changed[key]}
        if _depends(context, one, before) and accepts(_answer(context, one), before, bounds):
            own = {k: v for k, v in others.items() if k != key}
            return accepts(_answer(context, others), _answer(context, own), bounds)
    return False


def _answer(context: CheckContext, changed: dict[str, torch.Tensor], *, alone: bool = False) -> list[Leaf]:
    """The candidate's answer with some weights changed, after a call with its own: it may keep some."""
    candidate, weights = context.candidate, context.baselines.weights
    for given, only in (({}, False), (changed, alone)):
        load(candidate, weights, given, alone=only)
        candidate.call(0)
    return candidate.fetch(0)


def _depends(context: CheckContext, changed: dict[str, torch.Tensor], before: Sequence[Leaf]) -> bool:
    """Whether the reference's answer changes with parameters."""
    baselines, prepared = context.baselines, context.prepared
    load(baselines.eager, baselines.weights, changed)
    answer = baselines.expect_or_none(prepared, 0)
    return answer is not None and not accepts(answer, before, prepared.bounds)


def _all_others(weight: torch.Tensor) -> torch.Tensor:
    """Other values everywhere, of the same signs if rows have them."""
    return (weight.roll(1, 0) if weight.dim() else weight) * 1.25
