"""Options that several commands share, and how they become settings."""

from __future__ import annotations

import functools
import inspect
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from agentforge.config import Settings
    from agentforge.frontends import FrontendOptions
    from agentforge.isolation.child_process import Progress
    from agentforge.schema import Permission
    from agentforge.store import Store

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
Patience = Annotated[
    float | None,
    typer.Option(
        "--patience",
        metavar="SECONDS",
        help="Most seconds that a full verdict waits for free processors, or measures again, because other "
        "programs use the machine; with 0, no attempt is measured again (setting referee.patience_s).",
    ),
]
Config = Annotated[
    list[str] | None,
    typer.Option(
        "-c",
        "--config",
        metavar="KEY.PATH=VALUE",
        help="Override a setting, e.g. -c referee.processes=5 (repeatable).",
    ),
]
Device = Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")]
Input = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="NAME=SIZES[:DTYPE]",
        help="For file.py:ClassName and hf:CONFIG.json: one input by name, e.g. mask=1,512:int64 "
        "(repeatable).",
    ),
]
InputShape = Annotated[
    list[str] | None,
    typer.Option(
        "--input-shape",
        metavar="[NAME=]SIZES",
        help="For file.py:ClassName: shape of one input, e.g. 1,512 or mask=1,512 (repeatable).",
    ),
]
InputDType = Annotated[
    list[str] | None,
    typer.Option(
        "--input-dtype",
        metavar="DTYPE",
        help="Dtype of the input, e.g. int64. The last one is used for the remaining inputs.",
    ),
]
Generate = Annotated[
    str,
    typer.Option(
        "--generate",
        metavar="prompt=N,new=M",
        help="For hf:CONFIG.json of a causal language model: make a generation faster: a prefill of N "
        "tokens, which gives the first of M new ones, and M - 1 decode steps with a static KV cache.",
    ),
]
Shapes = Annotated[
    str,
    typer.Option(
        "--shapes",
        metavar="NAME=LO..HI[,...]",
        help="Make a range of shapes faster, e.g. batch=1..32,seq=128..2048. batch and seq are dimensions 0 "
        "and 1 of the inputs; INPUT.DIM, as in x.2=8..64, is any other; length:q.1+mask.0=8..64 are two of "
        "one size.",
    ),
]
DType = Annotated[str, typer.Option("--dtype", help="Dtype of the weights and of floating-point inputs.")]
InitArgs = Annotated[
    str, typer.Option("--init-args", metavar="JSON", help="Constructor arguments: a JSON list or object.")
]
Minutes = Annotated[
    float | None,
    typer.Option(
        "--budget-minutes",
        "--minutes",
        help="Time limit for the search, in minutes. Profile and proof come on top.",
    ),
]
Attempts = Annotated[int | None, typer.Option("--attempts", help="Most attempts at kernels.")]
Dollars = Annotated[
    float | None, typer.Option("--dollars", help="Most US dollars for calls to language models.")
]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Folder for the artifact. Default: a folder of the run."),
]
OutFile = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="File to write. Default: stdout.")
]
Tokens = Annotated[
    int | None, typer.Option("--tokens", help="Most tokens for calls to language models, in and out.")
]
LLM = Annotated[
    str | None,
    typer.Option(
        "--llm",
        metavar="SPEC",
        help="The agent that plans, codes and judges: anthropic:MODEL, openai:MODEL, openai:MODEL@URL for "
        "your own server, replay:FILE for a recording, or playbook (built in, no language model).",
    ),
]
Record = Annotated[
    Path | None,
    typer.Option("--record", metavar="FILE", help="Record all exchanges with language models in this file."),
]
Agents = Annotated[
    str | None,
    typer.Option(
        "--agents",
        metavar="one-shot|dialogue",
        help="dialogue: a language model sees what fails in its code and may repair it within an attempt. "
        "one-shot: its first answer is the attempt.",
    ),
]
Agent = Annotated[
    str | None, typer.Option(metavar="SPEC", help="Agent for this role, instead of the one of --llm.")
]
Allow = Annotated[
    str,
    typer.Option(
        "--allow",
        metavar="bf16|int8",
        help="Let products with weights use bfloat16 or 8-bit integers, if --metric stays within --bound. "
        "Without it, the model keeps its precision.",
    ),
]
MetricFunction = Annotated[
    str,
    typer.Option(
        "--metric",
        metavar="FILE.py:FUNCTION",
        help="With --allow: your function that takes the model and returns a number.",
    ),
]
MetricBound = Annotated[
    str,
    typer.Option(
        "--bound",
        metavar="BOUND",
        help="With --allow: how far the metric may change: 0.5% of the original model's, or 0.01 absolute.",
    ),
]
Coder = Annotated[
    str | None,
    typer.Option(
        metavar="SPEC",
        help="Agent that writes kernels, instead of the one of --llm. bandit(SPEC,SPEC) draws a language "
        "model for each attempt, by what its attempts gained and cost.",
    ),
]


def _known_runs(incomplete: str) -> list[str]:
    """Identifiers of runs, for the shell's completion; nothing is made, and nothing fails."""
    from contextlib import suppress

    from agentforge.store import Store

    with suppress(Exception), Store(settings(None).url, read_only=True) as known:
        return [run.id for run in known.list_runs() if run.id.startswith(incomplete)]
    return []


RunIdentifier = Annotated[
    str,
    typer.Argument(help="Identifier of the run, or the beginning of it.", autocompletion=_known_runs),
]
RunIdentifiers = Annotated[
    list[str],
    typer.Argument(help="Identifiers of runs, or the beginnings of them.", autocompletion=_known_runs),
]


CampaignName = Annotated[str, typer.Argument(help="Name of the campaign.")]


@dataclass(frozen=True)
class Inputs:
    """How to load a model. Each field is an option of the command line."""

    input: Input = None
    input_shape: InputShape = None
    input_dtype: InputDType = None
    generate: Generate = ""
    shapes: Shapes = ""
    dtype: DType = "float32"
    init_args: InitArgs = ""

    def frontend_options(self, device: str = "cpu", progress: Progress | None = None) -> FrontendOptions:
        """As frontends take them; `device` is a kind that this machine has, `progress` receives lines."""
        from agentforge.frontends import FrontendOptions

        return FrontendOptions(
            inputs=tuple(self.input or ()),
            input_shapes=tuple(self.input_shape or ()),
            input_dtypes=tuple(self.input_dtype or ()),
            generate=self.generate,
            shapes=self.shapes,
            init_args=self.init_args,
            dtype=self.dtype,
            device=device,
            progress=progress,
        )


@dataclass(frozen=True)
class Limits:
    """Limits of a run. Each field is an option of the command line."""

    minutes: Minutes = None
    attempts: Attempts = None
    dollars: Dollars = None
    tokens: Tokens = None

    def given(self) -> dict[str, float | int]:
        """Those that the user set, by field of `Budget`."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class LowerPrecision:
    """Permission for lower precision. Each field is an option of the command line."""

    allow: Allow = ""
    metric: MetricFunction = ""
    bound: MetricBound = ""

    def permission(self) -> Permission | None:
        """What the user allows; None if nothing.

        Raises:
            UsageError: an option is missing or cannot be read.
        """
        from agentforge.schema import Permission

        return Permission.parse(self.allow, self.metric, self.bound)


@dataclass(frozen=True)
class AgentChoice:
    """Which agents work on a run. Each field is an option of the command line."""

    llm: LLM = None
    planner: Agent = None
    coder: Coder = None
    judge: Agent = None
    agents: Agents = None
    record: Record = None


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """A command for typer, whose parameters of the classes above become the options of those classes."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            types = get_type_hints(groups[name], include_extras=True)
            parameters += [_parameter(f.name, types[f.name], f.default) for f in fields(groups[name])]
        else:
            parameters.append(_parameter(name, hints[name], parameter.default))

    @functools.wraps(command)
    def wrapper(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{f.name: given.pop(f.name) for f in fields(group)})
        command(**given)

    vars(wrapper).update(__signature__=inspect.Signature(parameters))
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapper


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def store(overrides: Sequence[str] | None, *, create: bool = True) -> Store:
    """The database of the settings; the caller closes it."""
    from agentforge.store import Store

    opened = Store(settings(overrides).url, create=create)
    opened.options = same_database(overrides)
    return opened


def settings(overrides: Sequence[str] | None, **changes: Any) -> Settings:
    """Settings from file, environment and `-c`, then from the options that have a flag of their own.

    Args:
        overrides: `key.path=value`.
        changes: keys with `__` for each dot, e.g. `budget__minutes=5`; None changes nothing.

    Raises:
        UsageError: a value does not fit.
    """
    from agentforge.config import load_settings

    flags = {key.replace("__", "."): value for key, value in changes.items() if value is not None}
    return load_settings(overrides or (), flags)


def same_database(overrides: Sequence[str] | None) -> str:
    """What another command needs after it to find this one's runs: `-c home` and `-c database_url` as here.

    A password is hidden.
    """
    from sqlalchemy import make_url

    named = {override.partition("=")[0] for override in overrides or ()}
    chosen, told = settings(overrides), []
    if "home" in named:
        told.append(f"home={chosen.home}")
    if "database_url" in named and chosen.database_url:
        told.append(f"database_url={make_url(chosen.database_url).render_as_string(hide_password=True)}")
    return "".join(f" -c {shlex.quote(option)}" for option in told)


def write_out(file: Path, text: str, *, option: str = "--out", mode: str = "w") -> None:
    """Write the file of an option.

    Args:
        mode: `a` with an empty text finds out before hours of work whether the file can be written.

    Raises:
        UsageError: it cannot be written.
    """
    from agentforge.schema import UsageError

    try:
        with file.open(mode, encoding="utf-8", errors="backslashreplace") as opened:
            opened.write(text)
    except OSError as error:
        raise UsageError(
            f"{option} {file} cannot be written ({error.strerror}): name another file"
        ) from error
