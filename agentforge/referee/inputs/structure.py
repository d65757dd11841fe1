"""What the draws of one input have in common, so that contents made from them keep it.

Mixtures of rows keep ranges. They do not keep an order along a dimension, symmetry, or norms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

FEW = 16
"""Tensors with at most this many different values are never mixed (masks, one-hot rows, ternary weights)."""
_LOOKED_AT = 16
"""Rows, columns or matrices of a tensor that are examined for symmetry and norms."""
_NEARLY = 1e-2
"""How far from 1 the norm of a 16-bit vector may be."""
_CHANCE = 3
"""Steps along a dimension below which two draws may be sorted by chance."""
_DISTINCT_IN = 1 << 20


@dataclass(frozen=True)
class Norm:
    """Vectors along dimension `dim` have norm one of order `p`: 1 for probabilities, 2 for directions."""

    p: int
    dim: int

    def restored(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor with these norms again."""
        wide = tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()
        return torch.nn.functional.normalize(wide, self.p, self.dim).to(tensor.dtype)


@dataclass(frozen=True)
class Order:
    """Values never fall along dimension `dim`, or never rise."""

    dim: int
    descending: bool


@dataclass(frozen=True)
class Structure:
    """Of one draw, or what two draws share."""

    mixable: bool = False
    """Floating-point or complex numbers of more than `FEW` values."""
    finite: bool = True
    single: bool = False
    """One value everywhere."""
    distinct: bool = False
    """Integers none of which occurs twice."""
    independent: bool = False
    """Integers that look as if each was drawn alone: another draw's may take the place of any."""
    order: Order | None = None
    offsets: bool = False
    """Integers from 0 that rise above their own number: they may be places in another tensor."""
    symmetric: bool = False
    """Symmetric (Hermitian) matrices."""
    orthogonal: bool = False
    """Matrices with orthogonal rows of norm one."""
    norm: Norm | None = None
    constant: bool = False
    """Equal in both draws."""

    @property
    def fragile(self) -> bool:
        """Whether no mixture and no rearrangement has it."""
        return self.order is not None or self.symmetric or self.rigid

    @property
    def rigid(self) -> bool:
        """Whether a changed tensor lacks it, even if `restored` gives it back its order and symmetry."""
        along_rows = self.norm is not None and self.norm.dim == 0
        return self.orthogonal or along_rows

    def restored(self, tensor: torch.Tensor) -> torch.Tensor:
        """The values of a changed tensor with their order or symmetry again."""
        if self.order is not None:
            return tensor.sort(self.order.dim, self.order.descending).values
        if self.symmetric:
            return (tensor + tensor.mH) / 2
        return tensor

    def shared(self, other: Structure, *, equal: bool) -> Structure:
        """What this draw and another one have in common."""
        return Structure(
            mixable=self.mixable and other.mixable,
            finite=self.finite and other.finite,
            single=self.single and other.single,
            distinct=self.distinct and other.distinct,
            independent=self.independent and other.independent,
            order=self.order if self.order == other.order else None,
            offsets=self.offsets and other.offsets,
            symmetric=self.symmetric and other.symmetric,
            orthogonal=self.orthogonal and other.orthogonal,
            norm=self.norm if self.norm == other.norm else None,
            constant=equal,
        )


def is_whole(tensor: torch.Tensor) -> bool:
    """Whether its elements are integers; booleans are none."""
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool)


def is_coarse(tensor: torch.Tensor) -> bool:
    """Whether its elements are 8-bit floats, which few operators take."""
    return tensor.is_floating_point() and tensor.itemsize == 1


def two_values(tensor: torch.Tensor) -> bool:
    """Whether it has at most two different values, as far as a sample tells: a mask."""
    return tensor.dtype is torch.bool or int(torch.unique(_sample(tensor.reshape(-1))).numel()) <= 2


def structure_of(tensor: torch.Tensor) -> Structure:
    """The structure of one draw."""
    if not tensor.numel():
        return Structure(single=True)
    real = tensor.float() if is_coarse(tensor) else tensor
    floats = real.is_floating_point()
    flat, order = real.reshape(-1), _order(real)
    parts = torch.view_as_real(flat).reshape(-1) if real.is_complex() else flat
    numbers = parts.is_floating_point()
    integers = not numbers
    symmetric, orthogonal = _square(real)
    return Structure(
        mixable=tensor.dim() > 0 and tensor.element_size() > 1 and numbers and not _few_values(parts),
        finite=not numbers or all(bool(x.isfinite()) for x in torch.aminmax(parts)),
        single=bool((flat[:_LOOKED_AT] == flat[0]).all()) and bool((flat == flat[0]).all()),
        distinct=integers and _distinct(flat),
        independent=integers and _independent(real),
        order=order,
        offsets=not floats and order == Order(0, False) and flat[0] == 0 and int(flat[-1]) >= len(flat),
        symmetric=symmetric,
        orthogonal=orthogonal,
        norm=_norm(real) if floats else None,
    )


def _few_values(flat: torch.Tensor) -> bool:
    sample = _sample(flat)
    return int(torch.unique(sample).numel()) <= min(FEW, sample.numel() - 1)


def _sample(flat: torch.Tensor) -> torch.Tensor:
    return flat[:: max(1, flat.numel() // 4096)]


def _distinct(flat: torch.Tensor) -> bool:
    some = flat[:_DISTINCT_IN]
    return some.numel() > 2 and int(torch.unique(some).numel()) == some.numel()


def _independent(tensor: torch.Tensor) -> bool:
    """Whether integers of many values repeat in a row about as often as chance has it.

    Permutations repeat none, and labels of rows all.
    """
    if not tensor.dim():
        return False
    rows = tensor.reshape(-1, tensor.shape[-1])
    rows = rows[:: max(1, len(rows) // _LOOKED_AT)][:, :_DISTINCT_IN]
    if rows.shape[1] < 3 or _few_values(tensor.reshape(-1)):
        return False
    width, values = rows.shape[1], float(tensor.max()) - float(tensor.min()) + 1
    load = width / values  # balls and urns
    expected = -len(rows) * values * math.expm1(-load)
    variance = -len(rows) * values * math.exp(-load) * math.expm1(math.log1p(load) - load)
    seen = sum(int(torch.unique(row).numel()) for row in rows)
    return 0.5 * expected <= seen <= expected + 4 * math.sqrt(variance) + 1


def _order(tensor: torch.Tensor) -> Order | None:
    if tensor.is_complex() or not tensor.dim():
        return None
    for dim in dict.fromkeys((tensor.dim() - 1, 0)):
        size = tensor.shape[dim]
        if size < 3 or tensor.numel() // size * (size - 1) < _CHANCE:
            continue
        for descending in (False, True):
            # The beginning alone says no of almost everything.
            if all(_ordered(tensor.narrow(dim, 0, n), dim, descending) for n in (min(size, 64), size)):
                return Order(dim, descending)
    return None


def _ordered(tensor: torch.Tensor, dim: int, descending: bool) -> bool:
    steps = tensor.shape[dim] - 1
    before, after = tensor.narrow(dim, 0, steps), tensor.narrow(dim, 1, steps)
    return bool((before >= after if descending else before <= after).all())


def _square(tensor: torch.Tensor) -> tuple[bool, bool]:
    """Whether matrices are symmetric, and whether they are orthogonal, by some of their rows."""
    if tensor.dim() < 2 or tensor.shape[-1] != tensor.shape[-2] or tensor.shape[-1] < 2:
        return False, False
    some = tensor.reshape(-1, *tensor.shape[-2:])[:_LOOKED_AT]
    picked = torch.linspace(0, tensor.shape[-1] - 1, min(tensor.shape[-1], _LOOKED_AT)).long()
    wide = torch.complex128 if tensor.is_complex() else torch.float64
    rows, columns = some[:, picked].to(wide), some[:, :, picked].mH.to(wide)
    slack = 1e-4 * float(rows.abs().nan_to_num(0.0, 0.0).max())
    one = torch.eye(len(picked), dtype=wide).expand(len(some), -1, -1)
    return (
        torch.allclose(rows, columns, rtol=1e-4, atol=slack),
        torch.allclose(rows @ rows.mH, one, rtol=0.0, atol=_NEARLY),
    )


def _norm(tensor: torch.Tensor) -> Norm | None:
    for dim in range(tensor.dim() - 1, -1, -1):
        some = tensor
        for other in range(tensor.dim()):
            if other != dim:
                some = some.narrow(other, 0, min(some.shape[other], _LOOKED_AT))
        for p in (1, 2):
            signed = p == 1 and bool((some < 0).any())
            norms = some.double().norm(p, dim)
            if tensor.shape[dim] > 1 and not signed and bool(((norms - 1).abs() < _NEARLY).all()):
                return Norm(p, dim)
    return None
