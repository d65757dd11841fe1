"""What a strategy may turn: the parameters of the generator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from agentforge.agents._base import CannotCode

Value = int | float | str | bool


@dataclass(frozen=True)
class Options:
    """Parameters of code generation; every one is a knob of some playbook card."""

    threads: int = 4
    """Threads of the machine, by which work is split; not a knob."""
    cache_bytes: int = 32 << 20
    """Last-level cache, beyond which streaming stores pay; not a knob."""
    tile: int = 1024
    """Elements of a row handled at a time: partial sums are flushed, stores are streamed by tiles."""
    nontemporal: str = "auto"
    """Stores past the cache: `auto` for outputs beyond the last cache, `on`, `off`."""
    stage: str = "auto"
    """Values needed by several passes over a row: `auto` keeps the expensive ones in scratch, `all` those
    that cost more than a load, `off` computes them again."""
    online: bool = False
    """Maximum and sum of exponentials in one pass over the row."""
    accumulate: str = "double"
    """Type in which the partial sums of tiles are added: `float` or `double`."""
    split: str = "auto"
    """Two-stage reductions for few long rows: `auto`, `on`, `off`."""
    lanes: int = 256
    """Neighbouring rows that are reduced side by side where the reduced dimension is not the inner one."""
    prefetch: int = 0
    """Bytes ahead of the reading position that are prefetched by software; 0 leaves it to the hardware."""
    fuse_bias: bool = True
    """Take the bias out of `addmm` and add it in the epilogue."""
    inplace: bool = True
    """Write a result over an intermediate buffer that dies there."""
    math: str = "fast"
    """`fast`: vector polynomials, reassociated sums; `strict`: no reassociation by the compiler;
    `libm`: strict, with the C library's functions."""
    schedule: str = "static"
    """OpenMP schedule of the rows: `static` or `dynamic`."""
    grain: int = 32768
    """Elements of work below which one thread does it all."""

    @classmethod
    def of(cls, parameters: Mapping[str, Value], *, threads: int, cache_bytes: int) -> Options:
        """Options from a plan's parameters; parameters of other concerns are left alone.

        Raises:
            CannotCode: a value that the generator does not know.
        """
        known = {f.name for f in fields(cls)} - {"threads", "cache_bytes"}
        chosen = {k: v for k, v in parameters.items() if k in known}
        options = cls(threads=threads, cache_bytes=cache_bytes, **chosen)  # type: ignore[arg-type]
        for name, allowed in _CHOICES.items():
            if getattr(options, name) not in allowed:
                raise CannotCode(
                    f"{name} is one of {', '.join(map(str, allowed))}, not {getattr(options, name)!r}"
                )
        for name in ("tile", "lanes", "grain"):
            if not isinstance(getattr(options, name), int) or getattr(options, name) < 1:
                raise CannotCode(f"{name} is a positive integer, not {getattr(options, name)!r}")
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
