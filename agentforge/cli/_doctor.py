"""What `agentforge doctor` checks. A check changes nothing and never raises."""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentforge.config import Settings
    from agentforge.devices import DeviceSpec


class State(StrEnum):
    """How a check ended."""

    OK = "ok"
    OPTIONAL = "optional"
    """Missing, and only some features need it."""
    MISSING = "missing"
    """Missing, and nothing works without it."""


@dataclass(frozen=True)
class Check:
    """One row of the doctor's table."""

    group: str
    name: str
    state: State
    detail: str = ""
    """Version or finding."""
    fix: str = ""
    """How to install missing parts, and their purpose."""


_APT = "apt-get install "
_TOOLKIT = "install NVIDIA's CUDA toolkit: https://developer.nvidia.com/cuda-downloads"
_TOOLS = (
    # group, tool, how to install it
    ("compilers", "clang++", f"{_APT}clang; export CXX=clang++: an alternative C++ compiler"),
    ("compilers", "nvcc", f"{_TOOLKIT}: builds CUDA kernels"),
    ("profilers", "ncu", f"{_TOOLKIT}: hardware metrics of GPU kernels"),
    ("profilers", "nsys", f"{_TOOLKIT}: timelines of GPU programs"),
    ("profilers", "compute-sanitizer", f"{_TOOLKIT}: memory checks of GPU kernels"),
)
_PACKAGES = (
    # distribution, required, what it is for
    ("torch", True, "everything"),
    ("langgraph", True, "the search loop"),
    ("sqlalchemy", True, "the database"),
    ("transformers", False, "targets of the form hf:CONFIG.json"),
    ("einops", False, "campaigns: Mamba problems of KernelBench and MultiKernelBench"),
    ("safetensors", False, "campaigns: tensors of FlashInfer Trace and SOL-ExecBench"),
    ("pyarrow", False, "campaigns: KernelBench in the cache of Hugging Face"),
    ("psycopg", False, "a PostgreSQL database"),
    ("ray", False, "campaigns: workers on a Ray cluster"),
    ("optuna", False, "search.tune: a tuner for the parameters of kernels"),
    ("triton", False, "Triton kernels"),
    ("nvidia-cuda-nvrtc", False, "compiling CUDA kernels, with or without a GPU"),
    ("nvidia-ml-py", False, "clocks and temperature of a GPU while it is timed"),
    ("ncu-report", False, "reading Nsight Compute's reports"),
    ("openai", False, "OpenAI models and compatible servers"),
    ("anthropic", False, "Anthropic models"),
    ("mcp", False, "agentforge mcp"),
    ("pandas", False, "tables in a notebook"),
    ("plotly", False, "figures in a notebook"),
)
_WHOLE = "gpu"
"""An extra that brings others: a package that one of them names belongs to that one."""
_REQUIREMENT = re.compile(r"""([\w.-]+)(?:\[[^\]]*\])?([^;]*)(?:;.*extra == ['"]([\w-]+)['"])?""")
_KEYS = (
    ("OPENAI_API_KEY", "OpenAI models"),
    ("ANTHROPIC_API_KEY", "Anthropic models"),
    ("AGENTFORGE_LLM_API_KEY", "models at a URL that --llm names, if they need a key"),
)
_LOW_DISK = 2 << 30


def run_checks(settings: Settings) -> list[Check]:
    """All checks. A check that fails unexpectedly reports its error as its result."""
    checks: list[Check] = []
    groups: tuple[tuple[str, Callable[[], Iterator[Check]]], ...] = (
        ("hardware", lambda: hardware(settings)),
        ("experimental", on_a_gpu),
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
            checks.append(
                Check(name, "check", State.MISSING, reason, "please report this as a bug of AgentForge")
            )
    return checks


def hardware(settings: Settings) -> Iterator[Check]:
    """The CPU, the GPU and their rooflines."""
    from agentforge.devices import detect, gpu_present
    from agentforge.schema import UsageError

    cpu = detect("cpu")
    caches = " / ".join(_size(size) for size in cpu.cache_bytes) or "unknown"
    about = f"{cpu.name}, {cpu.architecture}, {cpu.threads} threads, {_size(cpu.memory_bytes)}"
    yield Check("hardware", "cpu", State.OK, f"{about}, caches {caches}")
    yield _roofline(cpu, settings)
    if not gpu_present():
        yield Check(
            "hardware", "gpu", State.OPTIONAL, "no NVIDIA driver", "needed to time CUDA and Triton kernels"
        )
        return
    try:
        gpu = detect("cuda")
    except UsageError as error:
        yield Check("hardware", "gpu", State.OPTIONAL, "not usable", str(error))
        return
    about = f"{gpu.name}, {gpu.architecture}, {gpu.threads} multiprocessors, {_size(gpu.memory_bytes)}"
    yield Check("hardware", "gpu", State.OK, about)
    yield _roofline(gpu, settings)


def on_a_gpu() -> Iterator[Check]:
    """The parts of AgentForge that no GPU has proven yet."""
    from agentforge.devices.experimental import experimental

    if names := [feature.name.replace("`", "") for feature in experimental()]:
        about = f"not proven on a GPU yet: {', '.join(names)}"
        yield Check("hardware", "experimental", State.OPTIONAL, about, "see docs/gpu.md")


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

    compiler = os.environ.get("CXX") or "g++"
    install = f"{_APT}g++" if compiler == "g++" else "let CXX name one program, without flags, or unset it"
    needed = ("compilers", compiler, f"{install}: builds the C++ kernels")
    for row in (needed, *(other for other in _TOOLS if other[1] != compiler)):
        group, tool, fix = row
        version = tool_version(tool)
        if version is not None:
            yield Check(group, tool, State.OK, version)
        else:
            short = State.MISSING if row is needed else State.OPTIONAL
            yield Check(group, tool, short, "not found", fix)
    yield _headers()


def _headers() -> Check:
    """Python's own headers, which each C++ kernel of torch.compile includes."""
    folder, name = Path(sysconfig.get_path("include")), "Python.h"
    if os.path.exists(folder / name):  # noqa: PTH110 - see `storage`
        return Check("compilers", name, State.OK, str(folder))
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-dev"
    fix = f"{_APT}{package}: torch.compile on a CPU, a baseline that is left out without it"
    return Check("compilers", name, State.OPTIONAL, f"not in {folder}", fix)


def sandboxes() -> Iterator[Check]:
    """Sandboxes for candidates, strongest first; each one is tried."""
    try:
        from agentforge.isolation.sandboxes import sandboxes as registry
    except ImportError as error:
        yield Check("sandboxes", "isolation", State.MISSING, str(error), "reinstall agentforge")
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
        found.append(Check("sandboxes", name, state, answer.detail))
    yield from found
    if not works:
        yield Check("sandboxes", "any", State.MISSING, "none works", "use Linux: candidates run in a sandbox")
    else:
        yield _worker()


def _worker() -> Check:
    """A worker, confined by the referee's own code in the sandbox that it would choose."""
    from agentforge.referee import choose_sandbox
    from agentforge.referee.probe import probe_worker
    from agentforge.schema import HarnessError

    sandbox = choose_sandbox("auto")
    try:
        limits = probe_worker(sandbox)
    except (HarnessError, OSError) as error:
        fix = "choose another sandbox (-c referee.sandbox=rlimits)"
        return Check("sandboxes", "worker", State.MISSING, str(error), fix)
    return Check("sandboxes", "worker", State.OK, f"confined by {sandbox.name}; limited by {limits}")


def _cupy() -> Check:
    """CuPy, whichever package it came from, against the CUDA of torch."""
    import torch

    from agentforge.languages.cupy.installed import cupy_problem, installed_cupy

    found = installed_cupy()
    problem = cupy_problem(found, torch.version.cuda or "")
    about = ", ".join(f"{name} {number}" for name, number in found.items()) or "not installed"
    state = State.OPTIONAL if problem else State.OK
    return Check("packages", "cupy", state, about, f"{problem}: CuPy kernels" if problem else "")


def packages() -> Iterator[Check]:
    """Python packages and the versions that AgentForge's own metadata asks for, without importing them."""
    from agentforge.devices import package_version
    from agentforge.schema import pip_install

    wanted = _requirements()
    for name, required, purpose in _PACKAGES:
        minimum, extra = wanted.get(name, ("0", ""))
        found = package_version(name)
        short = State.MISSING if required else State.OPTIONAL
        command = pip_install(extra) if extra else f"pip install '{name}>={minimum}'"
        install = f"{command}: {purpose}"
        if found is None:
            yield Check("packages", name, short, "not installed", install)
        elif _numbers(found) < _numbers(minimum):
            yield Check("packages", name, short, f"{found} is older than {minimum}", install)
        else:
            yield Check("packages", name, State.OK, found)
    yield _cupy()


def _requirements() -> dict[str, tuple[str, str]]:
    """Minimum version and extra ("" for a plain dependency) of each distribution that AgentForge names."""
    try:
        lines = requires("agentforge") or []
    except PackageNotFoundError:  # a source tree that was never installed
        return {}
    found: dict[str, tuple[str, str]] = {}
    for name, versions, extra in (match.groups() for match in map(_REQUIREMENT.match, lines) if match):
        if extra not in ("dev", "docs"):
            minimum = re.search(r">=\s*([\w.]+)", versions)
            known = (minimum[1] if minimum else "0", extra or "")
            if extra != _WHOLE:
                found[name.lower()] = known
            else:
                found.setdefault(name.lower(), known)
    return found


def keys() -> Iterator[Check]:
    """API keys: set or not, in the environment or in `.env`. Their values are never shown."""
    from agentforge.llm.providers.keys import find_key
    from agentforge.schema import UsageError

    for variable, purpose in _KEYS:
        try:
            found, why = find_key(variable), "not set"
        except UsageError as error:
            found, why = None, str(error)
        if found:
            yield Check("keys", variable, State.OK, "set")
        else:
            yield Check("keys", variable, State.OPTIONAL, why, f"export {variable}=...: {purpose}")


def storage(settings: Settings) -> Iterator[Check]:
    """The home folder, its disk and the database."""
    home = settings.home.absolute()
    # Path.exists raises where one may not look.
    place = next(p for p in (home, *home.parents) if os.path.exists(p))  # noqa: PTH110
    if not os.access(place, os.W_OK):
        yield Check("storage", "home", State.MISSING, f"{place} is not writable", "set AGENTFORGE_HOME")
    free = shutil.disk_usage(place).free
    full = free < _LOW_DISK
    fix = f"free some space: compiler caches need about {_size(_LOW_DISK)}" if full else ""
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
    except (ArgumentError, ValueError):  # the latter for a port that is no number
        return Check("storage", "database", State.MISSING, "bad URL", "correct AGENTFORGE_DATABASE_URL")
    try:
        if url.get_backend_name() == "sqlite" and url.database and not os.path.exists(url.database):  # noqa: PTH110
            return Check("storage", "database", State.OK, f"none yet: the first run creates {url.database}")
        if (outdated := _outdated(settings.url)) is not None:
            return outdated
        with Store(settings.url) as store:
            store.check()
            runs = len(store.list_runs())
            about = f"{store.where}, tables of revision {store.revision}, {runs} runs"
            return Check("storage", "database", State.OK, about)
    except StoreError as error:
        return Check("storage", "database", State.MISSING, "not usable", str(error))


def _outdated(url: str) -> Check | None:
    """A database whose tables the next run makes or upgrades, or that is out of reach; None for others."""
    from agentforge.schema import RevisionError, StoreError, UnreachableError
    from agentforge.store import Store

    try:
        Store(url, read_only=True).close()
    except RevisionError as error:
        if error.found is None:
            fix = "the first run makes them, unless another program uses this database"
            return Check("storage", "database", State.OPTIONAL, "no tables of AgentForge", fix)
        if error.found < error.wanted:
            detail = f"tables of revision {error.found}, and this version has {error.wanted}"
            fix = "the next command that opens it upgrades them; older versions then refuse it"
            return Check("storage", "database", State.OPTIONAL, detail, fix)
    except UnreachableError as error:
        return Check("storage", "database", State.MISSING, "not usable", str(error))
    except StoreError:  # to open it tells more
        return None
    return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _size(size: float) -> str:
    """`32 KiB`, `1.5 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} TiB"
