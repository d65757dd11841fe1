"""Gradients of a model: by autograd, with respect to its floating-point inputs and parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .leaves import Leaf, UnusableOutput, flatten


def gradients(
    model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], seed: int
) -> list[Leaf]:
    """What a backward pass leaves in inputs and parameters.

    Args:
        model: a module, or a function of its inputs alone.
        args: positional arguments of forward.
        kwargs: its keyword arguments.
        seed: of the gradients that reach the outputs, normally distributed; the same in every process.

    Returns:
        One leaf for each input and parameter that requires a gradient, zeros where none arrives.

    Raises:
        UnusableOutput: no output depends on them by autograd.
    """
    wanted: dict[str, torch.Tensor] = {}

    def prepared(path: str, value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            value = value.detach().clone().requires_grad_()
            wanted[f"the gradient of {path}"] = value
        elif isinstance(value, torch.Tensor):
            value = value.clone()
        return value

    with torch.enable_grad():
        args = tuple(prepared(f"input {n}", a) for n, a in enumerate(args))
        kwargs = {k: prepared(f"input {k}", v) for k, v in kwargs.items()}
        if isinstance(model, torch.nn.Module):
            for name, parameter in model.named_parameters():
                if parameter.requires_grad:
                    wanted[f"the gradient of {name}"] = parameter
        tensors = [
            x.value
            for x in flatten(model(*args, **kwargs))
            if isinstance(x.value, torch.Tensor) and x.value.is_floating_point() and x.value.requires_grad
        ]
        if not tensors:
            raise UnusableOutput("its outputs have no gradient; compute them with operators that have one")
        generator = torch.Generator().manual_seed(seed)
        arriving = [torch.randn(t.shape, generator=generator, dtype=torch.float32).to(t) for t in tensors]
        found = torch.autograd.grad(tensors, list(wanted.values()), arriving, allow_unused=True)
    return [
        Leaf(path, torch.zeros_like(t) if g is None else g.detach())
        for (path, t), g in zip(wanted.items(), found, strict=True)
    ]
