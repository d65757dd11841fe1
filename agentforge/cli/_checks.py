"""What `agentforge doctor` looks at. Each check looks for itself, changes nothing and never raises."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentforge.config import Settings
    from agentforge.devices import DeviceSpec


class State(StrEnum):
    """How a check ended."""

    OK = "ok"
    OPTIONAL = "optional"
    """Missing, and only some things need it."""
    MISSING = "missing"
    """Missing, and nothing goes without it."""


@dataclass(frozen=True)
class Check:
    """One line of the doctor's answer."""

    group: str
    name: str
    state: State
    detail: str = ""
    """Version or finding."""
    fix: str = ""
    """How to get what is missing, and what it is for."""


_APT = "apt-get install "
_TOOLKIT = "install NVIDIA's CUDA toolkit: https://developer.nvidia.com/cuda-downloads"
_TOOLS = (
    # group, tool, required, how to get it
    ("compilers", "g++", True, f"{_APT}g++: builds the C++ kernels"),
    ("compilers", "clang++", False, f"{_APT}clang: a second opinion in C++"),
    ("compilers", "nvcc", False, f"{_TOOLKIT}: builds CUDA kernels"),
    ("profilers", "ncu", False, f"{_TOOLKIT}: hardware metrics of GPU kernels"),
    ("profilers", "nsys", False, f"{_TOOLKIT}: time lines of GPU programs"),
    ("profilers", "compute-sanitizer", False, f"{_TOOLKIT}: memory checks of GPU kernels"),
)
_PACKAGES = (
    # package, minimum version, required, what it is for
    ("torch", "2.8", True, "everything"),
    ("langgraph", "1.0", True, "the search loop"),
    ("sqlalchemy", "2.0", True, "the database"),
    ("transformers", "4.50", False, "targets of the form hf:CONFIG.json"),
    ("psycopg", "3.2", False, "a PostgreSQL database"),
    ("triton", "3.0", False, "Triton kernels"),
    ("cupy", "13.0", False, "CUDA kernels through NVRTC"),
    ("ray", "2.9", False, "campaigns on several machines"),
    ("openai", "1.50", False, "agents by OpenAI models"),
    ("anthropic", "0.40", False, "agents by Anthropic models"),
    ("mcp", "2.3", False, "serving AgentForge as tools"),
    ("pandas", "2.2", False, "tables in a notebook"),
    ("plotly", "6.0", False, "figures in a notebook"),
)
_DISTRIBUTIONS = {"cupy": ("cupy-cuda13x", "cupy-cuda12x", "cupy")}
_EXTRAS = {
    "transformers": "agentforge[hf]",
    "psycopg": "agentforge[postgres]",
    "mcp": "agentforge[mcp]",
    "pandas": "agentforge[notebook]",
    "plotly": "agentforge[notebook]",
    "cupy": "cupy-cuda13x",
}
_KEYS = (("OPENAI_API_KEY", "agents by OpenAI models"), ("ANTHROPIC_API_KEY", "agents by Anthropic models"))
_LOW_DISK = 2 << 30


def run_checks(settings: Settings) -> list[Check]:
    """All checks; one that fails unexpectedly says so in its own line."""
    checks: list[Check] = []
    groups: tuple[tuple[str, Callable[[], Iterator[Check]]], ...] = (
        ("hardware", lambda: hardware(settings)),
        ("tools", tools),
        ("sandboxes", sandboxes),
        ("packages", packages),
        ("keys", keys),
        ("storage", lambda: storage(settings)),
    )
    for name, group in groups:
        try:
            checks.extend(group())
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            checks.append(Check(name, "check", State.MISSING, reason, "report this to AgentForge's authors"))
    return checks


def hardware(settings: Settings) -> Iterator[Check]:
    """CPU, GPU and what was measured of them."""
    from agentforge.devices import detect, gpu_present
    from agentforge.schema import UsageError

    cpu = detect("cpu")
    caches = " / ".join(_size(size) for size in cpu.cache_bytes) or "unknown"
    about = f"{cpu.name}, {cpu.architecture}, {cpu.threads} threads, {_size(cpu.memory_bytes)}"
    yield Check("hardware", "cpu", State.OK, f"{about}, caches {caches}")
    yield _roofline(cpu, settings)
    if not gpu_present():
        yield Check("hardware", "gpu", State.OPTIONAL, "no NVIDIA driver", "CUDA and Triton kernels need one")
        return
    try:
        gpu = detect("cuda")
    except UsageError as error:
        yield Check("hardware", "gpu", State.OPTIONAL, "not usable", str(error))
        return
    about = f"{gpu.name}, {gpu.architecture}, {gpu.threads} multiprocessors, {_size(gpu.memory_bytes)}"
    yield Check("hardware", "gpu", State.OK, about)
    yield _roofline(gpu, settings)


def _roofline(device: DeviceSpec, settings: Settings) -> Check:
    from agentforge.devices import cached_roofline

    name = f"roofline {device.kind}"
    known = cached_roofline(device, settings.cache)
    if known is None:
        return Check(
            "hardware", name, State.OPTIONAL, "not measured yet", "the first profile measures it (5 s)"
        )
    peaks = ", ".join(f"{dtype} {rate / 1e9:.0f} GFLOP/s" for dtype, rate in sorted(known.peak_flops.items()))
    return Check("hardware", name, State.OK, f"{known.bandwidth / 1e9:.1f} GB/s, {peaks}")


def tools() -> Iterator[Check]:
    """Compilers and profilers."""
    from agentforge.devices import tool_version

    for group, tool, required, fix in _TOOLS:
        version = tool_version(tool)
        if version is not None:
            yield Check(group, tool, State.OK, version)
        else:
            yield Check(group, tool, State.MISSING if required else State.OPTIONAL, "not found", fix)


def sandboxes() -> Iterator[Check]:
    """What can hold candidates, the strongest first, each tried for real."""
    try:
        from agentforge.harness._base import sandboxes as registry
    except ImportError as error:
        yield Check("sandboxes", "harness", State.MISSING, str(error), "reinstall agentforge")
        return
    works = False
    found: list[Check] = []
    for name in registry.names():
        try:
            answer = registry.create(name).available()
        except (ImportError, AttributeError) as error:
            found.append(Check("sandboxes", name, State.OPTIONAL, "not in this installation", str(error)))
            continue
        works = works or answer.ok
        state = State.OK if answer.ok else State.OPTIONAL
        hint = f"{_APT}bubblewrap" if name == "bubblewrap" and not answer.ok else ""
        found.append(Check("sandboxes", name, state, answer.detail, hint))
    yield from found
    if not works:
        yield Check(
            "sandboxes", "any", State.MISSING, "none works", "candidates cannot be held: install bubblewrap"
        )


def packages() -> Iterator[Check]:
    """Python packages with the versions that we need, without importing them."""
    from agentforge.devices import package_version

    for name, minimum, required, purpose in _PACKAGES:
        found = next(filter(None, map(package_version, _DISTRIBUTIONS.get(name, (name,)))), None)
        short = State.MISSING if required else State.OPTIONAL
        install = f"pip install '{_EXTRAS.get(name, f'{name}>={minimum}')}': {purpose}"
        if found is None:
            yield Check("packages", name, short, "not installed", install)
        elif _numbers(found) < _numbers(minimum):
            yield Check("packages", name, short, f"{found} is older than {minimum}", install)
        else:
            yield Check("packages", name, State.OK, found)


def keys() -> Iterator[Check]:
    """Whether keys are set; what they are is never shown."""
    for variable, purpose in _KEYS:
        if os.environ.get(variable):
            yield Check("keys", variable, State.OK, "set")
        else:
            yield Check("keys", variable, State.OPTIONAL, "not set", f"export {variable}=...: {purpose}")


def storage(settings: Settings) -> Iterator[Check]:
    """The home folder, its disk and the database."""
    place = next(p for p in (settings.home.absolute(), *settings.home.absolute().parents) if p.exists())
    if not os.access(place, os.W_OK):
        yield Check("storage", "home", State.MISSING, f"{place} cannot be written", "set AGENTFORGE_HOME")
    free = shutil.disk_usage(place).free
    full = free < _LOW_DISK
    fix = f"free some: less than {_size(_LOW_DISK)} is little for compiler caches" if full else ""
    state = State.OPTIONAL if full else State.OK
    yield Check("storage", "disk", state, f"{_size(free)} free below {settings.home}", fix)
    yield _database(settings)


def _database(settings: Settings) -> Check:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    from agentforge.schema import StoreError
    from agentforge.store import Store

    try:
        url = make_url(settings.url)
        if url.get_backend_name() == "sqlite" and url.database and not Path(url.database).exists():
            return Check("storage", "database", State.OK, f"not made yet: the first run makes {url.database}")
        with Store(settings.url) as store:
            store.check()
            runs = len(store.list_runs())
            about = f"{store.where}, tables of revision {store.revision}, {runs} runs"
            return Check("storage", "database", State.OK, about)
    except ArgumentError:
        return Check("storage", "database", State.MISSING, "bad URL", "mend AGENTFORGE_DATABASE_URL")
    except StoreError as error:
        return Check("storage", "database", State.MISSING, "cannot be used", str(error))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _size(size: float) -> str:
    """`32 KiB`, `1.5 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} TiB"
