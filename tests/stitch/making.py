"""Stitched models for tests: real captures, kernels written by hand or taken from their reference."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils import _pytree

from agentforge.languages import write_solution
from agentforge.problems.kernelbench import Problem, load_problem
from agentforge.profiling.examples import examples_of
from agentforge.profiling.graph.capture import capture_examples
from agentforge.profiling.graph.extract import CannotExtract, extract, structure_key
from agentforge.profiling.graph.operators import Kind, kind_of
from agentforge.profiling.graph.regions import partition
from agentforge.profiling.graph.value_capture import record
from agentforge.schema import Definition, MoveKind, Solution, Target, Workload
from agentforge.stitch.files import Mode, as_solution, kernel_name, stitched_files
from agentforge.stitch.graph.child import _replacements
from agentforge.stitch.graph.rewrite import rewrite
from agentforge.stitch.moves import carry_out
from agentforge.testing.language import make_solution

VENDOR = ("gemm", "conv", "attention", "embedding")

BLOCK = '''
import torch
import torch.nn as nn


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Model(nn.Module):
    """A transformer block with tied weights, a buffer, a literal and several outputs."""

    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(50, width)
        self.norms = nn.ModuleList([Norm(width) for _ in range(2)])
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.head = nn.Linear(width, 50, bias=False)
        self.head.weight = self.embed.weight
        self.drop = nn.Dropout(0.1)
        self.register_buffer("mask", torch.ones(1, 8, 8).tril().bool(), persistent=False)

    def forward(self, ids, scale=1.0, *, extra=None):
        x = self.embed(ids)
        q, k, v = self.qkv(self.norms[0](x)).chunk(3, -1)
        scores = (q @ k.transpose(-1, -2) * 0.18).masked_fill(~self.mask, float("-inf"))
        x = (x + self.drop(scores.softmax(-1) @ v)) * scale
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            x = x.clamp(max=50.0)
        y = self.norms[1](self.down(torch.nn.functional.gelu(self.up(x))))
        if extra is not None:
            x = x + extra * torch.tensor([0.5])
        return {"logits": self.head(y), "rest": (x, ids + 1, 7)}


def get_inputs():
    return {"ids": torch.randint(0, 50, (2, 8)), "scale": 2.0, "extra": torch.randn(2, 8, 32)}


def get_init_inputs():
    return []
'''

CNN = '''
import torch
import torch.nn as nn


class Model(nn.Module):
    """Convolutions with in-place activations and a residual added in place."""

    def __init__(self, channels):
        super().__init__()
        self.a = nn.Conv2d(3, channels, 3, padding=1, bias=False)
        self.b = nn.Conv2d(channels, channels, 3, padding=1)
        self.n = nn.BatchNorm2d(channels)
        self.m = nn.BatchNorm2d(channels)
        self.act = nn.ReLU(inplace=True)
        self.fc = nn.Linear(channels, 5)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        self.seen += 1
        x = self.act(self.n(self.a(x)))
        y = self.m(self.b(x))
        y += x
        y = self.act(y)
        y[:, 0] = 0.0
        return self.fc(y.mean((2, 3))), y


def get_inputs():
    return [torch.randn(2, 3, 12, 12)]


def get_init_inputs():
    return [8]
'''

TOWERS = '''
import torch
import torch.nn as nn


class Model(nn.Module):
    """Two towers that meet in a product, and a gate."""

    def __init__(self, width):
        super().__init__()
        make = lambda: nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
        self.left, self.right = make(), make()
        self.gate, self.up = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, a, b):
        x = self.left(a) * self.right(b)
        return torch.sigmoid(self.gate(x)) * self.up(x), x


def get_inputs():
    return [torch.randn(4, 16), torch.randn(4, 16)]


def get_init_inputs():
    return [16]
'''

RMS_PY = """
import torch

from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x, weight):
        out = torch.empty_like(x)
        lib.rms(x, weight, out, x.numel() // x.shape[-1], x.shape[-1])
        return out
"""

RMS_CPP = """
#include <cmath>
#include <cstdint>
extern "C" void rms(const float* x, const float* w, float* out, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; r++) {
        float sum = 0;
        for (int64_t c = 0; c < columns; c++) sum += x[r * columns + c] * x[r * columns + c];
        float scale = 1 / std::sqrt(sum / columns + 1e-6f);
        for (int64_t c = 0; c < columns; c++) out[r * columns + c] = w[c] * (x[r * columns + c] * scale);
    }
}
"""


def target_of(source: str, name: str = "tiny") -> Target:
    definition = Definition(name=name, op_type="model", reference=source)
    return Target(
        name=name, origin=name, definition=definition, workloads=(Workload(name="w", source="reference"),)
    )


def from_reference(definition: Definition) -> Solution:
    """The region's own torch code as a solution."""
    text = definition.reference.replace("class Model(", "class ModelNew(")
    return make_solution("python", {"model_new.py": text}, definition=definition.hash)


def rms_kernel(definition: Definition) -> Solution | None:
    """A hand-written RMSNorm if the region is one with `(x, weight)`."""
    if "rsqrt" not in definition.reference or "def forward(self, x, weight)" not in definition.reference:
        return None
    files = {"model_new.py": RMS_PY, "kernel.cpp": RMS_CPP}
    return make_solution("cpp", files, definition=definition.hash)


@dataclass
class Stitched:
    """A stitched model on disk."""

    target: Target
    problem: Problem
    solution: Solution
    kernels: Mapping[str, Solution]
    plans: list[dict[str, Any]]
    sources: dict[str, str]
    refused: dict[str, str]
    folder: Path
    package: ModuleType
    places: Mapping[str, int]
    """Places of each move."""

    def model(self, seed: int = 0) -> torch.nn.Module:
        return self.problem.build(seed)

    def inputs(self, seed: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.problem.inputs(seed)


Choose = Callable[[Definition], Solution | None]


def choose_all(definition: Definition) -> Solution | None:
    """The hand-written kernel if there is one, else the region's own code; vendor calls stay."""
    if definition.op_type in VENDOR:
        return None
    return rms_kernel(definition) or from_reference(definition)


def stitch_in_process(
    source: str | Target,
    folder: Path,
    mode: Mode = "kernels",
    choose: Choose = choose_all,
    device: str = "cpu",
    moves: Sequence[MoveKind] = (),
) -> Stitched:
    """Capture, rewrite and write a model in this process: the test's own models are trusted.

    If the mode has streams, each operator is assumed to need 10 us of a tenth of the GPU.
    """
    target = target_of(source) if isinstance(source, str) else source
    target = target.model_copy(update={"device": device})
    packed = not {"packed", "bf16", "int8"}.isdisjoint(mode.split("+"))
    problem = load_problem(target.definition)
    model = problem.build(0).to(device)
    capture = capture_examples(model, examples_of(problem, target.workloads, 0, torch.device(device)))
    texts: dict[str, str] = {}
    plans, kernels, constants, refused = [], {}, {}, {}
    known: dict[str, Definition] = {}
    places = Counter[str]()
    for number, unit in enumerate(capture.units):
        regions = partition(unit.graph_module.graph)
        seen = record(unit, {n for r in regions for n in (*r.inputs, *r.outputs)})
        sites: list[dict[str, Any]] = []
        taken: set[str] = set()
        for region in regions:
            try:
                definition = known.setdefault(structure_key(region, seen), extract(region, seen).definition)
            except CannotExtract:
                continue
            solution = choose(definition)
            if solution is not None:
                taken |= {n.name for n in region.nodes}
                name = kernel_name(definition)
                kernels[name] = solution
                site = f"{unit.name}/{region.nodes[-1].name}"
                sites.append({"name": site, "kernel": name, "nodes": [n.name for n in region.nodes]})
        unit, found = carry_out(unit, moves, taken)
        places.update(found)
        replacements, _ = _replacements(unit, sites)
        file = f"units/unit{number}.py"
        working = (n.name for n in unit.graph_module.graph.nodes if kind_of(n) is not Kind.VIEW)
        measured = dict.fromkeys(working, (1e-5, 0.1)) if "streams" in mode else None
        rewritten = rewrite(unit, model.get_submodule(unit.path), replacements, file, measured, packed)
        plans.append(rewritten.plan)
        texts[file] = rewritten.source
        constants.update(rewritten.constants)
        refused.update(rewritten.refused)
    texts["constants.json"] = json.dumps(constants)
    files = stitched_files(target, mode, plans, texts, kernels)
    solution = as_solution(target, "test", files)
    write_solution(solution, folder)
    package = import_folder(folder)
    return Stitched(target, problem, solution, kernels, plans, texts, refused, folder, package, places)


def moved(arguments: Any, device: str) -> Any:
    """Arguments with their tensors on a device."""
    return _pytree.tree_map_only(torch.Tensor, lambda t: t.to(device), arguments)


def import_folder(folder: Path) -> ModuleType:
    """An artifact's folder as a package."""
    name = f"artifact_{abs(hash(str(folder)))}"
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def same(got: Any, expected: Any, tolerance: float = 1e-5) -> bool:
    """Whether two outputs have the same structure and nearly the same values."""
    if isinstance(expected, torch.Tensor):
        return got.dtype == expected.dtype and torch.allclose(got, expected, rtol=tolerance, atol=tolerance)
    if isinstance(expected, (tuple, list)):
        return type(got) is type(expected) and all(
            same(a, b, tolerance) for a, b in zip(got, expected, strict=True)
        )
    if isinstance(expected, dict):
        return got.keys() == expected.keys() and all(same(got[k], v, tolerance) for k, v in expected.items())
    return bool(got == expected)
