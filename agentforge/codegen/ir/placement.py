"""Place a reduction's rows among its readers' dimensions, and find what must be stored first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod

from .expr import Access, Expr, Ref, walk
from .index import Index, Var, ravel, split_factor, walk_atoms
from .lazy import Lazy, Pool, Position, dense_strides
from .options import Options

MAX_SPLITS = 24
"""Maximum number of loop splits; after that, divisions stay in the addresses."""


@dataclass
class Frame:
    """Loop extents of a nest under construction."""

    dims: list[list[int]]
    """Factors of each dimension of the outputs' shape."""
    row_dims: set[tuple[int, int]] = field(default_factory=set)
    """Factors (dimension, position) that are rows."""

    def flat(self) -> list[tuple[tuple[int, int], int]]:
        return [((d, i), f) for d, factors in enumerate(self.dims) for i, f in enumerate(factors)]


def refs_in(roots: Iterable[Expr]) -> list[Ref]:
    """Positions at which the roots read reductions, not counting those in the reductions' bodies."""
    return [e.attr for e in walk(list(roots)) if e.op == "reduced"]


def _dim_vars(frame: Frame) -> dict[tuple[int, int], Var]:
    return {key: Var(f"d{key[0]}_{key[1]}", extent) for key, extent in frame.flat()}


def position_in(frame: Frame, values: dict[tuple[int, int], Index]) -> Position:
    """A position of the shape from the values of its factors."""
    return tuple(
        ravel([values[(d, i)] for i in range(len(factors))], factors) for d, factors in enumerate(frame.dims)
    )


def place(pool: Pool, lazies: Sequence[Lazy]) -> tuple[Frame, list[Ref]]:
    """Split the output's dimensions until every reduction is read at plain variables."""
    frame = Frame([[size] for size in lazies[0].shape])
    for _ in range(MAX_SPLITS):
        variables = _dim_vars(frame)
        position = position_in(frame, {k: Index.of(v) for k, v in variables.items()})
        refs = refs_in(lazy.load(position, None) for lazy in lazies)
        found = next((s for r in refs for i in r.index if (s := split_factor(i))), None)
        if found is None:
            return frame, refs
        d, i = next(k for k, v in variables.items() if v == found[0])
        extent = frame.dims[d][i]
        frame.dims[d][i : i + 1] = [extent // found[1], found[1]]
    return frame, refs


def _in_row(pool: Pool, ref: Ref, rows: frozenset[Var]) -> bool:
    """True if each row reads one result of its own: at plain variables, and never outside of the results."""
    plain = all(isinstance(a, Var) for i in ref.index for a in walk_atoms(i))
    bounds = [i.bounds for i in ref.index]
    kept = pool.reductions[ref.reduction].kept
    inside = all(low >= 0 and high < n for (low, high), n in zip(bounds, kept, strict=True))
    return plain and inside and ref_variables(ref) == rows


def ref_variables(ref: Ref) -> frozenset[Var]:
    """Loop variables that a result's position depends on."""
    return frozenset(v for i in ref.index for v in i.variables)


def unplaced_reductions(
    pool: Pool, lazies: Sequence[Lazy], options: Options, own: int | None = None
) -> list[tuple[int, bool]]:
    """Reductions, by number, that must be stored before one nest can compute `lazies`; empty if none.

    True means that the body must be stored first, because it reads another reduction at the reduced
    positions.

    Args:
        own: the reduction that `lazies` computes.
    """
    _, refs = place(pool, lazies)
    if not refs:
        return []
    rows = max((ref_variables(r) for r in refs), key=lambda vs: prod(v.extent for v in vs))
    by_number: dict[int, set[Ref]] = {}
    for ref in refs:
        by_number.setdefault(ref.reduction, set()).add(ref)
    read = {ref.reduction: ref for ref in refs}
    bad: list[tuple[int, bool]] = []
    for number, places in by_number.items():
        reduction = pool.reductions[number]
        fits = len(places) == 1 and all(_in_row(pool, r, rows) for r in places)
        fits = fits and prod(reduction.kept) == prod(v.extent for v in rows)
        alone = len(lazies) == 1 and prod(lazies[0].shape) == prod(reduction.kept) and own == number
        if not fits or (not alone and few_rows(prod(reduction.kept), reduction.count, options)):
            bad.append((number, False))
            continue
        bad += [n for n in _nested(pool, read[number], rows, read, options, own) if n not in bad]
    return [n for n in bad if n != (own, False)]


def few_rows(rows: int, count: int, options: Options) -> bool:
    """True if a reduction has too few rows to use all threads, and enough work to matter."""
    if options.split == "off" or count < 2:
        return False
    if options.split == "on":
        return rows < 64 * options.threads and count >= 4096
    return rows < options.threads and rows * count > 2 * options.grain


def _nested(
    pool: Pool, outer: Ref, rows: frozenset[Var], read: dict[int, Ref], options: Options, own: int | None
) -> list[tuple[int, bool]]:
    """Reductions inside a reduction's body that cannot be computed in the same row.

    Args:
        outer: the reduction, and the position at which it is read.
        rows: variables of the row.
        read: the position at which each reduction is read; those found here are added.
    """
    number = outer.reduction
    reduction = pool.reductions[number]
    over = [Var(f"o{i}", n) for i, n in enumerate(reduction.reduced)]
    refs = refs_in([reduction.body(outer.index, tuple(Index.of(v) for v in over), None)])
    splits = own == number and few_rows(prod(reduction.kept), reduction.count, options)
    bad: list[tuple[int, bool]] = []
    for ref in refs:
        covers = prod(pool.reductions[ref.reduction].kept) == prod(reduction.kept)
        if ref_variables(ref) & set(over):
            return [(number, True)]
        new = ref.reduction not in read
        if splits or not covers or not _in_row(pool, ref, rows) or read.setdefault(ref.reduction, ref) != ref:
            bad.append((ref.reduction, False))
        elif new:
            bad += _nested(pool, ref, rows, read, options, own)
    return bad


def strided_view(pool: Pool, lazy: Lazy) -> tuple[str, tuple[int, ...], int] | None:
    """Buffer, strides and offset of a tensor that is only a strided window of a buffer, else None."""
    variables = [Var(f"d{i}", size) for i, size in enumerate(lazy.shape)]
    value = lazy.load(tuple(Index.of(v) for v in variables), None)
    if value.op != "load" or not isinstance(value.attr, Access) or value.args:
        return None
    index = value.attr.index
    if any(not isinstance(atom, Var) for atom, _ in index.terms):
        return None
    dense = dense_strides(lazy.shape)
    strides = tuple(
        index.coefficient(v) if v.extent > 1 else stride for v, stride in zip(variables, dense, strict=True)
    )
    return value.attr.buffer, strides, index.const


def memory_order(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Dimensions from the outermost to the innermost in memory; those of size 1 come first."""
    return tuple(sorted(range(len(shape)), key=lambda d: (shape[d] > 1, -strides[d])))


def shared_order(pool: Pool, lazies: Sequence[Lazy]) -> tuple[int, ...] | None:
    """The order of dimensions in memory of all tensors that `lazies`, of one shape, read whole.

    None if they differ, or if there is a reduction or an address that is more than strides.
    """
    shape = lazies[0].shape
    variables = [Var(f"d{i}", size) for i, size in enumerate(shape)]
    position = tuple(map(Index.of, variables))
    found: set[tuple[int, ...]] = set()
    for node in walk(lazy.load(position, None) for lazy in lazies):
        if node.op == "reduced":
            return None
        if isinstance(node.attr, Access):
            index = node.attr.index
            strides = [index.coefficient(v) for v in variables]
            if min(strides, default=0) < 0 or not all(isinstance(atom, Var) for atom, _ in index.terms):
                return None
            if all(s or size == 1 for s, size in zip(strides, shape, strict=True)):
                found.add(memory_order(shape, strides))
    return found.pop() if len(found) == 1 else None
