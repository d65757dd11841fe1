"""Lower a traced graph to a program: vendor calls and kernels over buffers, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from agentforge.schema import CannotCode

from ..capture.trace import Traced, fake_of
from ..ir.expr import Expr, Ref
from ..ir.lazy import DTYPE_OF_KIND, Buffer, Lazy, Pool, dense_strides, kind_of
from ..ir.nest import Nest, build_nest, build_ordered
from ..ir.options import Options
from ..ir.placement import strided_view, unplaced_reductions
from .composites import POOLS
from .norms import Norms
from .pointwise import build_pointwise, is_pointwise, operand, operand_dtype
from .products import goes_on, has_one_reader, name_of, one_row_product, reads_rows
from .reductions import REDUCTIONS
from .views import VIEWS

_EXTERN = {
    "mm", "bmm", "addmm", "baddbmm", "convolution", "_convolution", "conv1d", "conv2d", "linear", "dot", "mv",
    "addmv", "cumprod", "cumsum", "logcumsumexp", "sort", "topk", "grid_sampler_2d", "upsample_bilinear2d",
    "_adaptive_avg_pool2d", "scaled_dot_product_attention", "_scaled_dot_product_attention_math",
    "_scaled_dot_product_flash_attention_for_cpu",
}  # fmt: skip
"""Operators that stay with the vendor's library."""


@dataclass(frozen=True)
class TensorArg:
    """An argument of a vendor call: a strided window of a buffer."""

    buffer: Buffer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class VendorCall:
    """`torch.ops.<operator>(...)`, whose results become buffers."""

    operator: str
    """For example `aten.mm.default`."""
    args: tuple[Any, ...]
    """Python values and `TensorArg`s, also in lists."""
    kwargs: dict[str, Any]
    results: tuple[Buffer | None, ...]
    many: bool
    """True if the operator returns a tuple."""


@dataclass(frozen=True)
class LoopKernel:
    """One generated function: a loop nest over buffers."""

    name: str
    nest: Nest
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]


@dataclass
class Program:
    """The steps of `ModelNew.forward`."""

    traced: Traced
    inputs: tuple[Buffer, ...]
    steps: list[VendorCall | LoopKernel]
    outputs: tuple[TensorArg, ...]
    own_products: int
    """Matrix products that kernels compute."""


class Lowering:
    """Walks a graph once, builds lazy tensors, and schedules what must be stored."""

    def __init__(self, traced: Traced, options: Options) -> None:
        self.traced = traced
        self.options = options
        self.pool = Pool()
        self.composites = Norms(self.pool)
        self.buffers: dict[str, Buffer] = {}
        self.steps: list[VendorCall | LoopKernel] = []
        self.values: dict[torch.fx.Node, Any] = {}
        self.returned: dict[Lazy, tuple[int, ...]] = {}
        """Strides in eager mode of what the program returns."""
        self.unstored: set[torch.fx.Node] = set()
        """Nodes whose value has a one-row product in it: a second kernel would compute it again."""
        self.own_products = 0

    def run(self) -> Program:
        """Lower the graph.

        Raises:
            CannotCode: an operator is not supported, or no kernel would remain.
        """
        inputs: list[Buffer] = []
        *nodes, output = self.traced.graph.nodes
        for node in nodes:
            if node.op == "placeholder":
                inputs.append(self._input(node))
            elif node.op == "get_attr":
                if "number" not in node.meta:
                    raise CannotCode("the reference contains a constant tensor")
                self.values[node] = self.composites.constant(node.meta["val"], node.meta["number"])
            else:
                self.values[node] = self._call(node)
            if output in node.users and isinstance(self.values[node], Lazy):
                self.returned[self.values[node]] = fake_of(node).stride()
            self._keep_product(node)
        results: Any = output.args[0]
        flat = list(results) if isinstance(results, (list, tuple)) else [results]
        lazies = [self.values[r] if isinstance(r, torch.fx.Node) else None for r in flat]
        if any(not isinstance(v, Lazy) for v in lazies):
            raise CannotCode("the reference returns something that is not a tensor")
        outputs = self._store_outputs([v for v in lazies if isinstance(v, Lazy)])
        if not any(isinstance(step, LoopKernel) for step in self.steps):
            raise CannotCode("the reference has only vendor calls and views: no kernel can replace them")
        return Program(self.traced, tuple(inputs), self.steps, tuple(outputs), self.own_products)

    # ---------------------------------------------------------------- storage

    def _input(self, node: torch.fx.Node) -> Buffer:
        fake = fake_of(node)
        if 0 in fake.shape:
            raise CannotCode("an input is empty")
        name = f"in{len(self.buffers)}"
        buffer = Buffer(name, tuple(fake.shape), fake.dtype, tuple(fake.stride()), "input")
        self.buffers[name] = buffer
        if fake.dtype.is_complex or "float8" in str(fake.dtype):
            raise CannotCode(f"arithmetic on {fake.dtype} is not supported")
        self.values[node] = self.pool.buffer_lazy(buffer)
        return buffer

    def _new_buffer(
        self, shape: Sequence[int], dtype: torch.dtype, source: str, strides: tuple[int, ...]
    ) -> Buffer:
        name = f"t{len(self.buffers)}"
        buffer = Buffer(name, tuple(shape), dtype, strides, source)
        self.buffers[name] = buffer
        return buffer

    def realise(self, lazy: Lazy) -> Buffer:
        """Store a tensor; later reads use its buffer."""
        if lazy.buffer is not None:
            return lazy.buffer
        return self._kernel([lazy])[0]

    def _kernel(self, lazies: Sequence[Lazy]) -> list[Buffer]:
        if any(lazy.numel == 0 for lazy in lazies):
            raise CannotCode("a tensor is empty")
        self._store_unplaced(lazies)
        eager = [self.returned[lazy] for lazy in lazies if lazy in self.returned]
        nest, strides = build_ordered(self.pool, lazies, eager, self.options)
        buffers: list[Buffer] = []
        for lazy in lazies:
            buffer = self._new_buffer(lazy.shape, lazy.dtype, "kernel", strides)
            buffers.append(buffer)
            stored = self.pool.buffer_lazy(buffer)
            lazy.load, lazy.buffer = stored.load, buffer
        self.pool.forget()
        self._add(nest, buffers)
        return buffers

    def _store_unplaced(self, lazies: Sequence[Lazy], own: int | None = None) -> None:
        """Store what prevents a single nest; storing a body can make others unnecessary."""
        while unplaced := unplaced_reductions(self.pool, lazies, self.options, own):
            number, body = unplaced[0]
            if body:
                self._store_body(number)
            else:
                self._store_reduction(number)

    def _store_body(self, number: int) -> None:
        """Store the values that a reduction reduces."""
        reduction = self.pool.reductions[number]
        rank = len(reduction.kept)
        old = reduction.body
        whole = Lazy(
            (*reduction.kept, *reduction.reduced), DTYPE_OF_KIND[reduction.kind],
            lambda p, mask: old(p[:rank], p[rank:], mask),
        )  # fmt: skip
        self._kernel([whole])
        reduction.body = lambda at, over, mask: whole.load((*at, *over), mask)
        self.pool.forget()

    def _store_reduction(self, number: int) -> None:
        reduction = self.pool.reductions[number]
        whole = Lazy(
            reduction.kept,
            DTYPE_OF_KIND[reduction.kind],
            lambda p, mask: self.pool.arena.make("reduced", (), Ref(number, p), reduction.kind),
        )
        self._store_unplaced([whole], own=number)
        nest = build_nest(self.pool, [whole], self.options)
        buffer = self._new_buffer(reduction.kept, whole.dtype, "kernel", dense_strides(reduction.kept))
        reduction.stored = buffer
        self.pool.forget()
        self._add(nest, [buffer])

    def _add(self, nest: Nest, outputs: Sequence[Buffer]) -> None:
        inputs = tuple(self.buffers[name] for name in nest.loaded if self.buffers[name] not in outputs)
        name = f"kernel{sum(isinstance(s, LoopKernel) for s in self.steps)}"
        self.steps.append(LoopKernel(name, nest, inputs, tuple(outputs)))

    def _store_outputs(self, lazies: list[Lazy]) -> list[TensorArg]:
        """Store the program's results; those of one shape share a kernel."""
        groups: dict[tuple[int, ...], list[Lazy]] = {}
        for lazy in lazies:
            if lazy.buffer is None and lazy not in groups.get(lazy.shape, []):
                groups.setdefault(lazy.shape, []).append(lazy)
        for group in groups.values():
            self._kernel(group)
        results: list[TensorArg] = []
        for lazy in lazies:
            buffer = self.realise(lazy)
            if buffer.source == "input":
                copied = Lazy(lazy.shape, lazy.dtype, lazy.load)
                self.returned[copied] = self.returned[lazy]
                buffer = self._kernel([copied])[0]
            results.append(TensorArg(buffer, buffer.shape, buffer.strides, 0))
        return results

    # ---------------------------------------------------------------- operators

    def _call(self, node: torch.fx.Node) -> Any:
        target: Any = node.target
        name = name_of(node)
        if name == "getitem":
            source: Any = self.values[node.args[0]]
            value = source[node.args[1]]
            if value is None:
                raise CannotCode(f"result {node.args[1]} of {node.args[0]} is not computed here")
            return value
        if not goes_on(name):
            for source in node.all_input_nodes:
                if source in self.unstored:
                    self._store_product(source)
        args = [self._argument(a) for a in node.args]
        kwargs = {k: self._argument(v) for k, v in node.kwargs.items()}
        if target is torch.ops.aten.view.dtype:
            raise CannotCode("reading a tensor's bits as another type is not supported")
        if name in _EXTERN:
            return self._vendor(node, name, args, kwargs)
        if name in VIEWS:
            fake = fake_of(node)
            kind_of(fake.dtype)
            return VIEWS[name](self.pool, tuple(fake.shape), args)
        if name in REDUCTIONS:
            return REDUCTIONS[name](self.pool, args, kwargs, fake_of(node).dtype)
        composite = getattr(self.composites, f"op_{name}", None)
        if composite is not None:
            return composite(node, args, kwargs)
        if name in POOLS:
            return self.composites.pooling(node, name, args)
        if is_pointwise(name):
            return self._pointwise(node, name, args, kwargs)
        raise CannotCode(f"{target} is not supported")

    def _argument(self, value: Any) -> Any:
        if isinstance(value, torch.fx.Node):
            return self.values[value]
        if isinstance(value, (list, tuple)):
            return [self._argument(v) for v in value]
        return value

    def _pointwise(self, node: torch.fx.Node, name: str, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        fake = fake_of(node)
        extra = dict(kwargs)
        if name == "clamp":
            bounds = [*args[1:], *([None] * (3 - len(args)))]
            low, high = (kwargs.get("min", bounds[0]), kwargs.get("max", bounds[1]))
            return self.composites.clamp(fake, args[0], low, high)
        originals = [a.meta["val"] if isinstance(a, torch.fx.Node) else a for a in node.args]
        tensors = [a for a in args if isinstance(a, Lazy)]
        dtype = operand_dtype(originals, fake.dtype, name)
        if name in ("isnan", "isinf"):
            dtype = tensors[0].dtype
        arena, kind = self.pool.arena, kind_of(dtype)

        def build(values: list[Expr]) -> Expr:
            given = iter(values)
            operands: list[Expr] = []
            for i, a in enumerate(args):
                if isinstance(a, (Lazy, int, float)):
                    value = next(given) if isinstance(a, Lazy) else arena.const(a, kind)
                    if name != "where" or i:
                        value = operand(arena, name, value, dtype, bool(getattr(a, "shape", ())))
                    operands.append(value)
            return build_pointwise(arena, name, operands, kind, extra)

        return self.pool.pointwise(fake.shape, fake.dtype, tensors, build)

    def _keep_product(self, node: torch.fx.Node) -> None:
        """Store a value with a one-row product in it, unless one kernel can compute all that reads it."""
        value = self.values[node]
        if node not in self.unstored and self.unstored.isdisjoint(node.all_input_nodes):
            return
        if not isinstance(value, Lazy) or value.buffer is not None:
            return
        self.unstored.add(node)
        if not has_one_reader(node):
            self._store_product(node)

    def _store_product(self, node: torch.fx.Node) -> None:
        self.realise(self.values[node])
        self.unstored.remove(node)

    # ---------------------------------------------------------------- vendor calls

    def _vendor(self, node: torch.fx.Node, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        target: Any = node.target
        fakes = node.meta["val"]
        if (
            name == "addmm"
            and kwargs.get("beta", 1) == 1 == kwargs.get("alpha", 1)
            and self.options.fuse_bias
        ):
            product = self._product(node, args[1], args[2], fakes)
            return self.composites.apply("add", [product, args[0]], product.shape, product.dtype)
        if name == "mm":
            return self._product(node, args[0], args[1], fakes)
        return self._vendor_call(str(target), args, kwargs, fakes)

    def _product(self, node: torch.fx.Node, row: Lazy, weight: Lazy, fake: Any) -> Lazy:
        """A matrix product: a kernel of our own if it has one row, else the library's."""
        if not self.options.weight_rows or not reads_rows(self.pool, row, weight):
            product: Lazy = self._vendor_call("aten.mm.default", [row, weight], {}, fake)
            return product
        if self._window(row) is None:
            self.realise(row)
        self.own_products += 1
        self.unstored.add(node)
        return one_row_product(self.pool, row, weight, self.options.weight_rows)

    def _vendor_call(self, operator: str, args: list[Any], kwargs: dict[str, Any], fakes: Any) -> Any:
        passed = tuple(self._vendor_argument(a) for a in args)
        named = {k: self._vendor_argument(v) for k, v in kwargs.items()}
        many = isinstance(fakes, (tuple, list))
        made = _result_of(operator, passed, named)
        results: list[Buffer | None] = []
        for fake in made if many else [made]:
            if not isinstance(fake, torch.Tensor):
                results.append(None)
                continue
            results.append(self._new_buffer(fake.shape, fake.dtype, "extern", tuple(fake.stride())))
        self.steps.append(VendorCall(operator, passed, named, tuple(results), many))
        lazies = tuple(None if b is None else self.pool.buffer_lazy(b) for b in results)
        return lazies if many else lazies[0]

    def _vendor_argument(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._vendor_argument(v) for v in value]
        if not isinstance(value, Lazy):
            return value
        window = self._window(value)
        if window is not None:
            return window
        buffer = self.realise(value)
        return TensorArg(buffer, buffer.shape, buffer.strides, 0)

    def _window(self, lazy: Lazy) -> TensorArg | None:
        """A tensor as a strided window of a buffer; None if it is computed, cast or reversed."""
        found = strided_view(self.pool, lazy)
        if found is None or min(found[1], default=0) < 0:  # torch has no negative strides
            return None
        buffer = self.buffers[found[0]]
        return TensorArg(buffer, lazy.shape, *found[1:]) if buffer.dtype == lazy.dtype else None


def _result_of(operator: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Fake results of a vendor call.

    Their strides follow from those of the arguments, which may differ from the traced ones: a computed
    argument is stored dense.
    """

    def empty(value: Any) -> Any:
        if isinstance(value, TensorArg):
            return torch.empty_strided(value.shape, value.strides, dtype=value.buffer.dtype)
        return [empty(v) for v in value] if isinstance(value, list) else value

    with FakeTensorMode(), torch.no_grad():
        function = attrgetter(operator)(torch.ops)
        return function(*map(empty, args), **{k: empty(v) for k, v in kwargs.items()})


def lower(traced: Traced, options: Options) -> Program:
    """Lower a traced reference; see `Lowering.run`."""
    return Lowering(traced, options).run()
