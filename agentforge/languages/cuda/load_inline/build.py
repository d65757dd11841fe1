"""Find the CUDA C++ in KernelBench-style files that call `load_inline` at import."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from agentforge.schema import NOT_PYTHON

from ..source import MOST_TEXT, without_comments
from .parse import InlineCall, NotLiteral, inline_calls

_HOST = re.compile(
    r"\b(?:torch|at|c10|pybind11|py)\s*::|\busing\s+namespace\s+(?:torch|at|c10)\b|<<<|PYBIND11_MODULE|TORCH_LIBRARY"
    r"|AT_DISPATCH"
)
_HOST_INCLUDE = re.compile(
    r"#\s*include\s*[<\"](?:torch|ATen|c10|pybind11|THC|vector|string|iostream|cuda_runtime|cublas|cudnn|cusparse)"
)


def contains_kernels(files: Mapping[str, str]) -> bool:
    """True if a Python file that uses torch's `cpp_extension` has a string with `__global__`."""
    for name, content in files.items():
        if not name.endswith(".py") or "cpp_extension" not in content:
            continue
        try:
            tree = ast.parse(content)
        except NOT_PYTHON:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "__global__" in node.value:
                return True
    return False


def cuda_calls(files: Mapping[str, str]) -> list[InlineCall]:
    """All calls of `load_inline` in a solution, if its Python files contain CUDA C++ or give it such sources.

    Raises:
        NotLiteral: there is a kernel, and a source or the functions are not literals.
    """
    kernels = contains_kernels(files)
    try:
        calls = inline_calls(files)
    except NotLiteral:
        if kernels:
            raise
        return []
    given = any(literal.text.strip() for call in calls for literal in call.cuda)
    return calls if kernels or given else []


def too_long(calls: Sequence[InlineCall]) -> str:
    """Why the calls' sources are too long to rewrite; empty if they are not."""
    length = sum(len(literal.text) for call in calls for literal in (*call.cpp, *call.cuda))
    return f"{calls[0].file} has more than {MOST_TEXT >> 10} KiB of C++" if length > MOST_TEXT else ""


def cuda_text(call: InlineCall) -> str:
    """The CUDA sources of a call, which torch joins, on the lines that they have in the Python file."""
    text = ""
    for literal in call.cuda:
        missing = literal.line - 1 - text.count("\n")
        text += "\n" * missing if missing >= 0 else f"#line {literal.line}\n"
        text += literal.text + "\n"
    return text


def device_code(source: str) -> str:
    """The source without its host side, keeping lines: NVRTC has no torch headers."""
    plain = without_comments(source)
    kept = list(source)
    for begin, end in _declarations(plain):
        if _HOST.search(plain, begin, end) or _HOST_INCLUDE.match(plain[begin:end].lstrip()):
            for i in range(begin, end):
                if kept[i] != "\n":
                    kept[i] = " "
    return "".join(kept)


def _declarations(plain: str) -> Iterator[tuple[int, int]]:
    """Begin and end of each declaration or directive at the outermost level."""
    position, start, depth = 0, 0, 0
    while position < len(plain):
        character = plain[position]
        if character == "#" and depth == 0 and not plain[start:position].strip():
            end = position
            while (end := plain.find("\n", end + 1)) >= 0 and plain[end - 1] == "\\":
                pass
            position = end if end >= 0 else len(plain)
            yield start, position
            start = position
            continue
        depth += (character in "{(") - (character in "})")
        if depth == 0 and character in ";}":
            yield start, position + 1
            start = position + 1
        position += 1
    yield start, len(plain)
