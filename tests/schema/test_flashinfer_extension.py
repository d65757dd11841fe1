"""C++ and CUDA C++ solutions of the FlashInfer Trace schema as one Python file."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from agentforge.languages.cuda.load_inline.parse import inline_calls
from agentforge.schema import UsageError
from agentforge.schema.flashinfer.extension import EXTENSION_FILE, extension_file, is_extension

HEADER = "#pragma once\n#include <torch/extension.h>\nint twice(int);\n"
KERNEL = '#include "inc/a.h"\n__global__ void k() {}\nint twice(int x) { return 2 * x; }\n'
MAIN = '#include "kernel.h"\n#include "inc/a.h"\n#include "vector"\nint run(int x) { return twice(x); }'


def solution(sources: dict[str, str], **spec: Any) -> dict[str, Any]:
    listed = [{"path": path, "content": text} for path, text in sources.items()]
    return {"name": "fast", "spec": {"languages": ["cuda_cpp"], "entry_point": "main.cpp::run", **spec},
            "sources": listed}  # fmt: skip


SOURCES = {"main.cpp": MAIN, "kernel.cu": KERNEL, "inc/a.h": '#include "../kernel.h"\n', "kernel.h": HEADER}


def test_all_sources_are_one_unit() -> None:
    options = {"cuda_cflags": ["-O3"], "ld_flags": ["-lcuda"]}
    text, cuda = extension_file(solution(SOURCES, compile_options=options))
    assert cuda
    (call,) = inline_calls({EXTENSION_FILE: text})
    (unit,) = (literal.text for literal in call.cuda)
    assert unit.count("int twice(int);") == 1
    assert unit.index("int twice(int);") < unit.index("int twice(int x)") < unit.index("int run(int x)")
    assert '#include "vector"' in unit
    assert "#pragma once" not in unit
    assert 'm.def("run", &run)' in unit
    assert "extra_cuda_cflags=['-O3']" in text
    assert "extra_ldflags=['-lcuda']" in text


def test_its_own_binding_is_kept() -> None:
    bound = MAIN + '\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run, "it\'s"); }'
    text, _ = extension_file(solution({**SOURCES, "main.cpp": bound}))
    assert text.count("PYBIND11_MODULE") == 1


def test_cpp_alone_needs_no_gpu() -> None:
    text, cuda = extension_file(solution({"main.cpp": "int run(int x) { return x; }"}, languages=["cpp"]))
    assert not cuda
    assert "cuda_sources" not in text
    ast.parse(text)


@pytest.mark.parametrize("text", ["int a; // '''", "int a; // \\", "int a; // \u00e4\r\n", "int a; // '"])
def test_any_text_is_a_literal(text: str) -> None:
    made, _ = extension_file(solution({"main.cpp": f"{text}\nPYBIND11_MODULE(x, m) {{}} {text}"}))
    (value,) = (
        n.value
        for n in ast.parse(made).body
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant)
    )
    assert str(value.value) == f"{text}\nPYBIND11_MODULE(x, m) {{}} {text}"


def test_other_bindings_are_not_read() -> None:
    with pytest.raises(UsageError, match="bound by tvm-ffi"):
        extension_file(solution(SOURCES, binding="tvm-ffi"))
    flashinfer = solution(SOURCES, language="cuda")
    del flashinfer["spec"]["languages"]
    with pytest.raises(UsageError, match="bound by tvm-ffi"):
        extension_file(flashinfer)


def test_entries_in_python_are_no_extensions() -> None:
    assert [is_extension(e) for e in ("a/k.cu::f", "main.cpp::f", "main.py::f", "k.rs::f")] == [
        True,
        True,
        False,
        False,
    ]
