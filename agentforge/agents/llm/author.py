"""The author: writes a reference with inputs for a computation that the user describes in words."""

from __future__ import annotations

import ast

from agentforge.agents._base import Hardware
from agentforge.llm import Response
from agentforge.schema import Usage

from .edits import Unreadable, sources
from .prompts import render
from .role import Objection, Role

IMPORTS = frozenset({"__future__", "math", "torch", "typing"})
"""The only imports that a reference may have: it runs without anyone having read it."""

_FORBIDDEN = frozenset(
    {"open", "exec", "eval", "compile", "__import__", "getattr", "setattr", "globals", "vars", "input"}
)
_UNSAFE = (
    "load",
    "save",
    "hub",
    "ops",
    "classes",
    "utils",
    "jit",
    "package",
    "distributed",
    "multiprocessing",
)
"""Parts of torch that read files, compile code or start processes."""


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
    for node in ast.walk(tree):
        found += [f"a reference may not use {what}" for what in _unsafe(node)]
    return found


def _unsafe(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [
            f"import {a.name}"
            for a in node.names
            if a.name not in (*IMPORTS, "torch.nn.functional", "torch.nn")
        ]
    if isinstance(node, ast.ImportFrom):
        allowed = node.module in IMPORTS | {"torch.nn", "torch.nn.functional"} and not node.level
        names = [a.name for a in node.names if a.name in _UNSAFE or a.name == "*"]
        return (
            [] if allowed and not names else [f"from {node.module or '.'} import {', '.join(names) or '...'}"]
        )
    if isinstance(node, ast.Name) and node.id in _FORBIDDEN:
        return [node.id]
    if isinstance(node, ast.Attribute):
        dunder = node.attr.startswith("__") and node.attr != "__init__"
        of_torch = isinstance(node.value, ast.Name) and node.value.id == "torch"
        return [f".{node.attr}"] if dunder or (of_torch and node.attr in _UNSAFE) else []
    return []
