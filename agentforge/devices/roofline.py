"""Measure a device's ceilings with micro-benchmarks, once per device and toolchain, cached on disk."""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agentforge.schema import FrozenModel, MachineError, content_hash
from agentforge.whole_file import whole_file

from ._base import DeviceSpec, Roofline, devices
from ._child import ChildFailed, run, run_python
from .load import LoadMeter

_log = logging.getLogger(__name__)

_VERSION = 4
"""Version of the benchmark; files of other versions are ignored."""

STREAM_SECONDS, GEMM_SECONDS, PEAK_SECONDS = 0.9, 1.0, 0.4
BUSY = 0.1
"""If other processes use a larger share of the CPUs, the measurement counts as disturbed."""
AGREE = 0.9
"""A measurement confirms a ceiling if it reaches this fraction of the highest one."""
TRIES = 6
"""Most measurements on a machine that never settles, one per request."""


class _Kept(FrozenModel):
    """Content of the cache file."""

    roofline: Roofline
    others: float
    """Share of the CPUs that other processes used at the quietest measurement."""
    confirmed: bool = False
    """True if two measurements, at different times, agree."""
    tries: int = 1

    @property
    def settled(self) -> bool:
        return (self.others <= BUSY and self.confirmed) or self.tries >= TRIES

    def and_then(self, later: _Kept) -> _Kept:
        """The record after one more measurement."""
        return _Kept(
            roofline=_highest(self.roofline, later.roofline),
            others=min(self.others, later.others),
            confirmed=self.confirmed or _agree(self.roofline, later.roofline),
            tries=self.tries + 1,
        )


def cached_roofline(device: DeviceSpec, cache: Path) -> Roofline | None:
    """The best measurement so far; None if there is none."""
    known = _fixed(device)
    if known is not None:
        return known
    kept = _load(_file(device, cache))
    return kept.roofline if kept else None


def _fixed(device: DeviceSpec) -> Roofline | None:
    """Ceilings that the kind of device knows without measuring."""
    return devices.create(device.kind).roofline(device) if device.kind in devices.names() else None


def measure_roofline(device: DeviceSpec, cache: Path, *, doubted: bool = False) -> Roofline:
    """The device's ceilings, from the cache or measured in child processes in about 5 s.

    A ceiling is the highest value ever measured. Later requests repeat the measurement until two agree and
    one of them was undisturbed.

    Args:
        cache: folder of the cache file, named by a hash of device and toolchain.

    Raises:
        MachineError: the measurement failed.
    """
    fixed = _fixed(device)
    if fixed is not None:
        return fixed
    path = _file(device, cache)
    kept = _load(path)
    if kept is not None and kept.settled and not doubted:
        return kept.roofline
    meter = LoadMeter.start()
    measured = _Kept(roofline=_measure(device), others=meter.others())
    known = measured if kept is None else kept.and_then(measured)
    _keep(path, known)
    return known.roofline


def _measure(device: DeviceSpec) -> Roofline:
    threads = str(device.threads)
    nbytes = str(max(working_sets(device)[0] * 3 // 2, 384 << 20))  # three arrays, not two
    try:
        answer = run_python(
            ["-m", "agentforge.devices._rates", device.torch_device, str(GEMM_SECONDS), threads, nbytes],
            timeout_s=180,
            environment={"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads},
        )
    except ChildFailed as error:
        raise MachineError(
            f"the ceilings of {device.name} could not be measured ({error}): check that torch works here"
        ) from error
    found = json.loads(answer)
    if device.torch_device == "cpu":
        _raise_ceilings(found, device)
    peaks = found["peak_flops"]
    if "tf32" in peaks:  # three products in TF32 are as exact as one in float32, on tensor cores
        peaks["float32"] = max(peaks["float32"], peaks["tf32"] / 3)
    for narrow in peaks.keys() & {"float16", "bfloat16"}:
        peaks[narrow] = max(peaks[narrow], peaks["float32"])  # a kernel may convert first
    return Roofline(**found)


def _highest(one: Roofline, other: Roofline) -> Roofline:
    """The higher value of each ceiling, and the lower overhead."""
    dtypes = one.peak_flops.keys() | other.peak_flops.keys()
    return Roofline(
        bandwidth=max(one.bandwidth, other.bandwidth),
        peak_flops={d: max(one.peak_flops.get(d, 0.0), other.peak_flops.get(d, 0.0)) for d in sorted(dtypes)},
        cache_bandwidth=max(one.cache_bandwidth, other.cache_bandwidth),
        call_overhead_s=min(one.call_overhead_s, other.call_overhead_s),
    )


def _agree(one: Roofline, other: Roofline) -> bool:
    """True if all ceilings of both are about equal."""
    dtypes = one.peak_flops.keys() | other.peak_flops.keys()
    pairs = [(one.peak_flops.get(d, 0.0), other.peak_flops.get(d, 0.0)) for d in dtypes]
    pairs += [(one.bandwidth, other.bandwidth), (one.cache_bandwidth, other.cache_bandwidth)]
    return all(min(pair) >= AGREE * max(pair) for pair in pairs)


def _raise_ceilings(found: dict[str, Any], device: DeviceSpec) -> None:
    """Use the compiled programs' rates if they exceed torch's, whose GEMMs come from a library."""
    rates = _compiled("stream.cpp", [STREAM_SECONDS, *working_sets(device)], device)
    if rates:
        found["bandwidth"] = max(found["bandwidth"], rates[0])
        found["cache_bandwidth"] = max(found["bandwidth"], *rates[1:])
    peaks = found["peak_flops"]
    for dtype, rate in _compiled("peak.cpp", [PEAK_SECONDS], device).items():
        peaks[dtype] = max(peaks.get(dtype, 0.0), rate)


def working_sets(device: DeviceSpec) -> list[int]:
    """Sizes in bytes to stream: one beyond the last-level caches, then some inside them. An array has half.

    A virtual machine may get less of a shared cache than it reports, so several sizes are tried.
    """
    last = device.cache_bytes[-1] if device.cache_bytes else 32 << 20
    own = device.cache_bytes[-2] * device.threads if len(device.cache_bytes) > 1 else 0
    beyond = max(min(max(8 * last, 256 << 20), 1 << 30), 4 * last)
    if device.memory_bytes:
        beyond = min(beyond, device.memory_bytes // 8)
    inside = [size for size in (last // 8, last // 4, last // 2) if size > 1.5 * own]
    return [beyond, *(inside or [last // 2])]


def _compiled(source: str, arguments: Sequence[float], device: DeviceSpec) -> Any:
    """Output of a compiled program of this folder; an empty object without a compiler."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        return {}
    # With this name, the next run removes it if this process is killed.
    with tempfile.TemporaryDirectory(prefix=f"agentforge-ceilings-{os.getpid()}-") as folder:
        program = str(Path(folder) / "program")
        flags = ["-O3", "-march=native", "-fopenmp", "-std=c++17"]
        threads = {"OMP_NUM_THREADS": str(device.threads)}
        try:
            run([compiler, *flags, str(Path(__file__).with_name(source)), "-o", program], timeout_s=60)
            answer = run([program, *map(str, arguments)], timeout_s=60, environment=threads)
        except ChildFailed:
            return {}
    return json.loads(answer)


def _file(device: DeviceSpec, cache: Path) -> Path:
    key = content_hash({"version": _VERSION, **device.model_dump(mode="json")})
    return cache / "rooflines" / f"{key}.json"


def _load(path: Path) -> _Kept | None:
    try:
        return _Kept.model_validate_json(path.read_text())
    except (OSError, ValidationError, UnicodeDecodeError):
        return None  # missing or truncated: measured again


def _keep(path: Path, kept: _Kept) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as draft:
            draft.write_text(kept.model_dump_json(indent=2))
    except OSError as error:
        _log.warning("the ceilings cannot be kept in %s (%s)", path.parent, error.strerror)
