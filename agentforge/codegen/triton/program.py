"""Render lowered programs as one Triton file: the kernels and the `ModelNew` that launches them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentforge.schema import Definition, SourceFile, Workload

from ..capture.trace import trace
from ..cpp.render import Case, CaseWriter, environment, flat, model_facts, scalars_of, title_of
from ..ir.options import Options
from ..lower.lowering import LoopKernel, Program, lower
from .kernels import Blocks, Launch, TritonWriter


def generate_triton(
    definition: Definition, workloads: Sequence[Workload], blocks: Blocks
) -> tuple[SourceFile, ...]:
    """Generate the source file of a solution for all workloads of a definition.

    Raises:
        CannotCode: an operator, dtype or access pattern is not supported.
    """
    options = Options(threads=blocks.processors, inplace=False)
    cases = [Case(w, lower(trace(definition, w), options)) for w in workloads]
    kernels: list[Launch] = []
    scripts: list[dict[str, Any]] = []
    for number, case in enumerate(cases):
        writer = _TritonCase(case.program, options, f"w{number}_" if len(cases) > 1 else "", blocks)
        scripts.append(writer.script(f"case{number}") | {"scalars": scalars_of(case.workload)})
        kernels += writer.launches
    facts = model_facts(cases, scripts, title_of(definition))
    text = environment().get_template("model_new_triton.py.j2").render(kernels=kernels, **facts)
    return (SourceFile(path="model_new.py", content=text),)


class _TritonCase(CaseWriter):
    """One program with its kernels in Triton."""

    def __init__(self, program: Program, options: Options, prefix: str, blocks: Blocks) -> None:
        super().__init__(program, options, prefix)
        self.blocks = blocks
        self.launches: list[Launch] = []

    def _kernel(self, step: LoopKernel, number: int) -> list[str]:
        found = TritonWriter(
            self.prefix + step.name, step.nest, self.buffers, step.inputs, step.outputs, self.blocks
        ).write()
        self.launches += found
        device = f"{self.program.inputs[0].name}.device" if self.program.inputs else "'cuda'"
        lines = []
        for b in step.outputs:
            layout = f"empty({b.shape}" if b.contiguous else f"empty_strided({b.shape}, {b.strides}"
            lines.append(f"{b.name} = torch.{layout}, dtype={b.dtype}, device={device})")
        passed = {b.name: flat(b) for b in step.inputs}
        for launch in found:
            for name, (size, dtype) in launch.scratch.items():
                lines.append(f"{name} = torch.empty({size}, dtype={dtype}, device={device})")
            arguments = ", ".join(passed.get(name, name) for name in launch.arguments)
            lines.append(f"{launch.name}[({launch.programs},)]({arguments}, num_warps={launch.warps})")
        return lines
