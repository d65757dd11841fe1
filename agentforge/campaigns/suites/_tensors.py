"""Python below a foreign reference: of its arguments, the tensors are inputs and the rest is constant."""

from __future__ import annotations

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
