"""Models whose weights all matter: simple initial values are varied during construction.

A LayerNorm begins with weight 1 and bias 0, so a kernel that ignores them would pass. `varied_construction`
adds seeded noise to running statistics and to every parameter that begins with at most two different values
or as a constant, identity, Dirac or orthogonal matrix. Noise keeps the sign of other values than zero: a
reference may take their roots or logarithms. Only weights of torch's norms and slopes of PReLU change signs.
`built` then looks at the finished model: constants that no initialiser gave, norms without a negative weight,
tables' rows for padding, and copies of other parameters or the lengths of their rows vary too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TypeVar
from unittest import mock

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.parameter import is_lazy

Change = Callable[[torch.Tensor, int], None]
"""Changes a tensor in place, by a seed."""

_NOISE = 0.1
_SHARE = 4
"""One in this many weights of a norm is negated; as many slopes of a PReLU rise above 1, and fall below 0."""
_NOT_TINY = 4
"""Elements below which two values may be chance."""
_FEW = 64
"""Elements that tell of most tensors that they are not simple."""
_CLOSE = 1e-4
"""Relative difference of two ways to compute one length."""
_NORMS = (_NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)

Built = TypeVar("Built")


def dense_state(module: nn.Module) -> dict[str, torch.Tensor]:
    """The entries of a module's `state_dict` that are plain tensors.

    Quantized modules also save packed parameters and types, and a buffer may be sparse. Those come from the
    seed alone.
    """
    found = module.state_dict().items()
    return {
        k: v
        for k, v in found
        if isinstance(v, torch.Tensor) and v.layout is torch.strided and not v.is_quantized
    }


def trained_keys(module: nn.Module) -> list[str]:
    """Entries of `dense_state` that training changes, each by itself: no two have the same memory."""
    state = dense_state(module)
    own = [
        (k, p) for k, p in module.named_parameters(remove_duplicate=False) if p.requires_grad and k in state
    ]
    owners = Counter(p.data_ptr() for _, p in own)
    return [k for k, p in own if owners[p.data_ptr()] == 1]


def _is_simple(tensor: torch.Tensor, trained: bool) -> bool:
    """Whether a tensor is constant or, if it is trained and not tiny, has two different values.

    Two values that are not trained may be a mask, whose zeros count.
    """
    if not tensor.numel() or not tensor.is_floating_point():
        return False
    flat = tensor.flatten()
    if flat[:_FEW].unique().numel() > 2:
        return False
    others = flat[flat != flat[0]]
    two = trained and flat.numel() >= _NOT_TINY
    return bool((others == others[:1]).all()) if two else not others.numel()


def _generator(tensor: torch.Tensor, seed: int) -> torch.Generator:
    # By shape and not by order: one more or fewer constant tensor must not shift what others get.
    return torch.Generator().manual_seed(seed + hash(tuple(tensor.shape)) % (1 << 32))


def _noise(tensor: torch.Tensor, seed: int) -> torch.Tensor:
    return (torch.rand(tensor.shape, generator=_generator(tensor, seed)) * 2 - 1).mul_(_NOISE).to(tensor)


def _vary(tensor: torch.Tensor, seed: int, trained: bool = True) -> None:
    """Add noise of either sign to zeros and to values above 0.1; others move away from 0.

    Zeros that are not trained become positive: they may be a variance.
    """
    noise = _noise(tensor, seed)
    with torch.no_grad():
        if not trained:
            noise = torch.where(tensor == 0, noise.abs(), noise)
        small = (tensor != 0) & (tensor.abs() <= _NOISE)
        tensor.add_(torch.where(small, noise.abs() * tensor.sign(), noise))


def _shrink(tensor: torch.Tensor, seed: int) -> None:
    """Make each element up to a fifth smaller: no longer orthogonal, and a recurrence does not grow."""
    noise = torch.rand(tensor.shape, generator=_generator(tensor, seed)).to(tensor)
    with torch.no_grad():
        tensor.mul_(1 - 2 * _NOISE * noise)


def _negate_some(weight: torch.Tensor, seed: int) -> None:
    """Negate a quarter of a norm's weights, and at least one of two."""
    count = weight.numel()
    if count > 1:
        chosen = torch.randperm(count, generator=_generator(weight, seed))[: max(1, count // _SHARE)]
        with torch.no_grad():
            weight.view(-1)[chosen.to(weight.device)] *= -1


def _spread_slopes(slopes: torch.Tensor, seed: int) -> None:
    """Some slopes above 1, for which `max(x, slope * x)` is wrong; some below 0, which do not keep order.

    A single slope is one or the other, by the seed.
    """
    count, generator = slopes.numel(), _generator(slopes, seed)
    order, some = torch.randperm(count, generator=generator).to(slopes.device), max(1, count // _SHARE)
    above, below = order[:some], order[some : 2 * some]
    if count == 1 and seed % 2:
        above, below = below, above
    with torch.no_grad():
        slopes[above] += 1
        slopes[below] *= -1


@contextmanager
def varied_construction(seed: int) -> Iterator[None]:
    """While active, simple parameters and running statistics get noise that depends on seed and shape.

    Not thread-safe: it replaces functions of torch for the duration.
    """
    signed: dict[int, tuple[torch.Tensor, Change]] = {}
    """Parameters whose signs vary, by identity: a model may initialise them again."""

    def varying_init(function: Callable[..., torch.Tensor], change: Change = _vary) -> Any:
        def init(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
            result = function(tensor, *args, **kwargs)
            if tensor.is_floating_point():
                change(tensor, seed)
                if id(tensor) in signed:
                    signed[id(tensor)][1](tensor, seed)
            return result

        return init

    def signing(cls: type[nn.Module], change: Change) -> Any:
        """`reset_parameters`, which initialises the weight, with signs that vary."""
        initialise: Callable[[Any], None] = cls.reset_parameters

        def reset_parameters(self: Any) -> None:
            weight = self.weight
            if isinstance(weight, torch.Tensor) and not is_lazy(weight):
                signed[id(weight)] = weight, change
            initialise(self)

        return mock.patch.object(cls, "reset_parameters", reset_parameters)

    reset = _NormBase.reset_running_stats

    def reset_running_stats(self: Any) -> None:
        reset(self)
        if self.track_running_stats and self.running_mean is not None:
            _vary(self.running_mean, seed)
            _vary(self.running_var, seed)

    construct = nn.Parameter.__new__

    def new_parameter(cls: type, data: Any = None, requires_grad: bool = True) -> Any:
        if isinstance(data, torch.Tensor) and type(data) is torch.Tensor and data.is_cpu:
            with suppress(RuntimeError):
                # Uninitialised memory (torch.empty, filled by init later) may look constant: no harm.
                if data.stride() and 0 not in data.stride() and _is_simple(data, requires_grad):
                    data = data.clone()
                    _vary(data, seed, requires_grad)
        return construct(cls, data, requires_grad)

    with ExitStack() as patches:
        for name in ("ones_", "zeros_", "constant_", "eye_", "dirac_"):
            patches.enter_context(mock.patch.object(nn.init, name, varying_init(getattr(nn.init, name))))
        orthogonal = varying_init(nn.init.orthogonal_, _shrink)
        patches.enter_context(mock.patch.object(nn.init, "orthogonal_", orthogonal))
        for norm in _NORMS:
            patches.enter_context(signing(norm, _negate_some))
        patches.enter_context(signing(nn.PReLU, _spread_slopes))
        patches.enter_context(mock.patch.object(_NormBase, "reset_running_stats", reset_running_stats))
        patches.enter_context(mock.patch.object(nn.Parameter, "__new__", new_parameter))
        yield


def built(build: Callable[[], Built], seed: int) -> tuple[Built, bool]:
    """A model whose weights all matter, and whether some changed after its constructor had returned."""
    with varied_construction(seed):
        model = build()
    return model, isinstance(model, nn.Module) and vary_known(model, seed)


def vary_known(model: nn.Module, seed: int) -> bool:
    """Vary parameters of a finished model whose values its code still tells. Returns whether any did."""
    own = [p for p in model.parameters() if _is_plain(p)]
    simple = [p for p in own if _is_left_simple(p)]
    for p in simple:
        _vary(p, seed, p.requires_grad)
    padding = list(_padding_rows(model))
    for row in padding:
        _vary(row, seed)
    weights = [m.weight for m in model.modules() if isinstance(m, _NORMS)]
    signless = [w for w in weights if isinstance(w, nn.Parameter) and _is_plain(w) and _has_one_sign(w)]
    for weight in signless:
        _negate_some(weight, seed)
    lengths = _lengths(own)
    for p in lengths:
        _shrink(p, seed)
    copies = _copies(own, seed)
    for number, p in enumerate(copies, 1):
        _shrink(p, seed + number)
    return bool(simple or padding or signless or lengths or copies)


def _padding_rows(model: nn.Module) -> Iterator[torch.Tensor]:
    """Rows of zeros that tables begin with for padding. Weights that are loaded may have others there."""
    for module in model.modules():
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            weight = module.weight
            if isinstance(weight, nn.Parameter) and _is_plain(weight):
                row = weight.detach()[module.padding_idx]
                if not bool(row.any()):
                    yield row


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether its elements are numbers in memory of their own, which noise can change."""
    return (
        not is_lazy(tensor)
        and not tensor.is_inference()
        and tensor.layout is torch.strided
        and tensor.is_floating_point()
        and tensor.itemsize > 1
        and tensor.numel() > 0
        and 0 not in tensor.stride()
    )


def _is_left_simple(tensor: torch.Tensor) -> bool:
    """Whether no noise was added. Of a single number a whole one tells: noise leaves none."""
    if tensor.numel() == 1:
        return tensor.item() % 1 == 0
    return _is_simple(tensor.detach(), tensor.requires_grad)


def _has_one_sign(weight: torch.Tensor) -> bool:
    return weight.numel() > 1 and bool((weight > 0).all() | (weight < 0).all())


def _lengths(parameters: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Parameters that hold the lengths of another's rows or columns, as weight normalisation begins."""
    vectors: dict[int, list[tuple[float, torch.Tensor]]] = {}
    for p in parameters:
        vectors.setdefault(p.numel(), []).append((p.detach().flatten()[0].item(), p))
    found = []
    for of in (p.detach() for p in parameters if p.dim() > 1):
        for rows in (of[None], of, of.transpose(0, 1)):
            holders = vectors.get(len(rows), [])
            first = rows[0].norm().item() if holders else 0.0
            for begins, p in holders:
                if first and abs(begins - first) <= _CLOSE * first:
                    lengths = rows.flatten(1).norm(dim=1)
                    if torch.allclose(lengths, p.detach().flatten(), rtol=_CLOSE):
                        found.append(p)
    return list({id(p): p for p in found}.values())


def _copies(parameters: Sequence[torch.Tensor], seed: int) -> list[torch.Tensor]:
    """Parameters that are copies of earlier ones, or whose slices are copies of their first.

    A target network is one, although it is not trained. Constants with the same noise are none, and no
    tables that several layers have and that are not trained.
    """
    alike: dict[Any, list[torch.Tensor]] = {}
    found = []
    for p in parameters:
        flat = p.detach().flatten()
        if len(flat) < _NOT_TINY:
            continue
        earlier = alike.setdefault((p.shape, p.dtype, p.device, *flat[:_NOT_TINY].tolist()), [])
        same = [q for q in earlier if q.data_ptr() != p.data_ptr() and torch.equal(p, q)]
        earlier.append(p)
        trained = p.requires_grad or any(q.requires_grad for q in same)
        if trained and (same or _repeats(p)) and not _is_noise(p.detach(), seed):
            found.append(p)
    return found


def _repeats(tensor: torch.Tensor) -> bool:
    """Whether all slices along some dimension are alike."""

    def along(tensor: torch.Tensor) -> bool:
        many = len(tensor) > 1 and tensor[0].numel() > 1
        return many and torch.equal(tensor[0], tensor[-1]) and bool((tensor[1:] == tensor[:1]).all())

    return tensor.dim() > 1 and any(along(tensor.movedim(n, 0)) for n in range(tensor.dim()))


def _is_noise(tensor: torch.Tensor, seed: int) -> bool:
    """Whether it is a constant with the noise that its shape gets during construction."""
    noise = _noise(tensor, seed)
    rounding = 4 * torch.finfo(tensor.dtype).eps * (1 + float(tensor.abs().max()))
    rests = (tensor - noise, tensor.abs() - noise, tensor.abs() - noise.abs())
    return any(float(rest.max() - rest.min()) <= rounding for rest in rests)
