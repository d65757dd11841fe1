"""The device that is here, and those that are not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentforge.devices import cuda, detect, gpu_present, tool_version, with_threads
from agentforge.devices.cpu import (
    architecture,
    cache_sizes,
    cores,
    data_caches,
    last_level_caches,
    vector_bits,
)
from agentforge.devices.toolchain import driver_version
from agentforge.schema import UsageError


def test_the_cpu() -> None:
    cpu = detect("cpu")
    assert cpu.kind == "cpu"
    assert cpu.name
    assert cpu.threads >= 1
    assert cpu.memory_bytes > 1 << 28
    assert cpu.toolchain["python"].split(".")[0] == "3"
    assert cpu.toolchain["torch"]
    assert list(cpu.cache_bytes) == sorted(cpu.cache_bytes)
    assert cpu == detect("cpu"), "a cache's key must not move"


def test_measurements_with_fewer_threads_have_a_device_of_their_own() -> None:
    cpu = detect("cpu")
    assert with_threads(cpu, cpu.threads) == cpu
    more = cpu.model_copy(update={"threads": 64, "cache_bytes": (1 << 15, 1 << 20, 1 << 40)})
    one = with_threads(more, 1)
    assert one.threads == 1
    assert one.cache_bytes[:-1] == cpu.cache_bytes[:-1]
    assert one.cache_bytes[-1:] <= cpu.cache_bytes[-1:]
    assert one.model_copy(update={"threads": 64, "cache_bytes": more.cache_bytes}) == more
    assert with_threads(detect("null"), 1) == detect("null")


def test_cores_and_vector_width() -> None:
    names = {"x86-64 avx512": 512, "x86-64 avx2": 256, "x86-64 sse2": 128, "aarch64 sve": 0, "null": 0}
    assert {name: vector_bits(name) for name in names} == names
    assert 0 <= cores(1) <= 1


def test_the_null_device_is_the_same_everywhere() -> None:
    assert detect("null").cache_bytes == (32 << 10, 1 << 20, 32 << 20)


@pytest.mark.skipif(gpu_present(), reason="there is a GPU")
def test_without_a_gpu() -> None:
    assert detect("auto").kind == "cpu"
    with pytest.raises(UsageError, match="--device cpu"):
        detect("cuda")


@pytest.mark.gpu
@pytest.mark.skipif(not gpu_present(), reason="there is no GPU")
def test_the_gpu() -> None:
    gpu = detect("cuda")
    assert gpu.architecture.startswith("sm_")
    assert gpu.memory_bytes > 1 << 30


def test_an_unknown_kind() -> None:
    with pytest.raises(UsageError, match=r"is not one of the devices: auto, cpu, cuda$"):
        detect("abacus")


def test_torch_is_not_imported() -> None:
    code = (
        "import sys; from agentforge.devices import detect; detect('cpu'); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


@pytest.mark.parametrize(
    ("machine", "flags", "name"),
    [
        ("x86_64", "fpu sse2 avx avx2 avx512f", "x86-64 avx512"),
        ("x86_64", "fpu sse2 avx avx2", "x86-64 avx2"),
        ("x86_64", "fpu", "x86-64"),
        ("aarch64", "fp asimd sve sve2", "aarch64 sve2"),
        ("aarch64", "fp asimd", "aarch64 neon"),
        ("riscv64", "", "riscv64"),
    ],
)
def test_architectures(machine: str, flags: str, name: str) -> None:
    assert architecture(machine, flags) == name


def test_caches(tmp_path: Path) -> None:
    for index, (kind, level, size) in enumerate(
        [("Data", 1, "48K"), ("Instruction", 1, "32K"), ("Unified", 2, "2M"), ("Unified", 3, "")]
    ):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        for name, text in (("type", kind), ("level", str(level)), ("size", size)):
            (folder / name).write_text(f"{text}\n")
    (tmp_path / "index9").mkdir()
    assert cache_sizes(tmp_path) == (48 << 10, 2 << 20)
    assert cache_sizes(tmp_path / "nothing") == ()


def _sysfs(root: Path, cpus: int, per_die: int) -> Path:
    """CPUs in dies: each has an L1 and an L2, each die an L3 of 32 MiB."""
    for cpu in range(cpus):
        first = cpu // per_die * per_die
        for index, (level, size, shared) in enumerate(
            [(1, "32K", f"{cpu}"), (2, "1M", f"{cpu}"), (3, "32M", f"{first}-{first + per_die - 1}")]
        ):
            folder = root / f"cpu{cpu}" / "cache" / f"index{index}"
            folder.mkdir(parents=True)
            texts = {"type": "Unified", "level": str(level), "size": size, "shared_cpu_list": shared}
            for name, text in texts.items():
                (folder / name).write_text(f"{text}\n")
    return root


def test_all_last_caches_of_the_threads_count(tmp_path: Path) -> None:
    root = _sysfs(tmp_path, cpus=96, per_die=8)
    assert last_level_caches(root, range(96)) == 12
    assert data_caches(root, range(96), 96) == (32 << 10, 1 << 20, 384 << 20)
    assert data_caches(root, range(8), 8)[-1] == data_caches(root, [3], 1)[-1] == 32 << 20
    assert data_caches(root, [0, 8, 9], 3)[-1] == 64 << 20
    assert data_caches(root, range(96), 2)[-1] == 64 << 20, "a quota of two threads"


def test_last_caches_that_the_system_does_not_describe(tmp_path: Path) -> None:
    assert data_caches(tmp_path, range(4), 4) == ()
    assert last_level_caches(tmp_path, range(4)) == 1
    root = _sysfs(tmp_path, cpus=4, per_die=4)
    for file in root.rglob("shared_cpu_list"):
        file.unlink()
    assert last_level_caches(root, range(4)) == 1
    assert last_level_caches(_sysfs(tmp_path / "cut", cpus=4, per_die=2), range(8)) == 2


@pytest.mark.parametrize(
    ("prints", "version"),
    [
        ("echo 'g++ (Debian 12.2.0-14) 12.2.0'", "12.2.0"),
        ("echo 'Copyright (c) 2005-2025 NVIDIA'; echo 'release 13.0, V13.0.88'", "13.0"),
        ("echo 'NVIDIA Nsight Systems version 2024.6.1.90-246135'", "2024.6.1.90"),
        ("echo 14", "14"),
        ("echo hello", "unknown"),
        ("exit 1", None),
    ],
)
def test_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prints: str, version: str | None) -> None:
    name = f"tool-{abs(hash(prints))}"
    program = tmp_path / name
    program.write_text(f"#!/bin/sh\n{prints}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert tool_version(name) == version


def test_another_driver_is_another_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"name": "GPU", "capability": [9, 0], "multiprocessors": 132, "memory": 1, "l2": 2, "l1": 3}
    monkeypatch.setattr(cuda, "gpu_present", lambda: True)
    monkeypatch.setattr(cuda, "run_python", lambda *_, **__: json.dumps({**facts, "cuda": "13.0"}))
    monkeypatch.setattr(cuda, "driver_version", lambda: driver_version(tmp_path / "version"))
    assert "driver" not in detect("cuda").toolchain
    (tmp_path / "version").write_text("580.95.05\n")
    assert detect("cuda").toolchain["driver"] == "580.95.05"
