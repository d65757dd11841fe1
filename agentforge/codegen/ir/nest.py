"""The loop nest of one kernel: rows that run in parallel, and passes over the columns of a row.

`rows` are the positions that reductions keep, the rest are columns. Loops start as coarse as possible and are
split only if an address would otherwise need a division.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod

from agentforge.schema import CannotCode

from .expr import Access, Expr, Ref, indices, walk
from .index import ZERO, Index, Var, ravel, split_factor, unravel
from .lazy import Lazy, Pool, Position, dense_strides
from .options import Options
from .placement import (
    MAX_SPLITS,
    Frame,
    few_rows,
    memory_order,
    place,
    position_in,
    ref_variables,
    refs_in,
    shared_order,
)

_MAX_SEGMENTS = 6
_SHORT = 16
"""Elements of an innermost loop below which a layout is not worth keeping."""


@dataclass(frozen=True)
class Reduce:
    """A reduction at the nest's rows."""

    number: int
    op: str
    kind: str
    level: int
    """Reductions of a level read only results of lower levels."""
    space: int
    """Number of reduced elements; reductions and outputs with the same number share their loops."""


@dataclass(frozen=True)
class Store:
    """A write of one value at one position."""

    output: int
    """Position in the kernel's outputs."""
    index: Index
    value: Expr


@dataclass(frozen=True)
class Pass:
    """One sweep over columns: reductions to update, or outputs to store."""

    loops: tuple[Var, ...]
    """Outer loops first; empty if there is only one position."""
    reductions: tuple[tuple[Reduce, Expr], ...] = ()
    stores: tuple[Store, ...] = ()

    @property
    def roots(self) -> list[Expr]:
        """All values that the pass computes."""
        return [e for _, e in self.reductions] + [s.value for s in self.stores]


@dataclass(frozen=True)
class Nest:
    """A kernel's loops and their computations."""

    rows: tuple[Var, ...]
    passes: tuple[tuple[Pass, ...], ...]
    """Passes in order; each is cut into segments of the inner loop at the seams of a `cat`."""
    lane: Var | None = None
    """The row variable that runs innermost if the reduced dimension is not contiguous."""
    split: bool = False
    """Few long rows: partial results by chunks of the outer column loop, then combined."""
    loaded: tuple[str, ...] = ()
    """Buffers read."""
    shape: tuple[int, ...] = ()
    """Shape of the outputs."""
    elements: int = 0
    """Work: positions over all passes."""

    @property
    def reductions(self) -> list[Reduce]:
        """All reductions, each once, in order of their passes."""
        return list(dict.fromkeys(r for segments in self.passes for p in segments for r, _ in p.reductions))


@dataclass
class _Builder:
    """Places outputs and reductions on loop variables; splits loops until no division is left."""

    pool: Pool
    lazies: Sequence[Lazy]
    frame: Frame
    rows: list[int]
    spaces: dict[int, list[int]] = field(default_factory=dict)

    def row_vars(self) -> list[Var]:
        return [Var(f"r{i}", n) for i, n in enumerate(self.rows)]

    def col_vars(self, space: int) -> list[Var]:
        factors = self.spaces.setdefault(space, [space])
        number = list(self.spaces).index(space)
        return [Var(f"c{number}_{i}", n) for i, n in enumerate(factors)]

    def column(self, space: int, window: tuple[int, int] | None) -> tuple[list[Var], Index]:
        """Loop variables and linear index of a space; a window narrows the innermost loop."""
        variables = self.col_vars(space)
        values = [Index.of(v) for v in variables]
        if window is not None:
            inner = Var(f"{variables[-1].name}_{window[0]}", window[1] - window[0])
            values[-1] = Index.of(inner) + window[0]
            variables = [*variables[:-1], inner]
        return variables, ravel(values, self.spaces[space])

    def position(self, columns: Index) -> Position:
        """The outputs' position for the rows' and columns' variables."""
        row = ravel([Index.of(v) for v in self.row_vars()], self.rows)
        flat = self.frame.flat()
        row_keys = [k for k, _ in flat if k in self.frame.row_dims]
        col_keys = [k for k, _ in flat if k not in self.frame.row_dims]
        extents = dict(flat)
        values = dict(zip(row_keys, unravel(row, [extents[k] for k in row_keys]), strict=True))
        values |= dict(zip(col_keys, unravel(columns, [extents[k] for k in col_keys]), strict=True))
        return position_in(self.frame, values)

    def outputs(self, window: tuple[int, int] | None = None) -> tuple[list[Var], list[Store]]:
        space = self.output_space
        variables, columns = self.column(space, window) if space > 1 else ([], ZERO)
        position = self.position(columns)
        stores = [
            Store(k, ravel(position, lazy.shape), lazy.load(position, None))
            for k, lazy in enumerate(self.lazies)
        ]
        return variables, stores

    @property
    def output_space(self) -> int:
        return prod(f for k, f in self.frame.flat() if k not in self.frame.row_dims)

    def body(self, ref: Ref, window: tuple[int, int] | None = None) -> tuple[list[Var], Expr]:
        """Loop variables and value of a reduction's body for the rows' variables."""
        reduction = self.pool.reductions[ref.reduction]
        if reduction.count <= 1:
            return [], reduction.body(ref.index, tuple(ZERO for _ in reduction.reduced), None)
        variables, columns = self.column(reduction.count, window)
        return variables, reduction.body(ref.index, unravel(columns, reduction.reduced), None)

    def all_refs(self) -> dict[int, Ref]:
        """Every needed reduction, inner ones too, with the position at which it is read."""
        found: dict[int, Ref] = {}
        queue = refs_in(s.value for s in self.outputs()[1])
        while queue:
            ref = queue.pop()
            if ref.reduction in found:
                continue
            found[ref.reduction] = ref
            queue += refs_in([self.body(ref)[1]])
        return found

    def split_once(self) -> bool:
        """Split one loop to remove a division in an address; return False if there is none."""
        stores = self.outputs()[1]
        roots = [s.value for s in stores] + [self.body(r)[1] for r in self.all_refs().values()]
        wanted = [i for e in walk(roots) for i in indices(e)] + [s.index for s in stores]
        for index in wanted:
            found = split_factor(index)
            if found is not None and self._split(*found):
                return True
        return False

    def _split(self, var: Var, inner: int) -> bool:
        for variables, factors in [
            (self.row_vars(), self.rows),
            *((self.col_vars(s), self.spaces[s]) for s in list(self.spaces)),
        ]:
            if var in variables:
                place = variables.index(var)
                factors[place : place + 1] = [var.extent // inner, inner]
                return True
        return False

    def levels(self) -> dict[int, int]:
        """Depth of each reduction; 0 reads no other reduction."""
        refs = self.all_refs()
        depth: dict[int, int] = {}

        def of(number: int) -> int:
            if number not in depth:
                inner = refs_in([self.body(refs[number])[1]])
                depth[number] = 1 + max((of(r.reduction) for r in inner), default=-1)
            return depth[number]

        for number in refs:
            of(number)
        return depth

    def windows(self, space: int, roots: list[Expr]) -> list[tuple[int, int] | None]:
        """Segments of the innermost loop, cut where comparisons of its variable change."""
        if space <= 1:
            return [None]
        inner = self.col_vars(space)[-1]
        seams: set[int] = set()
        for node in walk(roots):
            if node.op == "at_least":
                index, bound = node.attr
                if index.terms == ((inner, 1),):
                    seams.add(bound - index.const)
        if not seams or len(seams) >= _MAX_SEGMENTS:
            return [None]
        edges = sorted({0, inner.extent} | {s for s in seams if 0 < s < inner.extent})
        return list(pairwise(edges))

    def reduce(self, number: int, level: int) -> Reduce:
        reduction = self.pool.reductions[number]
        return Reduce(number, reduction.op, reduction.kind, level, reduction.count)


def build_nest(pool: Pool, lazies: Sequence[Lazy], options: Options) -> Nest:
    """The nest that computes tensors of one shape together; `unplaced_reductions` must be empty."""
    if any(lazy.shape != lazies[0].shape for lazy in lazies):
        raise CannotCode("outputs of one kernel differ in shape")
    frame, refs = place(pool, lazies)
    names = {f"d{d}_{i}": (d, i) for (d, i), _ in frame.flat()}
    for ref in refs:
        frame.row_dims |= {names[v.name] for v in ref_variables(ref)}
    if refs and not any(frame.row_dims) and prod(pool.reductions[refs[0].reduction].kept) > 1:
        raise CannotCode("a reduction is read at a position that is not a loop variable")
    rows = prod(f for k, f in frame.flat() if k in frame.row_dims)
    builder = _Builder(pool, lazies, frame, [rows])
    for _ in range(MAX_SPLITS):
        if not builder.split_once():
            break
    return _finish(builder, options)


def build_ordered(
    pool: Pool, lazies: Sequence[Lazy], eager: Sequence[Sequence[int]], options: Options
) -> tuple[Nest, tuple[int, ...]]:
    """As `build_nest`, in the memory layout that all whole inputs have; also the outputs' strides.

    Outputs and loops are row-major if the inputs' layouts differ or if the innermost loop would be short.

    Args:
        eager: strides in eager mode of the outputs that the program returns; the layout must agree.
    """
    shape = lazies[0].shape
    dense = dense_strides(shape)
    order = shared_order(pool, lazies)
    kept = order is not None and all(memory_order(shape, strides) == order for strides in eager)
    if order is not None and kept and order != memory_order(shape, dense):
        places = [order.index(d) for d in range(len(shape))]
        sizes = tuple(shape[d] for d in order)
        nest = build_nest(pool, [_reordered(lazy, sizes, places) for lazy in lazies], options)
        if nest.passes[-1][0].loops[-1].extent >= _SHORT:
            inner = dense_strides(sizes)
            return nest, tuple(inner[place] for place in places)
    return build_nest(pool, lazies, options), dense


def _reordered(lazy: Lazy, shape: tuple[int, ...], places: Sequence[int]) -> Lazy:
    """A tensor whose dimension d is at `places[d]`."""
    return Lazy(shape, lazy.dtype, lambda at, mask: lazy.load(tuple(at[place] for place in places), mask))


def _finish(builder: _Builder, options: Options) -> Nest:
    refs = builder.all_refs()
    levels = builder.levels()
    passes: list[tuple[Pass, ...]] = []
    groups: dict[tuple[int, int], list[int]] = {}
    for number, level in sorted(levels.items(), key=lambda item: (item[1], item[0])):
        groups.setdefault((level, builder.pool.reductions[number].count), []).append(number)
    for (level, space), numbers in groups.items():
        segments: list[Pass] = []
        roots = [builder.body(refs[n])[1] for n in numbers]
        for window in builder.windows(space, roots):
            bodies = [builder.body(refs[n], window) for n in numbers]
            reduced = tuple((builder.reduce(n, level), e) for n, (_, e) in zip(numbers, bodies, strict=True))
            segments.append(Pass(tuple(bodies[0][0]), reductions=reduced))
        passes.append(tuple(segments))
    space = builder.output_space
    segments = []
    for window in builder.windows(space, [s.value for s in builder.outputs()[1]]):
        variables, stores = builder.outputs(window)
        segments.append(Pass(tuple(variables), stores=tuple(stores)))
    passes.append(tuple(segments))
    return _shape_nest(builder, tuple(passes), options)


def _shape_nest(builder: _Builder, passes: tuple[tuple[Pass, ...], ...], options: Options) -> Nest:
    """Choose what runs in parallel and what runs innermost."""
    roots = [root for segments in passes for p in segments for root in p.roots]
    loaded = tuple(dict.fromkeys(e.attr.buffer for e in walk(roots) if isinstance(e.attr, Access)))
    shape = builder.lazies[0].shape
    rows = tuple(v for v in builder.row_vars() if v.extent > 1)
    reductions = [r for segments in passes for p in segments for r, _ in p.reductions]
    total = prod(v.extent for v in rows)
    elements = sum(total * prod(v.extent for v in p.loops) for segments in passes for p in segments)
    if not reductions:
        return Nest((), passes, None, False, loaded, shape, elements)
    lane = _lane(builder, rows, passes)
    largest = max(r.space for r in reductions)
    split = (
        builder.output_space <= 1
        and len({r.level for r in reductions}) == 1
        and few_rows(total, largest, options)
    )
    return Nest(rows, passes, lane, split, loaded, shape, elements)


def _lane(builder: _Builder, rows: tuple[Var, ...], passes: tuple[tuple[Pass, ...], ...]) -> Var | None:
    """The last row variable, if memory is contiguous along it rather than along the columns."""
    if not rows:
        return None
    row = rows[-1]
    along_row = along_column = longest = 0
    for segments in passes:
        for p in segments:
            accesses = [e.attr.index for e in walk(p.roots) if isinstance(e.attr, Access)]
            along_row += sum(abs(i.coefficient(row)) == 1 for i in accesses if p.loops)
            if p.loops:
                inner = p.loops[-1]
                longest = max(longest, prod(v.extent for v in p.loops))
                along_column += sum(abs(i.coefficient(inner)) == 1 for i in accesses)
    if longest <= 32 and row.extent >= 16:
        return row if along_row >= along_column or longest <= 9 else None
    return row if along_row > along_column and row.extent >= 8 else None
