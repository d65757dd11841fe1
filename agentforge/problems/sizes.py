"""Texts for several sizes that differ only in integers: the common text, with an expression for each integer.

Generated code for (2, 16) and (3, 40) may differ in `32` and `120` only. `common` finds `n0 * n1` for them.
An expression is right for the texts that it was found from; a caller compares further texts with `Text.at`.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_INTEGER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_DIVISORS = tuple(1 << n for n in range(1, 17))
"""Sizes of tiles."""
_TILES = re.compile(r"\(\((.+) \+ \d+\) // (\d+)\)")
"""An expression that `_tiles` found: its base and its divisor."""

Sizes = Mapping[str, int]
"""Value of each size by name."""


@dataclass(frozen=True)
class Text:
    """A text with expressions."""

    parts: tuple[str, ...]
    """The text around the expressions, one more than there are expressions."""
    terms: tuple[str, ...]
    """Python expressions of the sizes; in C++, `//` is `/`."""

    def at(self, sizes: Sizes) -> str:
        """The text for these sizes."""
        return self.filled([str(value_of(term, sizes)) for term in self.terms])

    def filled(self, values: Sequence[str]) -> str:
        """The text with these values of the expressions."""
        return "".join(part + value for part, value in zip(self.parts, [*values, ""], strict=True))


def value_of(term: str, sizes: Sizes) -> int:
    """Value of an expression that `common` found."""
    return int(eval(term, {"__builtins__": {}}, dict(sizes)))


def skeleton(text: str) -> str:
    """A text without its integers: equal for texts that may have a common text."""
    return _INTEGER.sub("0", text)


def common(texts: Sequence[str], sizes: Sequence[Sizes]) -> Text | None:
    """The common text of texts for several sizes; None if they differ in more than integers of the sizes.

    Args:
        texts: at least two.
        sizes: of each text; the names are the same in all of them.
    """
    if len({skeleton(text) for text in texts}) > 1:
        return None
    numbers = [[int(n) for n in _INTEGER.findall(text)] for text in texts]
    columns = list(zip(*numbers, strict=True))
    terms = {column: _linear(column, sizes) for column in set(columns) if len(set(column)) > 1}
    bases = sorted({term for term in terms.values() if term is not None}, key=lambda t: (len(t), t))
    for column, term in terms.items():
        if term is None:
            terms[column] = _tiles(column, bases, sizes)
    if None in terms.values():
        return None
    pieces = _INTEGER.split(texts[0])
    parts, found = [pieces[0]], []
    for column, number, piece in zip(columns, _INTEGER.findall(texts[0]), pieces[1:], strict=True):
        term = terms.get(column)
        if term is None:
            parts[-1] += number + piece
        else:
            found.append(term)
            parts.append(piece)
    return Text(tuple(parts), tuple(found))


def named_sizes(cases: Sequence[Sequence[Sequence[int]]]) -> tuple[dict[str, tuple[int, int]], list[Sizes]]:
    """Names for the sizes that differ between cases.

    Args:
        cases: the shapes of the same tensors, in each case.

    Returns:
        Tensor and dimension where each name is read, and the value of each name in each case. Dimensions that
        are equal in every case share a name.
    """
    places: dict[tuple[int, ...], tuple[int, int]] = {}
    for tensor, shapes in enumerate(zip(*cases, strict=True)):
        for dimension, values in enumerate(zip(*shapes, strict=False)):
            if len(set(values)) > 1:
                places.setdefault(values, (tensor, dimension))
    names = {f"n{number}": place for number, place in enumerate(places.values())}
    found = [{name: shapes[t][d] for name, (t, d) in names.items()} for shapes in cases]
    return names, list(found)


def _linear(column: Sequence[int], sizes: Sequence[Sizes]) -> str | None:
    """`a * product of sizes + b` with the values of a column; b is 0 if that is possible."""
    fits: list[tuple[bool, str]] = []
    for product, values in _products(sizes):
        low, high = values.index(min(values)), values.index(max(values))
        if values[low] == values[high]:
            continue
        factor, rest = divmod(column[high] - column[low], values[high] - values[low])
        offset = column[low] - factor * values[low]
        if rest or factor <= 0 or any(factor * v + offset != c for v, c in zip(values, column, strict=True)):
            continue
        text = product if factor == 1 else f"{factor} * {product}"
        fits.append((bool(offset), f"({text} + {offset})" if offset else f"({text})"))
    return min(fits, key=lambda fit: fit[0])[1] if fits else None


def _tiles(column: Sequence[int], bases: Sequence[str], sizes: Sequence[Sizes]) -> str | None:
    """`ceil(base / tile)` with the values of a column; None if no base and tile give them."""
    for base in bases:
        values = [value_of(base, s) for s in sizes]
        for divisor in _DIVISORS:
            if all(math.ceil(v / divisor) == c for v, c in zip(values, column, strict=True)):
                return f"(({base} + {divisor - 1}) // {divisor})"
    return None


def exact_tiles(text: Text, sizes: Sequence[Sizes]) -> list[str]:
    """Remainders such as `(n0) % 8` that are 0 for all these sizes, where a text counts tiles of 8.

    The text may be wrong for other sizes: no size with an incomplete tile was seen.
    """
    tiles = [match.groups() for term in text.terms if (match := _TILES.fullmatch(term))]
    remainders = [f"{base} % {divisor}" for base, divisor in tiles]
    return [r for r in remainders if not any(value_of(r, s) for s in sizes)]


def _products(sizes: Sequence[Sizes]) -> Iterator[tuple[str, list[int]]]:
    """Products of up to three sizes, the simplest first, with their values."""
    for count in (1, 2, 3):
        for names in itertools.combinations_with_replacement(sorted(sizes[0]), count):
            yield " * ".join(names), [math.prod(s[name] for name in names) for s in sizes]
