"""The Protocol of a frontend: it loads a user's model, file or config as a `Target`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from agentforge.registry import Registry
from agentforge.schema import Target, UsageError

from .shapes import parse_shapes, with_shapes

if TYPE_CHECKING:
    from agentforge.problems.failures import KnownFailures


@dataclass(frozen=True)
class FrontendOptions:
    """Options for loading a model.

    `input_shapes` entries have the form `1,512` (positional) or `name=1,512` (by keyword). `input_dtypes`
    align with them; the last one repeats. `inputs` entries have the form `name=1,512` or `name=1,512:int64`.
    """

    input_shapes: tuple[str, ...] = ()
    input_dtypes: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    init_args: str = ""
    """JSON list or object of constructor arguments."""
    generate: str = ""
    """`prompt=128,new=64`: the target is a generation by a causal language model."""
    shapes: str = ""
    """`batch=1..32,seq=128..2048`: the target is a range of shapes."""
    dtype: str = "float32"
    tensor_dtypes: tuple[tuple[str, str], ...] | None = None
    """Name and dtype of the floating-point tensors of a live model that have another dtype than `dtype`. None
    if there is no live model."""
    device: str = "cpu"
    longest_s: float | None = None
    """Seconds; a model whose forward takes longer is not used. None for no limit."""
    failures: KnownFailures | None = field(default=None, compare=False)
    """Of earlier runs; a model that is known to hang, or to need more memory than is free, is not run."""
    progress: Callable[[str], None] | None = field(default=None, compare=False)
    """Receives lines of progress while the model is loaded."""

    def sendable(self) -> dict[str, Any]:
        """What another process makes equal options from: all but what belongs to this process."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.compare}


class Frontend(Protocol):
    """Turns a specification into a `Target`. Thread-safe. Imports the user's code only in a child process."""

    name: str
    form: str
    """How its specifications look, for messages: `hf:CONFIG.json`."""

    def accepts(self, spec: str) -> bool:
        """True if `spec` has this frontend's form; opens no file."""
        ...

    def load(self, spec: str, options: FrontendOptions) -> Target:
        """Read the target, run one forward in a child process, and describe its inputs.

        Raises:
            TargetError: one sentence names the fault and the remedy.
        """
        ...


@runtime_checkable
class Checking(Protocol):
    """A frontend that can refuse a specification without running the model."""

    def check(self, spec: str, options: FrontendOptions) -> None:
        """Raise what `load` raises before it starts a child process."""
        ...


frontends: Registry[Frontend] = Registry(
    "frontends",
    {
        "huggingface": "agentforge.frontends.huggingface:HuggingFace",
        "module": "agentforge.frontends.module:ModuleClass",
        "kernelbench": "agentforge.frontends.kernelbench:KernelBenchFile",
    },
)
"""All frontends; the first that accepts a specification loads it. `module` accepts every name with a colon,
`kernelbench` every other string."""


def load_target(
    spec: str,
    options: FrontendOptions | None = None,
    frontend_options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Target:
    """Load a specification with the first frontend that accepts its form; plug-ins are asked first.

    Args:
        spec: `file.py`, `file.py:ClassName`, `hf:CONFIG.json` or a plug-in's form.

    Raises:
        TargetError: one sentence names the fault and the remedy.
        UsageError: no frontend accepts this form, or an option does not fit it.
    """
    options = options or FrontendOptions()
    frontend = check_target(spec, options, frontend_options)
    return with_shapes(frontend.load(spec, options), options.shapes, options.progress)


def check_target(
    spec: str, options: FrontendOptions, frontend_options: Mapping[str, Mapping[str, Any]] | None = None
) -> Frontend:
    """Find the frontend of a specification, and refuse what it cannot read; runs nothing.

    Raises:
        TargetError, UsageError: as for `load_target`.
    """
    if options.generate and not spec.startswith("hf:"):
        raise UsageError(f"--generate goes with hf:CONFIG.json of a causal language model, not with {spec}")
    if options.shapes:
        parse_shapes(options.shapes)
        if options.generate:
            raise UsageError("--generate sets the shapes; leave out --shapes")
    frontend = frontend_for(spec, frontend_options)
    if isinstance(frontend, Checking):
        frontend.check(spec, options)
    return frontend


def frontend_for(spec: str, frontend_options: Mapping[str, Mapping[str, Any]] | None = None) -> Frontend:
    """The first frontend that accepts a specification; plug-ins are asked first.

    Raises:
        UsageError: no frontend accepts this form.
    """
    forms = []
    for name, _ in frontends.working():
        frontend = frontends.create(name, options=(frontend_options or {}).get(name))
        if frontend.accepts(spec):
            return frontend
        forms.append(frontend.form)
    raise UsageError(f"{spec!r} is no target; give {', '.join(forms)}")
