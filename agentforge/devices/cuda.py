"""An NVIDIA GPU, as torch sees it."""

from __future__ import annotations

import json

from agentforge.schema import UsageError

from ._base import DeviceSpec, Roofline
from ._child import ChildFailed, run_python
from .toolchain import driver_version, gpu_present, toolchain

_PROBE = """
import json, torch
if not torch.cuda.is_available():
    print(json.dumps({"build": torch.version.cuda}))
else:
    p = torch.cuda.get_device_properties(0)
    print(json.dumps({
        "name": p.name, "capability": [p.major, p.minor], "multiprocessors": p.multi_processor_count,
        "memory": p.total_memory, "l2": getattr(p, "L2_cache_size", 0),
        "l1": getattr(p, "shared_memory_per_multiprocessor", 0), "cuda": torch.version.cuda}))
"""

_PACKAGES = ("torch", "triton", "cupy", "cupy-cuda12x", "cupy-cuda13x")
"""Packages that a GPU's numbers depend on."""


class Cuda:
    """GPU 0, by NVIDIA's driver and torch."""

    kind = "cuda"
    language = "triton"

    def detect(self) -> DeviceSpec:
        """Detect GPU 0 in a child process, so that the supervisor has no CUDA context.

        Raises:
            UsageError: torch cannot use a GPU.
        """
        if not gpu_present():
            raise UsageError("this machine has no NVIDIA GPU or no driver: use --device cpu")
        try:
            facts = json.loads(run_python(["-c", _PROBE], timeout_s=120))
        except ChildFailed as error:
            raise UsageError(
                f"torch cannot query the GPU ({error}): repair the installation, or use --device cpu"
            ) from error
        if "name" not in facts:
            raise UsageError(
                "there is a GPU, but torch cannot use it "
                f"({'driver too old' if facts['build'] else 'this torch is a CPU build'}): "
                "install a CUDA build of torch, or use --device cpu"
            )
        major, minor = facts["capability"]
        driver = driver_version()
        return DeviceSpec(
            kind="cuda",
            name=facts["name"],
            architecture=f"sm_{major}{minor}",
            threads=facts["multiprocessors"],
            memory_bytes=facts["memory"],
            cache_bytes=tuple(size for size in (facts["l1"], facts["l2"]) if size),
            toolchain={
                "cuda": facts["cuda"],
                **({"driver": driver} if driver else {}),
                **toolchain(("nvcc", "g++"), _PACKAGES),
            },
        )

    def roofline(self, spec: DeviceSpec) -> Roofline | None:
        return None
