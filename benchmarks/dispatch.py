"""What an artifact's checks cost for each call.

    .venv/bin/python benchmarks/dispatch.py [--json FILE]

A small model (a norm, a linear layer, a gate) is stitched, once for two tensors, once with a number and once
for a dict of tensors. Its generated forward is replaced by one that returns at once. The time of a call
beyond that of a module with an empty forward is what the checks cost. Each figure is the least of 500 batches
of 200 calls, so that other programs disturb it little.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
from _provenance import provenance  # noqa: E402

from tests.stitch.making import stitch_in_process  # noqa: E402

MODEL = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.gate = torch.nn.LayerNorm(64), torch.nn.Linear(64, 64)

    def forward(self, {parameters}):
        return torch.sigmoid(self.gate(self.norm({x}))) * {y}


def get_inputs():
    x, y = torch.randn(8, 64), torch.randn(8, 64)
    return {inputs}


def get_init_inputs():
    return []
"""
CASES = {
    "two tensors": {"parameters": "x, y", "x": "x", "y": "y", "inputs": "[x, y]"},
    "a number": {"parameters": "x, y, scale=1.0", "x": "x", "y": "y * scale", "inputs": "[x, y, 0.5]"},
    "a dict": {
        "parameters": "batch",
        "x": "batch['x']",
        "y": "batch['y']",
        "inputs": "[{'x': x, 'y': y}]",
    },
}
"""Parts of the source by name of the case."""
BATCHES, CALLS = 500, 200


class Empty(torch.nn.Module):  # type: ignore[misc]
    def forward(self, *args: Any) -> int:
        return 0


def least_us(call: Callable[[], object]) -> float:
    """Microseconds of one call: the least mean of a batch."""
    means = []
    for _ in range(BATCHES):
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        means.append((time.perf_counter() - begin) / CALLS)
    return min(means) * 1e6


def measure() -> dict[str, dict[str, float]]:
    """Microseconds of the checks, by what the model takes and what the caller has around the call."""
    found: dict[str, dict[str, float]] = {}
    for case, texts in CASES.items():
        source = MODEL
        for name, text in texts.items():
            source = source.replace(f"{{{name}}}", text)
        found[case] = of_model(source)
    return found


def of_model(source: str) -> dict[str, float]:
    """Microseconds of a model's checks, by what the caller has around the call."""
    with tempfile.TemporaryDirectory() as folder:
        stitched = stitch_in_process(source, Path(folder))
        model, empty = stitched.package.optimize(stitched.model().eval()), Empty()
        args, _ = stitched.inputs(0)
        for unit in stitched.package._ARTIFACT.units:
            unit.eager = lambda *tensors: 0
        found = {}
        for name, context in {"inference_mode": torch.inference_mode, "no_grad": torch.no_grad}.items():
            with context():
                found[name] = least_us(lambda: model(*args)) - least_us(lambda: empty(*args))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    found = measure()
    for case, checks in found.items():
        for name, microseconds in checks.items():
            print(f"{case}, {name}: {microseconds:.2f} us")
    if options.json:
        options.json.write_text(json.dumps({"checks_us": found, **provenance()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
