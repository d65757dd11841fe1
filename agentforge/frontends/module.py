"""An ordinary nn.Module: `file.py:ClassName` with shapes, dtypes and constructor arguments from options."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

from agentforge.problems.own_modules import import_root_of
from agentforge.schema import DType, Target, TargetError, UsageError, expanded

from ._base import FrontendOptions
from ._load import make_target, read_source
from .input_options import INDEX_LIMIT, InputOption, parse_dtype, parse_inputs

_ANOTHER = """import sys


class _Convention(type(sys)):
    Model = property(lambda self: {})  # the code above means another class by this name


sys.modules[__name__].__class__ = _Convention"""
_DRAWN = (
    f"its integers were drawn from 0 to {INDEX_LIMIT - 1}: if it needs others, give the file alone, with "
    "class Model, get_inputs() and get_init_inputs() in it; else run it once by hand and fix the error"
)


class ModuleClass:
    """`file.py:ClassName --input-shape 1,512`."""

    name = "module"
    form = "file.py:ClassName"

    def accepts(self, spec: str) -> bool:
        return ":" in Path(spec).name

    def check(self, spec: str, options: FrontendOptions) -> None:
        _adapted(spec, options)

    def load(self, spec: str, options: FrontendOptions) -> Target:
        path, class_name, source = _adapted(spec, options)
        drawn = any(i.is_integer for i in parse_inputs(options))
        return make_target(
            name=f"{path.stem}_{class_name}",
            origin=spec,
            source=source,
            import_root=import_root_of(source, path.parent),
            device=options.device,
            progress=options.progress,
            longest_s=options.longest_s,
            failures=options.failures,
            advice=_DRAWN if drawn else "",
        )


def _adapted(spec: str, options: FrontendOptions) -> tuple[Path, str, str]:
    """The file, the class, and the file's text in KernelBench's convention."""
    file, _, class_name = spec.rpartition(":")
    path = expanded(file)
    if not class_name.isidentifier():
        raise UsageError(f"{class_name!r} is no class name; write {path.name}:ClassName")
    source = read_source(path)
    if not _defines(source, class_name):
        raise TargetError(f"{path.name} defines no {class_name}; its classes are: {_classes(source)}")
    inputs = parse_inputs(options)
    if not inputs:
        raise UsageError(f"say what {class_name} takes: --input-shape 1,512 (once for each input)")
    taken = class_name != "Model" and _defines(source, "Model")
    added = _appendix(class_name, inputs, parse_init(options.init_args), options.dtype, taken=taken)
    return path, class_name, source + added


def parse_init(text: str) -> list[Any] | dict[str, Any]:
    """Parse `--init-args`.

    Raises:
        UsageError: it is not a JSON list or object.
    """
    if not text.strip():
        return []
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"--init-args is no JSON ({error}); write '[64, 8]' or '{{\"dim\": 64}}'") from error
    if not isinstance(value, (list, dict)):
        raise UsageError("--init-args must be a JSON list or object: '[64, 8]' or '{\"dim\": 64}'")
    return value


def _defines(source: str, name: str) -> bool:
    """True if the top level binds `name`, judged without running the source."""
    nodes: list[ast.AST] = list(ast.parse(source).body)
    for node in nodes:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return True
        if isinstance(node, ast.alias) and name in (node.asname or node.name, "*"):
            return True
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name:
            return True
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            nodes += ast.iter_child_nodes(node)
    return False


def _classes(source: str) -> str:
    names = [n.name for n in ast.parse(source).body if isinstance(n, ast.ClassDef)]
    return ", ".join(names) or "none"


def _appendix(
    class_name: str,
    inputs: tuple[InputOption, ...],
    init: list[Any] | dict[str, Any],
    dtype: str,
    *,
    taken: bool,
) -> str:
    """Code that adapts the user's source to KernelBench's convention; the class itself is unchanged.

    Args:
        taken: True if the source means another class by `Model`; then only users of the module see this one.
    """
    keywords = any(i.keyword for i in inputs)
    lines = [
        "",
        "",
        "# --- added by AgentForge: KernelBench's convention around the class above ---",
        "import inspect",
        "",
        "import torch",
        "",
        *(_ANOTHER.format(class_name).splitlines() if taken else [f"Model = {class_name}"]),
    ]
    if parse_dtype(dtype, "--dtype") is not DType.FLOAT32:
        # the initializer is wrapped, not the class, so that state_dict keys and super(...) calls stay right;
        # a solution's subclass is cast too, and the user's own, whose initializer goes on afterwards, is not
        lines += [
            f"_initialise = {class_name}.__init__",
            "",
            "",
            "def _initialise_and_cast(self, *args, **kwargs):",
            "    _initialise(self, *args, **kwargs)",
            "    solution = type(self).__name__ == 'ModelNew'",
            f"    own = type(self).__module__ in (__name__, {class_name}.__module__)",
            f"    if type(self) is {class_name} or solution or not own:",
            f"        self.to(torch.{parse_dtype(dtype, '--dtype').value})",
            "",
            "",
            f"{class_name}.__init__ = _initialise_and_cast",
        ]
    lines += ["", "", "def get_inputs():"]
    if keywords:
        lines += [f"    names = list(inspect.signature({class_name}.forward).parameters)[1:]"]
        lines += ["    positional = ["]
        lines += [f"        {i.expression}," for i in inputs if not i.keyword]
        lines += ["    ]", "    return {", "        **dict(zip(names, positional)),"]
        lines += [f"        {i.keyword!r}: {i.expression}," for i in inputs if i.keyword]
        lines += ["    }"]
    else:
        lines += ["    return [", *(f"        {i.expression}," for i in inputs), "    ]"]
    lines += ["", "", "def get_init_inputs():"]
    if re.search(r"\b(inf|nan)\b", repr(init)):
        lines += ["    from math import inf, nan", ""]
    lines += [f"    return {init!r}", ""]
    return "\n".join(lines)
