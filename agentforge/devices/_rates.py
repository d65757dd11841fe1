"""Child process of `measure_roofline`: measures torch's rates and prints a `Roofline` as one line of JSON.

Run as `python -m agentforge.devices._rates KIND SECONDS THREADS BYTES`; the last is for a CPU.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

CPU_PRODUCTS: dict[str, tuple[int, ...]] = {
    "float32": (512, 1024, 2048),
    "float64": (512, 1024, 2048),
    "bfloat16": (128, 256, 1024, 2048),
}
"""Matrix sizes by dtype; bfloat16 without hardware support is a hundred times slower."""
GPU_PRODUCTS: dict[str, tuple[int, ...]] = dict.fromkeys(
    ("float32", "float64", "float16", "bfloat16"), (4096, 8192)
)


def _nothing() -> None:
    """Synchronization after a call on a CPU: none is needed."""


def best_time(call: Callable[[], Any], wait: Callable[[], None], seconds: float) -> float:
    """Shortest time of one call in seconds, within a time budget; the first call is not counted."""
    call()
    wait()
    best, begin = float("inf"), time.perf_counter()
    while best == float("inf") or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        call()
        wait()
        best = min(best, time.perf_counter() - start)
    return best


def gemm_rate(
    dtype: str, device: str, sizes: tuple[int, ...], wait: Callable[[], None], seconds: float
) -> float:
    """Highest FLOP/s of square matrix products. From the third size on, stop before one that exceeds the time
    left.
    """
    rate, kind, end = 0.0, getattr(torch, dtype), time.perf_counter() + seconds
    for index, n in enumerate(sizes):
        left = end - time.perf_counter()
        if index > 1 and 3 * 2 * n**3 / rate > left:
            break
        a, b = (torch.randn(n, n, device=device).to(kind) for _ in range(2))
        product = partial(torch.mm, a, b, out=torch.empty_like(a))
        rate = max(rate, 2 * n**3 / best_time(product, wait, left / 2))
    return rate


def call_overhead(device: str, wait: Callable[[], None]) -> float:
    """Seconds of one operator on one element, launched back to back: the minimum of several batches."""
    x, calls = torch.zeros(1, device=device), 2000

    def batch() -> None:
        for _ in range(calls):
            x.neg_()

    return best_time(batch, wait, 0.1) / calls


def bandwidth(device: str, nbytes: int, wait: Callable[[], None], seconds: float, passes: int = 1) -> float:
    """Highest bytes/s of a copy, an addition and a full read over `nbytes` of arrays.

    Args:
        passes: before each wait, which would cost as much as a pass over a GPU's cache.
    """
    n = nbytes // 12
    a, b, out = (torch.ones(n, device=device) for _ in range(3))
    patterns: list[tuple[int, Callable[[], Any]]] = [
        (8, lambda: out.copy_(a)),
        (12, lambda: torch.add(a, b, out=out)),
        (4, lambda: torch.sum(a)),
    ]

    def repeat(call: Callable[[], Any]) -> None:
        for _ in range(passes):
            call()

    return max(
        width * n * passes / best_time(partial(repeat, call), wait, seconds / 3) for width, call in patterns
    )


def measure(kind: str, seconds: float, threads: int, nbytes: int) -> dict[str, Any]:
    """The fields of a `Roofline`.

    Args:
        nbytes: of three arrays that exceed a CPU's caches.
    """
    if kind == "cuda":
        wait: Callable[[], None] = torch.cuda.synchronize
        products, nbytes = GPU_PRODUCTS, 3 << 30
    else:
        torch.set_num_threads(threads)
        wait, products = _nothing, CPU_PRODUCTS
    share = seconds / len(products)
    with torch.no_grad():
        peaks = {dtype: gemm_rate(dtype, kind, sizes, wait, share) for dtype, sizes in products.items()}
        if kind == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = True
            peaks["tf32"] = gemm_rate("float32", kind, products["float32"], wait, share)
        return {
            "bandwidth": bandwidth(kind, nbytes, wait, 0.3),
            "peak_flops": peaks,
            "cache_bandwidth": bandwidth(kind, 16 << 20, wait, 0.2, passes=50) if kind == "cuda" else 0.0,
            "call_overhead_s": call_overhead(kind, wait),
        }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))))
