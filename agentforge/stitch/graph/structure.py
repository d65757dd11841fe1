"""Describe the modules of a unit for the plan: classes, parts, hooks, and settings that a forward reads."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial
from itertools import pairwise
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

from ..runtime.code import LONGEST, codes, fingerprint, methods, of_torch, plain_text, values
from ..runtime.unit import fields
from .printer import Unprintable

_CONFIGS = frozenset({"config", "cfg", "conf", "args", "hparams", "opt", "options", "params"})
"""Names of attributes that have a model's configuration; names that end in these after `_` too."""

_ABOUT = frozenset(
    {"name", "id", "uid", "uuid", "dtype", "path", "name_or_path", "model_id", "torch_dtype"}
    | {"architectures", "transformers_version", "tokenizer_class"}
)
"""Names of values that say what a model is: models that are built the same way may differ in them. A forward
may read them all the same."""

_ELSEWHERE = frozenset({"device", "training", "gradient_checkpointing"})
"""Names of values that say where a model is, or matter in training only, also if a forward reads them."""


def described(module: torch.nn.Module, *, any_hooks: bool = False) -> dict[str, Any]:
    """What the plan says of a unit's own module, with an entry for each submodule, parents first.

    A submodule's index is its position in [unit, *these]. The modes of the modules are None if nothing that
    they run can read them: the unit then computes the same in training mode.

    Args:
        any_hooks: True if what runs the module calls its hooks.

    Raises:
        Unprintable: a hook that is not torch's.
    """
    seen: set[int] = set()
    entries: list[dict[str, Any]] = []
    parts = list(module.modules())  # hooks of its own too: export calls them, and so would the artifact
    modal = any(_hooks(part, any_hooks) or reads_mode(part) for part in parts)
    named = {name for cls in {type(part) for part in parts} for name in _named_by_forward(cls)}

    def visit(parent: torch.nn.Module, index: int) -> None:
        for name, child in parent._modules.items():
            if child is not None:
                hooks = _hooks(child, any_hooks)
                entry = _entry(child, seen, named, modal=modal)
                entries.append({"parent": index, "name": name, **entry, "hooks": hooks})
                visit(child, len(entries))

    own = _entry(module, seen, named, modal=modal)
    visit(module, 0)
    return {**own, "modules": entries}


def _entry(module: torch.nn.Module, seen: set[int], named: set[Any], *, modal: bool) -> dict[str, Any]:
    parts: dict[str, dict[str, bool]] = {
        kind: {name: value is not None for name, value in vars(module)[kind].items()}
        for kind in ("_modules", "_parameters")
    }
    # Modules may add buffers in a forward, so only those matter that were None.
    parts["_buffers"] = {name: False for name, value in module._buffers.items() if value is None}
    settings = [(list(place), text) for place, text in _settings(module, seen, named)]
    return {
        "class": type(module).__qualname__,
        "code": fingerprint(type(module)),
        "values": values(type(module)),
        "training": module.training if modal else None,
        "parts": parts,
        "settings": settings,
    }


def _hooks(module: torch.nn.Module, any_hooks: bool) -> int:
    """Number of a module's hooks; only torch's own are fully captured in the graph.

    Raises:
        Unprintable: a hook that is not torch's.
    """
    hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
    for hook in hooks:
        if not any_hooks and not type(hook).__module__.startswith("torch.nn.utils"):
            raise Unprintable(
                f"a forward hook on a {type(module).__name__}, which the graph does not capture"
            )
    return len(hooks)


def _settings(
    module: torch.nn.Module, seen: set[int], named: set[Any]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Places and texts of a module's plain attributes and of its configuration's fields.

    What the forward assigns, such as a counter, is state and no setting.

    Args:
        seen: configurations that an earlier module has; this one's are added.
        named: see `_named_by_forward`, of all modules.
    """
    if not module.training and type(module).__module__ == torch.nn.modules.dropout.__name__:
        return
    assigned = _assigned(type(module))
    made = {name for cls in type(module).__mro__ for name in _names_in(cls)}
    for name, value in vars(module).items():
        if name in assigned or (name.startswith("_") and name not in made):
            continue
        if name.rpartition("_")[2] in _CONFIGS and name != "generation_config" and fields(value):
            if id(value) not in seen:
                seen.add(id(value))
                inner = ((key, item) for key, item in fields(value).items() if isinstance(key, str))
                kept = [(key, item) for key, item in inner if not key.startswith("_")]
                found = _plain(kept, module.training, named, name)
                yield from (((name, key), text) for key, text in found)
        else:
            found = _plain([(name, value)], module.training, named, "self")
            yield from (((key,), text) for key, text in found)


def _plain(
    values: list[tuple[str, Any]], training: bool, named: set[Any], owner: str
) -> Iterator[tuple[str, str]]:
    for name, value in values:
        of_training = "drop" in name or name.startswith("init")
        rate = "drop" in name and type(value) is float
        about = name in _ELSEWHERE or (name in _ABOUT and (owner, name) not in named)
        about |= not training and of_training and (rate or name not in named)
        text = "" if about else plain_text(value)
        if 0 < len(text) <= LONGEST:
            yield name, text


def _names_in(cls: type) -> tuple[str, ...]:
    """Names that a class's own constructor uses."""
    code = getattr(vars(cls).get("__init__"), "__code__", None)
    return code.co_names if code is not None and cls is not torch.nn.Module else ()


def _assigned(cls: type) -> set[str]:
    """Attributes that the forward, or a method that it calls, assigns."""
    steps = (step for code in _forward_codes(cls) for step in dis.get_instructions(code))
    return {step.argval for step in steps if step.opname == "STORE_ATTR"}


def _named_by_forward(cls: type) -> set[Any]:
    """Names in the code of the forward, of what it calls, and of those that it may call by `super()`.

    Each name that follows another one counts together with that too: `self.name` is `("self", "name")`.
    """
    bases = (base for base in cls.__mro__ if hasattr(base, "forward"))
    codes = {id(code): code for base in bases for code in _forward_codes(base)}.values()
    names = {name for code in codes for name in (*code.co_names, *code.co_consts)}
    steps = ([step.argval for step in dis.get_instructions(code)] for code in codes)
    # One instruction may load two variables.
    return names | {(a[-1] if type(a) is tuple and a else a, b) for each in steps for a, b in pairwise(each)}


def _forward_codes(cls: type) -> Iterator[CodeType]:
    """Code of the forward, and of the methods and properties that it uses."""
    return (code for function in methods(cls) for code in codes(function.__code__))


def stores_items(cls: type) -> bool:
    """Whether the forward, or a method that it calls, stores items in a container."""
    own = [code for f in methods(cls) if not of_torch(f) for code in codes(f.__code__)]
    steps = {step.opname for code in own for step in dis.get_instructions(code)}
    names = {name for code in own for name in code.co_names}
    return "STORE_SUBSCR" in steps or not names.isdisjoint({"setdefault", "update"})


def reads_mode(module: torch.nn.Module) -> bool:
    """Whether Python code that a module may run can read a `training` flag.

    Its class counts, and each function, class and object that this code names or that the module has. Parts
    and tensors do not: a part is asked for itself. Functions of torch get the mode as an argument.
    """
    classes = [base for base in type(module).__mro__ if base not in (torch.nn.Module, object)]
    waiting = [value for each in (module, *classes) for value in vars(each).values()]
    seen: dict[int, Any] = {}
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, (torch.nn.Module, torch.Tensor)):
            continue
        seen[id(value)] = value
        if isinstance(value, FunctionType):
            names = {name for code in codes(value.__code__) for name in (*code.co_names, *code.co_consts)}
            if names & {"training", "train", "eval"}:
                return True
            waiting += [*_enclosed(value), *_named(names, value.__globals__)]
            waiting.append(getattr(value, "__wrapped__", None))
        elif isinstance(value, (property, staticmethod, classmethod, partial, MethodType)):
            waiting += [
                getattr(value, name, None) for name in ("fget", "__func__", "__self__", "func", "args")
            ]
        elif isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, (list, tuple, AbstractSet)):
            waiting += value
        else:
            waiting += _members(value)
    return False


def _members(value: Any) -> Iterator[Any]:
    """What an object has, and its classes that are neither torch's nor Python's own."""
    for cls in (value if isinstance(value, type) else type(value)).__mro__:
        if not _is_foreign(cls):
            yield from vars(cls).values()
    if not isinstance(value, type):
        yield from getattr(value, "__dict__", {}).values()


def _is_foreign(found: Any) -> bool:
    """Whether something is torch's or Python's own."""
    place = (
        found.__name__ if isinstance(found, ModuleType) else getattr(found, "__module__", None) or "builtins"
    )
    top = str(place).partition(".")[0]
    return top == "torch" or top in sys.stdlib_module_names


def _enclosed(function: FunctionType) -> Iterator[Any]:
    """The values in a closure; a cell may still be empty."""
    for cell in function.__closure__ or ():
        with suppress(ValueError):
            yield cell.cell_contents


def _named(names: AbstractSet[Any], known: Mapping[str, Any]) -> Iterator[Any]:
    """What a code names, also in modules; nothing of torch's and Python's own."""
    for found in (known[name] for name in names if isinstance(name, str) and name in known):
        if isinstance(found, ModuleType) and not _is_foreign(found):
            yield from (vars(found)[name] for name in names if name in vars(found))
        elif not isinstance(found, ModuleType) and not _is_foreign(found):
            yield found
