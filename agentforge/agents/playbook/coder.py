"""The playbook's coder: instantiates a plan's template for a bottleneck's definition and workloads."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from agentforge.agents._base import Draft, Past, Task
from agentforge.codegen import Options, flags_of, generate
from agentforge.schema import BuildSpec, CannotCode, Plan, Solution, SourceFile, Usage

from .attention import ATTENTION, FLASH, FLASH_PARAMETERS, attention_source, flash_attention
from .cuda_graph import GRAPH, graph_source
from .facts import SAME_CODE, SEED, describe
from .triton import TRITON_KERNEL, TRITON_PROGRAM, program, with_kernel

PROGRAM = "cpp/program.cpp.j2"
"""The template of generated loop programs."""
ONE_ROW = "one-row-product"
"""The template of such programs with a kernel for matrix products with one row."""

_DEFAULT_CACHE = 32 << 20


class PlaybookCoder:
    """Writes C++/OpenMP and Triton kernels by code generation."""

    name = "playbook"

    def code(self, task: Task, plan: Plan, parent: Past | None) -> Draft:
        """See `Coder.code`."""
        started = time.monotonic()
        writers: dict[str, Callable[[Task, Plan, Past | None], Solution]] = {
            PROGRAM: self._program,
            ONE_ROW: self._program,
            SEED: self._seed,
            ATTENTION: self._attention,
            FLASH: self._flash,
            TRITON_PROGRAM: self._triton,
            GRAPH: self._graph,
        }
        brought = plan.template.startswith(TRITON_KERNEL)
        writer = self._triton if brought else writers.get(plan.template)
        if writer is None:
            raise CannotCode(f"no template {plan.template!r} that the playbook can instantiate")
        solution = writer(task, _completed(plan, task), parent)
        if any(p.solution is not None and p.solution.hash == solution.hash for p in task.past):
            raise CannotCode(f"{describe(plan)} {SAME_CODE}")
        return Draft(solution, Usage(seconds=time.monotonic() - started))

    def _program(self, task: Task, plan: Plan, parent: Past | None) -> Solution:
        parameters = dict(plan.parameters)
        if parent is not None and parent.critique is not None and parent.critique.kind == "repair":
            parameters |= parent.critique.parameters
        cache = task.hardware.cache_bytes[-1] if task.hardware.cache_bytes else _DEFAULT_CACHE
        options = Options.of(parameters, threads=max(task.hardware.threads, 1), cache_bytes=cache)
        definition = task.bottleneck.definition
        description = f"{describe(plan)}\n\n{plan.diagnosis}" if plan.diagnosis else describe(plan)
        files = generate(definition, task.bottleneck.workloads, options)
        spec = BuildSpec(language="cpp", flags=flags_of(options))
        return _solution(task, plan, spec, files, parameters, description)

    def _attention(self, task: Task, plan: Plan, parent: Past | None) -> Solution:
        source = attention_source(task.bottleneck.definition)
        files = (SourceFile(path="model_new.py", content=source),)
        return _solution(task, plan, BuildSpec(language="python"), files)

    def _flash(self, task: Task, plan: Plan, parent: Past | None) -> Solution:
        definition = task.bottleneck.definition
        sizes = {name: int(plan.parameters[name]) for name in FLASH_PARAMETERS}
        files = flash_attention(definition, task.bottleneck.workloads[0], **sizes)
        return _solution(task, plan, BuildSpec(language="cpp"), files, plan.parameters)

    def _triton(self, task: Task, plan: Plan, parent: Past | None) -> Solution:
        definition, workloads = task.bottleneck.definition, task.bottleneck.workloads
        parameters = dict(plan.parameters)
        if plan.template == TRITON_PROGRAM:
            files = program(definition, workloads, parameters, task.hardware.threads)
        else:
            if len(workloads) > 1:
                raise CannotCode("a hand-written kernel supports one workload only")
            name = plan.template.removeprefix(TRITON_KERNEL)
            files = with_kernel(definition, workloads[0], name, parameters)
        return _solution(task, plan, BuildSpec(language="triton"), files, parameters)

    def _graph(self, task: Task, plan: Plan, parent: Past | None) -> Solution:
        if any(workload.nested for workload in task.bottleneck.workloads):
            raise CannotCode("an input is a list, tuple or dict")
        files = graph_source(task.bottleneck.definition)
        return _solution(task, plan, BuildSpec(language="python"), files)

    def _seed(self, task: Task, plan: Plan, parent: Past | None) -> Solution:
        from agentforge.codegen.inductor import inductor_solution

        definition, workloads = task.bottleneck.definition, task.bottleneck.workloads
        solution = inductor_solution(definition, workloads[0], *workloads[1:])
        if solution is None:
            raise CannotCode("torch.compile gives nothing for this region that could be called on its own")
        return solution


def _completed(plan: Plan, task: Task) -> Plan:
    """The plan with the card's first value for each parameter that its planner left open."""
    card = next((s for s in task.strategies if s.id == plan.strategy), None)
    first = {name: values[0] for name, values in card.parameters.items() if values} if card else {}
    return plan.model_copy(update={"parameters": {**first, **plan.parameters}})


def _solution(
    task: Task,
    plan: Plan,
    spec: BuildSpec,
    sources: tuple[SourceFile, ...],
    parameters: Mapping[str, int | float | str | bool] | None = None,
    description: str = "",
) -> Solution:
    """The solution of a plan, with the plan as its description unless one is given."""
    definition = task.bottleneck.definition
    return Solution(
        name=f"{plan.strategy}-{definition.op_type}",
        definition=definition.hash,
        author="playbook",
        spec=spec,
        sources=sources,
        description=description or describe(plan),
        parameters=dict(parameters or {}),
    )
