"""The subclass that replaces a stitched module's class."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from typing import Any

from .guards import transformed
from .layout import compiling
from .signature import Arrange
from .unit import Unit, own_forwards


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    """Return a copy that is stitched too."""
    make, args, *rest = _reduce(self, 1)
    twin = memo[id(self)] = make(*copy.deepcopy(args, memo))
    if type(twin) is type(self)._agentforge_original:
        twin.__class__ = type(self)
    if rest and rest[0] is not None:
        twin.__setstate__(copy.deepcopy(rest[0], memo))
    return twin


def _reduce(self: Any, protocol: Any) -> Any:
    """Pickle the original model, so that it loads without this artifact.

    Protocol 1 names the class among the arguments of a function, where it can be replaced; it uses a
    class's own `__getstate__` and `__reduce__` as later ones do.
    """
    original = type(self)._agentforge_original
    make, args, *rest = original.__reduce_ex__(self, 1)
    return make, tuple(original if arg is type(self) else arg for arg in args), *rest


def stitched_class(original: type, unit: Unit, classes: tuple[type, ...]) -> type:
    """Subclass of `original` whose forward dispatches between the stitched and the original code."""
    return subclass(original, unit, stitched_forward(original, unit, classes))


def stitched_forward(original: type, unit: Unit, classes: tuple[type, ...]) -> Callable[..., Any]:
    """A forward that dispatches between the stitched and the original code."""
    captured: Callable[..., Any] = original.forward  # type: ignore[attr-defined]
    parameters = inspect.signature(captured)
    ordered = unit.signature.ordered(parameters)
    forwards = own_forwards((original, *classes))
    known, learn, weights = unit.guards(classes, forwards, ordered)
    count, constants = len(unit.tensors), unit.constants
    structure, plain = unit.structure(), unit.output_spec is None
    forms: dict[tuple[Any, ...], Arrange | None] = {}

    def ordinary(self: Any, *args: Any, **kwargs: Any) -> Any:
        return original.forward(self, *args, **kwargs)  # type: ignore[attr-defined]  # as it is now

    def traced(self: Any, _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # Under an outer torch.compile, which guards these checks and recompiles if they change, or an export.
        inputs = unit.signature.match(args, kwargs, ordered)
        # A trace does not show shared memory.
        if inputs is None or unit.written or (unit.writes and len(inputs) > 1):
            return ordinary(self, *args, **kwargs)
        tensors = unit.weights(self, classes, forwards)
        if tensors is None or not unit.plain([*tensors, *inputs]) or not structure.known:
            return ordinary(self, *args, **kwargs)
        return structure.around(unit.traceable(*tensors, *unit.constants, *inputs))

    @functools.wraps(captured)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if compiling():
            # torch.compile tells forwards apart by the code in their closures; only this one is the model's.
            return traced(self, captured, args, kwargs)
        every, call = known(self, args, kwargs), (args, kwargs)
        if every is None:
            form = (len(args), *kwargs)
            if form not in forms:
                forms[form] = unit.signature.arranger(parameters, len(args), *kwargs)
            arrange = forms[form]
            if arrange is not None:
                call = arrange(args, kwargs) or call
                every = known(self, *call)
        if every is not None:
            run = unit.frozen.of(self) if unit.frozen else unit.compiled or unit.eager
            results = run(*every[:count], *constants, *every[count:]) if constants else run(*every)
            return results if plain else structure.around(results)
        if transformed():
            return ordinary(self, *args, **kwargs)
        inputs = unit.signature.match(*call, ordered)
        if inputs is None:
            return ordinary(self, *args, **kwargs)
        tensors = weights(self)
        if tensors is None or not unit.plain([*tensors, *inputs]):
            return ordinary(self, *args, **kwargs)
        if unit.writes and not unit.apart([*tensors, *inputs]):
            return ordinary(self, *args, **kwargs)
        if not structure.known:
            return structure.learn(ordinary(self, *args, **kwargs))
        learn([*tensors, *inputs])
        run = unit.frozen.of(self) if unit.frozen else unit.compiled or unit.eager
        return structure.around(run(*tensors, *unit.constants, *inputs))

    return forward


def subclass(original: type, unit: Unit, forward: Callable[..., Any]) -> type:
    """Subclass of `original` with another forward."""
    namespace: dict[str, Any] = {
        "forward": forward,
        "__module__": original.__module__,
        "__doc__": original.__doc__,
        "__qualname__": original.__qualname__,
        "_agentforge_original": getattr(original, "_agentforge_original", original),
        "_agentforge_unit": unit,
        "__reduce_ex__": _reduce,
    }
    if "__deepcopy__" not in dir(original):
        namespace["__deepcopy__"] = _deepcopy
    return type(original.__name__, (original,), namespace)
