"""CuPy on a GPU: count the launches of own kernels."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_calls: Counter[str] = Counter()


def calls() -> dict[str, int]:
    """Number of launches so far, by kernel name."""
    return dict(_calls)


class Counted:
    """A kernel of CuPy that counts its launches; everything else is the kernel's own."""

    def __init__(self, kernel: Any, run: bool, name: str = "") -> None:
        self.__dict__.update(_kernel=kernel, _run=run, _name=name or kernel.name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Launch the kernel."""
        _calls[self._name] += 1
        return self._kernel(*args, **kwargs) if self._run else None

    def __getitem__(self, sizes: Any) -> Counted:
        """Its launch with these sizes, for kernels of `cupyx.jit`."""
        return Counted(self._kernel[sizes], self._run, self._name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._kernel, name, value)


class CountedModule:
    """A `RawModule` whose kernels count their launches."""

    def __init__(self, module: Any, run: bool) -> None:
        self._module, self._run = module, run

    def get_function(self, name: str) -> Counted:
        """A kernel of the module."""
        return Counted(self._module.get_function(name), self._run)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def install(run: bool) -> None:
    """Replace CuPy's kernel classes in this process.

    Args:
        run: False if kernels do nothing.

    Raises:
        ImportError: CuPy is not installed.
    """
    import cupy  # type: ignore[import-not-found, import-untyped, unused-ignore]

    for name in ("RawKernel", "ElementwiseKernel", "ReductionKernel"):
        setattr(cupy, name, _counting(getattr(cupy, name), Counted, run))
    cupy.RawModule = _counting(cupy.RawModule, CountedModule, run)
    plain_fuse = cupy.fuse

    def fuse(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and callable(args[0]) and not kwargs:
            return _fused(plain_fuse(args[0]), args[0].__name__, run)
        decorate = plain_fuse(*args, **kwargs)
        return lambda function: _fused(
            decorate(function), kwargs.get("kernel_name") or function.__name__, run
        )

    cupy.fuse = fuse
    with suppress(ImportError):
        from cupyx import jit  # type: ignore[import-not-found, import-untyped, unused-ignore]

        jit.rawkernel = _jit(jit.rawkernel, run)


def _counting(plain: Callable[..., Any], around: Callable[[Any, bool], Any], run: bool) -> Any:
    @functools.wraps(plain, updated=())
    def make(*args: Any, **kwargs: Any) -> Any:
        return around(plain(*args, **kwargs), run)

    return make


def _jit(plain: Callable[..., Any], run: bool) -> Callable[..., Any]:
    """`cupyx.jit.rawkernel`, whose device functions are no kernels: kernels call them."""

    def rawkernel(*, device: bool = False, **options: Any) -> Callable[..., Any]:
        decorate = plain(device=device, **options)
        return decorate if device else lambda function: Counted(decorate(function), run, function.__name__)

    return rawkernel


def _fused(kernel: Callable[..., Any], name: str, run: bool) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        _calls[name] += 1
        return kernel(*args, **kwargs) if run else args[0]

    return call
