"""Python below a foreign reference.

Of its arguments, the tensors are inputs and the rest is constant. All workloads of a definition are one
problem, with one search and a verdict that has a figure for each of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from agentforge.schema import SuiteProblem

from ._base import generated_problem

ONLY_TENSORS = '''
class Model(_Theirs):
    """Takes the tensors among the arguments; numbers, lists and names are those of this workload."""

    def __init__(self, *init):
        super().__init__(*init)
        self._leaves, self._tree = _pytree.tree_flatten(_arguments())
        for number, leaf in enumerate(self._leaves):
            if isinstance(leaf, torch.Tensor):
                self._leaves[number] = torch.Tensor
            elif not isinstance(leaf, (bool, int, float, str, torch.dtype, type(None))):
                from agentforge.schema import UnsupportedTargetError

                kind = type(leaf).__name__
                raise UnsupportedTargetError(f"its data has objects ({kind}), not only tensors and numbers")

    def forward(self, *tensors):
        return super().forward(*self._bound(tensors))

    def _bound(self, tensors):
        """The arguments, with these tensors in their places."""
        given = iter(tensors)
        leaves = [next(given) if leaf is torch.Tensor else leaf for leaf in self._leaves]
        return _pytree.tree_unflatten(leaves, self._tree)


def get_inputs():
    return [leaf for leaf in _pytree.tree_leaves(_arguments()) if isinstance(leaf, torch.Tensor)]
'''
"""Needs `torch`, `_pytree`, the class `_Theirs`, and `_arguments()`, a tuple for its `forward`."""

MOST_WORKLOADS = 16
"""Of one problem: the referee keeps inputs of all of them, and checks and times each."""

OWN_MODEL = re.compile(r"\bModel\b")
"""The task's class makes room for ours, also in its `super(Model, self)`."""

_LISTED = '''

# ---- All workloads in one problem: written by AgentForge ----
import torch

_VALUES = {values!r}
workloads = tuple(_VALUES)
_Single, _single_init, _single_inputs = Model, get_init_inputs, get_inputs


def _of(workload, make):
    """What a function above gives for one workload."""
    global {name}
    {name} = _VALUES[workload]
    return make()

'''
_INPUTS = """
def get_inputs(workload=workloads[0]):
    return _of(workload, _single_inputs)
"""
_MODELS = '''
def _built():
    init = _single_init()
    return _Single(**init) if isinstance(init, dict) else _Single(*init)


class Model(torch.nn.Module):
    """One model for each workload, with its constructor arguments; a call names its own."""

    def __init__(self):
        super().__init__()
        self.of = torch.nn.ModuleDict({workload: _of(workload, _built) for workload in workloads})

    def forward(self, workload, *inputs):
        return self.of[workload](*inputs)


def get_init_inputs():
    return []


def get_inputs(workload=workloads[0]):
    return [workload, *_of(workload, _single_inputs)]
'''


def source_of_all(single: str, name: str, values: Sequence[Any], *, one_model: bool = False) -> str:
    """The source of all workloads from that of one, which reads a workload's own values from a variable.

    Args:
        single: in KernelBench's convention; no call in it names the class `Model`.
        name: the variable.
        values: of each workload.
        one_model: the values say nothing of the model, only of its inputs.
    """
    numbered = {str(number): value for number, value in enumerate(values, 1)}
    return single + _LISTED.format(name=name, values=numbered) + (_INPUTS if one_model else _MODELS)


def with_whole(parts: Sequence[SuiteProblem], source: Callable[[], str]) -> Iterator[SuiteProblem]:
    """The problem of all workloads, if there are several and all can run here, and then one for each.

    `selected` leaves the single ones out, unless a pattern fits them alone.

    Args:
        source: makes the text for all of them.
    """
    if 1 < len(parts) <= MOST_WORKLOADS and not any(part.unsupported for part in parts):
        first = parts[0]
        shared = {k: v for k, v in first.native.items() if all(p.native.get(k) == v for p in parts)}
        own = [{k: v for k, v in part.native.items() if k not in shared} for part in parts]
        files = {path: place for part in parts for path, place in part.files.items()}
        native = {**shared, "workloads": own}
        yield generated_problem(first.definition, source(), group=first.group, files=files, native=native)
    yield from parts
