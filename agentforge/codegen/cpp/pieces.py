"""Parts common to all kernel forms: parallel regions, tiles, stores, innermost loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from ..ir.expr import Expr, walk
from ..ir.index import Index, Var
from ..ir.lazy import Buffer
from ..ir.nest import Nest, Pass, Reduce, Store
from ..ir.options import Options
from .emit import (
    CTYPES,
    POINTERS,
    Values,
    Writer,
    combine,
    identity,
    store_text,
)

_WRONG = "reduction(max: wrong)"


@dataclass
class KernelParts:
    """A kernel under construction."""

    nest: Nest
    buffers: dict[str, Buffer]
    outputs: Sequence[Buffer]
    renamed: dict[str, str]
    """Dead buffer whose memory an output takes, by output buffer."""
    options: Options
    writer: Writer = field(default_factory=Writer)

    def _values(self, reference: dict[int, str], reference_level: int = 0) -> Values:
        return Values(self.buffers, lambda n: reference[n], reference_level, renamed=self.renamed)

    def _parallel(self, count: int, clause: str = "") -> None:
        if count > 1 and self.nest.elements >= self.options.grain:
            self.writer.add(f"#pragma omp for schedule({self.options.schedule}){clause}")

    @cached_property
    def checks(self) -> bool:
        """Whether the kernel reads indices; it returns one that is outside of its dimension, else 0."""
        roots = [root for segments in self.nest.passes for p in segments for root in p.roots]
        return any(node.op == "checked" for node in walk(roots))

    def _region(self, count: int) -> None:
        """Head of the block that all threads run."""
        if count > 1 and self.nest.elements >= self.options.grain:
            self.writer.add(" ".join(["#pragma omp parallel", *([_WRONG] if self.checks else [])]))

    def _decode(self, linear: str, variables: Sequence[Var]) -> None:
        """Compute row variables from a linear number."""
        inner = prod(v.extent for v in variables)
        for i, var in enumerate(variables):
            inner //= var.extent
            text = linear if inner == 1 else f"{linear} / {inner}"
            if i > 0:
                text = f"({text}) % {var.extent}"
            self.writer.add(f"const int64_t {var.name} = {text};")

    def _streams(self, output: Buffer, run: int) -> bool:
        """True if an output bypasses the cache, because it would be evicted before it is read."""
        if self.options.nontemporal == "off" or run < 64:
            return False
        size = prod(output.shape) * output.dtype.itemsize
        return self.options.nontemporal == "on" or size * 2 > self.options.cache_bytes

    def _streamed(self, p: Pass) -> dict[int, Buffer]:
        """Non-temporal stores of a pass, by position."""
        if not p.loops:
            return {}
        inner = p.loops[-1]
        return {
            k: self.outputs[s.output]
            for k, s in enumerate(p.stores)
            if s.index.coefficient(inner) == 1
            and self._plain_in(s.index, inner)
            and self._streams(self.outputs[s.output], inner.extent)
        }

    def _pointer(self, output: Buffer) -> str:
        return self.renamed.get(output.name, output.name)

    def _declare_tiles(self, passes: Sequence[Pass]) -> None:
        size = self.options.tile
        for k in sorted({k for p in passes for k in self._streamed(p)}):
            buffer = next(self._streamed(p)[k] for p in passes if k in self._streamed(p))
            self.writer.add(f"alignas(64) {POINTERS[buffer.dtype]} tile{k}[{size}];")

    def _store(self, values: Values, store: Store) -> None:
        output = self.outputs[store.output]
        target = f"{self._pointer(output)}[{values.index(store.index)}]"
        self.writer.add(f"{target} = {store_text(output, values.name(store.value))};")

    def _inner_stores(self, values: Values, p: Pass, nodes: Sequence[Expr], low: str, high: str) -> None:
        """Write the innermost loop of an output pass over [low, high); streamed stores go through tiles."""
        w, inner = self.writer, p.loops[-1]
        streamed = self._streamed(p)
        self._prefetch(values, p, low, high)
        scope = values.fork()
        w.add(simd(nodes))
        with w.block(loop(inner, low, high)):
            for node in nodes:
                scope.define(w, node)
            for k, store in enumerate(p.stores):
                if k in streamed:
                    value = store_text(streamed[k], scope.name(store.value))
                    w.add(f"tile{k}[{inner.name} - ({low})] = {value};")
                else:
                    self._store(scope, store)
        for k, output in streamed.items():
            start = p.stores[k].index - Index.of(inner)
            base = f"{self._pointer(output)} + {values.index(start)} + {low}"
            w.add(f"af::stream({base}, tile{k}, {high} - ({low}));")

    def _prefetch(self, values: Values, p: Pass, low: str, high: str) -> None:
        """Prefetch what the contiguous reads of the innermost loop will need."""
        if not self.options.prefetch:
            return
        inner = p.loops[-1]
        accesses = {e.attr for e in values.order(p.roots) if e.op == "load" and not e.args}
        for access in sorted(accesses, key=lambda a: a.buffer):
            if access.index.coefficient(inner) == 1 and self._plain_in(access.index, inner):
                pointer = self.renamed.get(access.buffer, access.buffer)
                base = f"{pointer} + {values.index(access.index - Index.of(inner))} + {low}"
                self.writer.add(f"af::prefetch({base}, {high} - ({low}), {self.options.prefetch});")

    @staticmethod
    def _plain_in(index: Index, inner: Var) -> bool:
        return all(a == inner or inner not in Index.of(a).variables for a, _ in index.terms)

    @contextmanager
    def _tile_loop(self, inner: Var, low: str = "0", high: str | None = None) -> Iterator[None]:
        """Tiles of the innermost loop; inside, the bounds are `low` and `high`."""
        end = high or str(inner.extent)
        with self.writer.block(f"for (int64_t low = {low}; low < {end}; low += {self.options.tile})"):
            self.writer.add(f"const int64_t high = af::minimum(low + {self.options.tile}, {end});")
            yield

    def _total_kind(self, reduction: Reduce) -> str:
        wide = (
            reduction.kind == "f" and reduction.op in ("sum", "prod") and self.options.accumulate == "double"
        )
        return "d" if wide else reduction.kind

    def _row_loops(
        self,
        values: Values,
        p: Pass,
        levels: dict[int, list[Expr]],
        keep: dict[int, int],
        span: tuple[str, str],
        chunked: Var | None = None,
    ) -> None:
        """Write the column loops of a pass; the innermost runs in tiles."""
        w = self.writer
        stack = ExitStack()
        for depth, var in enumerate(p.loops[:-1], start=1):
            low, high = ("chunk_low", "chunk_high") if var is chunked else ("0", str(var.extent))
            stack.enter_context(w.block(loop(var, low, high)))
            for node in levels.get(depth, []):
                values.define(w, node)
        nodes = levels.get(len(p.loops), [])
        inner = p.loops[-1]
        low, high = ("chunk_low", "chunk_high") if inner is chunked else span
        # Streamed rows may be longer than a tile if the program is also for other sizes.
        if inner.extent > self.options.tile or self._streamed(p):
            with self._tile_loop(inner, low, high):
                self._innermost(values, p, nodes, keep, "low", "high")
        else:
            self._innermost(values, p, nodes, keep, low, high)
        stack.close()

    def _innermost(
        self, values: Values, p: Pass, nodes: Sequence[Expr], keep: dict[int, int], low: str, high: str
    ) -> None:
        if p.stores:
            self._inner_stores(values, p, nodes, low, high)
            return
        w, inner = self.writer, p.loops[-1]
        self._prefetch(values, p, low, high)
        scope = values.fork()
        for r, _ in p.reductions:
            w.add(f"{CTYPES[r.kind]} part{r.number} = {identity(r, r.kind)};")
            if _tracks_nan(r):
                w.add(f"int32_t nan{r.number} = 0;")
        w.add(simd(nodes, [_clause(r) for r, _ in p.reductions]))
        with w.block(loop(inner, low, high)):
            for node in nodes:
                scope.define(w, node)
            for number, slot in keep.items():
                w.add(f"scratch{slot}[{linear(p.loops)}] = {scope.names[number]};")
            for r, value in p.reductions:
                w.add(*_accumulate(r, scope.name(value)))
        for r, _ in p.reductions:
            if _tracks_nan(r):
                w.add(f"if (nan{r.number}) part{r.number} = af::nan{r.kind}();")
            w.add(combine(r, f"sum{r.number}", f"{CTYPES[self._total_kind(r)]}(part{r.number})"))


def loop(var: Var, low: str, high: str) -> str:
    """Head of a loop of a variable over [low, high)."""
    return f"for (int64_t {var.name} = {low}; {var.name} < {high}; ++{var.name})"


def simd(nodes: Sequence[Expr], clauses: Sequence[str] = ()) -> str:
    """Pragma of an innermost loop that computes these values."""
    wrong = [_WRONG] if any(node.op == "checked" for node in nodes) else []
    return " ".join(["#pragma omp simd", *clauses, *wrong])


def linear(loops: Sequence[Var]) -> str:
    """Linear position of the column loops in a row of scratch."""
    text = ""
    for var in loops:
        text = var.name if not text else f"({text}) * {var.extent} + {var.name}"
    return text


def _tracks_nan(reduction: Reduce) -> bool:
    """Track NaN apart from the extreme: one independent instruction for each."""
    return reduction.op in ("max", "min") and reduction.kind in "fd"


def _accumulate(reduction: Reduce, value: str) -> list[str]:
    part = f"part{reduction.number}"
    if not _tracks_nan(reduction):
        return [combine(reduction, part, value)]
    sign = ">" if reduction.op == "max" else "<"
    return [
        f"{part} = {value} {sign} {part} ? {value} : {part};",
        f"nan{reduction.number} |= {value} != {value};",
    ]


def _clause(reduction: Reduce) -> str:
    operator = {"sum": "+", "prod": "*"}.get(reduction.op)
    if operator is None:
        operator = f"af_{reduction.op}" if reduction.kind in "fd" else reduction.op
    text = f"reduction({operator}: part{reduction.number})"
    return f"{text} reduction(|: nan{reduction.number})" if _tracks_nan(reduction) else text
