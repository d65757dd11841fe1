"""Which version of the code generator writes the playbook's kernels."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

from agentforge.resources import resource

_CODEGEN = Path(__file__).parents[1] / "codegen"


@cache
def generator_hash() -> str:
    """Hash of the generator's modules and of the kernel templates, 16 hexadecimal digits."""
    digest = sha256()
    files = [*_CODEGEN.rglob("*.py"), *resource("knowledge_base", "templates").rglob("*.j2")]
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
