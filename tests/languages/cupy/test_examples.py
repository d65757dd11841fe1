"""The worked examples that a language model sees are right."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agentforge.agents.llm import prompts
from agentforge.languages import languages, run_command
from agentforge.languages.cpp.language import compiler_version
from agentforge.languages.cuda import compilers
from agentforge.testing.language import make_solution

CHECK = """
import sys
from agentforge.languages.cupy.emulated.install import install
install(True)
import torch, torch.nn.functional as F
from model_new import ModelNew
x, r, w, b = torch.randn(5, 70), torch.randn(5, 70), torch.randn(70), torch.randn(70)
m = torch.rand(5, 70) < 0.3
arguments, expected = {
    "pointwise": lambda: ((x, b, r), F.gelu(x + b) + r),
    "rows": lambda: ((x, r, w, b), F.layer_norm(x + r, (70,), w, b, 1e-5)),
    "scan": lambda: ((x, m), torch.cumsum(x * m, -1)),
    "softmax": lambda: ((x, m), torch.softmax(x.masked_fill(m, -1e9), -1)),
}[sys.argv[1]]()
parameters = {id(w), id(b)}  # as a stitched model passes them
arguments = [torch.nn.Parameter(a) if id(a) in parameters else a for a in arguments]
with torch.no_grad():
    assert torch.allclose(ModelNew()(*arguments), expected, atol=1e-4)
"""


@pytest.mark.slow
@pytest.mark.skipif(not compiler_version(), reason="needs g++")
@pytest.mark.parametrize("name", ["pointwise", "rows", "scan", "softmax"])
def test_the_example_computes_what_it_says(name: str, tmp_path: Path) -> None:
    found = re.search(r"```python\n(.*?)```", prompts.render(f"coder/examples/cupy/{name}.md.j2"), re.DOTALL)
    assert found is not None
    (tmp_path / "model_new.py").write_text(found[1])
    command = [sys.executable, "-c", CHECK, name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("name", ["pointwise", "rows", "scan", "softmax"])
def test_the_example_passes_tensors_and_launches_on_torchs_stream(name: str) -> None:
    found = re.search(r"```python\n(.*?)```", prompts.render(f"coder/examples/cupy/{name}.md.j2"), re.DOTALL)
    assert found is not None
    on_stream = [n for n in ast.walk(ast.parse(found[1])) if isinstance(n, ast.With)]
    assert len(on_stream) == 1 and "ExternalStream" in ast.unparse(on_stream[0].items[0])
    inside = ast.unparse(on_stream[0])
    assert inside.count("from_dlpack") == found[1].count("from_dlpack") > 0


@pytest.mark.skipif(compilers() is None, reason="needs a CUDA compiler")
def test_the_examples_compile_as_cupy_compiles_them(tmp_path: Path) -> None:
    for name in ("pointwise", "rows", "scan", "softmax"):
        text = prompts.render(f"coder/examples/cupy/{name}.md.j2")
        found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
        assert found is not None
        folder = tmp_path / name
        folder.mkdir()
        built = languages.create("cupy").build(
            make_solution("cupy", {"model_new.py": found[1]}),
            folder, cache=tmp_path / ".cache", run=run_command, timeout_s=60, device="cpu",
        )  # fmt: skip
        assert built.ok and built.resources, built.diagnostics
