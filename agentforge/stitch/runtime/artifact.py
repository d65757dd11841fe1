"""Load an artifact's folder."""

from __future__ import annotations

import base64
import io
import json
import sys
import threading
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from .baseline import compile_model
from .derived import Derived, derived
from .kernel import Kernel, opaque_operator, provide_runtimes
from .layout import Layout
from .products import convolution, product, products_for
from .ranges import Ranges
from .swap import stitched_class
from .unit import Unit


class Artifact:
    """An artifact's folder: `optimize` and `restore` change models, `calls` counts kernel runs.

    Raises:
        RuntimeError: a kernel neither loads nor rebuilds.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        plan = json.loads((folder / "plan.json").read_text())
        self.id: str = plan["id"]
        self.mode: str = plan["mode"]
        self._plan = plan
        self._lock = threading.RLock()
        self._constants: dict[str, torch.Tensor] = {}
        self._classes: dict[tuple[int, tuple[type, ...]], type] = {}
        self.kernels: dict[str, Kernel] = {}
        self.units: list[Unit] = []
        self.ranges: list[Ranges] = []
        self._compiled: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()
        """Modules that `optimize` let run under torch.compile."""
        self._loaded = False

    def _load(self) -> None:
        with self._lock:
            if self._loaded:
                return
            counts = provide_runtimes(self.folder)
            self._products, self._derived = products_for(self.mode, counts), Derived(counts)
            namespace = f"agentforge_{self.id}"
            for name, entry in self._plan["kernels"].items():
                self.kernels[name] = Kernel(self.folder / "kernels" / name, entry, namespace, counts.count)
            text = self.folder / "constants.json"
            if text.exists():
                for name, data in json.loads(text.read_text()).items():
                    content = io.BytesIO(base64.b64decode(data))
                    # On a machine without a GPU, GPU constants load on the CPU so that the original forward
                    # works.
                    location = None if torch.cuda.is_available() else "cpu"
                    self._constants[name] = torch.load(content, map_location=location, weights_only=True)
            for plan in self._plan["units"]:
                direct, opaque = self._forwards(plan, counts)
                if "graph" in self.mode.split("+") and plan["replayable"]:
                    from .graph import Replayed  # an export may leave it out

                    still = len(plan["tensors"]) + len(plan["constants"])
                    direct = Replayed(direct, still, list(self.kernels.values()), counts)
                compiled = plan.get("compiled", False)
                self.units.append(Unit(plan, self._constants, (direct, opaque), compiled))
            self.ranges = [Ranges(entries, self._sized) for entries in [self._plan["ranges"]] if entries]
            self._loaded = True

    def _sized(self, plan: dict[str, Any], text: str) -> Unit:
        """A unit for some sizes in a range."""
        namespace: dict[str, Any] = {}
        for name, site in plan["calls"].items():
            layouts = [Layout.read(entry) for entry in site["outputs"]]
            namespace[name] = self.kernels[site["kernel"]].at(layouts, site["tuple"])
        exec(compile(text, f"{self.folder.name}: some sizes", "exec"), namespace)
        return Unit(plan, {}, (namespace["forward"], _absent), compiled=False)

    def _forwards(
        self, plan: dict[str, Any], counts: ModuleType
    ) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """The unit's generated forward twice: with direct kernel calls and with opaque operators."""
        if not plan["source"]:
            return _absent, _absent
        direct: dict[str, Any] = {}
        opaque: dict[str, Any] = {}
        for name, site in plan["calls"].items():
            layouts = [Layout.read(entry) for entry in site["outputs"]]
            call = self.kernels[site["kernel"]].at(layouts, site["tuple"])
            operator = f"agentforge_{self.id}::{plan['source'].removesuffix('.py').replace('/', '_')}_{name}"
            direct[name] = call
            opaque[name] = opaque_operator(operator, call, site["inputs"], layouts, site["tuple"])
        path = self.folder / plan["source"]
        code = compile(path.read_text(), str(path), "exec")
        branched = None
        if plan.get("branches"):
            from .branches import Branched, nothing  # an export may leave it out

            branched = Branched(**plan["branches"], counts=counts)
            direct |= branched.statements
            opaque |= dict.fromkeys(branched.statements, nothing)
        direct |= {
            "_product": self._products,
            "_convolution": self._products.convolution,
            "_derived": self._derived,
        }
        opaque |= {"_product": product, "_convolution": convolution, "_derived": derived}
        made = []
        for kind, kernels in (("direct", direct), ("opaque", opaque)):
            # torch.compile looks globals up through the module's name, so the module must be importable.
            module = ModuleType(f"agentforge_{self.id}_{path.stem}_{kind}")
            sys.modules[module.__name__] = module
            vars(module).update(kernels)
            exec(code, vars(module))
            made.append(vars(module)["forward"])
        if branched is None:
            return made[0], made[1]
        branched.forward = made[0]
        return branched, made[1]

    def optimize(self, model: Any) -> Any:
        """Install the kernels in `model`, in place; a model that already has them is unchanged.

        Kernels of another artifact give way.

        Returns:
            `model` itself; its state_dict keys, hooks and isinstance relations are unchanged.

        Raises:
            ValueError: the model's structure differs from the captured one, or it was compiled.
        """
        if not isinstance(model, torch.nn.Module):
            given = f"the class {model.__name__}" if isinstance(model, type) else f"{model!r:.60}"
            raise ValueError(f"pass the model, an instance of torch.nn.Module, not {given}")
        if self.mode != "eager":
            self._load()
        own = [None, *(r.unit for r in self.ranges), *self.units]
        others = [m for m in model.modules() if getattr(type(m), "_agentforge_unit", None) not in own]
        classes = [type(m) for m in others]
        for module in others:
            _unstitch(module)
        try:
            self._install(model)
        except ValueError:
            for module, stitched in zip(others, classes, strict=True):
                module.__class__ = stitched
            raise
        return model

    def _install(self, model: torch.nn.Module) -> None:
        found = []
        for unit in (*(r.unit for r in self.ranges), *self.units):
            module = _submodule(model, unit.path)
            if hasattr(type(module), "_agentforge_unit") or module in self._compiled:
                continue
            if getattr(module, "_compiled_call_impl", None):
                raise ValueError(
                    "Module.compile was called on the model, so its kernels would not run: pass the model as "
                    "it was before, or call restore() of the artifact that compiled it"
                )
            modules = unit.walk(module) if module is not None else None
            if not self.mode.startswith("compile") and any("forward" in vars(m) for m in modules or ()):
                raise ValueError(
                    "the model or a part of it has a forward of its own, as accelerate's hooks set it, so "
                    "the kernels would not run: pass the model as it was before, without these hooks"
                )
            if modules is None or not unit.fits(modules):
                part = f"its submodule {unit.path!r}" if unit.path else "it"
                difference = f"{part} is not the {unit.class_name} that was captured"
            else:  # torch.compile traces the given model, with whatever it has
                difference = "" if self.mode.startswith("compile") else unit.difference(modules)
            if modules is None or difference:
                raise ValueError(
                    f"this artifact was made for another model: {difference}; pass a model built the same way"
                )
            found.append((unit, module, tuple(type(m) for m in modules)))
        for unit, module, classes in found:
            if self.mode.startswith("compile"):
                compile_model(module, self.mode, self._plan.get("workloads", 0))
                self._compiled.add(module)
            else:  # units of one module have a signature each: their classes derive from each other
                module.__class__ = self._class(unit, (type(module), *classes[1:]))

    def _class(self, unit: Unit, classes: tuple[type, ...]) -> type:
        key = (id(unit), classes)
        with self._lock:
            if key not in self._classes:
                ranged = next((r for r in self.ranges if r.unit is unit), None)
                make = ranged.stitched_class if ranged else partial(stitched_class, unit=unit)
                self._classes[key] = make(classes[0], classes=classes[1:])
            return self._classes[key]

    def restore(self, model: Any) -> Any:
        """Undo `optimize`, in place.

        What was packed or derived from weights is freed; calls of other models make it again. Its weak
        references to weights would keep `torch.utils.swap_tensors` from converting them.
        """
        if self._loaded:
            self._products.forget()
            self._derived.forget()
        for unit in (*(r.unit for r in self.ranges), *self.units):
            module = _submodule(model, unit.path)
            if hasattr(type(module), "_agentforge_original"):
                _unstitch(module)
            elif self.mode.startswith("compile") and module is not None:
                module._compiled_call_impl = None
                self._compiled.discard(module)
        return model

    def calls(self) -> dict[str, int]:
        """Number of runs of each kernel in this process, and of the products from packed weights."""
        runs = {name: kernel.runs for name, kernel in self.kernels.items()}
        packed = any(unit.packs for unit in self.units)
        return {**runs, self._products.counter: self._products.runs} if packed else runs


def _absent(*tensors: Any) -> Any:
    raise RuntimeError("this unit has no stitched forward")


def _unstitch(module: Any) -> None:
    """Give a module its own class, and free the frozen code of all its units."""
    for cls in type(module).__mro__:
        unit = vars(cls).get("_agentforge_unit")
        if unit is not None and unit.frozen:
            unit.frozen.forget(module)
    module.__class__ = type(module)._agentforge_original


def _submodule(model: Any, path: str) -> Any:
    for name in path.split(".") if path else []:
        model = model._modules.get(name)
        if model is None:
            return None
    return model
