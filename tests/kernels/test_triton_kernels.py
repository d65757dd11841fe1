"""The Triton kernels that we bring: right on odd sizes and tails, compiled for three generations of GPUs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from agentforge.codegen.library import KernelTemplate, kernel_templates, parse_template
from agentforge.languages import BuildResult, run_command
from agentforge.languages.occupancy import target_limits
from agentforge.languages.triton.compile.ahead import AheadOfTime
from agentforge.languages.triton.language import TARGETS, triton_version
from agentforge.languages.triton.launches import Launch, parse_launches
from agentforge.schema import UsageError
from agentforge.testing.language import make_solution

from .cases import CASES, FOLDER, load
from .large import DTYPES, LARGE

pytestmark = pytest.mark.skipif(not triton_version(), reason="Triton is not installed")
ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(path.stem for path in FOLDER.glob("*.py"))
CONSUMERS = (("sm_89", "fp32"), ("sm_120", "bf16"))
"""Targets with 99 KiB of shared memory for a block, as sm_86 has."""
TILES = ("matmul", "fused_mlp", "attention")
_SPILLED = {
    ("gated_tile", "sm_80"): 128, ("gated_tile", "sm_89"): 128, ("gated_tile", "sm_120"): 160,
    ("attention_tile", "sm_80"): 128, ("attention_tile", "sm_89"): 128, ("attention_tile", "sm_100"): 128,
    ("attention_tile", "sm_120"): 128,
}  # fmt: skip
"""Bytes that a tile made for Hopper may spill elsewhere."""
_UNITS = 4.0
"""Allowed relative L2 error, in units of the dtype's epsilon."""


def child(what: str) -> dict[str, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.kernels.child", what],
        capture_output=True, text=True, timeout=250, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return {line["case"]: line for line in map(json.loads, done.stdout.splitlines())}


@pytest.fixture(scope="module")
def answers() -> dict[str, dict[str, Any]]:
    return child("run")


@pytest.fixture(scope="module")
def launches() -> dict[str, dict[str, Any]]:
    return child("record")


@pytest.mark.parametrize("name", CASES)
def test_kernel_is_right(answers: dict[str, dict[str, Any]], name: str) -> None:
    found = answers[name]
    assert "raised" not in found, found["raised"]
    assert found["launches"]
    assert all(error <= _UNITS for error in found["errors"]), found["errors"]


def test_many_heads_fit_a_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    grids: list[tuple[int, ...]] = []

    class Tile:
        def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
            grids.append(grid)
            return lambda *_, **__: None

    module = load("attention")
    monkeypatch.setattr(module, "attention_tile", Tile())
    windows = torch.empty(8192, 16, 49, 32, dtype=torch.float16, device="meta")
    module.attention(windows, windows, windows)
    assert grids and all(size < 65536 for size in grids[0][1:])


def test_a_large_batch_fits_a_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[tuple[tuple[int, ...], int]] = []

    class Heads:
        def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
            return lambda x, *_, **__: launched.append((grid, x.storage_offset()))

    module = load("rotary")
    monkeypatch.setattr(module, "rotary_heads", Heads())
    x, angles = torch.empty(70_000, 1, 1, 2), torch.empty(1, 2)
    module.rotary(x, angles, angles)
    assert launched == [((1, 1, 65535), 0), ((1, 1, 70_000 - 65535), 2 * 65535)]


@pytest.mark.parametrize(("elements", "wide"), [(2**31 - 600, True), (2**31 - 2**23, False)])
def test_a_long_reduction_counts_in_64_bits(
    monkeypatch: pytest.MonkeyPatch, elements: int, wide: bool
) -> None:
    launched: list[bool] = []

    class Kernel:
        def __getitem__(self, _: tuple[int, ...]) -> Callable[..., None]:
            return lambda *_, WIDE=False, **__: launched.append(WIDE)

    module = load("reduction")
    for name in ("reduce_piece", "reduce_column", "reduce_row"):
        monkeypatch.setattr(module, name, Kernel())
    x = torch.empty(elements, dtype=torch.float16, device="meta")
    module.reduce_all(x)
    assert launched == [wide, False]
    launched.clear()
    module.reduce_columns(x[:, None])
    assert launched[0] == wide and not any(launched[1:])


def test_every_file_is_checked() -> None:
    assert {file for file, _, _ in CASES.values()} == {file for file, _, _ in LARGE.values()} == set(FILES)


def compiled(cases: Sequence[dict[str, Any]], targets: Sequence[str], folder: Path) -> BuildResult:
    """All launches of the cases, compiled by one process: most of its time would be spent importing torch."""
    for case in cases:
        assert "raised" not in case and case["launches"], case
    files = sorted({case["file"] for case in cases})
    sources = {f"{file}.py": (FOLDER / f"{file}.py").read_text() for file in files}
    sources["model_new.py"] = "".join(f"import {file}\n" for file in files)
    folder.mkdir()
    for name, text in sources.items():
        (folder / name).write_text(text)
    launches = parse_launches([launch for case in cases for launch in case["launches"]])
    solution = make_solution("triton", sources)
    ahead = AheadOfTime(solution, folder, targets, folder / "cache", run_command, triton_version())
    return ahead.compile(launches, 250.0)


def check(found: BuildResult, launches: Sequence[Launch], targets: Sequence[str]) -> None:
    assert found.ok and not found.diagnostics, found.diagnostics
    titles = {launch.title for launch in launches}
    usages = [usage for usage in found.resources if usage.kernel in titles]
    assert {(usage.kernel, usage.target) for usage in usages} == set(product(titles, targets))
    for usage in usages:
        assert usage.registers > 0 and usage.occupancy, usage
        assert usage.shared_bytes <= target_limits(usage.target).shared_bytes_block
        assert usage.spill_store_bytes <= _SPILLED.get((usage.kernel.split("(")[0], usage.target), 0), usage


@pytest.mark.slow
def test_compiles_for_hopper(launches: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    case = launches["softmax fp32"]
    check(compiled([case], ("sm_90",), tmp_path / "built"), parse_launches(case["launches"]), ("sm_90",))


@pytest.fixture(scope="module")
def for_every_target(
    launches: dict[str, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, BuildResult]:
    """By dtype, compiled in two processes side by side."""
    folder = tmp_path_factory.mktemp("compiled")

    def of(dtype: str) -> tuple[str, BuildResult]:
        cases = [case for name, case in launches.items() if name.endswith(dtype)]
        return dtype, compiled(cases, TARGETS, folder / dtype)

    with ThreadPoolExecutor(2) as pool:
        return dict(pool.map(of, DTYPES))


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_compiles_for_every_target(
    launches: dict[str, dict[str, Any]], for_every_target: dict[str, BuildResult], name: str
) -> None:
    check(for_every_target[name.split()[-1]], parse_launches(launches[name]["launches"]), TARGETS)


@pytest.mark.slow
@pytest.mark.parametrize(("target", "dtype"), CONSUMERS)
def test_tiles_fit_the_shared_memory_of_consumer_gpus(
    launches: dict[str, dict[str, Any]], tmp_path: Path, target: str, dtype: str
) -> None:
    """Before Hopper the compiler keeps one stage less: 98304 bytes at most."""
    cases = [launches[f"{file} {dtype}"] for file in TILES]
    found = compiled(cases, (target,), tmp_path / "built")
    check(found, parse_launches([launch for case in cases for launch in case["launches"]]), (target,))


def test_manifests() -> None:
    templates = {t.id: t for t in kernel_templates().values() if t.language == "triton"}
    assert len(templates) == len(FILES)
    for template in templates.values():
        assert template.good_for and template.limits and template.op_types and template.parameters
        for function in template.functions:
            assert f"\ndef {function}(" in template.text


@pytest.mark.parametrize("template", kernel_templates().values(), ids=lambda t: t.id)
def test_rendering_sets_parameters(template: KernelTemplate) -> None:
    last = {name: values[-1] for name, values in template.parameters.items()}
    space: dict[str, Any] = {}
    exec(next(x for x in template.render(last).splitlines() if x.startswith("PARAMETERS")), space)
    assert space["PARAMETERS"] == last
    compile(template.render(), "kernel.py", "exec")
    assert "\n---" not in template.render()


def test_wrong_parameters_and_manifests() -> None:
    with pytest.raises(UsageError, match="max_block is 'many'"):
        kernel_templates()["softmax"].render({"max_block": "many"})
    with pytest.raises(UsageError, match="no manifest"):
        parse_template('"""A kernel."""\n', "k.py")
    with pytest.raises(UsageError, match="is invalid"):
        parse_template('"""A kernel.\n\n---\nid: k\n---\n"""\n', "k.py")
    source = (FOLDER / "softmax.py").read_text()
    with pytest.raises(UsageError, match="must contain the first value"):
        parse_template(source.replace('"lane_bytes": 32}', '"lane_bytes": 8}'), "k.py")
