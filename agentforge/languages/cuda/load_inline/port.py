"""Port a `load_inline` file to the CPU: its C++ to the emulator, its Python to CPU tensors."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from agentforge.languages._base import PRELUDE
from agentforge.schema import Solution

from ..launch_syntax import rewritten_launches, without_shadows
from ..source import for_cpu, unsupported_in
from .build import contains_kernels, cuda_calls, too_long
from .parse import InlineCall, NotLiteral

_DEVICE = (
    (re.compile(r"\bis_cuda\b"), "is_cpu"),
    (re.compile(r"\bkCUDA\b"), "kCPU"),
    (re.compile(r"\bDeviceType::CUDA\b"), "DeviceType::CPU"),
    (re.compile(r'"cuda(?::\d+)?"'), '"cpu"'),
)
_CUDA_CALLS = {"is_available": "True", "device_count": "1", "current_device": "0", "synchronize": "None",
               "empty_cache": "None", "init": "None", "get_device_capability": "(9, 0)",
               "manual_seed": "None", "manual_seed_all": "None"}  # fmt: skip
"""Functions of `torch.cuda` and their replacements on the CPU."""

_PRELUDE = '''"""Imported before the solution, in the process that runs it."""

from pathlib import Path

from agentforge.languages.cuda.load_inline.runtime import calls, install

install(Path(__file__).parent, {file!r})
'''


def prepare_inline(solution: Solution, folder: Path) -> str | None:
    """Rewrite a file in `folder` that calls `load_inline` for CPU tensors.

    Returns:
        The reason why it cannot run without a GPU, or None.
    """
    files = {f.path: f.content for f in solution.sources}
    try:
        calls = cuda_calls(files)
    except NotLiteral as error:
        return f"the sources of load_inline are known only when {solution.entry_file} runs: {error}"
    if not calls and not contains_kernels(files):
        return None
    if not calls:
        return f"{solution.entry_file} compiles CUDA C++ by other means than load_inline, which needs a GPU"
    if long := too_long(calls):
        return f"{long}, too much for the emulator"
    for call in calls:
        for literal in (*call.cpp, *call.cuda):
            found = unsupported_in(literal.text, call.file, line=literal.line)
            if found is not None:
                return str(found)
    for name in {call.file for call in calls}:
        changed, problem = python_for_cpu(files[name])
        if problem:
            return f"{name}:{problem}"
        (folder / name).write_text(changed)
    prelude = (folder / solution.entry_file).parent / PRELUDE
    prelude.write_text(_PRELUDE.format(file=Path(solution.entry_file).name))
    return None


def translation_unit(call: InlineCall) -> str:
    """The translation unit that g++ compiles for one call; messages name lines of the Python file."""
    pieces, kernels = [], set()
    for literal in (*call.cpp, *call.cuda):
        text, names = rewritten_launches(without_shadows(literal.text))
        kernels |= names
        for pattern, plain in _DEVICE:
            text = pattern.sub(plain, text)
        pieces.append(for_cpu(text, call.file, [], line=literal.line))
    if call.functions:
        exposed = " ".join(f'm.def("{name}", &{name});' for name in call.functions)
        pieces.append(f"PYBIND11_MODULE(_, m) {{ {exposed} }}\n")
    entries = "".join(f"CUDA_ON_CPU_ENTRY({name})\n" for name in sorted(kernels))
    library = (
        f"TORCH_LIBRARY({namespace(call.key)}, library) {{\n"
        "    cuda_on_cpu::Bindings m(library);\n"
        "    cuda_on_cpu_bindings(m);\n"
        "    cuda_on_cpu::bind_counters(m);\n"
        "}\n"
    )
    return entries + "".join(pieces) + library


def namespace(key: str) -> str:
    """Namespace of the operators for a call's functions."""
    return f"agentforge_inline_{key}"


# ---------------------------------------------------------------------------------------------- Python


def python_for_cpu(text: str) -> tuple[str, str]:
    """Rewrite a Python file that uses a GPU to use the CPU, keeping lines.

    Returns:
        The text, and the first thing that needs a GPU, prefixed with its line; empty if there is none.
    """
    data, starts = text.encode(), _line_starts(text)
    edits: list[tuple[int, int, str]] = []
    problem = ""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and _is_cuda_module(node.value) and node.attr not in _CUDA_CALLS:
            problem = problem or f"{node.lineno}: torch.cuda.{node.attr} needs a GPU"
        found = _replacement(node)
        if found is not None:
            after, before, new = found
            begin = starts[after.lineno - 1] + after.col_offset
            if before:
                begin = starts[(after.end_lineno or 0) - 1] + (after.end_col_offset or 0) - before
            assert isinstance(node, ast.expr)
            edits.append((begin, starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0), new))
    for begin, end, new in sorted(edits, reverse=True):
        if not any(b <= begin and end <= e and (b, e) != (begin, end) for b, e, _ in edits):
            lines = "\n" * data.count(b"\n", begin, end)
            data = data[:begin] + new.format(lines=lines).encode() + data[end:]
    return data.decode(), problem


def _line_starts(text: str) -> list[int]:
    """Byte offsets of the lines, as `ast` counts them."""
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _replacement(node: ast.AST) -> tuple[ast.expr, int, str] | None:
    """Replacement for the end of an expression: another expression, the number of bytes before its end at
    which the replacement starts (0: at its begin), and the new text, which keeps the lines that it replaces.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return (node, 0, '("cpu"{lines})') if re.fullmatch(r"cuda(:\d+)?", node.value) else None
    if isinstance(node, ast.Attribute) and node.attr == "is_cuda":
        return node, len("is_cuda"), "is_cpu"
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    method = node.func.attr
    if _is_cuda_module(node.func.value):
        return (node, 0, f"({_CUDA_CALLS[method]}{{lines}})") if method in _CUDA_CALLS else None
    return (node.func, len("cuda"), "cpu({lines})") if method == "cuda" else None


def _is_cuda_module(node: ast.AST) -> bool:
    owner = getattr(node, "value", None)
    return isinstance(node, ast.Attribute) and node.attr == "cuda" and getattr(owner, "id", "") == "torch"
