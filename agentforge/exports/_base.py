"""The contract of an export's layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agentforge.languages import MANIFEST, runtime_files
from agentforge.languages.solutions.folder import manifest_text
from agentforge.registry import Registry
from agentforge.schema import Definition, Solution, SourceFile, TensorInput, UsageError, Workload


@dataclass(frozen=True)
class WinningKernel:
    """A solution that is worth exporting."""

    name: str
    """A Python identifier in small letters, unique in the export."""
    solution: Solution
    definition: Definition | None = None
    """Its task; None if only the solution is known, as in an artifact."""
    workload: Workload | None = None
    """The workload that it was judged on first."""
    outputs: tuple[TensorInput, ...] = ()
    """Tensors that it returns for this workload; empty if they are unknown."""

    def task(self) -> tuple[Definition, Workload]:
        """Definition and workload.

        Raises:
            UsageError: they are unknown.
        """
        if self.definition is None or self.workload is None:
            raise UsageError(f"the task of {self.name} is unknown: export the run instead of the artifact")
        return self.definition, self.workload

    def whole(self, added: Mapping[str, str] | None = None) -> Solution:
        """The solution with its run-time modules, its manifest and other files, so that it imports alone."""
        files = {f.path: f.content for f in self.solution.sources}
        files |= runtime_files(self.solution.spec.language)
        files |= {MANIFEST: manifest_text(self.solution), **(added or {})}
        sources = tuple(SourceFile(path=path, content=text) for path, text in files.items())
        return self.solution.model_copy(update={"sources": sources})


class ExportLayout(Protocol):
    """Writes kernels as files that another project loads. Stateless; runs no line of a kernel."""

    name: str
    """What the user types after `--to`."""

    def files(self, kernels: Sequence[WinningKernel]) -> dict[str, str]:
        """Texts by path relative to the export's folder.

        Args:
            kernels: at least one; names are unique.

        Raises:
            UsageError: the layout cannot express one of them; the message names it.
        """
        ...


layouts: Registry[ExportLayout] = Registry(
    "exports",
    {
        "hf-kernels": "agentforge.exports.hf_kernels:HuggingFaceKernels",
        "flashinfer": "agentforge.exports.flashinfer:FlashInfer",
        "kernelbench": "agentforge.exports.single_files:KernelBench",
        "gpu-mode": "agentforge.exports.single_files:GpuMode",
    },
)
"""All layouts."""


def write_export(layout: str, kernels: Sequence[WinningKernel], folder: Path) -> list[Path]:
    """Write kernels in a layout; files of an earlier export are replaced.

    Returns:
        The files.

    Raises:
        UsageError: there is no such layout, it cannot express a kernel, or the folder cannot be written.
    """
    return write_texts(layouts.create(layout).files(kernels), folder)


def write_texts(texts: Mapping[str, str], folder: Path) -> list[Path]:
    """Write texts by path relative to a folder.

    Returns:
        The files.

    Raises:
        UsageError: the folder cannot be written.
    """
    written = []
    try:
        for relative, text in texts.items():
            path = folder / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
            written.append(path)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written ({error.strerror}): name another folder") from error
    return written
