"""Row kernels: passes over a row that stays in the cache, whole or in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from math import prod

from ..ir.expr import walk
from ..ir.index import Var
from ..ir.nest import Nest, Pass
from .emit import (
    CTYPES,
    Values,
    combine,
    identity,
    staged_values,
    write_values,
)
from .pieces import KernelParts, linear

_STACK_BYTES = 1 << 19
"""Bytes of scratch that a thread may take from its stack."""


class RowKernels(KernelParts):
    """The forms `rows` and `split`."""

    def _rows(self) -> None:
        w = self.writer
        count = prod(v.extent for v in self.nest.rows)
        staged = self._staged()
        self._region(count)
        with w.block(""):
            self._declare_tiles([p for s in self.nest.passes for p in s])
            for slot, (_, size, kind) in staged.items():
                w.add(f"alignas(64) {CTYPES[kind]} scratch{slot}[{size}];")
            self._parallel(count)
            with w.block(f"for (int64_t row = 0; row < {count}; ++row)"):
                self._decode("row", self.nest.rows)
                reference: dict[int, str] = {}
                values = self._values(reference)
                merged = online_pairs(self.nest) if self.options.online else frozenset()
                for number, segments in enumerate(self.nest.passes):
                    if number in merged:
                        self._online(values, reference, segments[0], self.nest.passes[number + 1][0])
                    if number in merged or number - 1 in merged:
                        continue
                    keep = {n: slot for slot, (n, _, _) in staged.items() if self._stage_pass[n] == number}
                    use = {n: slot for slot, (n, _, _) in staged.items() if self._stage_pass[n] < number}
                    self._row_pass(values, reference, segments, keep, use)

    def _staged(self) -> dict[int, tuple[int, int, str]]:
        """Scratch arrays by slot: expression, elements, kind."""
        online = self.options.online and bool(online_pairs(self.nest))
        self._stage_pass = staged_values(self.nest.passes, "off" if online else self.options.stage)
        found: dict[int, tuple[int, int, str]] = {}
        used = 0
        for number, pass_number in list(self._stage_pass.items()):
            p = self.nest.passes[pass_number][0]
            node = next(e for e in walk(p.roots) if e.number == number)
            size = prod(v.extent for v in p.loops)
            used += size * (8 if node.kind == "d" else 4)
            if used > _STACK_BYTES:
                used -= size * (8 if node.kind == "d" else 4)
                del self._stage_pass[number]
                continue
            found[len(found)] = (number, size, node.kind)
        return found

    def _row_pass(
        self,
        values: Values,
        reference: dict[int, str],
        segments: Sequence[Pass],
        keep: dict[int, int],
        use: dict[int, int],
    ) -> None:
        w = self.writer
        reductions = [r for r, _ in segments[0].reductions]
        for r in reductions:
            kind = self._total_kind(r)
            w.add(f"{CTYPES[kind]} sum{r.number} = {identity(r, kind)};")
        for p in segments:
            # Segments declare some values under the same names.
            with w.block("") if len(segments) > 1 else nullcontext():
                self._segment(values, p, keep, use, alone=len(segments) == 1)
        for r in reductions:
            w.add(f"const {CTYPES[r.kind]} red{r.number} = sum{r.number};")
            reference[r.number] = f"red{r.number}"

    def _segment(
        self, values: Values, p: Pass, keep: dict[int, int], use: dict[int, int], *, alone: bool
    ) -> None:
        """One part of a row's columns, or all of them if it is alone."""
        w = self.writer
        scope = values if alone else values.fork()
        if p.loops:
            column = linear(p.loops)
            scope.staged = {n: f"scratch{slot}[{column}]" for n, slot in use.items()}
        levels = write_values(w, scope, p.roots, p.loops)
        if not p.loops:
            for r, value in p.reductions:
                w.add(combine(r, f"sum{r.number}", scope.name(value)))
            for store in p.stores:
                self._store(scope, store)
        else:
            self._row_loops(scope.fork(), p, levels, keep, ("0", str(p.loops[-1].extent)))
        values.staged = {}
        for var in p.loops:
            values.levels.pop(var, None)

    def _online(self, values: Values, reference: dict[int, str], peak: Pass, total: Pass) -> None:
        """Maximum and sum of exponentials in one pass: each tile's new maximum corrects the sum so far."""
        w, inner = self.writer, peak.loops[-1]
        (m, x), (s, _) = peak.reductions[0], total.reductions[0]
        kind, wide = CTYPES[m.kind], CTYPES[self._total_kind(s)]
        w.add(f"{kind} sum{m.number} = {identity(m, m.kind)};", f"{wide} sum{s.number} = 0;")
        reference[m.number] = f"sum{m.number}"
        outer = write_values(w, values, [x], peak.loops)
        first = values.fork()
        values.levels.pop(inner)
        with self._tile_loop(inner):
            w.add(f"const {kind} before = sum{m.number};")
            self._innermost(first, peak, outer.get(1, []), {}, "low", "high")
            with w.block(f"if (sum{m.number} > before)"):
                w.add(f"sum{s.number} *= af::exp({kind}(before - sum{m.number}));")
            with w.block(f"if (sum{m.number} != {identity(m, m.kind)})"):  # all masked so far: nothing to add
                second = values.fork()
                levels = write_values(w, second, total.roots, total.loops)
                self._innermost(second, total, levels.get(1, []), {}, "low", "high")
        for r in (m, s):
            w.add(f"const {CTYPES[r.kind]} red{r.number} = sum{r.number};")
            reference[r.number] = f"red{r.number}"

    def _split(self) -> None:
        """Partial results of every row by chunks of its longest column loop, then a combination."""
        w = self.writer
        rows = prod(v.extent for v in self.nest.rows)
        chunks = max(2, -(-4 * self.options.threads // rows))
        reductions = self.nest.reductions
        for r in reductions:
            kind = CTYPES[self._total_kind(r)]
            w.add(f"{kind} partial{r.number}[{rows * chunks}];")
        self._region(2)
        with w.block(""):
            self._parallel(2)
            with w.block(f"for (int64_t part = 0; part < {rows * chunks}; ++part)"):
                w.add(f"const int64_t row = part / {chunks}, chunk = part % {chunks};", "(void)row;")
                self._decode("row", self.nest.rows)
                for segments in self.nest.passes[:-1]:
                    for r, _ in segments[0].reductions:
                        kind = self._total_kind(r)
                        w.add(f"{CTYPES[kind]} sum{r.number} = {identity(r, kind)};")
                    for p in segments:
                        self._split_pass(p, chunks)
                for r in reductions:
                    w.add(f"partial{r.number}[part] = sum{r.number};")
        self._combine(chunks, f"row * {chunks} + chunk")

    def _combine(self, chunks: int, place: str) -> None:
        """Combine the rows' partial results, which are at `place`, in a fixed order; store what follows."""
        w = self.writer
        with w.block(f"for (int64_t row = 0; row < {prod(v.extent for v in self.nest.rows)}; ++row)"):
            self._decode("row", self.nest.rows)
            reference: dict[int, str] = {}
            for r in self.nest.reductions:
                kind = self._total_kind(r)
                w.add(f"{CTYPES[kind]} sum{r.number} = {identity(r, kind)};")
                with w.block(f"for (int64_t chunk = 0; chunk < {chunks}; ++chunk)"):
                    w.add(combine(r, f"sum{r.number}", f"partial{r.number}[{place}]"))
                w.add(f"const {CTYPES[r.kind]} red{r.number} = sum{r.number};")
                reference[r.number] = f"red{r.number}"
            self._row_pass(self._values(reference), reference, self.nest.passes[-1], {}, {})

    def _split_pass(self, p: Pass, chunks: int) -> None:
        w = self.writer
        with w.block(""):
            values = self._values({})
            levels = write_values(w, values, p.roots, p.loops)
            longest = self._chunk(p, chunks)
            self._row_loops(values, p, levels, {}, ("0", str(p.loops[-1].extent)), chunked=longest)

    def _chunk(self, p: Pass, chunks: int) -> Var:
        """Write the bounds of a chunk of a pass's longest loop; return its variable."""
        longest = max(p.loops, key=lambda v: v.extent)
        self.writer.add(f"const int64_t chunk_low = chunk * {longest.extent} / {chunks};")
        self.writer.add(f"const int64_t chunk_high = (chunk + 1) * {longest.extent} / {chunks};")
        return longest


def online_pairs(nest: Nest) -> frozenset[int]:
    """Passes that compute a maximum m of x if the next pass sums exp(x - m) over the same loop."""
    found: set[int] = set()
    for number, (a, b) in enumerate(zip(nest.passes, nest.passes[1:], strict=False)):
        if len(a) != 1 or len(b) != 1 or a[0].loops != b[0].loops or len(a[0].loops) != 1:
            continue
        if len(a[0].reductions) != 1 or len(b[0].reductions) != 1:
            continue
        (peak, x), (total, value) = a[0].reductions[0], b[0].reductions[0]
        exponential = value.op == "call" and value.attr == "exp" and total.op == "sum" and peak.op == "max"
        if not exponential or value.args[0].op != "bin" or value.args[0].attr != "-":
            continue
        shifted, by = value.args[0].args
        if shifted is x and by.op == "reduced" and by.attr.reduction == peak.number:
            found.add(number)
    return frozenset(found)
