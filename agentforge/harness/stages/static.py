"""Notes from the source text. They never decide: hostile code passes any static check."""

from __future__ import annotations

import ast

from agentforge.schema import Solution

_LARGEST = 1 << 20
_CURIOUS = {
    "os._exit": "leaves the process",
    "gc.get_objects": "looks at all objects",
    "sys._getframe": "looks at frames",
    "inspect.stack": "looks at frames",
    "torch.compile": "calls torch.compile",
    "ctypes.pythonapi": "reaches into the interpreter",
}
_MODULES = {
    "subprocess",
    "multiprocessing",
    "socket",
    "threading",
    "_thread",
    "inspect",
    "gc",
    "faulthandler",
}


class StaticNotes:
    """Reads the Python sources of a solution, without running them."""

    name = "static"

    def notes(self, solution: Solution) -> list[str]:
        """What a reader may want to look at, one line each."""
        found: list[str] = []
        for source in solution.sources:
            if source.path.endswith(".py"):
                found += [f"{source.path}:{line}: {text}" for line, text in _look(source.content)]
        return found[:20]


def _look(content: str) -> list[tuple[int, str]]:
    if len(content) > _LARGEST:
        return [(0, "too long to be read")]
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [(getattr(error, "lineno", 0) or 0, f"does not parse: {type(error).__name__}")]
    notes = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = ast.unparse(node) if _short(node) else ""
            if name in _CURIOUS:
                notes.append((node.lineno, _CURIOUS[name]))
        elif isinstance(node, ast.Import):
            notes += [
                (node.lineno, f"imports {a.name}") for a in node.names if a.name.split(".")[0] in _MODULES
            ]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in _MODULES:
            notes.append((node.lineno, f"imports from {node.module}"))
        elif isinstance(node, ast.ExceptHandler) and node.type is None:
            notes.append((node.lineno, "catches everything"))
    return notes


def _short(node: ast.expr, depth: int = 4) -> bool:
    while isinstance(node, ast.Attribute) and depth:
        node, depth = node.value, depth - 1
    return isinstance(node, ast.Name)
