"""Recognise a call like one that passed all checks, in about a microsecond."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.nn.modules import module as _nn

from .signature import Signature, in_order

_TensorGuards: Any
try:  # torch.compile's guard: class, dtype, device, shape, strides, dispatch keys of all tensors in one call
    from torch._C._dynamo.guards import TensorGuards as _TensorGuards
except ImportError:  # a version of torch without it: every call takes the full checks
    _TensorGuards = None

_MOST = 4
"""Most kinds of call that are known at a time; inference mode and no_grad are two."""

_FIXED = frozenset(
    f"torch.nn.modules.{name}"
    for name in ("linear", "conv", "normalization", "batchnorm", "activation", "dropout", "sparse", "pooling")
)
"""Modules of PyTorch whose classes, if they have no submodules, read no parts that are added to them."""

Read = Callable[[Any, "tuple[Any, ...]"], "tuple[Any, ...] | None"]
Flat = Callable[["tuple[Any, ...]", "dict[str, Any]"], "tuple[Any, ...] | None"]


Known = Callable[[Any, "tuple[Any, ...]", "dict[str, Any]"], "tuple[Any, ...] | None"]
Learn = Callable[[Sequence[Any]], None]


def guards(
    signature: Signature,
    read: Read,
    apart: Callable[..., bool] | None,
    ordered: Sequence[str],
) -> tuple[Known, Learn]:
    """Two functions: one recognises calls like those that the other was given.

    Both are closures: each attribute that they read would cost 20 ns for each call.

    Args:
        signature: of the calls.
        read: returns weights and inputs if the modules are still the captured ones; see `reader`.
        apart: tells whether no input of weights and inputs shares memory; None if that does not matter.
        ordered: keywords that must be in this order; see `Signature.ordered`.
    """
    positional, number = signature.positional, len(signature.keywords)
    flat = None if signature.plain else flattener(signature)
    wants_gradients, modes = torch.is_grad_enabled, torch._C._len_torch_dispatch_stack
    checks: tuple[Callable[..., bool], ...] = ()

    def known(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
        """Weights and inputs of a call like one that was learned; None if the full checks must decide."""
        if not checks or len(args) != positional or len(kwargs) != number or wants_gradients():
            return None
        # The dispatch keys show functorch's transforms and jit.trace, but no make_fx and no dual tensor.
        if modes() or forward_ad._current_level >= 0:
            return None
        try:
            if ordered and not in_order(kwargs, ordered):
                return None
            inputs = args if flat is None else flat(args, kwargs)
            if inputs is None:
                return None
            for tensor in inputs:
                if tensor.is_nested:  # the check would end the process
                    return None
            every = read(module, inputs)
        except (LookupError, TypeError, AttributeError):  # a part was removed, or other arguments
            return None
        if every is not None:
            for check in checks:
                if check(*every):
                    return every if apart is None or apart(every) else None
        return None

    def learn(every: Sequence[Any]) -> None:
        """Remember a call that passed: its weights and inputs, in the order of the generated forward."""
        nonlocal checks
        if _TensorGuards is None or wants_gradients() or modes():
            return
        shapes, strides = [list(t.shape) for t in every], [list(t.stride()) for t in every]
        check = _TensorGuards(*every, dynamic_dims_sizes=shapes, dynamic_dims_strides=strides).check
        checks = (check, *checks)[:_MOST]

    return known, learn


def transformed() -> bool:
    """True if the call is traced or transformed, which needs each operator: a kernel would hide them."""
    if torch.jit.is_tracing() or forward_ad._current_level >= 0:
        return True
    if torch._C._functorch.maybe_current_level() is not None:
        return True
    if torch._ops._len_torch_dispatch_stack_pre_dispatch():
        return True
    if not torch._C._len_torch_dispatch_stack():
        return False
    # Under other modes, which only watch or count operators, the kernels run.
    kinds = torch._C._TorchDispatchModeKey
    return any(
        torch._C._get_dispatch_mode(k) is not None for k in (kinds.PROXY, kinds.FAKE, kinds.FUNCTIONAL)
    )


def flattener(signature: Signature) -> Flat:
    """A function of `args` and `kwargs`, of the signature's lengths, that returns the tensors among them.

    It returns None if a container or a constant is another one, and raises LookupError or TypeError if the
    call has another structure. `Signature.match` checks the tensors too.
    """
    names: dict[str, Any] = {}
    places = {"(0,)": "args", "(1,)": "kwargs"}
    lines = ["def flat(args, kwargs):"]

    def place(path: tuple[Any, ...]) -> str:
        names[step := f"step{len(names)}"] = path[-1]
        return f"{places[str(path[:-1])]}[{step}]"

    for n, (path, kind, length, keys) in enumerate(signature.containers):
        lines.append(f" v{n} = {place(path)}")
        places[str(path)], names[f"kind{n}"], names[f"keys{n}"] = f"v{n}", kind, keys
        order = f" or [*v{n}] != keys{n}" if keys is not None else ""
        lines.append(f" if type(v{n}) is not kind{n} or len(v{n}) != {length}{order}: return None")
    found = []
    for n, (path, layout, constant) in enumerate(signature.leaves):
        if layout is not None:
            found.append(f"{place(path)}, ")
            continue
        names[f"type{n}"], names[f"value{n}"] = type(constant), constant
        lines.append(f" c = {place(path)}")
        lines.append(f" if type(c) is not type{n} or c != value{n}: return None")
    lines.append(f" return ({''.join(found)})")
    exec(compile("\n".join(lines), "<guards>", "exec"), names)
    return names["flat"]


def reader(
    modules: Sequence[tuple[int, str]],
    classes: Sequence[type],
    training: Sequence[bool | None],
    hooks: Sequence[int],
    tensors: Sequence[tuple[int, str, str]],
    parts: Sequence[Mapping[str, Mapping[str, bool]]],
    tied: Sequence[tuple[int, int, str, str]] = (),
    lengths: Sequence[tuple[int, str, int]] = (),
    forwards: Mapping[type, Any] | None = None,
) -> Read:
    """A function of the unit's module and the inputs that returns weights and inputs, None if a part changed.

    Args:
        modules: parent and name of each submodule; 0 is the unit's own module.
        classes: class of each submodule.
        training: mode of the unit's module, then of each submodule; None if it does not matter.
        hooks: number of forward hooks of each submodule.
        tensors: module, dictionary and name of each weight.
        parts: names in the dictionaries of each module, and whether they are not None; see `Unit.parts`.
        tied: number of a weight, then module, dictionary and name of another place with the same tensor.
        lengths: module and name of each container with weights, and its length.
        forwards: the forward that each of these classes has.
    """
    lines = ["def read(root, inputs):", " if hooks or pre_hooks: return None"]
    parents = [0, *(parent for parent, _ in modules)]
    for n, (mode, own) in enumerate(zip(training, parts, strict=True)):
        tests = [] if mode is None else [f"d{n}['training'] is not {mode}"]
        if n == 0:
            lines.append(" d0 = root.__dict__")
        else:
            lines.append(f" m = s{parents[n]}[{modules[n - 1][1]!r}]; d{n} = m.__dict__")
            number = f"len(d{n}['_forward_hooks']) + len(d{n}['_forward_pre_hooks']) != {hooks[n - 1]}"
            plain = f"d{n}['_forward_hooks'] or d{n}['_forward_pre_hooks']"
            tests += [f"m.__class__ is not c{n}", number if hooks[n - 1] else plain, f"'forward' in d{n}"]
        for short, kind in (("s", "_modules"), ("p", "_parameters")):
            if own[kind]:
                lines.append(f" {short}{n} = d{n}[{kind!r}]")
            if n and not own["_modules"] and classes[n - 1].__module__ in _FIXED:
                continue
            tests.append(f"len({short}{n}) != {len(own[kind])}" if own[kind] else f"d{n}[{kind!r}]")
        tests += [f"d{n}[{kind!r}][{name!r}] is not None" for kind, name in absent(own)]
        if tests:
            lines.append(f" if {' or '.join(tests)}: return None")
    found = [f"{_holder(n, kind)}[{name!r}]" for n, kind, name in tensors]
    tests = [f"len(d{n}[{kind!r}]) != {length}" for n, kind, length in lengths]
    tests += [f"own{n}.forward is not forward{n}" for n, _ in enumerate(forwards or {})]
    tests += [f"{found[one]} is not {_holder(n, kind)}[{name!r}]" for one, n, kind, name in tied]
    if tests:
        lines.append(f" if {' or '.join(tests)}: return None")
    lines.append(f" return ({''.join(f'{place}, ' for place in found)}*inputs,)")
    code: CodeType = compile("\n".join(lines), "<guards>", "exec")
    names: dict[str, Any] = {f"c{n}": cls for n, cls in enumerate(classes, 1)}
    for n, (cls, forward) in enumerate((forwards or {}).items()):
        names |= {f"own{n}": cls, f"forward{n}": forward}
    names |= {"hooks": _nn._global_forward_hooks, "pre_hooks": _nn._global_forward_pre_hooks}
    exec(code, names)
    return names["read"]


def _holder(number: int, kind: str) -> str:
    """Code of the dictionary or list with a tensor of a module."""
    if kind == "_parameters":
        return f"p{number}"
    return f"d{number}[{kind!r}]" if kind else f"d{number}"


def absent(parts: Mapping[str, Mapping[str, bool]]) -> list[tuple[str, str]]:
    """Dictionary and name of what a module has as None."""
    return [(kind, name) for kind, names in parts.items() for name, exists in names.items() if not exists]
