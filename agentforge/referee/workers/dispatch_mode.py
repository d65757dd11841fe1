"""Dispatch modes without torch.compile.

torch keeps torch.compile out of a mode's own code, for which it imports `torch._dynamo` (2 s) at the first
operator under a mode. While nothing has imported it, nothing can be compiled.
"""

from __future__ import annotations

import sys
from typing import Any, ClassVar, Self

from torch.utils._python_dispatch import TorchDispatchMode


class DispatchMode(TorchDispatchMode):
    """A mode that imports nothing."""

    _as_written: ClassVar[Any]
    _not_compiled: ClassVar[Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        cls._as_written = cls.__torch_dispatch__
        super().__init_subclass__(**kwargs)
        cls._not_compiled = cls.__torch_dispatch__

    def __enter__(self) -> Self:
        mode: Any = type(self)
        mode.__torch_dispatch__ = mode._not_compiled if "torch._dynamo" in sys.modules else mode._as_written
        super().__enter__()
        return self
