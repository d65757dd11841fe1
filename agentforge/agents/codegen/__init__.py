"""A small fusing compiler: from a torch reference to C++/OpenMP kernels and the `ModelNew` around them."""

from __future__ import annotations

from agentforge.agents._base import CannotCode
from agentforge.schema import Definition, SourceFile, Workload

from .lowering import lower
from .options import Options
from .render import Case, environment, flags_of, render
from .trace import trace

__all__ = ["Options", "environment", "flags_of", "generate"]


def generate(
    definition: Definition, workloads: tuple[Workload, ...], options: Options
) -> tuple[SourceFile, ...]:
    """Source files of a solution for all workloads of a definition.

    Raises:
        CannotCode: an operator, dtype or access pattern is beyond this compiler; the message names it.
    """
    cases = [Case(w, lower(trace(definition, w), options)) for w in workloads]
    shape = {tuple((t.name, t.keyword) for t in c.program.traced.inputs) for c in cases}
    if len(shape) > 1:
        raise CannotCode("workloads that pass different arguments")
    return render(cases, options, definition)
