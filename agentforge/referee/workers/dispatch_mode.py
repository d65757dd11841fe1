"""Dispatch modes without torch.compile.

torch imports `torch._dynamo` (2 s) at the first operator under a mode, to keep torch.compile out of the
mode's own code. Nothing is compiled under the referee's modes.
"""

from torch.utils._python_dispatch import TorchDispatchMode


class DispatchMode(TorchDispatchMode):
    """A mode whose first operator imports nothing."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False
