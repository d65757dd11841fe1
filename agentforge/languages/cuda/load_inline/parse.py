"""Read the arguments of `load_inline` from a Python file without running it."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentforge.schema import NOT_PYTHON

_POSITIONS = ("name", "cpp_sources", "cuda_sources", "sycl_sources", "functions", "extra_cflags",
              "extra_cuda_cflags")  # fmt: skip
_METHODS = frozenset({"strip", "lstrip", "rstrip", "replace", "join"})
_MOST_WORK, _STEP = 32 << 20, 512
"""Maximum characters evaluated per file, and the base cost of an expression. Names that each double another
one would soon exceed the memory.
"""


class NotLiteral(Exception):
    """The value of an argument is known only by running the file."""

    def __init__(self, node: ast.AST) -> None:
        try:
            super().__init__(ast.unparse(node)[:60])
        except (RecursionError, ValueError):  # expressions and numbers too long to print
            super().__init__(f"line {getattr(node, 'lineno', 0)}")


@dataclass(frozen=True)
class Literal:
    """One piece of source text."""

    text: str
    line: int
    """Its first line in the Python file."""


@dataclass(frozen=True)
class InlineCall:
    """One call of `load_inline`."""

    file: str
    line: int
    cpp: tuple[Literal, ...]
    cuda: tuple[Literal, ...]
    functions: tuple[str, ...]
    defines: tuple[str, ...]
    """Compiler flags that define macros or remove them."""

    @property
    def key(self) -> str:
        """Key that identifies the call at run time."""
        return call_key([p.text for p in self.cpp], [p.text for p in self.cuda], self.functions)


def call_key(cpp: Sequence[str], cuda: Sequence[str], functions: Sequence[str]) -> str:
    """Hash of a call's sources and exposed functions."""
    return hashlib.sha256(repr((list(cpp), list(cuda), list(functions))).encode()).hexdigest()[:16]


def listed(value: Any) -> list[str]:
    """Sources or functions as `load_inline` accepts them: one, several by name, or none."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def inline_calls(files: Mapping[str, str]) -> list[InlineCall]:
    """All calls in the Python files of a solution.

    Raises:
        NotLiteral: a source or the functions are not literals.
    """
    found: list[InlineCall] = []
    for name, content in files.items():
        if not name.endswith(".py") or "load_inline" not in content:
            continue
        try:
            tree = ast.parse(content)
            values = LiteralValues(tree)
        except NOT_PYTHON:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and called_name(node.func) == "load_inline":
                try:
                    found.append(_read(node, name, values))
                except (RecursionError, ValueError):  # names that refer to themselves, numbers too long
                    raise NotLiteral(node.func) from None
    return found


def called_name(function: ast.expr) -> str:
    """Last name of a called function: `RawKernel` for `cupy.RawKernel`."""
    return getattr(function, "id", getattr(function, "attr", ""))


def _read(call: ast.Call, file: str, values: LiteralValues) -> InlineCall:
    arguments = dict(zip(_POSITIONS, call.args, strict=False))
    arguments |= {k.arg: k.value for k in call.keywords if k.arg}
    if any(k.arg is None for k in call.keywords) or "sycl_sources" in arguments:
        raise NotLiteral(call)
    flags = []
    if "extra_cuda_cflags" in arguments:
        flags = values.texts(arguments["extra_cuda_cflags"])
    return InlineCall(
        file=file,
        line=call.lineno,
        cpp=tuple(values.pieces(arguments.get("cpp_sources"))),
        cuda=tuple(values.pieces(arguments.get("cuda_sources"))),
        functions=tuple(values.texts(arguments["functions"])) if "functions" in arguments else (),
        defines=tuple(flag for flag in flags if flag.startswith(("-D", "-U"))),
    )


class LiteralValues:
    """Values of expressions made of literals, and of names and attributes that are assigned once."""

    def __init__(self, tree: ast.Module) -> None:
        self._left = _MOST_WORK
        self._names: dict[str, ast.expr | None] = {}
        for node in ast.walk(tree):
            for name, value in _bindings(node):
                self._names[name] = None if name in self._names else value

    def pieces(self, node: ast.expr | None) -> Iterator[Literal]:
        """Sources, each with its first line."""
        if node is None:
            return
        origin = self._origin(node)
        if isinstance(origin, ast.List | ast.Tuple):
            for element in origin.elts:
                yield from self.pieces(element)
            return
        for text in self.texts(origin):
            yield Literal(text, self._begin(origin))

    def texts(self, node: ast.expr) -> list[str]:
        """The expression's value as one or several texts.

        Raises:
            NotLiteral: it contains something that is not literal.
        """
        value = self.of(node)
        found = listed(value) if value is None or isinstance(value, str | list | dict) else [value]
        if not all(isinstance(text, str) for text in found):
            raise NotLiteral(node)
        return found

    def _spend(self, characters: int, node: ast.expr) -> None:
        self._left -= characters
        if self._left < 0:
            raise NotLiteral(node)

    def _origin(self, node: ast.expr) -> ast.expr:
        """The expression assigned to a name."""
        seen = 0  # a name may refer to itself
        while isinstance(node, ast.Name | ast.Attribute) and seen < 10:
            name = ast.unparse(node)
            self._spend(len(name), node)
            value = self._names.get(name)
            if value is None:
                raise NotLiteral(node)
            node, seen = value, seen + 1
        return node

    def _begin(self, node: ast.expr) -> int:
        while True:
            if isinstance(node, ast.BinOp):
                node = self._origin(node.left)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                node = self._origin(node.func.value)
            else:
                return node.lineno

    def of(self, node: ast.expr) -> Any:
        """The expression's value.

        Raises:
            NotLiteral: it contains something that is not literal.
        """
        node = self._origin(node)
        self._spend(_STEP, node)
        try:
            value = self._value(node)
        except TypeError:  # running the file would fail too
            raise NotLiteral(node) from None
        if isinstance(value, str):
            self._spend(len(value), node)
        return value

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.List | ast.Tuple):
            return [self.of(element) for element in node.elts]
        if isinstance(node, ast.Dict) and all(k is not None for k in node.keys):
            return {self.of(k): self.of(v) for k, v in zip(node.keys, node.values, strict=True) if k}
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self.of(node.left) + self.of(node.right)
        if isinstance(node, ast.JoinedStr):
            return "".join(self._formatted(part) for part in node.values)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return self._method(node, node.func)
        raise NotLiteral(node)

    def _method(self, node: ast.Call, function: ast.Attribute) -> Any:
        target = self.of(function.value)
        if function.attr not in _METHODS or not isinstance(target, str) or node.keywords:
            raise NotLiteral(node)
        arguments = [self.of(argument) for argument in node.args]
        if function.attr == "replace":
            self._spend(target.count(arguments[0]) * len(arguments[1]) if len(arguments) > 1 else 0, node)
        elif function.attr == "join":
            self._spend(len(target) * len(*arguments), node)
        return getattr(target, function.attr)(*arguments)

    def _formatted(self, part: ast.expr) -> str:
        if isinstance(part, ast.FormattedValue):
            if part.format_spec is not None or part.conversion != -1:
                raise NotLiteral(part)
            return str(self.of(part.value))
        return str(self.of(part))


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """Names that a statement binds, each with its expression if it has one."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name | ast.Attribute):
                yield ast.unparse(target), node.value
            else:
                yield from _unknown(target)
    elif isinstance(node, ast.AnnAssign) and node.value:
        yield ast.unparse(node.target), node.value
    elif isinstance(node, ast.AugAssign | ast.For | ast.NamedExpr | ast.comprehension):
        yield from _unknown(node.target)
    elif isinstance(node, ast.arg):
        yield node.arg, None


def _unknown(target: ast.AST) -> Iterator[tuple[str, None]]:
    for name in ast.walk(target):
        if isinstance(name, ast.Name):
            yield name.id, None
