"""The contract of an export's layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agentforge.languages import MANIFEST, runtime_files
from agentforge.languages.solutions.folder import manifest_text, write_files
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


_LIST = ".agentforge-export"
"""Names, in an export's folder, the files that exports wrote there."""


def write_export(layout: str, kernels: Sequence[WinningKernel], folder: Path) -> list[Path]:
    """Write kernels in a layout; files of an earlier export are replaced.

    Returns:
        The files.

    Raises:
        UsageError: there is no such layout, it cannot express a kernel, or the folder cannot be written or
            has a file of that name that no export of this version wrote there.
    """
    texts = layouts.create(layout).files(kernels)
    listed = folder / _LIST
    earlier = set(listed.read_text(encoding="utf-8").splitlines()) if listed.is_file() else set()
    for path in texts:
        if path not in earlier and (folder / path).exists():
            raise UsageError(
                f"{folder / path} is not from an earlier export, or that was of an earlier version: "
                "remove it, or name another folder"
            )
    write_texts({_LIST: "\n".join(sorted(earlier | texts.keys())) + "\n"}, folder)
    return write_texts(texts, folder)


def write_texts(texts: Mapping[str, str], folder: Path) -> list[Path]:
    """Write texts by path relative to a folder.

    Returns:
        The files.

    Raises:
        UsageError: the folder cannot be written.
    """
    try:
        return write_files(texts, folder)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written ({error.strerror}): name another folder") from error
