"""A `load_inline` file on a machine without a GPU: its C++ for the emulator, its Python for CPU tensors."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from agentforge.languages._base import PRELUDE
from agentforge.schema import Solution

from .inline import inline_sources
from .inline_calls import InlineCall, NotLiteral, inline_calls
from .launch_syntax import rewritten_launches, without_shadows
from .source import for_cpu, unsupported_in

_DEVICE = (
    (re.compile(r"\bis_cuda\b"), "is_cpu"),
    (re.compile(r"\bkCUDA\b"), "kCPU"),
    (re.compile(r"\bDeviceType::CUDA\b"), "DeviceType::CPU"),
    (re.compile(r'"cuda(?::\d+)?"'), '"cpu"'),
)
_CUDA_CALLS = {"is_available": "True", "device_count": "1", "current_device": "0", "synchronize": "None",
               "empty_cache": "None", "init": "None", "get_device_capability": "(9, 0)"}  # fmt: skip
"""Functions of `torch.cuda`, and what a call of them is on the CPU."""
_MOST_TEXT = 256 << 10
"""Characters of C++ that are rewritten; ten times what a person writes."""

_PRELUDE = '''"""Imported before the solution, in the process that runs it."""

from pathlib import Path

from agentforge.languages.cuda.inline_runtime import calls, install

install(Path(__file__).parent, {file!r})
'''


def prepare_inline(solution: Solution, folder: Path) -> str | None:
    """Make a file that calls `load_inline`, in `folder`, one for CPU tensors.

    Returns:
        Why it cannot be run without a GPU, if so.
    """
    files = {f.path: f.content for f in solution.sources}
    if not inline_sources(files):
        return None
    try:
        calls = inline_calls(files)
    except NotLiteral as error:
        return f"what load_inline compiles is only known when {solution.entry_file} runs: {error}"
    if not calls:
        return f"{solution.entry_file} compiles CUDA C++ by other means than load_inline, which needs a GPU"
    if sum(len(literal.text) for call in calls for literal in (*call.cpp, *call.cuda)) > _MOST_TEXT:
        return f"{solution.entry_file} has more than {_MOST_TEXT >> 10} KiB of C++, too much for the emulator"
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
    """What g++ compiles for one call; messages name lines of the Python file."""
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
    """Of the operators that a call's functions become."""
    return f"agentforge_inline_{key}"


# ---------------------------------------------------------------------------------------------- Python


def python_for_cpu(text: str) -> tuple[str, str]:
    """A Python file that asks for a GPU as one that asks for none, line for line.

    Returns:
        The text, and what in it only a GPU has, after its line; empty where there is nothing.
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
    """Offsets of the lines in bytes, as `ast` counts them."""
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _replacement(node: ast.AST) -> tuple[ast.expr, int, str] | None:
    """What replaces the end of an expression: from so many bytes before another's end (0: from where that
    begins), and the new text, which keeps the lines that it takes away."""
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
