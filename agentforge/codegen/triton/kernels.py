"""Write Triton for a loop nest: one program per row, per tile of neighbouring rows, or per block of
positions.

A row that fits one block is one vector, computed once. Longer rows are loaded again by every pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod

from agentforge.schema import CannotCode

from ..ir.expr import indices, walk
from ..ir.index import Var
from ..ir.lazy import Buffer
from ..ir.nest import Nest, Pass, Reduce
from .values import Value, Values, identity

_INT32 = 1 << 31
_WARP = 32
_LEAST_OF_A_THREAD, _MOST_OF_A_THREAD = 4, 32
"""Elements of a vector per thread."""
CHUNKS_A_PROGRAM = 4
"""Partial results of a reduction with few rows, per multiprocessor of the device."""


@dataclass(frozen=True)
class Blocks:
    """Block sizes, which a strategy may set."""

    block: int = 1024
    """Positions per program without reductions; also elements per step of a row longer than one block."""
    max_block: int = 16384
    """Longest row that becomes one block."""
    lanes: int = 128
    """Neighbouring rows per program if memory is contiguous along them."""
    num_warps: int = 4
    """Warps per program."""
    processors: int = 128
    """Multiprocessors of the device; not a card's parameter."""

    def warps(self, size: int) -> int:
        """Warps of a program whose vectors have `size` elements, a power of two."""
        least, most = size // (_WARP * _MOST_OF_A_THREAD), size // (_WARP * _LEAST_OF_A_THREAD)
        return min(max(self.num_warps, least), max(most, 1), 32)

    def __post_init__(self) -> None:
        for name in ("block", "max_block", "lanes"):
            size = getattr(self, name)
            if not isinstance(size, int) or size < 1 or size & (size - 1):
                raise CannotCode(f"{name} must be a power of two, not {size!r}")
        if self.num_warps not in (1, 2, 4, 8, 16, 32):
            raise CannotCode(f"num_warps must be a power of two up to 32, not {self.num_warps!r}")


@dataclass(frozen=True)
class Launch:
    """A kernel's text and its launch parameters."""

    name: str
    arguments: tuple[str, ...]
    body: str
    programs: int
    warps: int
    summary: str
    scratch: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Buffers to allocate before the launch: name to elements and torch dtype."""


@dataclass
class TritonWriter:
    """Writes the kernels of one nest."""

    name: str
    nest: Nest
    buffers: dict[str, Buffer]
    inputs: Sequence[Buffer]
    outputs: Sequence[Buffer]
    blocks: Blocks
    _lines: list[str] = field(default_factory=list)
    _depth: int = 1

    def write(self) -> list[Launch]:
        """The kernels, in launch order.

        Raises:
            CannotCode: an operation that the Triton backend does not support.
        """
        if not self.nest.reductions:
            return [self._flat()]
        if self.nest.split:
            return self._split()
        return [self._columns(self.nest.lane) if self.nest.lane is not None else self._rows()]

    # ---------------------------------------------------------------- text

    def _add(self, *lines: str) -> None:
        self._lines += ["    " * self._depth + line for line in lines]

    @contextmanager
    def _indented(self, head: str) -> Iterator[None]:
        self._add(head)
        self._depth += 1
        yield
        self._depth -= 1

    def _finish(self, form: str, programs: int, size: int, arguments: Sequence[str] = ()) -> Launch:
        """The kernel written so far; its vectors have `size` elements."""
        if programs >= _INT32:
            raise CannotCode(f"{programs} programs exceed a GPU's maximum grid")
        shape = " x ".join(map(str, self.nest.shape)) or "scalar"
        body, self._lines = "\n".join(self._lines), []
        names = tuple(arguments) or tuple(b.name for b in (*self.inputs, *self.outputs))
        return Launch(self.name, names, body, programs, self.blocks.warps(size), f"{form}: {shape}")

    @property
    def _integer(self) -> str:
        """Type of positions; 64 bits only if addresses need them. The last block's positions reach beyond the
        last element."""
        largest = max(self.nest.elements, *(b.span for b in (*self.inputs, *self.outputs)))
        beyond = max(self.blocks.block, self.blocks.max_block, self.blocks.lanes)
        return "tl.int64" if largest + beyond > _INT32 else "tl.int32"

    def _wide(self, positions: str) -> str:
        """Positions of 32 bits in the type of positions."""
        return positions if self._integer == "tl.int32" else f"({positions}).to({self._integer})"

    def _program(self, name: str) -> None:
        self._add(f"{name} = tl.program_id(0).to({self._integer})")

    def _decode(self, linear: str, variables: Sequence[Var]) -> None:
        """Compute loop variables from a linear position."""
        inner = prod(v.extent for v in variables)
        for i, var in enumerate(variables):
            inner //= var.extent
            text = linear if inner == 1 else f"({linear}) // {inner}"
            self._add(f"{var.name} = {text if i == 0 else f'({text}) % {var.extent}'}")

    def _values(self) -> Values:
        return Values(self.buffers, self._add)

    # ---------------------------------------------------------------- forms

    def _flat(self) -> Launch:
        """No reduction: a program computes a block of positions of every segment."""
        segments = self.nest.passes[-1]
        largest = max(prod(v.extent for v in p.loops) for p in segments)
        self._program("program")
        for p in segments:
            space = prod(v.extent for v in p.loops)
            if not p.loops:
                self._store(self._values(), p, "")
                continue
            self._add(f"at = program * {self.blocks.block} + tl.arange(0, {self.blocks.block})")
            self._add(f"inside = at < {space}")
            self._decode("at", p.loops)
            self._store(self._values().over(p.loops, "inside"), p, "inside")
        return self._finish("flat", -(-largest // self.blocks.block), self.blocks.block)

    def _rows(self) -> Launch:
        """A program computes a row: all passes over it."""
        self._program("row")
        self._decode("row", self.nest.rows)
        whole = max((prod(v.extent for v in p.loops) for s in self.nest.passes for p in s), default=1)
        values = self._values()
        fits = whole <= self.blocks.max_block
        for segments in self.nest.passes:
            if fits:
                self._row_in_blocks(values, segments)
            else:
                self._row_by_blocks(values, segments)
        size = _power_of_two(whole) if fits else self.blocks.block
        return self._finish("rows", prod(v.extent for v in self.nest.rows), size)

    def _row_in_blocks(self, values: Values, segments: Sequence[Pass]) -> None:
        """One pass with its columns as one vector; later passes over the same columns reuse its values."""
        partial: dict[Reduce, list[str]] = {}
        for p in segments:
            if not p.loops:
                for r, value in p.reductions:
                    partial.setdefault(r, []).append(str(values.known(value)))
                self._store(values, p, "")
                continue
            scope, inside = self._vector(values, p.loops)
            for r, value in p.reductions:
                name = f"part{r.number}_{len(partial.setdefault(r, []))}"
                self._add(f"{name} = {_reduced(r, _masked(r, scope.known(value), inside))}")
                partial[r].append(name)
            self._store(scope, p, inside)
        self._combine(values, partial)

    def _vector(self, values: Values, loops: Sequence[Var]) -> tuple[Values, str]:
        """The scope of a vector of columns, created at first use."""
        key = tuple(loops)
        if key not in values.scopes:
            number, space = len(values.scopes), prod(v.extent for v in loops)
            at, inside = f"at{number}", f"inside{number}"
            arange = self._wide(f"tl.arange(0, {_power_of_two(space)})")
            self._add(f"{at} = {arange}", f"{inside} = {at} < {space}")
            self._decode(at, loops)
            values.scopes[key] = (values.over(loops, inside), inside)
        return values.scopes[key]

    def _row_by_blocks(self, values: Values, segments: Sequence[Pass]) -> None:
        """One pass, block by block: every vector lane has its own partial result."""
        block = self.blocks.block
        partial: dict[Reduce, list[str]] = {}
        for number, p in enumerate(segments):
            if not p.loops:
                self._row_in_blocks(values, [p])
                continue
            space = prod(v.extent for v in p.loops)
            for r, _ in p.reductions:
                self._add(f"sum{r.number} = tl.full(({block},), {identity(r)}, {_type(r)})")
            self._settle(values, p)
            with self._indented(f"for start in range(0, {_bound(space, block)}, {block}):"):
                self._add(f"at = start + {self._wide(f'tl.arange(0, {block})')}", f"inside = at < {space}")
                self._decode("at", p.loops)
                scope = values.over(p.loops, "inside")
                for r, value in p.reductions:
                    self._accumulate(r, _masked(r, scope.known(value), "inside"))
                self._store(scope, p, "inside")
            for r, _ in p.reductions:
                name = f"part{r.number}_{number}"
                self._add(f"{name} = {_reduced(r, f'sum{r.number}')}")
                partial.setdefault(r, []).append(name)
        self._combine(values, partial)

    def _columns(self, lane: Var) -> Launch:
        """A program reduces neighbouring rows, one lane each."""
        outer = self.nest.rows[:-1]
        width = min(self.blocks.lanes, _power_of_two(lane.extent))
        tiles = -(-lane.extent // width)
        self._program("program")
        self._decode("program" if tiles == 1 else f"program // {tiles}", outer)
        self._add(f"{lane.name} = program % {tiles} * {width} + tl.arange(0, {width})")
        self._add(f"inside = {lane.name} < {lane.extent}")
        values = self._values().over((lane,), "inside")
        for segments in self.nest.passes:
            for r, _ in segments[0].reductions:
                self._add(f"sum{r.number} = tl.full(({width},), {identity(r)}, {_type(r)})")
            for p in segments:
                self._lanes(values, p)
            for r, _ in segments[0].reductions:
                values.define_reduction(r.number, f"sum{r.number}", vector=True)
        return self._finish("columns", prod(v.extent for v in outer) * tiles, width)

    def _lanes(self, values: Values, p: Pass) -> None:
        space = prod(v.extent for v in p.loops)
        if not p.loops:
            for r, value in p.reductions:
                self._accumulate(r, str(values.known(value)))
            self._store(values, p, "inside")
            return
        self._settle(values, p)
        with self._indented(f"for column in range(0, {_bound(space, 1)}):"):
            self._decode(self._wide("column"), p.loops)
            scope = values.over(p.loops, "inside", vector=False)
            for r, value in p.reductions:
                self._accumulate(r, str(scope.known(value)))
            self._store(scope, p, "inside")

    def _split(self) -> list[Launch]:
        """Few long rows: partial results by chunks, which a second kernel combines."""
        rows = prod(v.extent for v in self.nest.rows)
        chunks = max(self.blocks.processors * CHUNKS_A_PROGRAM // rows, 1)
        reductions = self.nest.reductions
        partials = [f"partial{r.number}" for r in reductions]
        self._program("program")
        self._add(f"row = program // {chunks}", f"chunk = program % {chunks}")
        self._decode("row", self.nest.rows)
        values = self._values()
        for segments in self.nest.passes[:-1]:
            self._chunk(values, segments, chunks)
        for r, name in zip(reductions, partials, strict=True):
            self._add(f"tl.store({name} + program, {values.reductions[r.number]})")
        inputs, outputs = tuple(b.name for b in self.inputs), tuple(b.name for b in self.outputs)
        made = {
            name: (rows * chunks, _type(r).replace("tl", "torch"))
            for r, name in zip(reductions, partials, strict=True)
        }
        first = self._finish("chunks", rows * chunks, self.blocks.block, (*inputs, *partials))
        first = replace(first, name=f"{self.name}_chunks", scratch=made)
        self._program("row")
        self._decode("row", self.nest.rows)
        values = self._values()
        size = _power_of_two(chunks)
        self._add(f"at = tl.arange(0, {size})", f"inside = at < {chunks}")
        for r, name in zip(reductions, partials, strict=True):
            self._add(f"all{r.number} = tl.load({name} + row * {chunks} + at, inside, {identity(r)})")
            self._add(f"red{r.number} = {_reduced(r, f'all{r.number}')}")
            values.define_reduction(r.number, f"red{r.number}", vector=False)
        self._row_in_blocks(values, self.nest.passes[-1])
        return [first, self._finish("split", rows, size, (*inputs, *partials, *outputs))]

    def _chunk(self, values: Values, segments: Sequence[Pass], chunks: int) -> None:
        """One program's part of a pass: every `chunks`-th block."""
        block = self.blocks.block
        for r, _ in segments[0].reductions:
            self._add(f"sum{r.number} = tl.full(({block},), {identity(r)}, {_type(r)})")
        for p in segments:
            space = prod(v.extent for v in p.loops)
            self._settle(values, p)
            step = chunks * block
            with self._indented(f"for start in range(chunk * {block}, {_bound(space, step)}, {step}):"):
                self._add(f"at = start + {self._wide(f'tl.arange(0, {block})')}", f"inside = at < {space}")
                self._decode("at", p.loops)
                scope = values.over(p.loops, "inside")
                for r, value in p.reductions:
                    self._accumulate(r, _masked(r, scope.known(value), "inside"))
        for r, _ in segments[0].reductions:
            self._add(f"red{r.number} = {_reduced(r, f'sum{r.number}')}")
            values.define_reduction(r.number, f"red{r.number}", vector=False)

    # ---------------------------------------------------------------- pieces

    @staticmethod
    def _settle(values: Values, p: Pass) -> None:
        """Hoist loop-invariant values out of a loop."""
        inner = set(p.loops)
        changing: dict[int, bool] = {}
        for node in walk(p.roots):
            own = any(v in inner for i in indices(node) for v in i.variables)
            changing[node.number] = own or any(changing[a.number] for a in node.args)
            if not changing[node.number] and node.op != "const":
                values.known(node)

    def _accumulate(self, r: Reduce, value: str) -> None:
        total = f"sum{r.number}"
        if r.op in ("sum", "prod"):
            self._add(f"{total} = {total} {'+' if r.op == 'sum' else '*'} {value}")
        else:
            self._add(f"{total} = {r.op}imum({total}, {value})")

    def _combine(self, values: Values, partial: dict[Reduce, list[str]]) -> None:
        """Combine a reduction's results of its segments."""
        for r, names in partial.items():
            text = names[0]
            for name in names[1:]:
                sign = {"sum": "+", "prod": "*"}.get(r.op)
                text = f"{text} {sign} {name}" if sign else f"{r.op}imum({text}, {name})"
            self._add(f"red{r.number} = {text}")
            values.define_reduction(r.number, f"red{r.number}", vector=False)

    def _store(self, values: Values, p: Pass, inside: str) -> None:
        for store in p.stores:
            value = values.known(store.value)
            at = values.address(self.outputs[store.output].name, store.index, bool(inside))
            self._add(f"tl.store({at}, {value.text}{f', mask={inside}' if inside else ''})")


def _bound(space: int, step: int) -> str:
    """A loop's end, of 64 bits if its counter needs them: the last count is up to a step beyond the end."""
    return f"tl.cast({space}, tl.int64)" if space + step > _INT32 else str(space)


def _type(r: Reduce) -> str:
    return {"f": "tl.float32", "d": "tl.float64", "i": "tl.int64"}[r.kind]


def _masked(r: Reduce, value: Value, inside: str) -> str:
    return f"tl.where({inside}, {value.text}, {identity(r)})"


def _reduced(r: Reduce, vector: str) -> str:
    """A vector's reduction; extremes propagate NaN, as in torch."""
    if r.op == "sum":
        return f"tl.sum({vector}, axis=0)"
    if r.op == "prod":
        return f"tl.reduce({vector}, 0, product)"
    return f"{r.op}_of({vector})" if r.kind in "fd" else f"tl.{r.op}({vector}, axis=0)"


def _power_of_two(size: int) -> int:
    return 1 << max(size - 1, 0).bit_length()
