"""What the other packages need to know of a language before anything is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class LanguageInfo:
    """The declared facts of a language."""

    kernel_file: str = "model_new.py"
    """File in which an agent writes the kernels; `model_new.py` if they lie in the entry file itself."""
    suffixes: tuple[str, ...] = ()
    """Of kernel sources: `.cpp`. A solution with such a file is in this language, unless a manifest says
    otherwise."""
    header_suffixes: tuple[str, ...] = ()
    """Of files that kernel sources include; they are read together with a kernel source."""
    imports: tuple[str, ...] = ()
    """Top-level modules whose import by the entry file tells the language."""
    words: tuple[str, ...] = ()
    """Words that tell the language if all of them are in the entry file."""
    left_to: tuple[str, ...] = ()
    """Words in an entry file that compiles kernel sources itself, so suffixes do not tell the language."""
    fences: tuple[str, ...] = ()
    """Words after ``` in Markdown that mark a block of kernel source."""
    runtime_files: Mapping[str, Path] = field(default_factory=dict)
    """Files that solutions import at run time: path in the solution's folder to the file's place here."""
    own_kernels: bool = False
    """True if every solution in the language must run kernels of its own, whatever its files are called."""
    sanitizers: bool = False
    """True if the referee can build the kernel sources again with g++'s sanitizers."""
    prompts: Path | None = None
    """Folder with `language.md.j2`, how to write solutions, and `examples/pointwise.md.j2`, a worked example
    (also `rows` and `softmax`). None: the language has its texts in AgentForge's own prompts, or none."""

    def claims(self, files: Mapping[str, str], imports: set[str], entry_text: str) -> bool:
        """Whether a solution without a manifest is in this language."""
        return (
            any(name.split(".")[0] in self.imports for name in imports)
            or (
                any(path.endswith(self.suffixes) for path in files)
                and not any(word in entry_text for word in self.left_to)
            )
            or (bool(self.words) and all(word in entry_text for word in self.words))
        )


_CPP_RUNTIME = {"agentforge_cpp.py": _HERE / "cpp/shipped/agentforge_cpp.py"}
_CUDA_SHIPPED = ("cuda", "driver", "emulated", "launches")

CPP = LanguageInfo(
    kernel_file="kernel.cpp",
    suffixes=(".cpp", ".cc", ".cxx"),
    header_suffixes=(".hpp", ".h", ".hh", ".inc"),
    imports=("agentforge_cpp",),
    left_to=("cpp_extension",),
    fences=("cpp", "c++", "cc", "c"),
    runtime_files=_CPP_RUNTIME,
    sanitizers=True,
)
CUDA = LanguageInfo(
    kernel_file="kernel.cu",
    suffixes=(".cu",),
    header_suffixes=(".cuh",),
    imports=("agentforge_cuda",),
    words=("cpp_extension", "__global__"),
    fences=("cuda", "cu"),
    runtime_files={
        **_CPP_RUNTIME,
        **{f"agentforge_{n}.py": _HERE / f"cuda/shipped/agentforge_{n}.py" for n in _CUDA_SHIPPED},
        "agentforge_nvrtc.py": _HERE / "cuda/compile/nvrtc.py",
    },
)
CUPY = LanguageInfo(imports=("cupy", "cupyx"), own_kernels=True)
TRITON = LanguageInfo(imports=("triton",), own_kernels=True)
PYTHON = LanguageInfo(fences=("python", "py"))
