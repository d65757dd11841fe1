"""The author: writes a reference with inputs for a computation that the user describes in words."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from types import BuiltinFunctionType, ModuleType
from typing import Any

from agentforge.agents._base import Hardware
from agentforge.llm import Response
from agentforge.schema import Usage

from .edits import Unreadable, sources
from .prompts import render
from .role import Objection, Role

MODULES = frozenset(
    {
        "math",
        "torch",
        "torch.fft",
        "torch.linalg",
        "torch.nn",
        "torch.nn.functional",
        "torch.nn.init",
        "torch.special",
    }
)
"""The only modules that a reference may reach: it runs without a sandbox, and no person has read it."""

_TYPING = frozenset(
    {
        "Any",
        "Callable",
        "Dict",
        "Final",
        "List",
        "Literal",
        "NamedTuple",
        "Optional",
        "Sequence",
        "Tuple",
        "Union",
    }
)
"""What may be imported from typing, which has functions that evaluate text."""
_CLASSES = frozenset(
    {"BoolTensor", "DoubleTensor", "FloatTensor", "Generator", "HalfTensor", "IntTensor", "LongTensor",
     "Size", "Tensor"}
)  # fmt: skip
"""Capitalised names of torch that may be used; others read files or run compiled code."""
_BUILTINS = frozenset(
    {"__import__", "breakpoint", "compile", "delattr", "eval", "exec", "getattr", "globals", "help", "input",
     "locals", "open", "setattr", "vars"}
)  # fmt: skip
"""Python's own functions that read files, run text, or reach any name."""
_ATTRIBUTES = frozenset(
    {"compile", "dump", "from_file", "get_device_module", "get_file_path", "load", "save", "share_memory_",
     "prepare_multiprocessing_environment", "storage", "tofile", "typed_storage", "untyped_storage",
     "_typed_storage",
     "ag_frame", "cr_frame", "f_back", "f_builtins", "f_globals", "f_locals", "gi_frame", "tb_frame"}
)  # fmt: skip
"""Attributes of anything that lead to files, compilers, processes, or Python's own namespaces."""


class LLMAuthor:
    """Asks a model for a reference."""

    def __init__(self, role: Role) -> None:
        self.name = role.model.spec
        self._role = role

    def write(
        self, intent: str, hardware: Hardware, earlier: str = "", objection: str = "", *, attempt: str = ""
    ) -> tuple[str, Usage]:
        """See `Author.write`."""
        prompt = render(
            "author/write.md.j2", intent=intent, hardware=hardware, earlier=earlier, objection=objection
        )

        def take(response: Response, again: bool) -> str:
            try:
                files = sources(response.text, None)
            except Unreadable as problem:
                raise Objection(str(problem)) from problem
            source = next((f.content for f in files if f.path.endswith(".py")), "")
            for what in objections(source):
                raise Objection(what)
            return source

        return self._role.ask((render("author/system.md.j2"),), prompt, take, attempt=attempt)


def objections(source: str) -> list[str]:
    """Why a source cannot be a reference, judged without running it; empty if nothing was found."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        return [f"reference.py is not Python: {error}"]
    defined = {n.name for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)}
    found = [
        f"reference.py has no {name}"
        for name in ("Model", "get_inputs", "get_init_inputs")
        if name not in defined
    ]
    return found + [f"a reference may not use {what}" for what in dict.fromkeys(_unsafe(tree))]


def _unsafe(tree: ast.Module) -> Iterator[str]:
    """What a reference may not use, judged by names and by what they are in torch."""
    nodes = list(ast.walk(tree))
    roots: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imported(node, roots)
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        match node:
            case ast.Attribute(attr=attr, value=value):
                own = isinstance(value, ast.Name) and value.id == "self" and not attr.startswith("__")
                hidden = attr.startswith("_") and not own and attr != "__init__"
                if attr in _ATTRIBUTES or hidden:
                    yield f".{attr}"
                elif id(node) not in inner:
                    yield from _chain(node, roots)
            case ast.Name(id=name, ctx=ast.Load()):
                if name in _BUILTINS or (name.startswith("__") and name != "__name__"):
                    yield name
                elif name in roots and id(node) not in inner:
                    yield f"{name} as a value"
            case (
                ast.Name(id=name)
                | ast.arg(arg=name)
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                if name in roots:
                    yield f"{name} for something else"
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)):
                if name in roots:
                    yield f"{name} for something else"
            case ast.MatchClass():  # it reads attributes by name
                yield "a class in a pattern"


def _imported(node: ast.Import | ast.ImportFrom, roots: dict[str, str]) -> Iterator[str]:
    """The faults of an import; the modules that it names are added to `roots`, by their names here."""
    for alias in node.names:
        if isinstance(node, ast.Import):
            said, path = f"import {alias.name}", alias.name
            module = path if alias.asname else path.partition(".")[0]
            name = alias.asname or module
        else:
            said, path = f"from {node.module or '.'} import {alias.name}", f"{node.module}.{alias.name}"
            name, module = alias.asname or alias.name, path
            if not node.level and (
                node.module == "__future__" or (node.module == "typing" and alias.name in _TYPING)
            ):
                continue
            if node.level or node.module not in MODULES or alias.name == "*":
                yield said
                continue
            if path not in MODULES:
                if _reached(node.module, (alias.name,)):
                    yield said
                continue
        if path not in MODULES or roots.setdefault(name, module) != module:
            yield said


def _chain(node: ast.Attribute, roots: dict[str, str]) -> Iterator[str]:
    """An attribute of a module, if it leads to what a reference may not reach."""
    names, base = [node.attr], node.value
    while isinstance(base, ast.Attribute):
        names, base = [base.attr, *names], base.value
    if isinstance(base, ast.Name) and base.id in roots and _reached(roots[base.id], tuple(names)):
        yield ".".join([base.id, *names])


def _reached(module: str, names: tuple[str, ...]) -> bool:
    """Whether names lead from a module to a module, or to a part of torch that needs no reference."""
    found: Any = importlib.import_module(module)
    for name in names:
        if isinstance(found, ModuleType) and not hasattr(found, name):
            return True
        of, found = found, getattr(found, name, None)
        if isinstance(found, ModuleType):
            if found.__name__ not in MODULES:
                return True
        elif isinstance(of, ModuleType) and (name.startswith("_") or name in _ATTRIBUTES):
            return True
        elif isinstance(of, ModuleType) and of.__name__ == "torch":
            operator = getattr(found, "__qualname__", "").startswith("_VariableFunctions")
            if name[0].isupper() and name not in _CLASSES:
                return True
            if isinstance(found, BuiltinFunctionType) and not operator:
                return True
    return isinstance(found, ModuleType)
