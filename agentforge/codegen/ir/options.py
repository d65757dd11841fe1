"""Parameters of the generator that a strategy may set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from agentforge.schema import CannotCode

Value = int | float | str | bool


@dataclass(frozen=True)
class Options:
    """Parameters of code generation; each is a parameter of some playbook card, unless noted."""

    threads: int = 4
    """Threads among which work is split; not a card's parameter."""
    cache_bytes: int = 32 << 20
    """Bytes of the last-level cache; larger outputs use streaming stores."""
    tile: int = 1024
    """Elements of a row per tile: after each tile, partial sums are flushed and stores are streamed."""
    nontemporal: str = "auto"
    """Non-temporal stores: `auto` (outputs larger than the last cache), `on`, `off`."""
    stage: str = "auto"
    """Values needed by several passes over a row: `auto` keeps the expensive ones in scratch, `all` those
    that cost more than a load, `off` computes them again.
    """
    online: bool = False
    """Compute maximum and sum of exponentials in one pass over the row."""
    accumulate: str = "double"
    """Type in which the partial sums of tiles are added: `float` or `double`."""
    split: str = "auto"
    """Two-stage reductions for few long rows: `auto`, `on`, `off`."""
    lanes: int = 256
    """Neighbouring rows reduced together if the reduced dimension is not the inner one."""
    prefetch: int = 0
    """Bytes of software prefetch ahead of the reading position; 0 leaves it to the hardware."""
    fuse_bias: bool = True
    """Take the bias out of `addmm` and add it in the epilogue."""
    weight_rows: int = 0
    """Rows of the weight that a product with one row reads together; 0 leaves it to the library."""
    inplace: bool = True
    """Write a result over an intermediate buffer that dies there."""
    math: str = "fast"
    """`fast`: vector polynomials, reassociated sums; `strict`: no reassociation by the compiler; `libm`:
    strict, with the C library's functions.
    """
    schedule: str = "static"
    """OpenMP schedule of the rows: `static` or `dynamic`."""
    grain: int = 32768
    """Elements of work below which one thread computes everything."""

    @classmethod
    def of(cls, parameters: Mapping[str, Value], *, threads: int, cache_bytes: int) -> Options:
        """Options from a plan's parameters; unrelated parameters are ignored.

        Raises:
            CannotCode: a value that the generator does not support.
        """
        known = {f.name for f in fields(cls)} - {"threads", "cache_bytes"}
        chosen = {k: v for k, v in parameters.items() if k in known}
        options = cls(threads=threads, cache_bytes=cache_bytes, **chosen)  # type: ignore[arg-type]
        for name, allowed in _CHOICES.items():
            if getattr(options, name) not in allowed:
                raise CannotCode(
                    f"{name} must be one of {', '.join(map(str, allowed))}, not {getattr(options, name)!r}"
                )
        for name, least in (("tile", 1), ("lanes", 1), ("grain", 1), ("weight_rows", 0)):
            if not isinstance(getattr(options, name), int) or getattr(options, name) < least:
                raise CannotCode(f"{name} must be an integer >= {least}, not {getattr(options, name)!r}")
        return options


_CHOICES: dict[str, tuple[Value, ...]] = {
    "nontemporal": ("auto", "on", "off"),
    "stage": ("auto", "all", "off"),
    "online": (False, True),
    "accumulate": ("float", "double"),
    "split": ("auto", "on", "off"),
    "fuse_bias": (False, True),
    "inplace": (False, True),
    "math": ("fast", "strict", "libm"),
    "schedule": ("static", "dynamic"),
}
