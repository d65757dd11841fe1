"""Render lowered programs as the source files of a solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jinja2
import torch

from agentforge.problems.sizes import value_of
from agentforge.resources import resource
from agentforge.schema import Definition, ScalarInput, SourceFile, TensorInput, Workload

from ..capture.trace import Parameter
from ..ir.expr import Access, Expr, constant, walk
from ..ir.lazy import Buffer, dense_strides
from ..ir.nest import Pass
from ..ir.options import Options
from ..ir.placement import memory_order
from ..lower.lowering import LoopKernel, Program, TensorArg, VendorCall
from ..lower.pointwise import STEPS
from .emit import POINTERS
from .forms import KernelWriter

Passes = tuple[tuple[Pass, ...], ...]

STRICT_FLAGS = ("-fno-fast-math", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros")
"""Forbid reassociation and approximations, but keep what vectorisation needs."""


@dataclass(frozen=True)
class Case:
    """The program for one workload."""

    workload: Workload
    program: Program


@lru_cache(maxsize=1)
def environment() -> jinja2.Environment:
    """Templates under `knowledge_base/templates`; a missing variable is an error."""
    folders = [resource("knowledge_base", "templates", language) for language in ("cpp", "triton")]
    loader = jinja2.FileSystemLoader(folders)
    return jinja2.Environment(
        loader=loader, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, autoescape=False,
    )  # fmt: skip


def flags_of(options: Options) -> tuple[str, ...]:
    """Compiler flags in addition to the language's."""
    return () if options.math == "fast" else STRICT_FLAGS


def render(
    cases: Sequence[Case],
    options: Options,
    definition: Definition,
    general: Sequence[General],
    covered: Sequence[Case],
) -> tuple[SourceFile, ...]:
    """Source files: the kernels, their header and the `ModelNew` that calls them.

    Args:
        general: programs for ranges of sizes.
        covered: cases that these programs compute.
    """
    kernels: list[dict[str, Any]] = []
    scripts: list[dict[str, Any]] = []
    for number, case in enumerate(cases):
        if case in covered:
            continue
        prefix = f"w{number}_" if len(cases) > 1 else ""
        writer = CaseWriter(case.program, options, prefix)
        scripts.append(writer.script(f"case{number}") | {"scalars": scalars_of(case.workload)})
        kernels += writer.kernels
    kernels += [kernel for program in general for kernel in program.kernels]
    title = title_of(definition)
    shapes = ", ".join(f"{t.name} {t.dtype.value}{list(t.shape)}" for t in cases[0].program.traced.inputs)
    exact = options.math == "fast" and any(_cuts_quotients(case.program) for case in cases)
    cpp = (
        environment()
        .get_template("program.cpp.j2")
        .render(title=title, signature=shapes, kernels=kernels, exact_quotients=exact)
    )
    python = (
        environment()
        .get_template("model_new.py.j2")
        .render(model_facts(cases, scripts, title), general=general)
    )
    header = environment().get_template("vector_math.h.j2").render(libm=options.math == "libm")
    return (
        SourceFile(path="model_new.py", content=python),
        SourceFile(path="kernel.cpp", content=cpp),
        SourceFile(path="vector_math.h", content=header),
    )


def _cuts_quotients(program: Program) -> bool:
    """True if kernels divide and make integers, or compare a quotient with something else than 0.

    A quotient by way of a reciprocal can be just below an integer.
    """
    nests = [step.nest for step in program.steps if isinstance(step, LoopKernel)]
    nodes = list(walk(root for nest in nests for s in nest.passes for p in s for root in p.roots))
    casts = any(n.op == "cast" and n.kind == "i" and n.args[0].kind in "fd" for n in nodes)
    steps = casts or any(n.op == "call" and n.attr in STEPS for n in nodes)
    return any(map(_is_quotient, nodes)) and (steps or any(map(_compares_a_quotient, nodes)))


def _is_quotient(node: Expr) -> bool:
    return node.op == "bin" and node.attr == "/" and node.kind in "fd"


def _compares_a_quotient(node: Expr) -> bool:
    zero = any(a.op == "const" and not constant(a) for a in node.args)
    return node.op == "cmp" and not zero and any(map(_is_quotient, node.args))


def title_of(definition: Definition) -> str:
    """A definition's name, safe for a comment."""
    return definition.name.replace("\\", "/").replace('"', "'")


def model_facts(cases: Sequence[Case], scripts: list[dict[str, Any]], title: str) -> dict[str, Any]:
    """Variables for the template of a `ModelNew`, for kernels in any language."""
    first = cases[0].program.traced
    return {
        "title": title,
        "cases": scripts,
        "general": [],
        "parameters": [
            {"name": p.name, "tensor": _initial(p), "buffer": p.buffer, "saved": p.unsaved is None}
            for p in first.parameters
        ],
        "forward": _forward(cases[0].workload),
        "tensors": [t.name for t in first.inputs],
        "scalars": [i.name for i in cases[0].workload.inputs if isinstance(i, ScalarInput)],
        "general_scalars": scalars_of(cases[0].workload),
    }


def _initial(parameter: Parameter) -> str:
    """Python of a parameter's first value: the state_dict brings another one if it is saved."""
    value = parameter.unsaved
    if value is None or not value.any():
        return f"torch.zeros({parameter.shape}, dtype={parameter.dtype})"
    return f"torch.tensor({_python(value.tolist())}, dtype={parameter.dtype})"


def scalars_of(workload: Workload) -> tuple[str, ...]:
    """The Python values among a workload's arguments as text, which tells 1, 1.0 and True apart."""
    return tuple(repr(i.value) for i in workload.inputs if isinstance(i, ScalarInput))


def _forward(workload: Workload) -> list[str]:
    """Parameters of `forward`; scalars default to the values that the program was traced for."""
    names: list[str] = []
    for spec in workload.inputs:
        names.append(f"{spec.name}={_python(spec.value)}" if isinstance(spec, ScalarInput) else spec.name)
    seen_default = False
    result: list[str] = []
    for spec, name in zip(workload.inputs, names, strict=True):
        seen_default = seen_default or isinstance(spec, ScalarInput)
        result.append(f"{name}=None" if seen_default and isinstance(spec, TensorInput) else name)
    return result


Point = tuple[int, ...]


@dataclass(frozen=True)
class General:
    """A program for every size from `low` to `high` whose `multiples` are 0."""

    low: Point
    high: Point
    sizes: dict[str, tuple[int, int]]
    """Name of each size, with the tensor and the dimension where it is read."""
    multiples: tuple[str, ...]
    """Remainders, as Python expressions of the sizes, for example `(n0) % 8`."""
    script: dict[str, Any]
    kernels: list[dict[str, Any]]

    def holds(self, point: Point) -> bool:
        """True if these sizes are in its range."""
        inside = all(a <= n <= b for a, n, b in zip(self.low, point, self.high, strict=True))
        sizes = dict(zip(self.sizes, point, strict=True))
        return inside and not any(value_of(m, sizes) for m in self.multiples)


class CaseWriter:
    """Writes one program: its kernels in C++, the sequence of calls in Python."""

    def __init__(self, program: Program, options: Options, prefix: str) -> None:
        self.program = program
        self.options = options
        self.prefix = prefix
        self.kernels: list[dict[str, Any]] = []
        self.last_use = self._last_uses()
        self.buffers = {b.name: b for b in self._all_buffers()}

    def _all_buffers(self) -> list[Buffer]:
        found = list(self.program.inputs)
        for step in self.program.steps:
            found += [b for b in (step.results if isinstance(step, VendorCall) else step.outputs) if b]
        return found

    def _last_uses(self) -> dict[str, int]:
        """Step after which each buffer is dead; results never die."""
        last: dict[str, int] = {}
        for number, step in enumerate(self.program.steps):
            for name in _reads(step):
                last[name] = number
        for out in self.program.outputs:
            last[out.buffer.name] = len(self.program.steps)
        return last

    def script(self, name: str) -> dict[str, Any]:
        """The Python function that runs the program."""
        lines: list[str] = []
        for number, step in enumerate(self.program.steps):
            if isinstance(step, VendorCall):
                lines += self._vendor(step)
            else:
                lines += self._kernel(step, number)
        results = [_window(out) for out in self.program.outputs]
        inputs = self.program.inputs
        return {
            "name": name,
            "arguments": [b.name for b in inputs],
            "lines": lines,
            "result": f"({', '.join(results)},)" if self.program.traced.is_tuple else results[0],
            "signature": [_layout(b) for b in inputs],
        }

    def _vendor(self, step: VendorCall) -> list[str]:
        args = [_python(a) for a in step.args] + [f"{k}={_python(v)}" for k, v in step.kwargs.items()]
        names = [b.name if b else "_" for b in step.results]
        target = ", ".join(names) + ("," if step.many and len(names) == 1 else "")
        return [f"{target} = torch.ops.{step.operator}({', '.join(args)})"]

    def _inplace(self, step: LoopKernel, number: int) -> dict[str, str]:
        """Outputs that can reuse the memory of an intermediate that dies here, read only where written."""
        if not self.options.inplace:
            return {}
        taken: dict[str, str] = {}
        passes = step.nest.passes
        final = passes[-1]
        for position, output in enumerate(step.outputs):
            for candidate in step.inputs:
                fits = (
                    candidate.source != "input" and self.last_use.get(candidate.name) == number
                    and candidate.dtype == output.dtype and candidate.shape
                    and _numel(candidate) == _numel(output) and _same_order(candidate, output)
                    and candidate.name not in taken.values()
                )  # fmt: skip
                if fits and _reads_where_written(passes, final, candidate.name, position):
                    taken[output.name] = candidate.name
                    break
        return taken

    def _kernel(self, step: LoopKernel, number: int) -> list[str]:
        taken = self._inplace(step, number)
        writer = KernelWriter(step.nest, self.buffers, step.outputs, taken, self.options)
        body = writer.write()
        name = self.prefix + step.name
        pointers = [
            f"{'' if b.name in taken.values() else 'const '}{POINTERS[b.dtype]}* {b.name}"
            for b in step.inputs
        ] + [f"{POINTERS[b.dtype]}* {b.name}" for b in step.outputs if b.name not in taken]
        self.kernels.append({
            "name": name, "parameters": pointers, "body": body,
            "result": "int64_t" if writer.checks else "void",
            "summary": f"{writer.form}: {' x '.join(map(str, step.nest.shape)) or 'scalar'}",
        })  # fmt: skip
        made = [b for b in step.outputs if b.name not in taken]
        orders = {b.name: memory_order(b.shape, b.strides) for b in made if not b.contiguous}
        lines = []
        for b in made:
            stored = tuple(b.shape[d] for d in orders.get(b.name, range(len(b.shape))))
            lines.append(f"{b.name} = empty({stored}, {b.dtype})")
        passed = [flat(b) for b in step.inputs] + [b.name for b in made]
        call = f"lib.{name}({', '.join(passed)})"
        if writer.checks:
            lines += [f"wrong = {call}", "if wrong:"]
            lines.append('    raise IndexError(f"index {wrong} is out of bounds")')
        else:
            lines.append(call)
        for new, order in orders.items():
            lines.append(f"{new} = {new}.permute({tuple(map(order.index, range(len(order))))})")
        for new, old in taken.items():
            shape = self.buffers[new].shape
            lines.append(
                f"{new} = {old}" if shape == self.buffers[old].shape else f"{new} = {old}.view({shape})"
            )
        return lines


def _layout(buffer: Buffer) -> dict[str, Any]:
    """What `ModelNew` checks of an input; the stride of a size-1 dimension is ignored."""
    strides = tuple(s if n > 1 else 0 for n, s in zip(buffer.shape, buffer.strides, strict=True))
    return {"dtype": str(buffer.dtype), "shape": buffer.shape, "strides": strides}


def _same_order(a: Buffer, b: Buffer) -> bool:
    """True if the elements of two dense buffers of one size are at the same places."""
    return (a.contiguous and b.contiguous) or (a.shape, a.strides) == (b.shape, b.strides)


def _numel(buffer: Buffer) -> int:
    return torch.Size(buffer.shape).numel()


def _reads(step: VendorCall | LoopKernel) -> list[str]:
    if isinstance(step, LoopKernel):
        return [b.name for b in step.inputs]
    found: list[str] = []
    stack: list[Any] = [*step.args, *step.kwargs.values()]
    while stack:
        value = stack.pop()
        if isinstance(value, TensorArg):
            found.append(value.buffer.name)
        elif isinstance(value, (list, tuple)):
            stack.extend(value)
    return found


def _reads_where_written(passes: Passes, final: tuple[Pass, ...], name: str, output: int) -> bool:
    """True if each element of a buffer is last read where the output's element is written."""
    for segments in passes:
        for p in segments:
            indices = {
                e.attr.index for e in walk(p.roots) if isinstance(e.attr, Access) and e.attr.buffer == name
            }
            written = {s.index for s in p.stores if s.output == output}
            if segments is final:
                if not indices <= written:
                    return False
            elif indices and len(final) > 1:
                return False
    return _rows_are_disjoint(passes, final, name)


def _rows_are_disjoint(passes: Passes, final: tuple[Pass, ...], name: str) -> bool:
    """True if earlier passes of a row read only elements of that row, which the row itself writes."""
    wanted = {s.index for p in final for s in p.stores}
    for segments in passes[:-1]:
        for p in segments:
            for e in walk(p.roots):
                if isinstance(e.attr, Access) and e.attr.buffer == name and e.attr.index not in wanted:
                    return False
    return True


def flat(buffer: Buffer) -> str:
    """The tensor as kernels read it: dense memory from the first element to the last."""
    if buffer.contiguous or buffer.shape == ():
        return buffer.name
    return f"torch.as_strided({buffer.name}, ({buffer.span},), (1,))"


def _window(arg: TensorArg) -> str:
    buffer = arg.buffer
    if arg.shape == buffer.shape and arg.strides == buffer.strides and arg.offset == 0:
        return buffer.name
    if arg.strides == dense_strides(arg.shape) and buffer.contiguous and arg.offset == 0:
        return (
            f"{buffer.name}.view({arg.shape})"
            if _numel(buffer) == torch.Size(arg.shape).numel()
            else (f"torch.as_strided({buffer.name}, {arg.shape}, {arg.strides})")
        )
    offset = (
        f", {buffer.name}.storage_offset() + {arg.offset}" if buffer.source == "input" else f", {arg.offset}"
    )
    return f"torch.as_strided({buffer.name}, {arg.shape}, {arg.strides}{offset})"


def _python(value: Any) -> str:
    if isinstance(value, TensorArg):
        return _window(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_python, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_python, value))},)"
    if isinstance(value, float) and value != value:
        return "float('nan')"
    if isinstance(value, float) and abs(value) == float("inf"):
        return f"float('{value}')"
    return repr(value)
