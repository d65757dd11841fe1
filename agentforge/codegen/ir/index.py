"""Index expressions: integer affine forms over loop variables, with floor division and modulo.

Views (reshape, permute, slice, expand) only change how an element's address is computed. Each remaining `//`
or `%` shows at which factor a loop should be split (see `split_factor`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Var:
    """A loop variable, `0 <= name < extent`."""

    name: str
    extent: int


@dataclass(frozen=True)
class Div:
    """`num // den`, floored."""

    num: Index
    den: int


@dataclass(frozen=True)
class Mod:
    """`num % den`, with the sign of `den`."""

    num: Index
    den: int


@dataclass(frozen=True)
class Indirect:
    """An index read from data (gather, embedding); its value is in [0, extent)."""

    value: Any
    """The integer `Expr`, compared by identity."""
    extent: int


Atom: TypeAlias = Var | Div | Mod | Indirect


@dataclass(frozen=True)
class Index:
    """`const + sum(coefficient * atom)`."""

    terms: tuple[tuple[Atom, int], ...] = ()
    const: int = 0

    @cached_property
    def _hash(self) -> int:
        return hash((self.terms, self.const))

    def __hash__(self) -> int:
        return self._hash

    @staticmethod
    def of(value: int | Atom | Index) -> Index:
        """An integer or an atom as an index."""
        if isinstance(value, Index):
            return value
        if isinstance(value, int):
            return Index((), value)
        if isinstance(value, Var) and value.extent == 1:
            return ZERO
        return Index(((value, 1),), 0)

    def __add__(self, other: Index | int) -> Index:
        other = Index.of(other)
        return _collect([*self.terms, *other.terms], self.const + other.const)

    def __sub__(self, other: Index | int) -> Index:
        return self + Index.of(other) * -1

    def __mul__(self, factor: int) -> Index:
        if factor == 0:
            return ZERO
        return Index(tuple((atom, c * factor) for atom, c in self.terms), self.const * factor)

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """Bounds of the value by interval arithmetic; the true extremes may lie inside."""
        low = high = self.const
        for atom, coefficient in self.terms:
            a, b = _atom_bounds(atom)
            low += min(a * coefficient, b * coefficient)
            high += max(a * coefficient, b * coefficient)
        return low, high

    def coefficient(self, var: Var) -> int:
        """Coefficient of a variable that occurs outside `//` and `%`, else 0."""
        return next((c for atom, c in self.terms if atom == var), 0)

    @cached_property
    def variables(self) -> frozenset[Var]:
        """All loop variables in it, also inside `//` and `%`, but not those of an indirect value."""
        return frozenset(atom for atom in walk_atoms(self) if isinstance(atom, Var))


ZERO = Index()


def _atom_bounds(atom: Atom) -> tuple[int, int]:
    if isinstance(atom, Div):
        low, high = atom.num.bounds
        return low // atom.den, high // atom.den
    if isinstance(atom, Mod):
        return 0, atom.den - 1
    return 0, atom.extent - 1


def _collect(terms: Sequence[tuple[Atom, int]], const: int) -> Index:
    """Sum like terms and undo splits: `c * (e % k) + c * k * (e // k)` is `c * e`."""
    sums: dict[Atom, int] = {}
    for atom, coefficient in terms:
        sums[atom] = sums.get(atom, 0) + coefficient
    for atom, coefficient in list(sums.items()):
        if not isinstance(atom, Mod) or coefficient == 0 or sums.get(atom, 0) != coefficient:
            continue
        quotient = floor_div(atom.num, atom.den)
        if len(quotient.terms) != 1 or quotient.const or quotient.terms[0][1] != 1:
            continue
        partner = quotient.terms[0][0]
        if sums.get(partner) == coefficient * atom.den:
            del sums[atom], sums[partner]
            rest = Index(tuple((a, c) for a, c in sums.items() if c), const)
            return rest + atom.num * coefficient
    kept = [(a, c) for a, c in sums.items() if c]
    if len(kept) > 1:
        kept.sort(key=lambda term: (-abs(term[1]), repr(term[0]) if isinstance(term[0], Var) else "~"))
    return Index(tuple(kept), const)


def _divisible(index: Index, k: int) -> tuple[Index, Index]:
    """`(q, r)` with `index == k * q + r` and every term of r not divisible by k."""
    quotient = tuple((a, c // k) for a, c in index.terms if c % k == 0)
    rest = tuple((a, c) for a, c in index.terms if c % k)
    return Index(quotient, index.const // k), Index(rest, index.const % k)


def _coarsen(rest: Index, k: int) -> tuple[int, Index, Index]:
    """The largest g that divides k with `rest == g * a + s` and `0 <= s < g`; returns (g, a, s)."""
    for g in sorted({gcd(c, k) for _, c in rest.terms}, reverse=True):
        if g <= 1:
            break
        a, s = _divisible(rest, g)
        if s.bounds[0] >= 0 and s.bounds[1] < g:
            return g, a, s
    return 1, rest, ZERO


def floor_div(index: Index, k: int) -> Index:
    """`index // k`, simplified."""
    if k == 1:
        return index
    quotient, rest = _divisible(index, k)
    low, high = rest.bounds
    if low // k == high // k:
        return quotient + low // k
    g, a, _ = _coarsen(rest, k)
    if g > 1:
        return quotient + floor_div(a, k // g)
    if len(rest.terms) == 1 and rest.const == 0 and rest.terms[0][1] == 1:
        atom = rest.terms[0][0]
        if isinstance(atom, Div):
            return quotient + floor_div(atom.num, atom.den * k)
        if isinstance(atom, Mod) and atom.den % k == 0:
            return quotient + modulo(floor_div(atom.num, k), atom.den // k)
    return quotient + Index.of(Div(rest, k))


def modulo(index: Index, k: int) -> Index:
    """`index % k`, simplified."""
    if k == 1:
        return ZERO
    _, rest = _divisible(index, k)
    low, high = rest.bounds
    if low // k == high // k:
        return rest - (low // k) * k
    g, a, s = _coarsen(rest, k)
    if g > 1:
        return modulo(a, k // g) * g + s
    if len(rest.terms) == 1 and rest.const == 0 and rest.terms[0][1] == 1:
        atom = rest.terms[0][0]
        if isinstance(atom, Mod) and atom.den % k == 0:
            return modulo(atom.num, k)
    return Index.of(Mod(rest, k))


def ravel(indices: Sequence[Index], shape: Sequence[int]) -> Index:
    """Linear row-major index of a position in `shape`."""
    linear = ZERO
    stride = 1
    for index, size in zip(reversed(indices), reversed(shape), strict=True):
        linear = index * stride + linear
        stride *= size
    return linear


def unravel(linear: Index, shape: Sequence[int]) -> tuple[Index, ...]:
    """Position in `shape` of a linear row-major index."""
    result: list[Index] = []
    for position, size in enumerate(shape):
        inner = prod(shape[position + 1 :])
        index = ZERO if size == 1 else floor_div(linear, inner)
        if position > 0 and size > 1:
            index = modulo(index, size)
        result.append(index)
    return tuple(result)


def walk_atoms(index: Index) -> Iterator[Atom]:
    """All atoms, nested ones too."""
    for atom, _ in index.terms:
        yield atom
        if isinstance(atom, (Div, Mod)):
            yield from walk_atoms(atom.num)


def split_factor(index: Index) -> tuple[Var, int] | None:
    """A variable and the inner extent at which splitting its loop removes a `//` or `%` of `index`."""
    for atom in walk_atoms(index):
        if isinstance(atom, (Div, Mod)) and len(atom.num.terms) == 1 and atom.num.const == 0:
            var, coefficient = atom.num.terms[0]
            if isinstance(var, Var) and coefficient == 1 and var.extent % atom.den == 0:
                return var, atom.den
    return None


def render_index(index: Index, name: Callable[[Any], str]) -> str:
    """C++ of an index; `name` returns the variable of an indirect value."""

    def atom_text(atom: Atom) -> str:
        if isinstance(atom, Var):
            return atom.name
        if isinstance(atom, Indirect):
            return name(atom.value)
        inner = render_index(atom.num, name)
        negative = atom.num.bounds[0] < 0
        if isinstance(atom, Div):
            return f"af::floor_div({inner}, {atom.den})" if negative else f"(({inner}) / {atom.den})"
        return f"af::floor_mod({inner}, {atom.den})" if negative else f"(({inner}) % {atom.den})"

    parts = [atom_text(a) if c == 1 else (f"{c} * {atom_text(a)}") for a, c in index.terms]
    if index.const or not parts:
        parts.append(str(index.const))
    return " + ".join(parts)
