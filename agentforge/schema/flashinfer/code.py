"""The Python around a reference or a solution that lets the FlashInfer Trace schema enter it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from ..definition import Definition
from ..errors import UsageError
from ..solution import Solution
from ..workload import InputSpec, TensorInput
from .sizes import axis_sizes

RUN_FILE = "agentforge_run.py"
REFERENCE_FILE = "agentforge_reference.py"
MODEL_FILE = "agentforge_model.py"
ADDED_FILES = frozenset({RUN_FILE, REFERENCE_FILE})
_MARK = "\n\n# ---- run: written by AgentForge ----\n"

_SEED = '''def _seed_generators():
    """Seed torch, Python and numpy, if it is imported, as AgentForge does before it constructs a model."""
    import random
    import sys

    import torch

    torch.manual_seed(0)
    random.seed(0)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed([0, 0])'''

_RUN = '''_MODEL = None


{seed}


def run({names}):
    """Call the model, built once under seed 0."""
    global _MODEL
    if _MODEL is None:
        _seed_generators()
        _init = get_init_inputs()
        _seed_generators()
        _MODEL = Model(**_init) if isinstance(_init, dict) else Model(*_init)
        _MODEL = _MODEL.eval().to({device})
    return _MODEL({call})
'''

_RUN_NEW = '''"""Enters the solution with the reference's init arguments and, where they fit, its weights."""

import importlib.util
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_MODEL = None


{seed}


def _module(file):
    """Import a file of this folder under a name that no other solution in this process has.

    Its neighbours are found beside it. Only run-time modules (agentforge_*) stay importable for others.
    """
    spec = importlib.util.spec_from_file_location("agentforge_{tag}_" + Path(file).stem, _HERE / file)
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    before, folders = set(sys.modules), dict.fromkeys([str((_HERE / file).parent), str(_HERE)])
    sys.path[:0] = folders
    try:
        spec.loader.exec_module(module)
    finally:
        for folder in folders:
            sys.path.remove(folder)
        for name in set(sys.modules) - before:
            if not name.startswith("agentforge_") and _is_here(sys.modules[name]):
                del sys.modules[name]
    return module


def _is_here(module):
    return _HERE in Path(getattr(module, "__file__", None) or "/").parents


def _build():
    reference = _module({reference!r})
    _seed_generators()
    init = reference.get_init_inputs()
    built = []
    for kind in (reference.Model, ModelNew):
        _seed_generators()
        built.append((kind(**init) if isinstance(init, dict) else kind(*init)).eval())
    old, new = built
    shapes = [{{k: v.shape for k, v in m.state_dict().items()}} for m in built]
    if shapes[0] == shapes[1]:
        new.load_state_dict(old.state_dict())
    return new


ModelNew = _module({entry!r}).{cls}


def run({names}):
    """Call the solution."""
    global _MODEL
    if _MODEL is None:
        _MODEL = _build().to({device})
    return _MODEL({call})
'''

_MODEL_FILE = '''"""A module around the solution's function."""

import torch

from {module} import {function} as _function


class ModelNew(torch.nn.Module):
    """The solution."""

    def forward(self, {names}):
{body}
'''


def with_run(reference: str, inputs: Sequence[InputSpec]) -> str:
    """Our reference with a function `run` below it.

    Raises:
        UsageError: it is no Python, or has a `run` of its own.
    """
    try:
        tree = ast.parse(reference)
    except SyntaxError as error:
        raise UsageError(f"the reference is not Python (line {error.lineno}: {error.msg})") from error
    if any(isinstance(n, ast.FunctionDef) and n.name == "run" for n in tree.body):
        raise UsageError("the reference has a function named run already: rename it")
    return f"{reference}{_MARK}{_RUN.format(**_calling(inputs))}"


def run_files(solution: Solution, definition: Definition, inputs: Sequence[InputSpec]) -> dict[str, str]:
    """Files that let the schema enter our solution."""
    text = _RUN_NEW.format(
        tag=solution.hash,
        reference=REFERENCE_FILE,
        entry=solution.entry_file,
        cls=solution.entry_class,
        **_calling(inputs),
    )
    return {RUN_FILE: text, REFERENCE_FILE: definition.reference}


def model_file(
    entry_point: str, definition: Mapping[str, Any], axes: Mapping[str, Any] | None, *, in_place: bool
) -> str:
    """`ModelNew` around a function of theirs.

    Args:
        entry_point: `file.py::function`.
        axes: as for `solution_from_flashinfer`.
        in_place: the function takes its outputs as last arguments and returns nothing.
    """
    path, _, function = entry_point.partition("::")
    names = ", ".join(definition["inputs"])
    body = f"return _function({names})"
    if in_place:
        lines = [_allocate(name, spec, definition, axes) for name, spec in definition["outputs"].items()]
        results = ", ".join(definition["outputs"])
        body = "\n".join([*lines, f"_function({names}, {results})", f"return {results}"])
    indented = "\n".join(f"        {line}" for line in body.splitlines())
    return _MODEL_FILE.format(module=_module(path), function=function, names=names, body=indented)


def _calling(inputs: Sequence[InputSpec]) -> dict[str, str]:
    """Parameters, call and device of a function over `inputs`, and how its generators are seeded."""
    tensor = next((i.name for i in inputs if isinstance(i, TensorInput)), None)
    return {
        "names": ", ".join(i.name for i in inputs),
        "call": ", ".join(f"{i.name}={i.name}" if i.keyword else i.name for i in inputs),
        "device": f"{tensor}.device" if tensor else '"cpu"',
        "seed": _SEED,
    }


def _allocate(
    name: str, spec: Mapping[str, Any], definition: Mapping[str, Any], axes: Mapping[str, Any] | None
) -> str:
    """Statement that makes an output. It reads sizes from the inputs, and has those that no input has."""
    tensors = {n: s["shape"] for n, s in definition["inputs"].items() if s["shape"] is not None}
    sizes = []
    for axis in spec["shape"] or ():
        constant = definition["axes"][axis].get("value")
        where = next(((n, shape.index(axis)) for n, shape in tensors.items() if axis in shape), None)
        if constant is None and where is None:
            if axes is None:
                raise UsageError(f"output {name} has an axis {axis} that no input has")
            constant = axis_sizes(definition["axes"], axes)[axis]
        sizes.append(
            str(constant) if where is None or constant is not None else f"{where[0]}.shape[{where[1]}]"
        )
    device = f", device={next(iter(tensors))}.device" if tensors else ""
    return f"{name} = torch.empty([{', '.join(sizes)}], dtype=torch.{spec['dtype']}{device})"


def _module(path: str) -> str:
    """`src/kernel.py` to `src.kernel`."""
    pure = PurePosixPath(path)
    if pure.suffix != ".py":
        raise UsageError(f"entry file {path} is not Python")
    return ".".join(pure.with_suffix("").parts)
