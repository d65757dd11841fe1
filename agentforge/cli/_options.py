"""Options that several commands share, and what they become."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from agentforge.config import Settings
    from agentforge.frontends import FrontendOptions

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
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
InputShape = Annotated[
    list[str] | None,
    typer.Option(
        "--input-shape",
        metavar="[NAME=]SIZES",
        help="For file.py:ClassName: sizes of an input, e.g. 1,512 or mask=1,512 (repeatable).",
    ),
]
InputDType = Annotated[
    list[str] | None,
    typer.Option("--input-dtype", metavar="DTYPE", help="Its dtype, e.g. int64 (the last one repeats)."),
]
DType = Annotated[str, typer.Option("--dtype", help="Dtype of the weights and floating inputs.")]
InitArgs = Annotated[
    str, typer.Option("--init-args", metavar="JSON", help="Constructor arguments: a JSON list or object.")
]
Minutes = Annotated[
    float | None,
    typer.Option("--budget-minutes", "--minutes", help="Wall time of profiling and search, all sessions."),
]
Attempts = Annotated[int | None, typer.Option("--attempts", help="Attempts at kernels.")]
Dollars = Annotated[float | None, typer.Option("--dollars", help="Money for LLM calls.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Where the artifact goes; else below the run."),
]
Tokens = Annotated[int | None, typer.Option("--tokens", help="Tokens of LLM calls, in and out.")]
LLM = Annotated[
    str | None,
    typer.Option(
        "--llm",
        metavar="SPEC",
        help="Who plans, codes and judges: anthropic:MODEL, openai:MODEL, openai:MODEL@URL for a server "
        "of your own, replay:FILE, or playbook (no LLM).",
    ),
]
Record = Annotated[
    Path | None, typer.Option("--record", metavar="FILE", help="Write all LLM exchanges to this cassette.")
]
Agent = Annotated[
    str | None, typer.Option(metavar="SPEC", help="Who does it, where not --llm: as there, or playbook.")
]


def frontend_options(
    shapes: Sequence[str] | None, dtypes: Sequence[str] | None, dtype: str, init_args: str, device: str
) -> FrontendOptions:
    """What the user said of the model's inputs; `device` is a kind that is there."""
    from agentforge.frontends import FrontendOptions

    return FrontendOptions(
        input_shapes=tuple(shapes or ()),
        input_dtypes=tuple(dtypes or ()),
        init_args=init_args,
        dtype=dtype,
        device=device,
    )


def settings(overrides: Sequence[str] | None, **changes: Any) -> Settings:
    """Settings of file, environment and `-c`, then the options that have a flag of their own.

    Args:
        overrides: `key.path=value`.
        changes: dots in keys written as `__`; None is no change, e.g. `budget__minutes=5`.

    Raises:
        UsageError: a value does not fit.
    """
    from agentforge.config import load_settings

    flags = [f"{key.replace('__', '.')}={value}" for key, value in changes.items() if value is not None]
    return load_settings([*(overrides or ()), *flags])
