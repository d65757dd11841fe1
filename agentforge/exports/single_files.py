"""One Python file a kernel: KernelBench and GPU MODE."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from agentforge.languages import export_single_file
from agentforge.languages.solutions.single_file import embedded_files
from agentforge.schema.flashinfer import code

from ._base import WinningKernel

_CUSTOM_KERNEL = '''
_run = _import(_HERE, {run_file!r}, "agentforge_run_" + _HERE.name).run


def custom_kernel(data):
    """Call the kernel with the task's inputs, a tuple in the order {order}; its outputs are returned."""
    return _run(*data) if isinstance(data, (tuple, list)) else _run(data)
'''


_MOST_BYTES, _WORD = 1_000_000, "stream"


def leaderboard_limits(files: Iterable[Path]) -> Iterator[str]:
    """A sentence for each exported file that GPU MODE's leaderboards refuse, with the reason.

    The limits are those of kernelbot's `src/kernelbot/api/api_utils.py`.
    """
    for path in files:
        content = path.read_bytes()
        why = []
        if len(content) > _MOST_BYTES:
            why.append(f"it has {len(content):,} bytes, and at most {_MOST_BYTES:,} are allowed")
        if _WORD in (text := content.decode("utf-8", "surrogatepass")).lower():
            parts = embedded_files(ast.parse(text)) or {}
            where = [name for name, part in parts.items() if _WORD in (name + part).lower()]
            why.append(f"the word '{_WORD}' is not allowed, and it is in {', '.join(where) or 'its code'}")
        if why:
            yield f"GPU MODE's leaderboards refuse {path}: {'; '.join(why)}"


class KernelBench:
    """`NAME.py` with `ModelNew`, as KernelBench's evaluator runs it."""

    name = "kernelbench"

    def files(self, kernels: Sequence[WinningKernel]) -> dict[str, str]:
        """See `ExportLayout.files`."""
        return {f"{kernel.name}.py": export_single_file(kernel.solution) for kernel in kernels}


class GpuMode:
    """`NAME.py` with `custom_kernel(data)`, as GPU MODE's leaderboards call it.

    Weights are those of the reference under seed 0. A task whose inputs contain the tensor to write into
    needs a line more.
    """

    name = "gpu-mode"

    def files(self, kernels: Sequence[WinningKernel]) -> dict[str, str]:
        """See `ExportLayout.files`."""
        return {f"{kernel.name}.py": self._file(kernel) for kernel in kernels}

    def _file(self, kernel: WinningKernel) -> str:
        definition, workload = kernel.task()
        added = code.run_files(kernel.solution, definition, workload.inputs)
        order = ", ".join(i.name for i in workload.inputs)
        text = export_single_file(kernel.whole(added))
        return text + _CUSTOM_KERNEL.format(run_file=code.RUN_FILE, order=f"({order})")
