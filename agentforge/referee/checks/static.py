"""Notes from the source text. They never decide a verdict: hostile code passes any static check."""

from __future__ import annotations

import ast

from agentforge.schema import NOT_PYTHON, Solution

from ._base import BOTH_LEVELS, Check, CheckContext, When

_LARGEST = 1 << 20
"""Characters of the longest file that is parsed."""
_NOTABLE_NAMES = {
    "os._exit": "ends the process",
    "gc.get_objects": "reads all objects of the interpreter",
    "sys._getframe": "reads stack frames",
    "inspect.stack": "reads stack frames",
    "torch.compile": "calls torch.compile",
    "ctypes.pythonapi": "reaches into the interpreter",
}
_NOTABLE_MODULES = {
    "subprocess",
    "multiprocessing",
    "socket",
    "threading",
    "_thread",
    "inspect",
    "gc",
    "faulthandler",
}
_MOST_NOTES = 20


class StaticNotes(Check):
    """Reads the Python sources of a solution without running them."""

    name = "static"
    levels = BOTH_LEVELS
    when = When.SOURCE
    catches = "notes about unusual imports and calls in the source; never decides"

    def run(self, context: CheckContext) -> str:
        return "; ".join(notes(context.solution))


def notes(solution: Solution) -> list[str]:
    """Remarks about the Python sources, one line each."""
    found: list[str] = []
    for source in solution.sources:
        if source.path.endswith(".py"):
            found += [f"{source.path}:{line}: {text}" for line, text in _notes(source.content)]
    return found[:_MOST_NOTES]


def _notes(content: str) -> list[tuple[int, str]]:
    if len(content) > _LARGEST:
        return [(0, "too long to parse")]
    try:
        tree = ast.parse(content)
    except NOT_PYTHON as error:
        return [(getattr(error, "lineno", 0) or 0, f"does not parse: {type(error).__name__}")]
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = ast.unparse(node) if _short(node) else ""
            if name in _NOTABLE_NAMES:
                found.append((node.lineno, _NOTABLE_NAMES[name]))
        elif isinstance(node, ast.Import):
            found += [
                (node.lineno, f"imports {a.name}")
                for a in node.names
                if a.name.split(".")[0] in _NOTABLE_MODULES
            ]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in _NOTABLE_MODULES:
            found.append((node.lineno, f"imports from {node.module}"))
        elif isinstance(node, ast.ExceptHandler) and node.type is None:
            found.append((node.lineno, "catches every exception"))
    return found


def _short(node: ast.expr, depth: int = 4) -> bool:
    while isinstance(node, ast.Attribute) and depth:
        node, depth = node.value, depth - 1
    return isinstance(node, ast.Name)
