"""What failed for a reason that lasts is known to later runs, until a limit grows or a person deletes it."""

from __future__ import annotations

import math
import shutil
from collections import namedtuple
from collections.abc import Mapping
from pathlib import Path

import pytest

from agentforge.devices import DeviceSpec
from agentforge.problems.failures import KnownFailures

DEVICE = DeviceSpec(kind="cpu", name="test", architecture="test", toolchain={"torch": "2.9"})
LIMITS = {"seconds": 300.0}


@pytest.fixture
def known(tmp_path: Path) -> KnownFailures:
    return KnownFailures(tmp_path / "cache", DEVICE)


def twice(known: KnownFailures, content: object, why: str, limits: Mapping[str, float]) -> None:
    for _ in range(2):
        known.keep(content, why, limits)


def test_a_failure_is_known_to_the_next_run_and_says_how_to_forget_it(
    known: KnownFailures, tmp_path: Path
) -> None:
    assert known.find(["compile", "hash"], LIMITS) == ""
    known.keep(["compile", "hash"], "no answer within 300 s", LIMITS)
    assert known.find(["compile", "hash"], LIMITS) == "", "another program may have had the memory"
    known.keep(["compile", "hash"], "no answer within 300 s", LIMITS)
    said = KnownFailures(tmp_path / "cache", DEVICE).find(["compile", "hash"], LIMITS)
    assert said.startswith("no answer within 300 s; known since 20")
    (file,) = (tmp_path / "cache" / "failures").iterdir()
    assert f"delete cache/failures/{file.name} in AGENTFORGE_HOME to try again" in said
    file.unlink()
    assert known.find(["compile", "hash"], LIMITS) == ""


@pytest.mark.parametrize(
    "other", [{"name": "faster"}, {"toolchain": {"torch": "2.10"}}, {"memory_bytes": 1 << 40}]
)
def test_another_device_or_toolchain_and_other_content_are_tried(
    known: KnownFailures, tmp_path: Path, other: dict[str, object]
) -> None:
    twice(known, ["compile", "hash"], "why", LIMITS)
    assert known.find(["freezing", "hash"], LIMITS) == ""
    there = KnownFailures(tmp_path / "cache", DEVICE.model_copy(update=other))
    assert there.find(["compile", "hash"], LIMITS) == ""


@pytest.mark.parametrize(
    ("kept", "now", "counts"),
    [
        ({"seconds": 300.0}, {"seconds": 300.0}, True),
        ({"seconds": 300.0}, {"seconds": 60.0}, True),
        ({"seconds": 300.0}, {"seconds": 301.0}, False),
        ({"host_bytes": 1000}, {"host_bytes": 1200, "seconds": 1e9}, True),  # free memory is never the same
        ({"host_bytes": 1000}, {"host_bytes": 1300}, False),
        ({"host_bytes": 1000, "device_bytes": 9}, {"host_bytes": 1000, "device_bytes": 20}, False),
        ({"host_bytes": 1000, "device_bytes": 9}, {"host_bytes": 1000}, False),
        ({"host_bytes": math.nan}, {"host_bytes": 1}, False),  # it was not known
        ({"host_bytes": 1}, {"host_bytes": math.nan}, False),
    ],
)
def test_a_larger_limit_is_tried(
    known: KnownFailures, kept: Mapping[str, float], now: Mapping[str, float], counts: bool
) -> None:
    twice(known, "it", "why", kept)
    assert bool(known.find("it", now)) == counts


def test_nothing_is_kept_on_a_full_disk(known: KnownFailures, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1 << 20))
    twice(known, "it", "no space left on device", {})
    assert known.find("it", {}) == ""


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"times": 2, "limits": 3}', '{"times": 2, "limits": {}}', "\x00"]
)
def test_a_torn_file_is_no_failure(known: KnownFailures, tmp_path: Path, text: str) -> None:
    twice(known, "it", "why", {})
    (file,) = (tmp_path / "cache" / "failures").iterdir()
    file.write_text(text)
    assert known.find("it", {}) == ""


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    KnownFailures(tmp_path / "cache", DEVICE).keep("it", "why", {})
