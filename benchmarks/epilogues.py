"""Compare products and convolutions whose epilogue oneDNN applies with the same followed by the operator.

    python benchmarks/epilogues.py

Both take packed weights and run interleaved, in random order, on the same values. Writes
benchmarks/results/epilogues.json at the end, and epilogues.part after each comparison.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

import torch  # noqa: E402
from _provenance import provenance  # noqa: E402
from _published import write_results  # noqa: E402

from agentforge.devices import detect  # noqa: E402
from agentforge.referee.timing.statistics import log_ratios, speedup  # noqa: E402
from agentforge.stitch.runtime.products import followed  # noqa: E402

RESULTS = HERE / "results" / "epilogues.json"
ROUNDS = 12
PRODUCTS = ((64, 1024, 1024), (256, 1024, 4096), (64, 4096, 4096), (128, 768, 3072), (512, 768, 3072))
"""Rows, columns of the input, columns of the result: an MLP's, then GPT-2's and BERT's."""
CONVOLUTIONS = ((4, 64, 64, 3, 56, 1), (4, 64, 256, 1, 56, 1), (4, 256, 64, 1, 56, 1), (4, 96, 96, 3, 56, 96))
"""Images, channels of the input, channels of the result, kernel, height and width, groups."""
WAYS = (("gelu", "none"), ("gelu", "tanh"), ("swish", ""), ("hardswish", ""), ("add", ""))

Call = Callable[[], torch.Tensor]


def product(rows: int, width: int, columns: int, name: str, algorithm: str) -> tuple[Call, Call]:
    """A linear layer followed by an operator, and the same with an epilogue."""
    compute = torch.ops.mkldnn._linear_pointwise
    x, bias, other = torch.randn(rows, width), torch.randn(columns), torch.randn(rows, columns)
    packed = torch.ops.mkldnn._reorder_linear_weight(torch.randn(columns, width), rows)
    fused: Call = lambda: compute(x, packed, bias, name, [], algorithm)  # noqa: E731
    if name == "add":
        fused = lambda: compute.binary(x, other, packed, bias, name)  # noqa: E731
    plain: Call = lambda: compute(x, packed, bias, "none", [], "")  # noqa: E731
    return lambda: followed(plain(), name, algorithm, other if name == "add" else None), fused


def convolution(
    images: int, channels: int, filters: int, kernel: int, size: int, groups: int, name: str, algorithm: str
) -> tuple[Call, Call]:
    """The same for a convolution in channels-last layout."""
    compute = torch.ops.mkldnn._convolution_pointwise
    x, other = (
        torch.randn(images, n, size, size).contiguous(memory_format=torch.channels_last)
        for n in (channels, filters)
    )
    bias, weight = torch.randn(filters), torch.randn(filters, channels // groups, kernel, kernel)
    places = [kernel // 2] * 2, [1, 1], [1, 1], groups
    packed = torch.ops.mkldnn._reorder_convolution_weight(weight, *places, list(x.shape))
    fused: Call = lambda: compute(x, packed, bias, *places, name, [], algorithm)  # noqa: E731
    if name == "add":
        fused = lambda: compute.binary(x, other, packed, bias, *places, name, None, None, [], None)  # noqa: E731
    operand = other if name == "add" else None
    return lambda: followed(
        compute(x, packed, bias, *places, "none", [], ""), name, algorithm, operand
    ), fused


def compare(apart: Call, fused: Call) -> dict[str, Any]:
    """Times of both in ms, and their ratio with its interval."""
    calls = {"apart": apart, "fused": fused}
    seconds: dict[str, list[float]] = {which: [] for which in calls}
    torch.testing.assert_close(fused(), apart(), rtol=1e-4, atol=1e-4)
    for _ in range(ROUNDS):
        for which in random.sample(list(calls), 2):
            calls[which]()
            start = time.perf_counter()
            calls[which]()
            seconds[which].append(time.perf_counter() - start)
    ratio = speedup([log_ratios(seconds["apart"], seconds["fused"])])
    return {
        "speedup": ratio.model_dump(),
        **{f"{which}_ms": statistics.median(s) * 1e3 for which, s in seconds.items()},
    }


def main() -> None:
    """Measure and write."""
    torch.set_num_threads(detect("cpu").threads)
    found: list[dict[str, Any]] = []
    content = {"provenance": provenance(), "epilogues": found}
    with torch.inference_mode():
        makers: tuple[tuple[Callable[..., tuple[Call, Call]], tuple[tuple[int, ...], ...]], ...] = (
            (product, PRODUCTS),
            (convolution, CONVOLUTIONS),
        )
        for make, shapes in makers:
            for shape in shapes:
                for name, algorithm in WAYS:
                    calls = make(*shape, name, algorithm)
                    row = {
                        "operator": make.__name__,
                        "shape": shape,
                        "epilogue": name,
                        "algorithm": algorithm,
                    }
                    found.append(row | compare(*calls))
                    print(json.dumps(found[-1]), flush=True)
                    write_results(RESULTS, content, whole=False)
    write_results(RESULTS, content, whole=True)


if __name__ == "__main__":
    main()
