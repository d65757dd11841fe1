"""Which version of the code generator writes the playbook's kernels."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

from agentforge.resources import resource

_PACKAGE = Path(__file__).parents[1]
_WRITERS = ("attention", "coder", "cuda_graph", "triton")
"""The playbook's modules that write kernels."""


@cache
def generator_hash() -> str:
    """Hash of all that writes kernels, 16 hexadecimal digits."""
    digest = sha256()
    for file in generator_files():
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def generator_files() -> list[Path]:
    """The generator's modules, the playbook's that write kernels, and the templates and kernels they use."""
    return [
        *sorted((_PACKAGE / "codegen").rglob("*.py")),
        *(_PACKAGE / "agents" / "playbook" / f"{name}.py" for name in _WRITERS),
        *sorted(resource("knowledge_base", "templates").rglob("*.j2")),
        *sorted(resource("knowledge_base", "kernels", "triton").glob("*.py")),
    ]
