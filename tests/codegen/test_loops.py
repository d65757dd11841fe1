"""Generated loops: whether the compiler makes vector code of them, and whether all threads share them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from agentforge.codegen import Options, flags_of, generate
from agentforge.languages.cpp.shipped import agentforge_cpp as runtime
from agentforge.languages.cpp.vectorised import read_report, vectorisation

from .compiled import as_tuple, build, check, compare, problem

randn = torch.randn


def kernels(body: str, inputs: Sequence[torch.Tensor], folder: Path | None = None, **knobs: Any) -> str:
    """The generated C++; the sources are written to the folder, if given."""
    definition, workload = problem(body, inputs)
    files = generate(definition, (workload,), Options(**{"threads": 2, **knobs}))
    if folder is not None:
        for file in files:
            (folder / file.path).write_text(file.content)
    return next(f.content for f in files if f.path == "kernel.cpp")


integers = torch.arange(-2048, 2048)
CONVERSIONS: dict[str, tuple[str, list[torch.Tensor]]] = {
    "a mask": ("return x0 + (1.0 - x1.float()) * -1e4", [randn(64, 4096), integers]),
    "bytes": ("return x0.float() / 255", [integers.byte()]),
    "positions": ("return torch.arange(4096).float() * x0", [randn(4096)]),
    "double precision": ("return x0.double() * 0.5", [integers << 40]),
    "wrapped": ("return (x0.to(torch.int16) * 3).float()", [integers << 10]),
}


@pytest.mark.slow
@pytest.mark.skipif("clang" in os.environ.get("CXX", ""), reason="g++ writes the report")
@pytest.mark.parametrize("name", CONVERSIONS)
def test_integers_are_converted_in_vectors(name: str, tmp_path: Path) -> None:
    body, inputs = CONVERSIONS[name]
    kernels(body, inputs, tmp_path)
    command, _ = runtime.commands("kernel.cpp", "kernel.so", flags_of(Options()), [])
    command.append("-fopt-info-vec-optimized-missed=report.txt")
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    metrics, findings = vectorisation(read_report(tmp_path / "report.txt") or "")
    assert {m.name: m.value for m in metrics}["missed_loops"] == 0, findings


@pytest.mark.slow
def test_converted_integers_are_torchs(tmp_path: Path) -> None:
    edges = torch.tensor([0, 1, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**53 - 1, -(2**53), 2**63 - 1])
    wide = torch.cat([edges, -edges, torch.randint(-(2**53), 2**53, (200,))])
    body = (
        "return (x0.float() * 2, x0.double() * 2, x1.float() * 2, x2.float() * 2, (x0 > 0).float() * 2,\n"
        "    torch.arange(4096).float() * 2, (x0 + 2**33).float() * 2)"
    )
    inputs = [wide, wide.int(), wide.byte()]
    check(body, inputs, tmp_path)


SEAMS = {
    "pad": "return F.pad(x0, (3, 3)) * 2",
    "cat": "return torch.cat((x0, x0.tanh()), -1) * 2",
    "rotation": "return torch.cat((-x0[..., 70:], x0[..., :70]), -1) * x0",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SEAMS)
def test_threads_share_the_segments_of_a_long_row(name: str, tmp_path: Path) -> None:
    x = randn(1, 1, 40_000)
    text = kernels(SEAMS[name], [x])
    assert text.count("#pragma omp for") == text.count("for (int64_t part") > 1
    for knobs in ({}, {"nontemporal": "on", "tile": 64}):
        check(SEAMS[name], [x], tmp_path / str(len(knobs)), **knobs)


image = randn(2, 32, 6, 7).to(memory_format=torch.channels_last)
LAYOUTS: dict[str, tuple[str, list[torch.Tensor]]] = {
    "kept": (
        "return (F.relu(x0 + 1), x0 * x1 + x0.tanh(), x2.t() + 1, x3.permute(2, 0, 1) * 2,\n"
        "    F.pad(x0, (1, 2)) * 2)",
        [image, randn(32, 1, 1), randn(40, 33), randn(5, 7, 33)],
    ),
    "beside products": (
        "h = F.relu(F.conv2d(x0, x1)) + 1\nreturn h, torch.sigmoid(F.conv2d(h, x2))",
        [image, randn(16, 32, 3, 3), randn(32, 16, 1, 1)],
    ),
    "asked for": (
        "h = x0.t() + 1\nreturn h.contiguous(), h @ x0, F.relu(x1).contiguous()", [randn(40, 33), image],
    ),
    "read by a product": ("y = (x0.t() * 2).contiguous()\nreturn y, y @ x0", [randn(40, 33)]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYOUTS)
def test_outputs_have_the_strides_of_torchs(name: str, tmp_path: Path) -> None:
    body, inputs = LAYOUTS[name]
    new, reference = build(body, inputs, tmp_path)
    compare(new, reference, inputs)
    strides = [[t.stride() for t in as_tuple(m(*inputs))] for m in (new, reference)]
    assert strides[0] == strides[1]


@pytest.mark.parametrize(
    ("body", "x"),
    [
        ("return F.relu(x0 + 1)", image),
        ("return x0.t() + 1", randn(40, 33)),
        ("return x0.permute(2, 0, 1) * 2 - 1", randn(5, 7, 33)),
    ],
)
def test_a_layout_that_is_kept_needs_one_loop(body: str, x: torch.Tensor) -> None:
    addresses = re.findall(r"\b(?:in|t)\d+\[(.*?)\]", kernels(body, [x]))
    assert set(addresses) == {"c0_0"}


def test_short_loops_and_other_layouts_are_row_major(tmp_path: Path) -> None:
    body = "return x0 * x1, x2 + x3, (x2 + 1).flip(1)[:1], x2.softmax(1)[:, :5]"
    narrow = randn(2, 3, 32, 32).to(memory_format=torch.channels_last)
    inputs = [narrow, randn(3, 1, 1), image, image.contiguous()]
    new, reference = build(body, inputs, tmp_path)
    compare(new, reference, inputs)
    assert all(t.is_contiguous() for t in new(*inputs))


@pytest.mark.slow
def test_few_neighbouring_rows_are_reduced_together_by_all_threads(tmp_path: Path) -> None:
    for knobs in ({"threads": 2}, {"threads": 64}, {"split": "on"}):
        text = kernels("return x0.sum(0)", [randn(9000, 16)], **knobs)
        assert "#pragma omp for" in text
        assert re.search(r"#pragma omp simd\n +for \(int64_t r0 =", text)
    assert "chunk" not in kernels("return x0.sum(0)", [randn(9000, 16)], split="off")
    body = (
        "return (x0.sum(1), x0.amax(1), (x0 * 2).argmin(1), x1.sum(0), x1.amax(0),\n"
        "    F.pad(x1.exp(), (0, 0, 2, 3)).amin(0), x2.sum(0), x3.mean(0))"
    )
    many = randn(3, 5000, 9)
    many[1, 4321, 5] = float("nan")
    inputs = [many, randn(9000, 16), torch.randint(-99, 99, (9000, 5)), randn(9000, 8).half()]
    check(body, inputs, tmp_path, magnitude=100.0, split="on")


def test_one_of_several_reductions_has_one_element(tmp_path: Path) -> None:
    body, inputs = "return x0.sum(0) + x1.sum(0)", [randn(8192, 16), randn(1, 16)]
    text = kernels(body, inputs, threads=4)
    assert "// columns:" in text
    check(body, inputs, tmp_path, magnitude=100.0)
