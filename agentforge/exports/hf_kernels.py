"""A repository that `kernels.get_local_kernel` and, once uploaded, `kernels.get_kernel` load.

The layout is that of kernels without compiled objects ("noarch", https://huggingface.co/docs/kernels):
sources and `build.toml` for kernel-builder, and the finished variant below `build/`. Each kernel compiles at
its first use.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from agentforge.languages import export_single_file
from agentforge.schema import UsageError, content_hash

from ._base import WinningKernel

_NAME = "agentforge-kernels"
_PACKAGE = _NAME.replace("-", "_")
_BUILD = """[general]
name = "{name}"
version = 1
license = "apache-2.0"
backends = ["{backend}"]

[torch-noarch]
"""
_CARD = """---
library_name: kernels
license: apache-2.0
---

Kernels that won in AgentForge's search. Each is a `torch.nn.Module` that takes the inputs of its task:

```python
import kernels

module = kernels.get_local_kernel("DIR", trust_remote_code=True)
module.{first}()
```

{rows}
"""


class HuggingFaceKernels:
    """One package with a class for each kernel."""

    name = "hf-kernels"

    def files(self, kernels: Sequence[WinningKernel]) -> dict[str, str]:
        """See `ExportLayout.files`.

        Raises:
            UsageError: some kernels run on GPUs only and others on the CPU.
        """
        if len({kernel.solution.spec.needs_gpu for kernel in kernels}) > 1:
            raise UsageError("hf-kernels has one backend: export GPU and CPU kernels apart")
        backend = "cuda" if kernels[0].solution.spec.needs_gpu else "cpu"
        classes = {k.name: "".join(word.capitalize() for word in k.name.split("_")) for k in kernels}
        lines = [f"from .{name} import ModelNew as {shown}" for name, shown in classes.items()]
        listed = ", ".join(f'"{name}"' for name in classes.values())
        package = {f"{kernel.name}.py": export_single_file(kernel.solution) for kernel in kernels}
        head = '"""Kernels from AgentForge."""\n\n'
        package["__init__.py"] = head + "\n".join(lines) + f"\n\n__all__ = [{listed}]\n"
        digest = content_hash(sorted(package.items()), length=12)
        metadata = {
            "id": f"{_PACKAGE}_{digest}",
            "name": _NAME,
            "version": 1,
            "license": "apache-2.0",
            "python-depends": [],
            "backend": {"type": backend},
        }
        rows = "\n".join(f"- `{classes[kernel.name]}`: {_about(kernel)}" for kernel in kernels)
        return {
            "build.toml": _BUILD.format(name=_NAME, backend=backend),
            "README.md": _CARD.format(first=next(iter(classes.values())), rows=rows),
            f"build/torch-{backend}/metadata.json": json.dumps(metadata, indent=1) + "\n",
            **{f"build/torch-{backend}/{path}": text for path, text in package.items()},
            **{f"torch-ext/{_PACKAGE}/{path}": text for path, text in package.items()},
        }


def _about(kernel: WinningKernel) -> str:
    language = kernel.solution.spec.language
    description = kernel.solution.description.splitlines()
    return f"{language}, {description[0]}" if description and description[0] else language
