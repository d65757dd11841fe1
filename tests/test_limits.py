"""Control groups of both versions, as files."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from agentforge import limits
from agentforge.config import RefereeSettings, check_threads
from agentforge.limits import allowed_memory, allowed_threads, cpu_quota, free_memory
from agentforge.schema import UsageError


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    folder = tmp_path / "proc"
    (folder / "self").mkdir(parents=True)
    (folder / "meminfo").write_text("MemTotal:       24000000 kB\nMemFree: 1 kB\n")
    return folder


def _v2(tmp_path: Path, proc: Path, path: str = "/a/b") -> Path:
    (proc / "self" / "cgroup").write_text(f"0::{path}\n")
    groups = tmp_path / "cg"
    (groups / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
    return groups


def test_version_2_takes_the_tightest_above(tmp_path: Path, proc: Path) -> None:
    groups = _v2(tmp_path, proc)
    (groups / "a" / "b" / "cpu.max").write_text("max 100000\n")
    (groups / "a" / "cpu.max").write_text("150000 100000\n")
    (groups / "cpu.max").write_text("400000 100000\n")
    (groups / "a" / "memory.max").write_text("1000000\n")
    (groups / "a" / "b" / "memory.max").write_text("max\n")
    assert cpu_quota(groups, proc) == 1.5
    assert allowed_memory(groups, proc) == 1_000_000


def test_version_1(tmp_path: Path, proc: Path) -> None:
    (proc / "self" / "cgroup").write_text("4:memory:/x\n2:cpu,cpuacct:/x\n1:name=systemd:/\n0::/\n")
    groups = tmp_path / "cg"
    (groups / "cpu" / "x").mkdir(parents=True)
    (groups / "memory" / "x").mkdir(parents=True)
    (groups / "cpu" / "x" / "cpu.cfs_quota_us").write_text("250000")
    (groups / "cpu" / "x" / "cpu.cfs_period_us").write_text("100000")
    (groups / "memory" / "x" / "memory.limit_in_bytes").write_text("9223372036854771712")
    assert cpu_quota(groups, proc) == 2.5
    assert allowed_memory(groups, proc) == 24_000_000 * 1024


def test_a_path_of_the_host_is_not_there(tmp_path: Path, proc: Path) -> None:
    groups = _v2(tmp_path, proc, "/")
    (proc / "self" / "cgroup").write_text("0::/docker/0123abc\n")
    (groups / "cpu.max").write_text("200000 100000\n")
    assert cpu_quota(groups, proc) == 2.0


@pytest.mark.parametrize("text", ["max 100000", "-1 100000", "", "100000 0"])
def test_no_limit(tmp_path: Path, proc: Path, text: str) -> None:
    groups = _v2(tmp_path, proc)
    (groups / "a" / "cpu.max").write_text(text)
    assert cpu_quota(groups, proc) == math.inf


def test_no_proc(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path, tmp_path) == math.inf
    assert allowed_memory(tmp_path, tmp_path) == 0


def test_affinity_counts() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert allowed_threads() == 1
    finally:
        os.sched_setaffinity(0, before)
    assert 1 <= allowed_threads() <= len(before)


def test_no_quota_leaves_all_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "cpu_quota", lambda: math.inf)
    assert allowed_threads() == RefereeSettings().threads == len(os.sched_getaffinity(0))


def test_a_quota_limits_the_threads_that_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "cpu_quota", lambda: 0.5)
    assert RefereeSettings().threads == 1
    with pytest.raises(UsageError, match="may use 1 processors"):
        check_threads(RefereeSettings(threads=2))


def test_free_memory_is_what_the_tightest_group_leaves(tmp_path: Path, proc: Path) -> None:
    (proc / "meminfo").write_text("MemTotal: 24000000 kB\nMemFree: 1 kB\nMemAvailable: 20000000 kB\n")
    groups = _v2(tmp_path, proc)
    assert free_memory(groups, proc) == 20_000_000 * 1024
    (groups / "a" / "memory.max").write_text("8000000\n")
    (groups / "a" / "memory.current").write_text("3000000\n")
    (groups / "a" / "memory.stat").write_text("anon 1\ninactive_file 500000\nactive_file 250000\n")
    assert free_memory(groups, proc) == 5_750_000
    (groups / "memory.max").write_text("4000000\n")
    (groups / "memory.current").write_text("4500000\n")
    assert free_memory(groups, proc) == 0


def test_free_memory_in_version_1(tmp_path: Path, proc: Path) -> None:
    (proc / "meminfo").write_text("MemAvailable: 20000000 kB\n")
    (proc / "self" / "cgroup").write_text("4:memory:/x\n")
    folder = tmp_path / "cg" / "memory" / "x"
    folder.mkdir(parents=True)
    (folder / "memory.limit_in_bytes").write_text("9223372036854771712")
    (folder / "memory.usage_in_bytes").write_text("1000")
    assert free_memory(tmp_path / "cg", proc) == 20_000_000 * 1024
    (folder / "memory.limit_in_bytes").write_text("1000000")
    (folder / "memory.stat").write_text("inactive_file 1\ntotal_inactive_file 200\ntotal_active_file 300\n")
    assert free_memory(tmp_path / "cg", proc) == 1_000_000 - 1000 + 500
