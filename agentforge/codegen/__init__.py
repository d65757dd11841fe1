"""A small fusing compiler: from a torch reference to C++/OpenMP kernels and a `ModelNew`."""

from __future__ import annotations

from agentforge.schema import CannotCode, Definition, SourceFile, Workload

from .capture.trace import trace
from .cpp.general import general_programs
from .cpp.render import Case, environment, flags_of, render, scalars_of
from .ir.options import Options
from .lower.lowering import Program, lower

__all__ = ["Options", "environment", "flags_of", "generate"]


def generate(
    definition: Definition, workloads: tuple[Workload, ...], options: Options
) -> tuple[SourceFile, ...]:
    """Generate the source files of a solution for all workloads of a definition.

    Raises:
        CannotCode: an operator, dtype or access pattern is not supported, or `options.weight_rows` asks for
            products with one row and there is none.
    """

    def lowered(workload: Workload) -> Program:
        return lower(trace(definition, workload), options)

    cases = [Case(w, lowered(w)) for w in workloads]
    if options.weight_rows and not any(c.program.own_products for c in cases):
        raise CannotCode("no product here has one row and a weight whose columns are contiguous")
    shape = {tuple((t.name, t.keyword) for t in c.program.traced.inputs) for c in cases}
    if len(shape) > 1:
        raise CannotCode("workloads with different arguments are not supported")
    one = len({scalars_of(w) for w in workloads}) == 1
    covered, general = general_programs(cases, lowered, options) if one else ([], [])
    return render(cases, options, definition, general, covered)
