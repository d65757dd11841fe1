"""Models whose weights all matter: constant initial values are varied while a model is constructed.

A LayerNorm begins with weight 1 and bias 0, so a kernel that ignores both would pass. Reference and
candidate are constructed under the same seed with `varied_construction`, which adds seeded noise to
every parameter that begins constant and to the running statistics of normalisation layers. A candidate
that packs its weights in `__init__` sees the varied values as the reference does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest import mock

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

_NOISE = 0.1


def _is_constant(tensor: torch.Tensor) -> bool:
    return tensor.numel() > 0 and tensor.is_floating_point() and bool((tensor == tensor.flatten()[0]).all())


@contextmanager
def varied_construction(seed: int) -> Iterator[None]:
    """While active, constant parameters and running statistics get noise that depends on seed and shape.

    Not thread-safe: it replaces functions of torch for the duration.
    """

    def vary(tensor: torch.Tensor) -> None:
        # By shape and not by order: one more or fewer constant tensor must not shift what others get.
        generator = torch.Generator().manual_seed(seed + hash(tuple(tensor.shape)) % (1 << 32))
        noise = torch.rand(tensor.shape, generator=generator) * _NOISE
        with torch.no_grad():
            tensor.add_(noise.to(tensor.dtype))

    def varying_init(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def init(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
            result = function(tensor, *args, **kwargs)
            if tensor.is_floating_point():
                vary(tensor)
            return result

        return init

    reset = _NormBase.reset_running_stats

    def reset_running_stats(self: Any) -> None:
        reset(self)
        if self.track_running_stats and self.running_mean is not None:
            vary(self.running_mean)
            vary(self.running_var)

    construct = nn.Parameter.__new__

    def new_parameter(cls: type, data: Any = None, requires_grad: bool = True) -> Any:
        if isinstance(data, torch.Tensor) and type(data) is torch.Tensor and data.is_cpu:
            with suppress(RuntimeError):
                # Uninitialised memory (torch.empty, filled by init later) may look constant: no harm.
                if data.stride() and 0 not in data.stride() and _is_constant(data):
                    data = data.clone()
                    vary(data)
        return construct(cls, data, requires_grad)

    with (
        mock.patch.object(nn.init, "ones_", varying_init(nn.init.ones_)),
        mock.patch.object(nn.init, "zeros_", varying_init(nn.init.zeros_)),
        mock.patch.object(nn.init, "constant_", varying_init(nn.init.constant_)),
        mock.patch.object(_NormBase, "reset_running_stats", reset_running_stats),
        mock.patch.object(nn.Parameter, "__new__", new_parameter),
    ):
        yield
