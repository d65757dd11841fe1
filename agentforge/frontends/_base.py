"""The contract of a frontend: what a user points at becomes a `Target`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agentforge.registry import Registry
from agentforge.schema import Target, UsageError


@dataclass(frozen=True)
class FrontendOptions:
    """What the user said beside the specification.

    `input_shapes` entries read `1,512` (positional) or `name=1,512` (by keyword); `input_dtypes` align
    with them, the last one repeated.
    """

    input_shapes: tuple[str, ...] = ()
    input_dtypes: tuple[str, ...] = ()
    init_args: str = ""
    """JSON list or object of constructor arguments."""
    dtype: str = "float32"
    device: str = "cpu"


class Frontend(Protocol):
    """Turns a specification into a `Target`. Thread-safe; imports the user's code only in a child."""

    name: str

    def accepts(self, spec: str) -> bool:
        """True where `spec` has this frontend's form; no file is opened."""
        ...

    def load(self, spec: str, options: FrontendOptions) -> Target:
        """Read the target, run one forward in a child process, and describe its inputs.

        Raises:
            TargetError: one sentence that says what is wrong and what to do.
        """
        ...


frontends: Registry[Frontend] = Registry(
    "frontends",
    {
        "huggingface": "agentforge.frontends.huggingface:HuggingFace",
        "module": "agentforge.frontends.module:ModuleClass",
        "kernelbench": "agentforge.frontends.kernelbench:KernelBenchFile",
    },
)
"""All frontends; the first that accepts a specification loads it."""


def load_target(spec: str, options: FrontendOptions | None = None) -> Target:
    """Load what the user points at, by the first frontend that accepts its form.

    Args:
        spec: `file.py`, `file.py:ClassName` or `hf:CONFIG.json`.
        options: what the user said beside it.

    Raises:
        TargetError: one sentence that says what is wrong with it and what to do.
        UsageError: no frontend knows this form, or an option does not go with it.
    """
    for name in frontends.names():
        frontend = frontends.create(name)
        if frontend.accepts(spec):
            return frontend.load(spec, options or FrontendOptions())
    raise UsageError(f"{spec!r} is no target; give file.py, file.py:ClassName or hf:CONFIG.json")
