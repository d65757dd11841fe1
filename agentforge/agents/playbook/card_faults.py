"""What the playbook could not carry out of a technique's card: its template and its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from agentforge.codegen import Options
from agentforge.codegen.library import kernel_templates
from agentforge.schema import CannotCode, Strategy

from .attention import ATTENTION, FLASH, FLASH_PARAMETERS
from .coder import ONE_ROW, PROGRAM
from .cuda_graph import GRAPH
from .facts import SEED, Parameters
from .triton import KERNELS, PROGRAM_PARAMETERS, TRITON_KERNEL, TRITON_PROGRAM


def card_faults(card: Strategy) -> Iterator[tuple[str, str]]:
    """Field and problem of each fault."""
    if not card.template:
        return
    templates = _templates()
    if card.template not in templates:
        yield "template", f"the playbook has no {card.template!r}; it has {', '.join(sorted(templates))}"
        return
    known = templates[card.template]
    for name, values in card.parameters.items():
        if name not in known:
            has = ", ".join(sorted(known)) or "none"
            yield f"parameters.{name}", f"the template does not read it; its parameters are: {has}"
            continue
        for value in values:
            if problem := _problem(card.template, name, value, known[name]):
                yield f"parameters.{name}", problem


def _problem(
    template: str, name: str, value: int | float | str | bool, example: int | float | str | bool
) -> str:
    if type(value) is not type(example):
        hint = "; quote off and on, which YAML reads as truth values" if isinstance(value, bool) else ""
        return f"{value!r} should be a value like {example!r}{hint}"
    if template in (PROGRAM, ONE_ROW):
        try:
            Options.of({name: value}, threads=1, cache_bytes=1)
        except CannotCode as error:
            return str(error)
    return ""


def _templates() -> dict[str, Parameters]:
    """A value of each parameter of each template."""
    options: Mapping[str, int | float | str | bool] = asdict(Options())
    options = {name: value for name, value in options.items() if name not in ("threads", "cache_bytes")}
    kernels = kernel_templates()
    return {
        PROGRAM: options,
        ONE_ROW: options,
        FLASH: dict.fromkeys(FLASH_PARAMETERS, 32),
        TRITON_PROGRAM: dict.fromkeys(PROGRAM_PARAMETERS, 32),
        **{template: {} for template in (SEED, ATTENTION, GRAPH)},
        **{
            f"{TRITON_KERNEL}{name}": {key: values[0] for key, values in kernels[name].parameters.items()}
            for name in KERNELS
        },
    }
