"""A model that runs under torch.compile, because no kernels beat that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from .derived import Contents


def compile_model(module: Any, mode: str) -> None:
    """Let `module` run as a baseline does.

    Args:
        mode: of the artifact: `compile`, or `compile+` and `max-autotune`, `freezing`,
            `max-autotune-freezing` or `contiguous`.
    """
    way = mode.partition("+")[2]
    if way == "contiguous":
        module._compiled_call_impl = Contiguous(module)
    elif way.endswith("freezing"):
        module._compiled_call_impl = Frozen(module, way.startswith("max-autotune"))
    else:
        module.compile(mode=way or None)  # the baseline itself, without a layer around it


class Contiguous:
    """Calls a module under torch.compile if all tensors that it is given are contiguous, else as it is.

    For models that Inductor compiles wrongly for another layout. PyTorch 2.13, for example, computes several
    rows of an RMSNorm at once and keeps one of them, if its input is a sum of four and is transposed.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._compiled: Callable[..., Any] = torch.compile(module._call_impl)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        if _traced() or not all(_contiguous(value) for value in (*args, *kwargs.values())):
            return self._module._call_impl(*args, **kwargs)
        return self._compiled(*args, **kwargs)


def _traced() -> bool:
    """Whether somebody else records or compiles the call."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing()


def _contiguous(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.layout is torch.strided and value.is_contiguous()
    if isinstance(value, (tuple, list)):
        return all(map(_contiguous, value))
    return not isinstance(value, dict) or all(map(_contiguous, value.values()))


class Frozen:
    """Calls a module under torch.compile with Inductor's freezing: weights are constants of its code.

    Each call sums all weights. After one was written, moved or replaced, and if gradients are enabled, it
    runs under torch.compile in its default mode.
    """

    def __init__(self, module: Any, autotune: bool) -> None:
        self._module, self._autotune = module, autotune
        self._plain: Callable[..., Any] = torch.compile(module._call_impl)
        self._run: Callable[..., Any] | None = None
        self._weights: list[torch.Tensor] = []
        self._contents: Contents | None = None
        self._changed = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        if _traced():
            return self._module._call_impl(*args, **kwargs)
        if self._changed or torch.is_grad_enabled():
            return self._plain(*args, **kwargs)
        if self._run is None:
            return self._first(args, kwargs)
        if self._contents is not None and self._contents.same(self._weights):
            return self._run(*args, **kwargs)
        self._changed, self._run, self._weights, self._contents = True, None, [], None
        return self._plain(*args, **kwargs)

    def _first(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        import torch._inductor.config as inductor
        from torch._inductor.compile_fx import compile_fx

        def own(graph: Any, inputs: Any) -> Any:
            # torch.compile's own backends are equal, and would share code with frozen weights.
            return compile_fx(graph, inputs, config_patches=self._options())

        self._weights = list(_tensors(self._module))
        self._contents = Contents(self._weights)
        run = torch.compile(self._module._call_impl, backend=own)
        with inductor.patch(freezing=True):  # a later shape compiles without it, which is right too
            result = run(*args, **kwargs)
        self._run = run  # not of a call that raises: the next one would compile without freezing
        return result

    def _options(self) -> dict[str, Any]:
        from torch._inductor import list_mode_options

        return dict(list_mode_options("max-autotune")) if self._autotune else {}


def _tensors(module: Any) -> Iterator[torch.Tensor]:
    """Every parameter, buffer and tensor attribute: all of them become constants."""
    for part in module.modules():
        for group in (part._parameters, part._buffers, vars(part)):
            yield from (value for value in group.values() if isinstance(value, torch.Tensor))
