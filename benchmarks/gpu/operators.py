"""AutoKernel's starting operators at its sizes: our kernels against torch, torch.compile and Liger."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from agentforge.codegen.library import kernel_templates
from agentforge.referee.timing.gpu.device import Gpu
from agentforge.schema import MachineError
from gpu.compare import Mode, compare, rotations
from gpu.kernel_modules import load
from gpu.stage import compiled, set_stage

Function = Callable[..., torch.Tensor]
Keep = Callable[[dict[str, Any]], None]
"""Writes the results so far, so that an interrupted run keeps them."""
_RESERVE_S = 60.0
"""Seconds that must be left to begin an operator: compiling it can take long."""
_MOST_POINTS = 30
_MOST_ERROR = 1e-2
"""Relative error allowed in half precision."""


class Operator(NamedTuple):
    """One operator at some sizes."""

    kernels: tuple[str, ...]
    """Identifiers of the shipped kernels."""
    function: str
    """Name of their host function."""
    reference: Function
    inputs: Callable[..., tuple[torch.Tensor, ...]]
    """Arguments for a size."""
    sizes: tuple[tuple[int, ...], ...]
    """AutoKernel's `large` first, then its other informative sizes."""
    dry: tuple[int, ...]
    """Sizes for a dry run."""
    extra: dict[str, Any] = {}
    """Keyword arguments of the shipped kernels."""
    flops: Callable[..., float] | None = None
    """FLOPs for a size, for a matrix operator, which is judged by its rate."""
    liger: tuple[Any, ...] = ()
    """Function of `liger_kernel.transformers.functional`, then its arguments after the inputs."""


def rms(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x / torch.sqrt(torch.mean(x**2, dim=-1, keepdim=True) + 1e-6) * weight


def turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def rand(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float16, device="cuda")


def angles(positions: int, size: int) -> torch.Tensor:
    """Cosines or sines: the second half of a head is rotated like the first."""
    return rand(positions, size // 2).repeat(1, 2)


def rows(extra: int) -> Callable[..., tuple[torch.Tensor, ...]]:
    """A matrix, and `extra` vectors as long as its rows."""
    return lambda m, n: (rand(m, n), *(rand(n) for _ in range(extra)))


OPERATORS: dict[str, Operator] = {
    "rmsnorm": Operator(
        ("rmsnorm", "cuda-norms"), "rmsnorm", rms, rows(1), ((4096, 4096), (2048, 4096)), (3, 40),
        {"eps": 1e-6}, liger=("liger_rms_norm", 1e-6),
    ),
    "softmax": Operator(
        ("softmax", "cuda-softmax"), "softmax", partial(torch.softmax, dim=-1), rows(0),
        ((4096, 4096), (8192, 8192), (4096, 50257), (32768, 128)), (3, 40), liger=("liger_softmax",),
    ),
    "cross_entropy": Operator(
        ("cross-entropy", "cuda-cross-entropy"), "cross_entropy", F.cross_entropy,
        lambda m, n: (rand(m, n), torch.randint(0, n, (m,), device="cuda")),
        ((4096, 32000), (8192, 50257)), (3, 40), liger=("liger_cross_entropy",),
    ),
    "layernorm": Operator(
        ("layernorm", "cuda-norms"), "layernorm", lambda x, w, b: F.layer_norm(x, w.shape, w, b), rows(2),
        ((4096, 2048), (8192, 4096), (4096, 5120)), (3, 40), liger=("liger_layer_norm", 1e-5),
    ),
    "reduction": Operator(
        ("reduction", "cuda-reduction"), "reduce_rows", partial(torch.sum, dim=-1), rows(0),
        ((8192, 8192), (4096, 4096), (1024, 32768)), (3, 40),
    ),
    "rotary": Operator(
        ("rotary", "cuda-rotary"), "rotary", turned,
        lambda b, h, s, d: (rand(b, h, s, d), angles(s, d), angles(s, d)),
        ((2, 32, 1024, 128), (2, 32, 2048, 128)), (1, 2, 5, 16),
    ),
    "pointwise": Operator(
        ("pointwise",), "swiglu", lambda a, b: F.silu(a) * b, lambda m, n: (rand(m, n), rand(m, n)),
        ((4096, 4096), (8192, 8192)), (3, 40), liger=("liger_swiglu",),
    ),
    "attention": Operator(
        ("flash-attention", "cuda-attention"), "attention",
        partial(F.scaled_dot_product_attention, is_causal=True),
        lambda *size: tuple(rand(*size) for _ in range(3)),
        ((2, 32, 1024, 64), (1, 32, 2048, 128)), (1, 2, 20, 16),
        {"causal": True}, lambda b, h, s, d: 2.0 * b * h * s * s * d,
    ),
    "matmul": Operator(
        ("matmul", "cuda-matmul"), "matmul", torch.matmul, lambda m, n, k: (rand(m, k), rand(k, n)),
        ((2048, 2048, 2048), (4096, 4096, 4096)), (20, 24, 40), {}, lambda m, n, k: 2.0 * m * n * k,
    ),
    "fused_mlp": Operator(
        ("fused-mlp", "cuda-fused-mlp"), "gated_products", lambda x, g, u: F.silu(x @ g.t()) * (x @ u.t()),
        lambda m, k, n: (rand(m, k), rand(n, k) / k**0.5, rand(n, k) / k**0.5),
        ((2048, 2048, 5504), (2048, 4096, 11008)), (20, 24, 40), {}, lambda m, k, n: 4.0 * m * k * n,
    ),
}  # fmt: skip
"""Most important operators first."""


class Baselines(NamedTuple):
    """State that all operators of a run share."""

    gpu: Gpu
    l2_bytes: int
    dry: bool
    keep: Keep
    end: float
    """End of the run by the monotonic clock."""

    def left(self) -> bool:
        """True if there is time for one more operator."""
        return self.dry or time.monotonic() < self.end - _RESERVE_S

    def of(self, operator: Operator) -> tuple[str, ...]:
        """The shipped kernels of an operator; a dry run's interpreter supports no CUDA C++."""
        return tuple(k for k in operator.kernels if not (self.dry and k.startswith("cuda-")))


def moved(*tensors: torch.Tensor) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def baselines(left: float, dry: bool, keep: Keep) -> Baselines:
    """Set the stage for `left` seconds."""
    torch.manual_seed(0)
    gpu, l2_bytes = set_stage(dry)
    return Baselines(gpu, l2_bytes, dry, keep, time.monotonic() + left)


def copies(operator: Operator, size: tuple[int, ...], b: Baselines) -> list[tuple[torch.Tensor, ...]]:
    """Enough inputs that none is still in the L2 when its turn comes again."""
    first = operator.inputs(*size)
    return [first, *(operator.inputs(*size) for _ in range(rotations(moved(*first), b.l2_bytes) - 1))]


def error_of(call: Function, inputs: tuple[torch.Tensor, ...], expected: torch.Tensor) -> float:
    """Relative L2 error."""
    return float((call(*inputs).double() - expected.double()).norm() / expected.double().norm())


def ours(operator: Operator, name: str) -> Function:
    """The host function of a shipped kernel."""
    return partial(getattr(load(name), operator.function), **operator.extra)


def liger(operator: Operator) -> Function:
    """Liger's implementation, which users of Triton kernels would take instead."""
    name, *more = operator.liger
    function = getattr(import_module("liger_kernel.transformers.functional"), name)
    return lambda *inputs: function(*inputs, *more)


def parties_of(
    operator: Operator, inputs: list[tuple[torch.Tensor, ...]], b: Baselines, found: dict[str, Any]
) -> dict[str, list[Callable[[], Any]]]:
    """All implementations of an operator that are correct; `found` collects errors, failures and seconds."""
    makers: dict[str, Callable[[], Function]] = {
        "eager": lambda: operator.reference,
        "compile": lambda: compiled(operator.reference, b.dry),
        **{name: partial(ours, operator, name) for name in b.of(operator)},
    }
    if operator.liger and find_spec("liger_kernel"):
        makers["liger"] = partial(liger, operator)
    expected = operator.reference(*inputs[0])
    found |= {"bytes": moved(*inputs[0], expected), "relative_error": {}, "failed": {}, "prepared_s": {}}
    parties: dict[str, list[Callable[[], Any]]] = {}
    for name, make in makers.items():
        begin = time.monotonic()
        try:
            call = make()
            off = found["relative_error"][name] = error_of(call, inputs[0], expected)
            if off <= _MOST_ERROR:
                parties[name] = [partial(call, *given) for given in inputs]
            else:
                found["failed"][name] = f"wrong: its relative error is {off:.2g}"
        except Exception as error:
            found["failed"][name] = f"{type(error).__name__}: {error}"[:500]
        found["prepared_s"][name] = round(time.monotonic() - begin, 1)
    return parties


def one(operator: Operator, size: tuple[int, ...], b: Baselines) -> dict[str, Any]:
    """All implementations of one operator at one size, and a copy of the same bytes; failures are named."""
    inputs = copies(operator, size, b)
    found: dict[str, Any] = {}
    parties = parties_of(operator, inputs, b, found)
    moves = found["bytes"]
    source, target = (torch.empty(moves // 2, dtype=torch.uint8, device="cuda") for _ in range(2))
    parties["copy"] = [lambda: target.copy_(source)]
    for mode in Mode:
        times = compare(parties, b.gpu, mode=mode, blocks=3 if b.dry else 40 if mode is Mode.OFFLINE else 20)
        found[mode.value] = {
            name: {
                "seconds": times.median(name),
                "over_eager": times.speedup("eager", name),
                "over_compile": times.speedup("compile", name) if "compile" in parties else None,
                "share_of_copy": times.speedup("copy", name),
                "bytes_per_s": moves / times.median(name),
                "flops_per_s": operator.flops(*size) / times.median(name) if operator.flops else None,
                "hidden": times.hidden[name],
            }
            for name in parties
        }
    return found


def chosen(only: Sequence[str]) -> dict[str, Operator]:
    """The operators of these names; all if there are none."""
    return {name: operator for name, operator in OPERATORS.items() if not only or name in only}


def measure(left: float, dry: bool, keep: Keep, only: Sequence[str] = ()) -> dict[str, Any]:
    """Each operator at its first size, then at the others, as far as the time allows."""
    b = baselines(left, dry, keep)
    found: dict[str, Any] = {}
    wanted = chosen(only)
    every = [(n, s) for rank in range(4) for n, o in wanted.items() for s in o.sizes[rank : rank + 1]]
    if dry:
        every = [(name, operator.dry) for name, operator in wanted.items()]
    for name, size in every:
        label = f"{name} {'x'.join(map(str, size))}"
        if not b.left():
            found[label] = {"unreached": True}
            continue
        try:
            found[label] = one(OPERATORS[name], size, b)
        except Exception as error:
            found[label] = {"failed": {"all": f"{type(error).__name__}: {error}"[:500]}}
        if not dry:
            torch.cuda.empty_cache()
        said(label, found[label])
        b.keep({"operators": found})
    whole = all("offline" in one and not one["failed"] for one in found.values())
    return {"ok": whole, "operators": found}


def said(label: str, found: dict[str, Any]) -> None:
    """One line per implementation: microseconds, share of a copy's speed, speedup over eager and
    torch.compile."""
    for name, one in found.get("offline", {}).items():
        over = "  -  " if one["over_compile"] is None else f"{one['over_compile']:5.2f}"
        print(
            f"{label:32} {name:20} {1e6 * one['seconds']:9.1f} us {one['share_of_copy']:5.2f} of copy "
            f"{one['over_eager']:5.2f}x eager {over}x compile",
            flush=True,
        )
    for name, reason in found.get("failed", {}).items():
        print(f"{label:32} {name:20} FAILED {reason[:200]}", flush=True)


def points(identifier: str) -> list[dict[str, Any]]:
    """A kernel's tuning space, defaults first: all of it if it is small, else one change at a time."""
    space = kernel_templates()[identifier].parameters
    whole = [dict(zip(space, values, strict=True)) for values in product(*space.values())]
    if len(whole) <= _MOST_POINTS:
        return whole
    changes = [whole[0] | {name: value} for name, values in space.items() for value in values[1:]]
    return [whole[0], *changes]


def tune(left: float, dry: bool, keep: Keep, only: Sequence[str] = ()) -> dict[str, Any]:
    """All settings of the shipped kernels' tuning spaces at the first size, fastest first."""
    b = baselines(left, dry, keep)
    found: dict[str, Any] = {}
    for operator, name in ((o, name) for o in chosen(only).values() for name in b.of(o)):
        size = operator.dry if dry else operator.sizes[0]
        label = f"{operator.function} {name} {'x'.join(map(str, size))}"
        if not b.left():
            found[label] = {"unreached": True}
            continue
        try:
            found[label] = tuned(operator, name, size, b)
            best = found[label]["points"][0]
            print(f"{label:44} {best['over_default']:.3f}x default: {best['parameters']}", flush=True)
        except Exception as error:
            found[label] = {"failed": f"{type(error).__name__}: {error}"[:500]}
            print(f"{label:44} FAILED {found[label]['failed']}", flush=True)
        b.keep({"kernels": found})
    return {"ok": all("points" in one for one in found.values()), "kernels": found}


def tuned(operator: Operator, name: str, size: tuple[int, ...], b: Baselines) -> dict[str, Any]:
    """All settings of one kernel, timed in turn; failures are named."""
    module = load(name)
    inputs = copies(operator, size, b)
    expected = operator.reference(*inputs[0])
    every = points(name)[:2] if b.dry else points(name)
    failed: dict[str, str] = {}

    def call(point: dict[str, Any], *given: torch.Tensor) -> torch.Tensor:
        module.PARAMETERS.update(point)
        found: torch.Tensor = getattr(module, operator.function)(*given, **operator.extra)
        return found

    parties: dict[str, list[Callable[[], Any]]] = {}
    errors: dict[str, float] = {}
    for number, point in enumerate(every):
        try:
            errors[str(number)] = error_of(partial(call, point), inputs[0], expected)
            parties[str(number)] = [partial(call, point, *given) for given in inputs]
        except Exception as error:
            failed[str(point)] = f"{type(error).__name__}: {error}"[:200]
    if "0" not in parties:
        raise MachineError(f"the default fails: {failed[str(every[0])]}")
    times = compare(parties, b.gpu, blocks=2 if b.dry else 15)
    ranked = sorted(parties, key=times.median)
    return {
        "failed": failed,
        "points": [
            {
                "parameters": every[int(number)],
                "seconds": times.median(number),
                "over_default": times.speedup("0", number),
                "relative_error": errors[number],
            }
            for number in ranked
        ],
    }  # fmt: skip
