"""Compare the optimized model with the original: outputs on fresh inputs, kernel runs, time.

    python verify.py [--seeds 3] [--rounds 20]

Exit code 0 if all outputs agree and every kernel ran, else 1.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import importlib.util
import itertools
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree

FOLDER = Path(__file__).resolve().parent


def load_artifact() -> Any:
    """Import this folder as a package, regardless of its name."""
    spec = importlib.util.spec_from_file_location(
        "agentforge_artifact", FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def draw(get_inputs: Callable[[], Any], seed: int, device: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Draw the arguments of one forward."""
    torch.manual_seed(seed)
    inputs = _pytree.tree_map_only(torch.Tensor, lambda t: t.to(device), get_inputs())
    return ((), inputs) if isinstance(inputs, dict) else (tuple(inputs), {})


def worst_error(got: Any, expected: Any) -> float:
    """Largest relative L2 error over all output tensors; infinite if the structures differ."""
    ours, theirs = _pytree.tree_leaves(got), _pytree.tree_leaves(expected)
    if len(ours) != len(theirs):
        return float("inf")
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        if not isinstance(b, torch.Tensor):
            worst = worst if a == b else float("inf")
        elif a.shape != b.shape or a.dtype != b.dtype:
            return float("inf")
        elif not (b.is_floating_point() or b.is_complex()):
            worst = worst if torch.equal(a, b) else float("inf")
        else:
            worst = max(worst, relative_error(a, b))
    return worst


def relative_error(got: torch.Tensor, expected: torch.Tensor) -> float:
    """Relative L2 error of the finite values; infinite if others differ. NaN equals NaN."""
    wide = torch.complex128 if expected.is_complex() else torch.float64
    a, b = got.to(wide), expected.to(wide)
    finite = b.isfinite()
    if not torch.equal(a.isfinite(), finite) or not torch.allclose(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    return float((a - b)[finite].norm() / b[finite].norm().clamp_min(1e-30))


def seed_generators() -> None:
    """Seed torch, Python and numpy, if it is imported, as AgentForge does before it constructs a model."""
    torch.manual_seed(0)
    random.seed(0)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed([0, 0])


def build(reference: Any, device: str) -> Any:
    """The model with random weights; each call gives the same."""
    seed_generators()
    init = reference.get_init_inputs()
    seed_generators()
    model = reference.Model(**init) if isinstance(init, dict) else reference.Model(*init)
    return model.eval().to(device)


def timed(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    """Seconds of one forward."""
    start = time.perf_counter()
    model(*args, **kwargs)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> int:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    sys.argv[1:] = []  # they are not the reference's
    device = json.loads((FOLDER / "plan.json").read_text())["device"]
    if device != "cpu" and not torch.cuda.is_available():
        print(
            "This artifact was made for an NVIDIA GPU, but torch finds none on this machine.", file=sys.stderr
        )
        return 1
    sys.path[:0] = [str(FOLDER), str(FOLDER / "reference_modules")]
    reference = importlib.import_module("reference_model")

    artifact = load_artifact()
    original, optimized = build(reference, device), build(reference, device)  # not all models can be copied
    optimized.load_state_dict(original.state_dict())
    artifact.optimize(optimized)
    worst = 0.0
    examples = getattr(reference, "EXAMPLES", [reference.get_inputs])
    with torch.inference_mode():
        for seed, get_inputs in itertools.product(range(options.seeds), examples):
            args, kwargs = draw(get_inputs, seed, device)
            theirs = copy.deepcopy((args, kwargs))
            expected = original(*theirs[0], **theirs[1]), theirs  # a forward may write to its inputs
            worst = max(worst, worst_error((optimized(*args, **kwargs), (args, kwargs)), expected))
        times: dict[str, list[float]] = {"original": [], "optimized": []}
        models = [("original", original), ("optimized", optimized)]
        for _ in range(options.rounds):
            random.shuffle(models)
            for name, model in models:
                timed(model, args, kwargs)
                times[name].append(timed(model, args, kwargs))
    before, after = (statistics.median(times[name]) for name in ("original", "optimized"))
    runs = artifact.calls()
    correctness = json.loads((FOLDER / "report.json").read_text())["correctness"] or {}
    agree = worst <= max(correctness.get("tolerance", 0.0), 1e-5)
    print(f"relative error {worst:.2e}: {'the outputs agree' if agree else 'THE OUTPUTS DIFFER'}")
    print(f"kernel runs: {runs or 'no kernels'}")
    print(f"original {before * 1e3:.3f} ms, optimized {after * 1e3:.3f} ms: {before / after:.2f}x")
    return 0 if agree and all(runs.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
