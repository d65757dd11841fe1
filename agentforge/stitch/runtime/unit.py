"""A module of the model with a stitched forward."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.nn.modules import module as _nn
from torch.utils import _pytree

from .baseline import FrozenUnit
from .code import differ, fingerprint, of_torch, plain_text, unlike, values
from .guards import Known, Learn, absent, guards, reader
from .kernel import beside_inputs, on_its_gpu
from .layout import Layout, compiling
from .signature import Signature

_NOTHING = object()


class Unit:
    """A module of the model with a stitched forward.

    Args:
        forwards: the generated forward with direct kernel calls and with opaque operators.
        compiled: whether the latter runs under torch.compile, or in which mode, as baselines are named.
    """

    def __init__(
        self,
        plan: dict[str, Any],
        constants: Mapping[str, torch.Tensor],
        forwards: tuple[Callable[..., Any], Callable[..., Any]],
        compiled: bool | str,
    ) -> None:
        self.path: str = plan["path"]
        self.class_name: str = plan["class"]
        self.signature = Signature(plan["signature"])
        self.modules: list[tuple[int, str]] = [(m["parent"], m["name"]) for m in plan["modules"]]
        self.class_names: list[str] = [m["class"] for m in plan["modules"]]
        self.parts: list[dict[str, dict[str, bool]]] = [m["parts"] for m in (plan, *plan["modules"])]
        """Names in `_modules`, `_parameters` and `_buffers` of each module, the unit's own first, and whether
        they are not None; buffers only if they are None."""
        self.codes: list[str | None] = [m.get("code") for m in (plan, *plan["modules"])]
        """Fingerprint of each module's code; see `fingerprint`. A process loads this file once, also for
        plans of earlier versions; what such a plan lacks is not compared."""
        self.values: list[dict[str, str]] = [m.get("values", {}) for m in (plan, *plan["modules"])]
        """Place and text of the plain values that each module's code reads; see `values`."""
        self.settings: list[list[tuple[list[str], str]]] = [m["settings"] for m in (plan, *plan["modules"])]
        """Place and text of the values of each module that its forward may have baked in; see `settings`."""
        self.hooks: list[int] = [m["hooks"] for m in plan["modules"]]
        self.training: list[bool | None] = [plan["training"], *(m["training"] for m in plan["modules"])]
        self.tensors: list[tuple[int, str, str]] = [
            (t["module"], t["kind"], t["name"]) for t in plan["tensors"]
        ]
        self.tied: list[tuple[int, int, str, str]] = [
            (t["tensor"], t["module"], t["kind"], t["name"]) for t in plan.get("tied", ())
        ]
        """Number of a weight, and another place that has the same tensor."""
        self.lengths: list[tuple[int, str, int]] = [
            (c["module"], c["kind"], c["length"]) for c in plan.get("lengths", ())
        ]
        """Containers that have weights."""
        self.layouts = [Layout.read(t) for t in plan["tensors"]]
        self.expected: list[tuple[Any, ...]] = [
            (torch.nn.Parameter if kind == "_parameters" else torch.Tensor, lay.dtype, lay.shape, lay.strides)
            for (_, kind, _), lay in zip(self.tensors, self.layouts, strict=True)
        ]
        self.constants = [constants[name] for name in plan["constants"]]
        self.output_spec: str | None = plan["output_spec"]
        """None for what the generated forward returns; empty if each model's original forward shows it."""
        self.device: str = plan["device"]
        self.writes_inputs: bool = not plan["replayable"]
        self.written: list[int] = plan.get("written", [])
        """Places of the weights that it writes to."""
        self.writes = self.writes_inputs or bool(self.written)
        self.packs = bool(plan["products"])
        """Whether it computes products from packed weights."""
        self.warned = False
        self.traceable = forwards[1]
        self.eager = self._placed(forwards[0])
        self.compiled: Callable[..., Any] | None = None
        self.frozen: FrozenUnit | None = None
        if compiled:
            tuned = str(compiled).startswith("max-autotune")
            # A CUDA graph would return memory that the next call writes to.
            mode = "max-autotune-no-cudagraphs" if tuned else None
            self.compiled = self._placed(torch.compile(self.traceable, dynamic=False, mode=mode))
            if str(compiled).endswith("freezing") and not self.written:
                self.frozen = FrozenUnit(self.traceable, len(self.tensors), self.compiled, tuned)

    def _placed(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """A forward that runs on its inputs' GPU."""
        if self.device == "cuda":
            forward = on_its_gpu(forward)
        if any(constant.is_cuda for constant in self.constants):
            forward = beside_inputs(forward, len(self.tensors), self.constants)
        return forward

    def fits(self, modules: list[Any]) -> bool:
        """True if the modules have the captured classes."""
        if [type(m).__qualname__ for m in modules[1:]] != self.class_names:
            return False
        lineage = type(modules[0]).__mro__
        captured = next((c for c in lineage if c.__qualname__ == self.class_name), None)
        return captured is not None and captured.forward is lineage[0].forward  # type: ignore[attr-defined]

    def difference(self, modules: list[Any]) -> str:
        """What the modules have otherwise than the captured ones, as a sentence; empty if nothing.

        Compares the code and what it reads, names of submodules and parameters, the settings, `tied` and
        `lengths`.
        """
        names = [self.path]
        for parent, name in self.modules:
            names.append(f"{names[parent]}.{name}".strip("."))
        found_codes = {cls: fingerprint(cls) for cls in dict.fromkeys(map(type, modules))}
        for module, name, code in zip(modules, names, self.codes, strict=True):
            if code is not None and differ(found_codes[type(module)], code):
                what = f"its submodule {name!r}, a {type(module).__qualname__}," if name else "it"
                return (
                    f"{what} has other code in its forward, or in what that calls, than when it was captured "
                    "(run `agentforge optimize` again for the new code)"
                )
        found_values = {cls: values(cls) for cls in found_codes}
        for module, name, captured in zip(modules, names, self.values, strict=True):
            for origin, captured_text in captured.items():
                if unlike(read := found_values[type(module)].get(origin, ""), captured_text):
                    what = f"the forward of its submodule {name!r}" if name else "its forward"
                    return f"{what} reads {origin}: {read or 'an object'}, not the captured {captured_text}"
        for module, name, parts in zip(modules, names, self.parts, strict=True):
            what = f"its submodule {name!r}" if name else "it"
            for kind, noun in (("_modules", "submodules"), ("_parameters", "parameters")):
                found = {key: value is not None for key, value in vars(module)[kind].items()}
                ordered = kind != "_modules" or list(found) == list(parts[kind])
                if found != parts[kind] or not ordered:
                    return f"{what} has the {noun} {_names(found)}, not the captured {_names(parts[kind])}"
            if any(vars(module)[kind].get(key) is not None for kind, key in absent(parts)):
                return f"{what} has a buffer that was None when it was captured"
        for module, name, entries in zip(modules, names, self.settings, strict=True):
            for place, captured_text in entries:
                text = setting(module, place)
                if unlike(text, captured_text):
                    what = f" of its submodule {name!r}" if name else ""
                    now = f"is {text or 'an object'}, not the captured {captured_text}"
                    return f"the attribute {'.'.join(place)}{what} {now}"
        return self._untied(modules, names) or self._lengthened(modules, names)

    def _untied(self, modules: list[Any], names: Sequence[str]) -> str:
        """Which weight is no longer in two places, as a sentence; a first call may still put it there."""
        for number, *other in self.tied:
            try:
                tensors = [held(modules, *place) for place in (self.tensors[number], other)]
            except (LookupError, TypeError):
                continue
            if tensors[0] is not tensors[1] and all(isinstance(t, torch.Tensor) for t in tensors):
                one, two = (_path(names, *place) for place in (self.tensors[number], other))
                return f"its {one} and {two} are two tensors; they were one when it was captured"
        return ""

    def _lengthened(self, modules: list[Any], names: Sequence[str]) -> str:
        """Which container has another length, as a sentence; a first call may fill an empty one."""
        for index, kind, length in self.lengths:
            container = vars(modules[index]).get(kind)
            if isinstance(container, (list, tuple, dict)) and len(container) not in (0, length):
                place = f"{names[index]}.{kind}".strip(".")
                return f"its {place} has {len(container)} items, not the captured {length}"
        return ""

    def guards(
        self, classes: Sequence[type], forwards: Mapping[type, Any], ordered: Sequence[str]
    ) -> tuple[Known, Learn, Callable[[Any], Sequence[Any] | None]]:
        """See `guards`, for modules of these classes; the third function is a faster `weights`."""
        read = reader(
            self.modules,
            classes,
            self.training,
            self.hooks,
            self.tensors,
            self.parts,
            self.tied,
            self.lengths,
            forwards,
        )

        def weights(module: Any) -> Sequence[Any] | None:
            try:
                tensors = read(module, ())
            except (LookupError, TypeError, AttributeError):  # a part is missing, or is another one
                return None
            return None if tensors is None else self._kept(tensors)

        apart = self.apart if self.writes else None
        return *guards(self.signature, read, apart, ordered), weights

    def walk(self, module: Any) -> list[Any] | None:
        """The unit's modules, itself first; None if one is missing."""
        found: list[Any] = [module]
        for parent, name in self.modules:
            child = found[parent]._modules.get(name)
            if child is None:
                return None
            found.append(child)
        return found

    def read(self, modules: list[Any]) -> list[Any]:
        """Current parameters, buffers and other tensors that the modules keep.

        Raises:
            LookupError, TypeError: one was removed.
        """
        return [held(modules, *place) for place in self.tensors]

    def weights(
        self, module: Any, classes: Sequence[Any], forwards: Mapping[Any, Any]
    ) -> Sequence[Any] | None:
        """Return the weights if the module is still the captured one, else None.

        torch.compile can trace it.
        """
        if any(cls.forward is not forward for cls, forward in forwards.items()):
            return None
        if _nn._global_forward_hooks or _nn._global_forward_pre_hooks:
            return None
        modules = self.walk(module)
        if modules is None:
            return None
        if any(mode not in (None, m.training) for m, mode in zip(modules, self.training, strict=True)):
            return None
        for child, cls, hooks in zip(modules[1:], classes, self.hooks, strict=True):
            if child.__class__ is not cls or "forward" in vars(child):
                return None
            if len(child._forward_hooks) + len(child._forward_pre_hooks) != hooks:
                return None
        for child, parts in zip(modules, self.parts, strict=True):
            own = vars(child)
            if any(len(own[kind]) != len(parts[kind]) for kind in ("_modules", "_parameters")):
                return None
            if any(own[kind].get(name) is not None for kind, name in absent(parts)):
                return None
        try:
            tensors = self.read(modules)
            for number, index, kind, name in self.tied:
                if held(modules, index, kind, name) is not tensors[number]:
                    return None
            if any(len(vars(modules[index])[kind]) != length for index, kind, length in self.lengths):
                return None
        except (LookupError, TypeError):
            return None
        return self._kept(tensors)

    def _kept(self, tensors: Sequence[Any]) -> Sequence[Any] | None:
        """The tensors if all of them have their captured layout, else None."""
        if any(tensor is None for tensor in tensors):
            return None
        try:  # one list comparison: calling `holds` per weight would take longer than a small kernel
            found = [(t.__class__, t.dtype, t.shape, t.stride()) for t in tensors]
        except (AttributeError, RuntimeError):  # a number, or a sparse tensor, which has no strides
            return None
        if found != self.expected:
            kept = all(lay.holds(t) for lay, t in zip(self.layouts, tensors, strict=True))
            return tensors if kept else None
        return tensors

    def apart(self, every: Sequence[torch.Tensor]) -> bool:
        """True if no input shares memory with a weight that is written, or with any tensor if inputs are.

        The steps of a forward that writes were ordered for such calls.
        """
        count = len(self.tensors)
        given = [place for tensor in every[count:] if (place := tensor.untyped_storage().data_ptr())]
        if self.writes_inputs and len({*given}) < len(given):
            return False
        others = every[:count] if self.writes_inputs else [every[place] for place in self.written]
        return {*given}.isdisjoint([tensor.untyped_storage().data_ptr() for tensor in others])

    def plain(self, tensors: Sequence[Any]) -> bool:
        """True if neither gradients nor autocast are requested."""
        if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
            if not self.warned and not compiling():
                self.warned = True
                warnings.warn(
                    "gradients are enabled, so the original forward runs; the kernels are for inference: "
                    "call the model under torch.inference_mode() or torch.no_grad()",
                    stacklevel=4,
                )
            return False
        return not torch.is_autocast_enabled(self.device)

    def structure(self) -> Structure:
        """The output structure of a class of models."""
        return Structure(self.output_spec)


class Structure:
    """The model's output structure, which is put around the results of a generated forward.

    Args:
        text: see `Unit.output_spec`.
    """

    def __init__(self, text: str | None) -> None:
        self.known = text != ""
        self._spec = _pytree.treespec_loads(text) if text else None

    def learn(self, output: Any) -> Any:
        """Take the structure of an output of the original forward; returns that output."""
        self._spec, self.known = _pytree.tree_structure(output), True
        return output

    def around(self, results: Any) -> Any:
        """The output that has these results as its leaves."""
        return results if self._spec is None else _pytree.tree_unflatten(list(results), self._spec)


def own_forwards(classes: Sequence[type]) -> dict[type, Any]:
    """The forwards of the classes that have one that is not torch's: somebody may replace it."""
    originals: dict[Any, None] = dict.fromkeys(getattr(cls, "_agentforge_original", cls) for cls in classes)
    return {cls: cls.forward for cls in originals if not of_torch(cls.forward)}


def held(modules: Sequence[Any], index: int, kind: str, name: Any) -> Any:
    """What a module has in an attribute, or in a container that is one."""
    own = vars(modules[index])
    return own[kind][name] if kind else own[name]


def setting(module: Any, place: Sequence[str]) -> str:
    """Text of an attribute, or of a field of a configuration that is one; empty if it has no plain value."""
    value = module
    for name in place:
        value = fields(value).get(name, _NOTHING)
    return plain_text(value)


def fields(value: Any) -> dict[Any, Any]:
    """Attributes of an object or items of a dict."""
    return value if isinstance(value, dict) else getattr(value, "__dict__", {})


def _path(names: Sequence[str], index: int, kind: str, name: Any) -> str:
    """Text of a tensor's place."""
    text = str(name) if kind in ("", "_parameters", "_buffers") else f"{kind}[{name!r}]"
    return f"{names[index]}.{text}".lstrip(".")


def _names(parts: Mapping[str, bool]) -> str:
    return ", ".join(name for name, exists in parts.items() if exists) or "(none)"
