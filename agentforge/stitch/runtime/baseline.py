"""A model that runs under torch.compile, because no kernels beat that."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch

from .derived import Contents
from .guards import transformed
from .layout import compiling

_USUAL_RECOMPILES = 8
"""torch's own limit for each function."""


def compile_model(module: Any, mode: str, workloads: int = 0) -> None:
    """Let `module` run as a baseline does.

    Args:
        mode: of the artifact: `compile`, or `compile+` and `max-autotune`, `freezing`,
            `max-autotune-freezing` or `contiguous`.
        workloads: that the reference lists; without freezing, code is compiled for the shapes of each.
    """
    way = mode.partition("+")[2]
    if way == "contiguous":
        module._compiled_call_impl = Contiguous(module)
    elif way.endswith("freezing"):
        module._compiled_call_impl = Frozen(module, way.startswith("max-autotune"))
    else:
        if way == "max-autotune" and any(t.is_cuda for t in (*module.parameters(), *module.buffers())):
            way = "max-autotune-no-cudagraphs"  # a graph returns memory that the next call writes to
        if workloads:
            config = torch._dynamo.config
            config.recompile_limit = max(config.recompile_limit, _USUAL_RECOMPILES + workloads)
        dynamic = False if workloads else None
        compiled = torch.compile(_whole(module), mode=way or None, dynamic=dynamic)
        # the baseline itself, without a layer around it, if no copy of the module would get that
        own_copies = hasattr(type(module), "__deepcopy__")
        module._compiled_call_impl = _Compiled(compiled) if own_copies else compiled


def _whole(module: Any) -> Callable[..., Any]:
    """A call of the module, as torch.compile compiles it.

    `module.compile()` compiles nothing of torch's own modules, such as nn.Sequential: Dynamo compiles no
    frame of theirs that is not called by another one. Its rules are for methods alone: a forward that was set
    on the instance, such as a partial function of accelerate's hooks, need not be one.
    """
    from torch._dynamo import trace_rules

    call: Callable[..., Any] = module._call_impl
    if not isinstance(module.forward, MethodType) or not trace_rules.check(module.forward):
        return call

    def run(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    return _own_code(run)


def _own_code(function: Any) -> Callable[..., Any]:
    """An equal function with code of its own: Dynamo compiles code at most eight times."""
    return FunctionType(function.__code__.replace(), function.__globals__, closure=function.__closure__)


class _OfOneModule:
    """What runs in place of a module's own call; a deep copy of the module has None instead, and runs eager.

    `nn.Module.__getstate__` leaves it out. A class with a `__deepcopy__`, as that of a parametrized module,
    need not.
    """

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        """Return None: this would compute with the weights of the module that was copied."""


class _Compiled(_OfOneModule):
    """Calls a compiled function."""

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._run(*args, **kwargs)


class Contiguous(_OfOneModule):
    """Calls a module under torch.compile if all tensors that it is given are contiguous, else as it is.

    For models that Inductor compiles wrongly for another layout. PyTorch 2.13, for example, computes several
    rows of an RMSNorm at once and keeps one of them, if its input is a sum of four and is transposed.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._compiled: Callable[..., Any] = torch.compile(_whole(module))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        if _traced() or not all(_contiguous(value) for value in (*args, *kwargs.values())):
            return self._module._call_impl(*args, **kwargs)
        return self._compiled(*args, **kwargs)


def _traced() -> bool:
    """Whether somebody else records, transforms or compiles the call."""
    return compiling() or transformed()


def _contiguous(value: Any) -> bool:
    """Whether all tensors in a value are contiguous; no if it contains itself."""
    held = _held(value)
    if isinstance(held, torch.Tensor):
        return held.layout is torch.strided and held.is_contiguous()
    if held is None:
        held = value if isinstance(value, Mapping) else ()
    try:
        return all(map(_contiguous, held.values() if isinstance(held, Mapping) else held))
    except RecursionError:
        return False


Place = tuple[Callable[[Any], Any], Any, Any]
"""A function that reads an item of a container, the item's key or position, and what it was."""


class _Code(NamedTuple):
    """Code with frozen weights, and what they were."""

    run: Callable[..., Any]
    places: list[Place]
    weights: list[torch.Tensor]
    contents: Contents


class Frozen(_OfOneModule):
    """Calls a module under torch.compile with Inductor's freezing: weights are constants of its code.

    Each call sums all tensors that the module keeps. After one was written, moved or replaced, and if
    gradients are enabled, it runs under torch.compile in its default mode.
    """

    def __init__(self, module: Any, autotune: bool) -> None:
        self._module, self._autotune = module, autotune
        self._plain: Callable[..., Any] = torch.compile(_whole(module))
        self._codes: dict[bool, _Code] = {}
        """For no_grad and for inference mode: Dynamo would recompile one's code for the other, unfrozen."""
        self._changed = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        if _traced():
            return self._module._call_impl(*args, **kwargs)
        if self._changed or torch.is_grad_enabled():
            return self._plain(*args, **kwargs)
        code = self._codes.get(torch.is_inference_mode_enabled())  # another thread may drop it meanwhile
        if code is None:
            return self._first(args, kwargs)
        if _same(code.places) and code.contents.same(code.weights):
            return code.run(*args, **kwargs)
        self._changed, self._codes = True, {}
        return self._plain(*args, **kwargs)

    def _first(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from torch._dynamo.convert_frame import compile_lock

        # In older PyTorch all threads share Inductor's settings, so none may compile while they differ.
        with compile_lock:
            if torch.is_inference_mode_enabled() not in self._codes and not self._changed:
                return self._compile(args, kwargs)
        return self(*args, **kwargs)  # another thread was first

    def _compile(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        import torch._inductor.config as inductor
        from torch._inductor.compile_fx import compile_fx

        def own(graph: Any, inputs: Any) -> Any:
            # torch.compile's own backends are equal, and would share code with frozen weights.
            return compile_fx(graph, inputs, config_patches=self._options())

        places, weights = _places(self._module), list(_tensors(self._module))
        run = torch.compile(_whole(self._module), backend=own)
        code = _Code(run, places, weights, Contents(weights))
        with inductor.patch(freezing=True):  # a later shape compiles without it, which is right too
            result = run(*args, **kwargs)
        # not of a call that raises: the next one would compile without freezing
        self._codes[torch.is_inference_mode_enabled()] = code
        return result

    def _options(self) -> dict[str, Any]:
        from torch._inductor import list_mode_options

        return dict(list_mode_options("max-autotune")) if self._autotune else {}


class FrozenUnit:
    """Calls a unit's forward with the weights of each module frozen, as `Frozen` calls a model.

    Args:
        forward: takes the weights, then all else.
        count: number of weights.
        plain: the forward under torch.compile, for a module whose weights were replaced.
    """

    def __init__(
        self, forward: Callable[..., Any], count: int, plain: Callable[..., Any], tuned: bool
    ) -> None:
        self._forward, self._count, self._plain, self._tuned = forward, count, plain, tuned
        self._calls: WeakKeyDictionary[Any, Callable[..., Any]] = WeakKeyDictionary()

    def of(self, module: Any) -> Callable[..., Any]:
        """What computes a call of this module."""
        return self._calls.get(module) or self._calls.setdefault(module, self._new())

    def forget(self, module: Any) -> None:
        """Free the code of this module, and its hold on the weights."""
        self._calls.pop(module, None)

    def _new(self) -> Callable[..., Any]:
        made: list[tuple[tuple[torch.Tensor, ...], Frozen]] = []

        def call(*every: torch.Tensor) -> Any:
            weights = every[: self._count]
            if not made:
                made.append((weights, Frozen(_Weights(self._forward, weights), self._tuned)))
            known, frozen = made[0]
            if any(weight is not other for weight, other in zip(weights, known, strict=True)):
                return self._plain(*every)
            return frozen(*every[self._count :])

        return call


class _Weights(torch.nn.Module):
    """A unit's weights as those of a module: Inductor freezes no others."""

    def __init__(self, forward: Callable[..., Any], weights: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self._unit, self._names = forward, [f"weight{number}" for number in range(len(weights))]
        for name, weight in zip(self._names, weights, strict=True):
            self.register_buffer(name, weight)
        self.forward = MethodType(_own_code(_Weights.forward), self)  # type: ignore[method-assign]

    def forward(self, *others: torch.Tensor) -> Any:
        return self._unit(*[getattr(self, name) for name in self._names], *others)


def _tensors(module: Any) -> list[torch.Tensor]:
    """Every dense tensor that the module keeps: all that its forward reads become constants."""
    kept = {id(value): value for _, _, value in _places(module) if isinstance(value, torch.Tensor)}
    return [tensor for tensor in kept.values() if tensor.layout is torch.strided and not tensor.is_meta]


def _places(module: Any) -> list[Place]:
    """Each step of each way from the module to a tensor: submodules, containers, attributes of objects."""
    owners: list[Any] = [vars(module)]
    tensors: list[torch.Tensor] = []
    into: dict[int, list[tuple[Any, Place]]] = {id(owners[0]): []}
    """By identity of a tensor or an owner: the places that it lies in, with their owners."""
    for owner in owners:  # which grow
        read = owner.get if isinstance(owner, dict) else owner.__getitem__
        for key, value in list(owner.items() if isinstance(owner, dict) else enumerate(owner)):
            held = _held(value)
            if held is None:
                continue
            if id(held) not in into:
                into[id(held)] = []
                (tensors if isinstance(held, torch.Tensor) else owners).append(held)
            into[id(held)].append((owner, (read, key, value)))
    found: list[Place] = []
    waiting: list[Any] = [*tensors]
    while waiting:
        for owner, place in into.pop(id(waiting.pop()), ()):
            found.append(place)
            waiting.append(owner)
    return found


def _held(value: Any) -> Any:
    """A tensor, a container, or an object's attributes; None for what keeps no tensors of the model."""
    if isinstance(value, (torch.Tensor, dict, list, tuple, deque)):
        return value
    if isinstance(value, (ModuleType, Frozen)):
        return None
    attributes = getattr(value, "__dict__", None)
    return attributes if type(attributes) is dict else None


def _same(places: list[Place]) -> bool:
    """Whether the same objects lie in these places."""
    try:
        return all(read(key) is value for read, key, value in places)
    except IndexError:  # a list became shorter
        return False
