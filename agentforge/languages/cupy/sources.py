"""Find CuPy's kernels in Python files without running them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from agentforge.schema import NOT_PYTHON

from ..cuda.compile.pipeline import LiteralSource
from ..cuda.load_inline.parse import LiteralValues, NotLiteral, called_name
from ..cuda.source import kernel_bodies, unsupported_in

RAW = ("RawKernel", "RawModule")
KERNELS = (*RAW, "ElementwiseKernel", "ReductionKernel", "fuse", "rawkernel")
_MODULES = ("cupy", "cupy.cuda", "cupy.cuda.stream")
"""Modules of CuPy that exist without a GPU."""
_STREAM = ("ExternalStream", "from_external")


@dataclass
class Found:
    """What the Python files of a solution do with CuPy."""

    sources: list[LiteralSource] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    """`model_new.py:12` of kernels whose source is known only when the file runs."""
    names: list[str] = field(default_factory=list)
    """Kernels by name, or by class and line."""
    unsupported: str = ""
    """Why the kernels cannot be judged without a GPU, in one sentence; empty if they can."""
    on_torch_stream: bool = False
    """True if a file enters torch's stream in CuPy."""


def find_kernels(files: Mapping[str, str]) -> Found:
    """Kernels in the Python files, which parse."""
    found = Found()
    for name, content in sorted(files.items()):
        if not name.endswith(".py") or "cupy" not in content:
            continue
        try:
            tree = ast.parse(content)
            _read(tree, name, found)
        except NOT_PYTHON:
            continue
        found.on_torch_stream |= any(word in content for word in _STREAM)
    return found


def _read(tree: ast.Module, file: str, found: Found) -> None:
    values, aliases = LiteralValues(tree), dict(_aliases(tree))
    for node in ast.walk(tree):
        for module in _imported(node):
            if module.split(".")[0] in ("cupy", "cupyx") and module not in _MODULES:
                line = getattr(node, "lineno", 0)
                found.unsupported = (
                    found.unsupported or f"{file}:{line} imports {module}, which needs a GPU to run"
                )
        if not isinstance(node, ast.Call | ast.FunctionDef):
            continue
        functions = [node.func] if isinstance(node, ast.Call) else node.decorator_list
        called = [called_name(f.func if isinstance(f, ast.Call) else f) for f in functions]
        kinds = {aliases.get(name, name) for name in called} & set(KERNELS)
        for kind in kinds:
            if isinstance(node, ast.Call) and kind in RAW:
                _read_raw(node, kind, file, values, found)
            else:
                found.names.append(getattr(node, "name", f"{kind} in line {node.lineno}"))


def _read_raw(call: ast.Call, kind: str, file: str, values: LiteralValues, found: Found) -> None:
    arguments = {k.arg: k.value for k in call.keywords} | (
        dict(zip(("code", "name", "options") if kind == "RawKernel" else ("code",), call.args, strict=False))
    )
    try:
        pieces = list(values.pieces(arguments.get("code")))
        options = values.texts(arguments["options"]) if "options" in arguments else []
        templates = values.texts(arguments["name_expressions"]) if "name_expressions" in arguments else []
    except (NotLiteral, RecursionError, ValueError):
        pieces, options, templates = [], [], []
    if len(pieces) != 1:
        found.unknown.append(f"{file}:{call.lineno}")
        found.names.append(f"{kind} in line {call.lineno}")
        return
    code, line = pieces[0].text, pieces[0].line
    found.names += kernel_bodies(code) or [f"{kind} in line {call.lineno}"]
    standard = not arguments.keys().isdisjoint(("backend", "jitify"))  # nvcc has headers that NVRTC lacks
    source = LiteralSource(f"{file}:{line}", code, nvrtc_options(options), tuple(templates), standard)
    if source not in found.sources:
        found.sources.append(source)
    problem = unsupported_in(code, file, line=line)
    found.unsupported = found.unsupported or (str(problem) if problem else "")


def nvrtc_options(options: list[str]) -> tuple[str, ...]:
    """Options without a language standard, which the compilation sets itself."""
    return tuple(o for o in options if not o.lstrip("-").startswith("std"))


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module


def _aliases(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The file's own names of imports from CuPy."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "cupy":
            yield from ((alias.asname, alias.name) for alias in node.names if alias.asname)
