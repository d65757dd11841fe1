"""Ceilings by micro-benchmark, once a device and toolchain, kept on disk."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

from pydantic import ValidationError

from agentforge.schema import MachineError, content_hash

from ._base import DeviceSpec, Roofline
from ._child import ChildFailed, run, run_python
from .null import null_roofline

_VERSION = 1
"""Raised when the benchmark changes, so that old files are not believed."""

STREAM_SECONDS = 0.9
GEMM_SECONDS = 1.0


def cached_roofline(device: DeviceSpec, cache: Path) -> Roofline | None:
    """The roofline measured earlier; None where there is none."""
    if device.kind == "null":
        return null_roofline()
    try:
        return Roofline.model_validate_json(_file(device, cache).read_text())
    except (OSError, ValidationError, UnicodeDecodeError):
        return None


def measure_roofline(device: DeviceSpec, cache: Path) -> Roofline:
    """The device's ceilings, measured in child processes in about 5 s unless known.

    Each ceiling is the best seen, never a mean: it says what no honest kernel exceeds.

    Args:
        device: what `detect` gave.
        cache: folder that keeps the answer, by a hash of device and toolchain.

    Raises:
        MachineError: the measurement failed.
    """
    known = cached_roofline(device, cache)
    if known is not None:
        return known
    try:
        found = json.loads(
            run_python(
                ["-m", "agentforge.devices._rates", device.kind, str(GEMM_SECONDS), str(device.threads)],
                timeout_s=180,
                environment={"OMP_NUM_THREADS": str(device.threads), "MKL_NUM_THREADS": str(device.threads)},
            )
        )
    except ChildFailed as error:
        raise MachineError(
            f"the ceilings of {device.name} could not be measured ({error}): check that torch works here"
        ) from error
    if device.kind == "cpu":
        _raise_ceilings(found, device)
    roofline = Roofline(**found)
    _keep(_file(device, cache), roofline)
    return roofline


def _raise_ceilings(found: dict[str, float], device: DeviceSpec) -> None:
    """Put in the compiled stream's rates where they are above torch's."""
    rates = _stream(device)
    if rates:
        found["bandwidth"] = max(found["bandwidth"], rates[0])
        found["cache_bandwidth"] = max(found["bandwidth"], *rates[1:])


def working_sets(device: DeviceSpec) -> list[int]:
    """Bytes to stream: one set beyond the last-level cache, then some inside it.

    The sets inside are above what the threads' own L2 caches hold together, where that leaves room: a
    virtual machine may get less of a shared cache than it is told of, so several sizes are tried.
    """
    last = device.cache_bytes[-1] if device.cache_bytes else 32 << 20
    own = device.cache_bytes[-2] * device.threads if len(device.cache_bytes) > 1 else 0
    beyond = min(max(8 * last, 256 << 20), 1 << 30)
    if device.memory_bytes:
        beyond = min(beyond, device.memory_bytes // 8)
    inside = [size for size in (last // 8, last // 4, last // 2) if size > 1.5 * own]
    return [beyond, *(inside or [last // 2])]


def _stream(device: DeviceSpec) -> list[float]:
    """Best bytes/s of each working set by the compiled kernel; empty without a compiler."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        return []
    source = Path(__file__).with_name("stream.cpp")
    with tempfile.TemporaryDirectory(prefix="agentforge-stream-") as folder:
        program = str(Path(folder) / "stream")
        flags = ["-O3", "-march=native", "-fopenmp", "-std=c++17"]
        sizes = [str(size) for size in working_sets(device)]
        threads = {"OMP_NUM_THREADS": str(device.threads)}
        try:
            run([compiler, *flags, str(source), "-o", program], timeout_s=60)
            answer = run([program, str(STREAM_SECONDS), *sizes], timeout_s=60, environment=threads)
        except ChildFailed:
            return []
    return [float(rate) for rate in json.loads(answer)]


def _file(device: DeviceSpec, cache: Path) -> Path:
    key = content_hash({"version": _VERSION, **device.model_dump(mode="json")})
    return cache / "rooflines" / f"{key}.json"


def _keep(path: Path, roofline: Roofline) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}.tmp")
        draft.write_text(roofline.model_dump_json(indent=2))
        draft.replace(path)
    except OSError as error:
        raise MachineError(
            f"{path.parent} cannot be written ({error.strerror}): free some space or set AGENTFORGE_HOME"
        ) from error
