"""What decides the version of the code generator."""

from __future__ import annotations

from pathlib import Path

from agentforge.agents.playbook import attention, cuda_graph, triton
from agentforge.knowledge.generator import generator_files
from agentforge.resources import resource


def test_all_that_the_playbook_writes_kernels_with_counts() -> None:
    files = set(generator_files())
    for module in (attention, cuda_graph, triton):
        assert Path(module.__file__ or "") in files
    for template in ("kernels/triton/matmul.py", "templates/cpp/program.cpp.j2"):
        assert resource("knowledge_base", *template.split("/")) in files
