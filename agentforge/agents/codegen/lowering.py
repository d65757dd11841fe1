"""From a traced graph to a program: vendor calls and kernels over buffers, in order."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from agentforge.agents._base import CannotCode

from .expr import Expr
from .lazy import Buffer, Lazy, Pool, dense_strides, kind_of
from .nest import Nest, build_nest, unplaced_reductions
from .options import Options
from .pointwise import build_pointwise, is_pointwise, operand_kind
from .reductions import REDUCTIONS, arg_extreme, pool_windows, reduce_dims, softmax, variance
from .trace import Traced, fake_of
from .views import VIEWS

_aten = torch.ops.aten
_EXTERN = {
    "mm", "bmm", "addmm", "baddbmm", "convolution", "conv1d", "conv2d", "_scaled_dot_product_flash_attention_for_cpu",
    "dot", "mv", "addmv", "_convolution", "cumsum", "sort", "topk", "grid_sampler_2d", "scaled_dot_product_attention",
    "_scaled_dot_product_attention_math", "upsample_bilinear2d", "_adaptive_avg_pool2d", "linear",
}  # fmt: skip
"""Operators that stay with the vendor's library."""
_POOLS = {
    "avg_pool1d": ("sum", 1), "avg_pool2d": ("sum", 2), "avg_pool3d": ("sum", 3),
    "max_pool1d": ("max", 1), "max_pool2d": ("max", 2), "max_pool2d_with_indices": ("max", 2),
    "max_pool3d_with_indices": ("max", 3),
}  # fmt: skip


_DTYPE_OF_KIND = {"f": torch.float32, "d": torch.float64, "i": torch.int64, "b": torch.bool}


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
    """Python values and `TensorArg`s, lists of them too."""
    kwargs: dict[str, Any]
    results: tuple[Buffer | None, ...]
    many: bool
    """Whether the operator returns a tuple."""


@dataclass(frozen=True)
class Kernel:
    """One generated function."""

    name: str
    nest: Nest
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    inplace: dict[str, str] = field(default_factory=dict)
    """Output buffer to the dead input buffer whose memory it takes."""


@dataclass
class Program:
    """What `ModelNew.forward` does."""

    traced: Traced
    inputs: tuple[Buffer, ...]
    steps: list[VendorCall | Kernel]
    outputs: tuple[TensorArg, ...]


class Lowering:
    """Walks a graph once, building lazy tensors, and schedules what must be stored."""

    def __init__(self, traced: Traced, options: Options) -> None:
        self.traced = traced
        self.options = options
        self.pool = Pool()
        self.buffers: dict[str, Buffer] = {}
        self.steps: list[VendorCall | Kernel] = []
        self.values: dict[torch.fx.Node, Any] = {}

    def run(self) -> Program:
        """Lower the graph.

        Raises:
            CannotCode: an operator is not known here, or no kernel of its own would be left.
        """
        inputs: list[Buffer] = []
        results: Any = ()
        for node in self.traced.graph.nodes:
            if node.op == "placeholder":
                inputs.append(self._input(node))
            elif node.op == "get_attr":
                raise CannotCode("the reference holds a constant tensor")
            elif node.op == "call_function":
                self.values[node] = self._call(node)
            elif node.op == "output":
                results = node.args[0]
        flat = list(results) if isinstance(results, (list, tuple)) else [results]
        lazies = [self.values[r] if isinstance(r, torch.fx.Node) else None for r in flat]
        if any(not isinstance(v, Lazy) for v in lazies):
            raise CannotCode("the reference returns something that is no tensor")
        outputs = self._store_outputs([v for v in lazies if isinstance(v, Lazy)])
        if not any(isinstance(step, Kernel) for step in self.steps):
            raise CannotCode("nothing but vendor calls and views: there is no kernel to write")
        return Program(self.traced, tuple(inputs), self.steps, tuple(outputs))

    # ---------------------------------------------------------------- storage

    def _input(self, node: torch.fx.Node) -> Buffer:
        fake = fake_of(node)
        if 0 in fake.shape:
            raise CannotCode("an input is empty")
        name = f"in{len(self.buffers)}"
        buffer = Buffer(name, tuple(fake.shape), fake.dtype, tuple(fake.stride()), "input")
        self.buffers[name] = buffer
        if fake.dtype.is_complex or "float8" in str(fake.dtype):
            raise CannotCode(f"no arithmetic for {fake.dtype}")
        self.values[node] = self.pool.buffer_lazy(buffer)
        return buffer

    def _new_buffer(self, shape: Sequence[int], dtype: torch.dtype, source: str) -> Buffer:
        name = f"t{len(self.buffers)}"
        buffer = Buffer(name, tuple(shape), dtype, dense_strides(shape), source)
        self.buffers[name] = buffer
        return buffer

    def realise(self, lazy: Lazy) -> Buffer:
        """Store a tensor; from now on it is read from its buffer."""
        if lazy.buffer is not None:
            return lazy.buffer
        return self._kernel([lazy])[0]

    def _kernel(self, lazies: Sequence[Lazy]) -> list[Buffer]:
        self._store_unplaced(lazies)
        nest = build_nest(self.pool, lazies, self.options)
        buffers: list[Buffer] = []
        for lazy in lazies:
            buffer = self._new_buffer(lazy.shape, lazy.dtype, "kernel")
            buffers.append(buffer)
            stored = self.pool.buffer_lazy(buffer)
            lazy.load, lazy.buffer = stored.load, buffer
        self.pool.forget()
        self._add(nest, buffers)
        return buffers

    def _store_unplaced(self, lazies: Sequence[Lazy], own: int | None = None) -> None:
        """Store what stands in the way of one nest; a body that is stored changes what is left to do."""
        while unplaced := unplaced_reductions(self.pool, lazies, self.options, own):
            number, body = unplaced[0]
            if body:
                self._store_body(number)
            else:
                self._store_reduction(number)

    def _store_body(self, number: int) -> None:
        """Store what a reduction reduces."""
        reduction = self.pool.reductions[number]
        rank = len(reduction.kept)
        old = reduction.body
        whole = Lazy(
            (*reduction.kept, *reduction.reduced), _DTYPE_OF_KIND[reduction.kind],
            lambda p, mask: old(p[:rank], p[rank:], mask),
        )  # fmt: skip
        self._kernel([whole])
        reduction.body = lambda at, over, mask: whole.load((*at, *over), mask)
        self.pool.forget()

    def _store_reduction(self, number: int) -> None:
        reduction = self.pool.reductions[number]
        whole = Lazy(
            reduction.kept,
            _DTYPE_OF_KIND[reduction.kind],
            lambda p, mask: self.pool.arena.make("reduced", (), _ref(number, p), reduction.kind),
        )
        self._store_unplaced([whole], own=number)
        nest = build_nest(self.pool, [whole], self.options)
        buffer = self._new_buffer(reduction.kept, whole.dtype, "kernel")
        reduction.stored = buffer
        self.pool.forget()
        self._add(nest, [buffer])

    def _add(self, nest: Nest, outputs: Sequence[Buffer]) -> None:
        inputs = tuple(self.buffers[name] for name in nest.loaded if self.buffers[name] not in outputs)
        name = f"kernel{sum(isinstance(s, Kernel) for s in self.steps)}"
        self.steps.append(Kernel(name, nest, inputs, tuple(outputs)))

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
                buffer = self._kernel([copied])[0]
            results.append(TensorArg(buffer, buffer.shape, buffer.strides, 0))
        return results

    # ---------------------------------------------------------------- operators

    def _call(self, node: torch.fx.Node) -> Any:
        target: Any = node.target
        name = target.__name__.split(".")[0]
        if name == "getitem":
            source: Any = self.values[node.args[0]]  # type: ignore[index]
            value = source[node.args[1]]
            if value is None:
                raise CannotCode(f"result {node.args[1]} of {node.args[0]} is not computed here")
            return value
        args = [self._argument(a) for a in node.args]
        kwargs = {k: self._argument(v) for k, v in node.kwargs.items()}
        if name in _EXTERN:
            return self._vendor(node, name, args, kwargs)
        if name in VIEWS:
            fake = fake_of(node)
            kind_of(fake.dtype)
            return VIEWS[name](self.pool, tuple(fake.shape), args)
        if name in REDUCTIONS:
            return REDUCTIONS[name](self.pool, self._flat(args), kwargs, fake_of(node).dtype)
        composite = getattr(self, f"_op_{name}", None)
        if composite is not None:
            return composite(node, args, kwargs)
        if name in _POOLS:
            return self._pooling(node, name, args)
        if is_pointwise(name):
            return self._pointwise(node, name, args, kwargs)
        raise CannotCode(f"no lowering for {target}")

    def _flat(self, args: list[Any]) -> list[Any]:
        """Store what a reduction could only nest: another reduction that depends on the reduced position."""
        return args

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
            return self._clamp(fake, args[0], low, high)
        originals = [a.meta["val"] if isinstance(a, torch.fx.Node) else a for a in node.args]
        kind = operand_kind(originals, fake.dtype, name)
        tensors = [a for a in args if isinstance(a, Lazy)]
        if name in ("isnan", "isinf"):
            kind = tensors[0].kind
        arena = self.pool.arena

        def build(values: list[Expr]) -> Expr:
            given = iter(values)
            operands: list[Expr] = []
            for i, a in enumerate(args):
                if isinstance(a, Lazy):
                    value = next(given)
                    operands.append(value if name == "where" and i == 0 else arena.cast(value, kind))
                elif isinstance(a, (int, float, bool)):
                    operands.append(arena.const(a, kind))
            return build_pointwise(arena, name, operands, kind, extra)

        return self.pool.pointwise(fake.shape, fake.dtype, tensors, build)

    def _clamp(self, fake: torch.Tensor, source: Lazy, low: Any, high: Any) -> Lazy:
        arena = self.pool.arena
        tensors = [t for t in (source, low, high) if isinstance(t, Lazy)]
        kind = kind_of(fake.dtype)

        def build(values: list[Expr]) -> Expr:
            given = iter(values[1:])
            bounds: dict[str, Any] = {}
            for key, bound in (("low", low), ("high", high)):
                if isinstance(bound, Lazy):
                    bounds[key] = next(given)
                elif bound is not None:
                    bounds[key] = arena.const(bound, kind)
            return build_pointwise(arena, "clamp", [arena.cast(values[0], kind)], kind, bounds)

        return self.pool.pointwise(fake.shape, fake.dtype, tensors, build)

    def _pooling(self, node: torch.fx.Node, name: str, args: list[Any]) -> Any:
        op, spatial = _POOLS[name]
        values = node.meta["val"]
        shape = tuple((values[0] if isinstance(values, (tuple, list)) else values).shape)
        result = pool_windows(self.pool, args[0], shape, args, op, spatial)
        return (result, None) if isinstance(values, (tuple, list)) else result

    def _op_split_with_sizes(
        self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]
    ) -> list[Lazy]:
        source, sizes, *rest = args
        dim = (rest[0] if rest else 0) % len(source.shape)
        parts: list[Lazy] = []
        start = 0
        for size in sizes:
            shape = tuple(size if d == dim else s for d, s in enumerate(source.shape))
            parts.append(VIEWS["slice"](self.pool, shape, [source, dim, start, start + size]))
            start += size
        return parts

    def _op_hardtanh(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        low, high = [*args[1:], -1.0, 1.0][:2] if len(args) != 2 else (args[1], 1.0)
        return self._clamp(fake_of(node), args[0], low, high)

    def _op_clamp_min(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return self._clamp(fake_of(node), args[0], args[1], None)

    def _op_clamp_max(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return self._clamp(fake_of(node), args[0], None, args[1])

    def _op_full(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return self._constant(fake_of(node), args[1])

    def _op_full_like(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return self._constant(fake_of(node), args[1])

    def _op_scalar_tensor(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return self._constant(fake_of(node), args[0])

    def _constant(self, fake: torch.Tensor, value: Any) -> Lazy:
        if isinstance(value, Lazy):
            raise CannotCode("a constant that depends on data")
        constant = self.pool.arena.const(value, kind_of(fake.dtype))
        return Lazy(tuple(fake.shape), fake.dtype, lambda position, mask: constant)

    def _op_arange(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        fake = fake_of(node)
        start, step = (args[0], args[2] if len(args) > 2 else 1) if len(args) > 1 else (0, 1)
        arena = self.pool.arena
        kind = kind_of(fake.dtype)
        if not all(isinstance(v, int) for v in (start, step)):
            raise CannotCode("arange of fractions")
        return Lazy(
            tuple(fake.shape), fake.dtype, lambda p, mask: arena.cast(arena.index(p[0] * step + start), kind)
        )

    def _op_var(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return self._variance(args, kwargs)[0]

    def _op_var_mean(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> tuple[Lazy, Lazy]:
        return self._variance(args, kwargs)

    def _variance(self, args: list[Any], kwargs: dict[str, Any]) -> tuple[Lazy, Lazy]:
        source: Lazy = args[0]
        rank = len(source.shape)
        dims = [d % rank for d in (args[1] if len(args) > 1 and args[1] else range(rank))]
        correction = kwargs.get("correction", 1)
        return variance(
            self.pool,
            source,
            dims,
            bool(kwargs.get("keepdim", False)),
            1 if correction is None else correction,
        )

    def _op__softmax(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return softmax(
            self.pool, args[0], args[1] % max(len(args[0].shape), 1), fake_of(node).dtype, log=False
        )

    def _op__log_softmax(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return softmax(
            self.pool, args[0], args[1] % max(len(args[0].shape), 1), fake_of(node).dtype, log=True
        )

    def _op_argmax(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return self._arg("max", args)[1]

    def _op_argmin(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        return self._arg("min", args)[1]

    def _arg(self, op: str, args: list[Any]) -> tuple[Lazy, Lazy]:
        dim = args[1] if len(args) > 1 else None
        return arg_extreme(self.pool, op, args[0], dim, bool(args[2]) if len(args) > 2 else False)

    def _op_max(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Any:
        return self._extreme("max", args)

    def _op_min(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Any:
        return self._extreme("min", args)

    def _extreme(self, op: str, args: list[Any]) -> Any:
        if len(args) > 1:
            return self._arg(op, args)
        source: Lazy = args[0]
        return reduce_dims(self.pool, op, source, range(len(source.shape)), False, source.dtype)

    # ---------------------------------------------------------------- norms

    def _affine(self, normed: Lazy, weight: Lazy | None, bias: Lazy | None) -> Lazy:
        for name, operand in (("mul", weight), ("add", bias)):
            if operand is not None:
                normed = self._apply(name, [normed, operand], normed.shape, normed.dtype)
        return normed

    def _apply(
        self, name: str, operands: list[Lazy], shape: Sequence[int], dtype: torch.dtype, **extra: Any
    ) -> Lazy:
        kind = kind_of(dtype)
        arena = self.pool.arena
        return self.pool.pointwise(
            shape, dtype, operands,
            lambda v: build_pointwise(arena, name, [arena.cast(x, kind) for x in v], kind, extra),
        )  # fmt: skip

    def _standardise(self, source: Lazy, dims: list[int], epsilon: float) -> tuple[Lazy, Lazy, Lazy]:
        spread, average = variance(self.pool, source, dims, True, 0)
        arena = self.pool.arena

        def inverse(v: list[Expr]) -> Expr:
            shifted = build_pointwise(arena, "add", [v[0], arena.const(epsilon, v[0].kind)], v[0].kind, {})
            return build_pointwise(arena, "rsqrt", [shifted], v[0].kind, {})

        rstd = self.pool.pointwise(spread.shape, spread.dtype, [spread], inverse)
        centred = self._apply("sub", [source, average], source.shape, source.dtype)
        return self._apply("mul", [centred, rstd], source.shape, source.dtype), average, rstd

    def _op_native_layer_norm(
        self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        source, normalised, weight, bias, epsilon = args
        dims = list(range(len(source.shape) - len(normalised), len(source.shape)))
        normed, average, rstd = self._standardise(source, dims, epsilon)
        return self._affine(normed, weight, bias), average, rstd

    def _op_native_group_norm(
        self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        source, weight, bias, batch, channels, _, groups, epsilon = args
        grouped = VIEWS["reshape"](
            self.pool, (batch, groups, source.numel // max(batch * groups, 1)), [source]
        )
        normed, average, rstd = self._standardise(grouped, [2], epsilon)
        shaped = VIEWS["reshape"](self.pool, source.shape, [normed])
        return self._affine(shaped, *self._per_channel(source, weight, bias)), average, rstd

    def _per_channel(self, source: Lazy, *vectors: Lazy | None) -> list[Lazy | None]:
        shape = (1, -1, *([1] * (len(source.shape) - 2)))
        return [
            None
            if v is None
            else VIEWS["reshape"](self.pool, tuple(v.shape[0] if s < 0 else s for s in shape), [v])
            for v in vectors
        ]

    def _op_native_batch_norm(
        self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        source, weight, bias, average, spread, training, _, epsilon = args
        if training:
            raise CannotCode("batch norm in training mode")
        return self._batch_norm(source, weight, bias, average, spread, epsilon)

    def _op__native_batch_norm_legit_no_training(
        self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        source, weight, bias, average, spread, _, epsilon = args
        return self._batch_norm(source, weight, bias, average, spread, epsilon)

    def _batch_norm(
        self,
        source: Lazy,
        weight: Lazy | None,
        bias: Lazy | None,
        average: Lazy,
        spread: Lazy,
        epsilon: float,
    ) -> tuple[Any, ...]:
        arena = self.pool.arena

        def inverse(v: list[Expr]) -> Expr:
            shifted = build_pointwise(arena, "add", [v[0], arena.const(epsilon, v[0].kind)], v[0].kind, {})
            return build_pointwise(arena, "rsqrt", [shifted], v[0].kind, {})

        rstd = self.pool.pointwise(spread.shape, spread.dtype, [spread], inverse)
        means, factors = self._per_channel(source, average, rstd)
        assert means is not None and factors is not None
        centred = self._apply("sub", [source, means], source.shape, source.dtype)
        normed = self._apply("mul", [centred, factors], source.shape, source.dtype)
        return self._affine(normed, *self._per_channel(source, weight, bias)), None, None

    # ---------------------------------------------------------------- vendor calls

    def _op_addmm(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Lazy:
        raise AssertionError("unreachable: addmm is a vendor call")

    def _vendor(self, node: torch.fx.Node, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        target: Any = node.target
        fakes = node.meta["val"]
        if (
            name == "addmm"
            and kwargs.get("beta", 1) == 1 == kwargs.get("alpha", 1)
            and self.options.fuse_bias
        ):
            product = self._vendor_call("aten.mm.default", args[1:], {}, fakes)
            return self._apply("add", [product, args[0]], product.shape, product.dtype)
        return self._vendor_call(str(target), args, kwargs, fakes)

    def _vendor_call(self, operator: str, args: list[Any], kwargs: dict[str, Any], fakes: Any) -> Any:
        passed = tuple(self._vendor_argument(a) for a in args)
        named = {k: self._vendor_argument(v) for k, v in kwargs.items()}
        many = isinstance(fakes, (tuple, list))
        results: list[Buffer | None] = []
        for fake in fakes if many else [fakes]:
            if not isinstance(fake, torch.Tensor):
                results.append(None)
                continue
            buffer = self._new_buffer(fake.shape, fake.dtype, "extern")
            buffer.strides = tuple(fake.stride())
            results.append(buffer)
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
        """A tensor that is a strided view of a buffer, as such; None where it is computed."""
        from .nest import strided_view

        found = strided_view(self.pool, lazy)
        if found is None:
            return None
        name, strides, offset = found
        return TensorArg(self.buffers[name], lazy.shape, strides, offset)


def _ref(number: int, position: Any) -> Any:
    from .expr import Ref

    return Ref(number, position)


def lower(traced: Traced, options: Options) -> Program:
    """Lower a traced reference; see `Lowering.run`."""
    return Lowering(traced, options).run()


_ = (Callable, math)
