"""The forms that a kernel takes: flat, by rows, by columns, and split in two stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import prod

from .emit import (
    CTYPES,
    POINTERS,
    Values,
    Writer,
    combine,
    identity,
    staged_values,
    store_text,
    write_values,
)
from .expr import Expr, walk
from .index import Index, Var
from .lazy import Buffer
from .nest import Nest, Pass, Reduce, Store
from .options import Options

_STACK_BYTES = 1 << 19
"""Scratch that a thread may take from its stack."""


@dataclass
class KernelWriter:
    """Writes the body of one kernel."""

    nest: Nest
    buffers: dict[str, Buffer]
    outputs: Sequence[Buffer]
    renamed: dict[str, str]
    """Output buffer to the dead buffer whose memory it takes."""
    options: Options
    writer: Writer = field(default_factory=Writer)

    @property
    def form(self) -> str:
        """`flat`, `rows`, `columns` or `split`."""
        if not self.nest.reductions:
            return "flat"
        if self.nest.split:
            return "split"
        return "columns" if self.nest.lane is not None else "rows"

    def write(self) -> str:
        """The body's text."""
        if self.options.huge_pages:
            for output in self.outputs:
                if output.name not in self.renamed:
                    size = prod(output.shape) * output.dtype.itemsize
                    self.writer.add(f"af::huge_pages({output.name}, {size});")
        getattr(self, f"_{self.form}")()
        return self.writer.text

    # ---------------------------------------------------------------- shared pieces

    def _values(self, reference: dict[int, str], reference_level: int = 0) -> Values:
        return Values(self.buffers, lambda n: reference[n], reference_level, renamed=self.renamed)

    def _parallel(self, count: int, *, collapse: int = 0) -> None:
        if count > 1 and self.nest.elements >= self.options.grain:
            clause = f" collapse({collapse})" if collapse else ""
            self.writer.add(f"#pragma omp for{clause} schedule({self.options.schedule})")

    def _region(self, count: int) -> str:
        """Head of the block that all threads run."""
        if count > 1 and self.nest.elements >= self.options.grain:
            self.writer.add("#pragma omp parallel")
        return ""

    def _decode(self, linear: str, variables: Sequence[Var]) -> None:
        """Row variables from a linear number."""
        inner = prod(v.extent for v in variables)
        for i, var in enumerate(variables):
            inner //= var.extent
            text = linear if inner == 1 else f"{linear} / {inner}"
            if i > 0:
                text = f"({text}) % {var.extent}"
            self.writer.add(f"const int64_t {var.name} = {text};")

    def _streams(self, output: Buffer, run: int) -> bool:
        """Whether an output is written past the cache: it will not be read before it is evicted."""
        if self.options.nontemporal == "off" or run < 64:
            return False
        size = prod(output.shape) * output.dtype.itemsize
        return self.options.nontemporal == "on" or size * 2 > self.options.cache_bytes

    def _streamed(self, p: Pass) -> dict[int, Buffer]:
        """Stores of a pass that are streamed, by position."""
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
        """The innermost loop of an output pass over [low, high), through tiles where it streams."""
        w, inner = self.writer, p.loops[-1]
        streamed = self._streamed(p)
        self._prefetch(values, p, low, high)
        scope = values.fork()
        w.add("#pragma omp simd")
        with w.block(_loop(inner, low, high)):
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
        """Ask for what the contiguous reads of the innermost loop will come to."""
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

    # ---------------------------------------------------------------- flat

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
        extent = segments[0].loops[-1].extent
        tiles = -(-extent // self.options.tile) if len(segments) == 1 else 1
        self._region(outer_count * tiles)
        with w.block(""):
            self._declare_tiles(segments)
            self._parallel(outer_count * tiles)
            with w.block(f"for (int64_t part = 0; part < {outer_count * tiles}; ++part)"):
                if outer:
                    self._decode("part" if tiles == 1 else f"(part / {tiles})", outer)
                for p in segments:
                    self._flat_segment(p, outer, tiles)

    def _flat_segment(self, p: Pass, outer: Sequence[Var], tiles: int) -> None:
        w, inner = self.writer, p.loops[-1]
        with w.block(""):
            values = self._values({})
            levels = write_values(w, values, p.roots, (inner,))
            if tiles > 1:
                w.add(f"const int64_t low = (part % {tiles}) * {self.options.tile};")
                w.add(f"const int64_t high = std::min<int64_t>(low + {self.options.tile}, {inner.extent});")
                self._inner_stores(values, p, levels.get(1, []), "low", "high")
            elif self._streamed(p) and inner.extent > self.options.tile:
                with self._tile_loop(inner):
                    self._inner_stores(values, p, levels.get(1, []), "low", "high")
            else:
                self._inner_stores(values, p, levels.get(1, []), "0", str(inner.extent))

    @contextmanager
    def _tile_loop(self, inner: Var, low: str = "0", high: str | None = None) -> Iterator[None]:
        """Tiles of the innermost loop: `low` and `high` are the bounds inside."""
        end = high or str(inner.extent)
        with self.writer.block(f"for (int64_t low = {low}; low < {end}; low += {self.options.tile})"):
            self.writer.add(f"const int64_t high = std::min<int64_t>(low + {self.options.tile}, {end});")
            yield

    # ---------------------------------------------------------------- rows

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
        """Scratch arrays: slot to (expression, elements, kind)."""
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
            scope = values.fork() if len(segments) > 1 else values
            if p.loops:
                column = _linear(p.loops)
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
        for r in reductions:
            w.add(f"const {CTYPES[r.kind]} red{r.number} = sum{r.number};")
            reference[r.number] = f"red{r.number}"

    def _online(self, values: Values, reference: dict[int, str], peak: Pass, total: Pass) -> None:
        """Maximum and sum of exponentials together: each tile's new maximum corrects the sum so far."""
        w, inner = self.writer, peak.loops[-1]
        (m, x), (s, _) = peak.reductions[0], total.reductions[0]
        kind, wide = CTYPES[m.kind], CTYPES[self._total_kind(s)]
        w.add(f"{kind} sum{m.number} = {identity(m, m.kind)};", f"{wide} sum{s.number} = 0;")
        reference[m.number] = f"sum{m.number}"
        first = values.fork()
        outer = write_values(w, first, [x], peak.loops)
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
        """The column loops of a pass; the innermost runs by tiles."""
        w = self.writer
        stack = ExitStack()
        for depth, var in enumerate(p.loops[:-1], start=1):
            low, high = ("chunk_low", "chunk_high") if var is chunked else ("0", str(var.extent))
            stack.enter_context(
                w.block(f"for (int64_t {var.name} = {low}; {var.name} < {high}; ++{var.name})")
            )
            for node in levels.get(depth, []):
                values.define(w, node)
        nodes = levels.get(len(p.loops), [])
        inner = p.loops[-1]
        low, high = ("chunk_low", "chunk_high") if inner is chunked else span
        if inner.extent > self.options.tile:
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
        w.add("#pragma omp simd " + " ".join(_clause(r) for r, _ in p.reductions))
        with w.block(_loop(inner, low, high)):
            for node in nodes:
                scope.define(w, node)
            for number, slot in keep.items():
                w.add(f"scratch{slot}[{_linear(p.loops)}] = {scope.names[number]};")
            for r, value in p.reductions:
                w.add(*_accumulate(r, scope.name(value)))
        for r, _ in p.reductions:
            if _tracks_nan(r):
                w.add(f"if (nan{r.number}) part{r.number} = af::nan{r.kind}();")
            w.add(combine(r, f"sum{r.number}", f"{CTYPES[self._total_kind(r)]}(part{r.number})"))

    # ---------------------------------------------------------------- split

    def _split(self) -> None:
        """Partial results of every row by chunks of its longest column loop, then combined."""
        w = self.writer
        rows = prod(v.extent for v in self.nest.rows)
        chunks = self.options.threads * 4
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
        with w.block(f"for (int64_t row = 0; row < {rows}; ++row)"):
            self._decode("row", self.nest.rows)
            reference: dict[int, str] = {}
            for r in reductions:
                kind = self._total_kind(r)
                w.add(f"{CTYPES[kind]} sum{r.number} = {identity(r, kind)};")
                with w.block(f"for (int64_t chunk = 0; chunk < {chunks}; ++chunk)"):
                    w.add(combine(r, f"sum{r.number}", f"partial{r.number}[row * {chunks} + chunk]"))
                w.add(f"const {CTYPES[r.kind]} red{r.number} = sum{r.number};")
                reference[r.number] = f"red{r.number}"
            self._row_pass(self._values(reference), reference, self.nest.passes[-1], {}, {})

    def _split_pass(self, p: Pass, chunks: int) -> None:
        w = self.writer
        with w.block(""):
            values = self._values({})
            levels = write_values(w, values, p.roots, p.loops)
            longest = max(p.loops, key=lambda v: v.extent)
            w.add(f"const int64_t chunk_low = chunk * {longest.extent} / {chunks};")
            w.add(f"const int64_t chunk_high = (chunk + 1) * {longest.extent} / {chunks};")
            self._row_loops(values, p, levels, {}, ("0", str(p.loops[-1].extent)), chunked=longest)

    # ---------------------------------------------------------------- columns

    def _columns(self) -> None:
        """Tiles of neighbouring rows side by side: each lane of a vector reduces its own row."""
        w, lane = self.writer, self.nest.lane
        assert lane is not None
        outer = self.nest.rows[:-1]
        outer_count = prod(v.extent for v in outer)
        width = min(self.options.lanes, lane.extent)
        if outer_count * -(-lane.extent // width) < self.options.threads:
            width = max(16, -(-lane.extent // self.options.threads))
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
                w.add(f"const int64_t lane_high = std::min<int64_t>(lane_low + {width}, {lane.extent});")
                reference: dict[int, str] = {}
                for segments in self.nest.passes:
                    self._column_pass(segments, lane, reference)

    def _lane_kind(self, reduction: Reduce) -> str:
        return self._total_kind(reduction) if reduction.space > 64 else reduction.kind

    def _column_pass(self, segments: Sequence[Pass], lane: Var, reference: dict[int, str]) -> None:
        w = self.writer
        reductions = [r for r, _ in segments[0].reductions]
        loop = f"for (int64_t {lane.name} = lane_low; {lane.name} < lane_high; ++{lane.name})"
        here = f"[{lane.name} - lane_low]"
        for r in reductions:
            kind = self._lane_kind(r)
            w.add(f"{loop} sum{r.number}{here} = {identity(r, kind)};")
        for p in segments:
            with w.block(""):
                loops = (*p.loops, lane)
                values = self._values(reference, len(loops))
                levels = write_values(w, values, p.roots, loops)
                stack = ExitStack()
                for depth, var in enumerate(p.loops, start=1):
                    stack.enter_context(
                        w.block(f"for (int64_t {var.name} = 0; {var.name} < {var.extent}; ++{var.name})")
                    )
                    for node in levels.get(depth, []):
                        values.define(w, node)
                w.add("#pragma omp simd")
                with w.block(loop):
                    scope = values.fork()
                    for node in levels.get(len(loops), []):
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


def online_pairs(nest: Nest) -> frozenset[int]:
    """Passes that find a maximum m of x, where the next one sums exp(x - m) over the same loop."""
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


def _loop(var: Var, low: str, high: str) -> str:
    return f"for (int64_t {var.name} = {low}; {var.name} < {high}; ++{var.name})"


def _linear(loops: Sequence[Var]) -> str:
    """Position of the column loops in a row of scratch."""
    text = ""
    for var in loops:
        text = var.name if not text else f"({text}) * {var.extent} + {var.name}"
    return text


def _tracks_nan(reduction: Reduce) -> bool:
    """Extremes keep NaN apart: one instruction for the extreme, another, independent one for NaN."""
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
