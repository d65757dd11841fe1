"""Kernel forms: flat, by rows, by columns, and split in two stages."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from math import prod

from ..ir.index import Var
from ..ir.nest import Pass, Reduce
from .emit import (
    CTYPES,
    combine,
    identity,
    write_values,
)
from .pieces import loop, simd
from .rows import RowKernels

_LANES = 16
"""Least number of neighbouring rows that a thread reduces together."""
_PARTIALS = 1 << 14
"""Most partial results of a reduction, which are on the stack."""


class KernelWriter(RowKernels):
    """Writes the body of one kernel."""

    @property
    def form(self) -> str:
        """`flat`, `rows`, `columns`, `split` or `split_columns`."""
        if not self.nest.reductions:
            return "flat"
        if self.nest.lane is None:
            return "split" if self.nest.split else "rows"
        return "split_columns" if self._few_lanes(self.nest.lane) else "columns"

    def _few_lanes(self, lane: Var) -> bool:
        """True to cut neighbouring rows into chunks: they are too few vectors to use all threads."""
        nest = self.nest
        rows = prod(v.extent for v in nest.rows)
        vectors = rows // lane.extent * -(-lane.extent // _LANES)
        plain = not nest.passes[-1][0].loops and len({r.level for r in nest.reductions}) == 1
        enough = self.options.split != "off" and nest.elements > 2 * self.options.grain
        few = nest.split or (plain and enough and vectors < self.options.threads)
        return few and 2 * rows <= _PARTIALS and all(p.loops for s in nest.passes[:-1] for p in s)

    def write(self) -> str:
        """Write the body and return its text."""
        if self.checks:
            self.writer.add("uint64_t wrong = 0;")
        getattr(self, f"_{self.form}")()
        if self.checks:
            self.writer.add("return int64_t(wrong);")
        return self.writer.text

    def _flat(self) -> None:
        w = self.writer
        segments = self.nest.passes[-1]
        outer = segments[0].loops[:-1] if segments[0].loops else ()
        outer_count = prod(v.extent for v in outer)
        if not segments[0].loops:
            values = self._values({})
            write_values(w, values, segments[0].roots, ())
            for store in segments[0].stores:
                self._store(values, store)
            return
        few = outer_count < self.options.threads
        groups = [(p,) for p in segments] if few else [segments]
        counts = [outer_count * self._tiles(group) for group in groups]
        self._region(max(counts))
        with w.block(""):
            self._declare_tiles(segments)
            for group, count in zip(groups, counts, strict=True):
                tiles = count // outer_count
                self._parallel(max(counts), " nowait" if len(groups) > 1 else "")
                with w.block(f"for (int64_t part = 0; part < {count}; ++part)"):
                    if outer:
                        self._decode("part" if tiles == 1 else f"(part / {tiles})", outer)
                    for p in group:
                        self._flat_segment(p, outer, tiles)

    def _tiles(self, segments: Sequence[Pass]) -> int:
        """Tiles of the innermost loop; segments that run together are not cut."""
        return -(-segments[0].loops[-1].extent // self.options.tile) if len(segments) == 1 else 1

    def _flat_segment(self, p: Pass, outer: Sequence[Var], tiles: int) -> None:
        w, inner = self.writer, p.loops[-1]
        with w.block(""):
            values = self._values({})
            levels = write_values(w, values, p.roots, (inner,))
            if tiles > 1:
                w.add(f"const int64_t low = (part % {tiles}) * {self.options.tile};")
                w.add(f"const int64_t high = af::minimum(low + {self.options.tile}, {inner.extent});")
                self._inner_stores(values, p, levels.get(1, []), "low", "high")
            elif self._streamed(p):
                with self._tile_loop(inner):
                    self._inner_stores(values, p, levels.get(1, []), "low", "high")
            else:
                self._inner_stores(values, p, levels.get(1, []), "0", str(inner.extent))

    def _columns(self) -> None:
        """Tiles of neighbouring rows: each vector lane reduces its own row."""
        w, lane = self.writer, self.nest.lane
        assert lane is not None
        outer = self.nest.rows[:-1]
        outer_count = prod(v.extent for v in outer)
        width = min(self.options.lanes, lane.extent)
        if outer_count * -(-lane.extent // width) < self.options.threads:
            width = max(_LANES, -(-lane.extent // self.options.threads))
        tiles = -(-lane.extent // width)
        count = outer_count * tiles
        self._region(count)
        with w.block(""):
            for r in self.nest.reductions:
                w.add(f"alignas(64) {CTYPES[self._lane_kind(r)]} sum{r.number}[{width}];")
            self._parallel(count)
            with w.block(f"for (int64_t part = 0; part < {count}; ++part)"):
                self._decode("part" if tiles == 1 else f"(part / {tiles})", outer)
                w.add(f"const int64_t lane_low = (part % {tiles}) * {width};")
                w.add(f"const int64_t lane_high = af::minimum(lane_low + {width}, {lane.extent});")
                reference: dict[int, str] = {}
                for segments in self.nest.passes:
                    self._column_pass(segments, lane, reference)

    def _split_columns(self) -> None:
        """Partial results of neighbouring rows by chunks of the longest column loop, then a combination."""
        w, lane = self.writer, self.nest.lane
        assert lane is not None
        outer = self.nest.rows[:-1]
        outer_count, width = prod(v.extent for v in outer), lane.extent
        chunks = max(2, min(-(-4 * self.options.threads // outer_count), _PARTIALS // (outer_count * width)))
        for r in self.nest.reductions:
            w.add(f"{CTYPES[self._total_kind(r)]} partial{r.number}[{outer_count * chunks * width}];")
        self._region(2)
        with w.block(""):
            for r in self.nest.reductions:
                w.add(f"alignas(64) {CTYPES[self._lane_kind(r)]} sum{r.number}[{width}];")
            self._parallel(2)
            with w.block(f"for (int64_t part = 0; part < {outer_count * chunks}; ++part)"):
                w.add(f"const int64_t chunk = part % {chunks};")
                self._decode(f"(part / {chunks})", outer)
                w.add(f"const int64_t lane_low = 0, lane_high = {width};")
                for segments in self.nest.passes[:-1]:
                    self._column_pass(segments, lane, {}, chunks)
                for r in self.nest.reductions:
                    at = f"[part * {width} + {lane.name}] = sum{r.number}[{lane.name}];"
                    w.add(f"{loop(lane, 'lane_low', 'lane_high')} partial{r.number}{at}")
        self._combine(chunks, f"(row / {width} * {chunks} + chunk) * {width} + row % {width}")

    def _lane_kind(self, reduction: Reduce) -> str:
        return self._total_kind(reduction) if reduction.space > 64 else reduction.kind

    def _column_pass(
        self, segments: Sequence[Pass], lane: Var, reference: dict[int, str], chunks: int = 0
    ) -> None:
        """Reduce neighbouring rows over a pass's columns, or over a chunk of them."""
        w = self.writer
        reductions = [r for r, _ in segments[0].reductions]
        along = loop(lane, "lane_low", "lane_high")
        here = f"[{lane.name} - lane_low]"
        for r in reductions:
            kind = self._lane_kind(r)
            w.add(f"{along} sum{r.number}{here} = {identity(r, kind)};")
        for p in segments:
            with w.block(""):
                loops = (*p.loops, lane)
                values = self._values(reference, len(loops))
                levels = write_values(w, values, p.roots, loops)
                chunked = self._chunk(p, chunks) if chunks else None
                stack = ExitStack()
                for depth, var in enumerate(p.loops, start=1):
                    span = ("chunk_low", "chunk_high") if var is chunked else ("0", str(var.extent))
                    stack.enter_context(w.block(loop(var, *span)))
                    for node in levels.get(depth, []):
                        values.define(w, node)
                inner = levels.get(len(loops), [])
                w.add(simd(inner))
                with w.block(along):
                    scope = values.fork()
                    for node in inner:
                        scope.define(w, node)
                    for r, value in p.reductions:
                        w.add(
                            combine(
                                r,
                                f"sum{r.number}{here}",
                                f"{CTYPES[self._lane_kind(r)]}({scope.name(value)})",
                            )
                        )
                    for store in p.stores:
                        self._store(scope, store)
                stack.close()
        for r in reductions:
            reference[r.number] = f"{CTYPES[r.kind]}(sum{r.number}{here})"
