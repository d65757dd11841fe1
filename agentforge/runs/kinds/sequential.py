"""Runs that begin with a sequential C or C++ function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from agentforge.config import Settings
from agentforge.devices import DeviceSpec
from agentforge.frontends import FrontendOptions, load_target
from agentforge.frontends.sequential import parse_sequential, read_sequential, reference
from agentforge.schema import RunKind, content_hash
from agentforge.whole_file import whole_file

from .._base import RunInput
from ..run_settings import with_referee
from ..user_kernels import parallel_versions
from .kernel import given_kernels, whole


@dataclass(frozen=True)
class SequentialStart:
    """A sequential function; parallel versions of it are the first attempts."""

    path: Path
    """`.c` or `.cpp`."""
    sizes: Mapping[str, tuple[int, ...]]
    """By parameter: shapes of arrays, values of sizes."""
    kind: ClassVar[RunKind] = RunKind.SEQUENTIAL
    ranged: ClassVar[bool] = False

    def check(self, settings: Settings, device: DeviceSpec) -> None:
        """Refuse a file or sizes that do not go together; nothing is compiled for that."""
        parse_sequential(self.path, self.sizes)

    def load(self, settings: Settings, device: DeviceSpec) -> RunInput:
        """A reference that calls the original function, and the parallel versions."""
        found = read_sequential(self.path, self.sizes)
        text = reference(found)
        # other files of this name may be read by other runs at this moment
        file = settings.home / "references" / content_hash(text) / f"{self.path.stem}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(file) as draft:
            draft.write_text(text, encoding="utf-8")
        target = load_target(str(file), FrontendOptions(device=device.torch_device))
        named = target.model_copy(update={"name": self.path.stem, "origin": str(self.path)})
        kernels = parallel_versions(found, whole(target.definition))
        # torch.compile has nothing to compile in a C function
        return given_kernels(named, kernels, with_referee(settings, compile_baseline=False))
