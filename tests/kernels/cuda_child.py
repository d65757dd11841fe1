"""Builds the CUDA kernels for the emulator, runs their cases, prints a line of JSON for each.

`python -m tests.kernels.cuda_child FOLDER KERNEL...`, in a process of its own: it runs what it compiled.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import torch

from agentforge.codegen.library import KernelTemplate, kernel_templates
from agentforge.languages import languages, run_command
from agentforge.testing.language import make_solution

from . import cases
from .child import errors

BF16, FP16 = torch.bfloat16, torch.float16
FEW = {"threads": 64, "staged_bytes": 0, "piece": 64}
"""Parameters that bring small sizes to several passes and pieces."""


def rmsnorm(k: ModuleType, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> cases.Answer:
    x, weight = cases.rand(*shape, dtype=dtype), cases.rand(shape[-1], dtype=dtype)
    return (k.rmsnorm(x, weight, 1e-5), k.rmsnorm(x, None, 1e-5)), (
        cases.rms(x, weight, 1e-5), cases.rms(x, torch.ones_like(weight), 1e-5),
    )  # fmt: skip


def reduction(k: ModuleType, rows: int, cols: int, dtype: torch.dtype = torch.float32) -> cases.Answer:
    x = cases.rand(rows, cols, dtype=dtype) + 1
    wide, got, want = x.double(), [], []
    for how, function in (("sum", torch.sum), ("mean", torch.mean), ("max", torch.amax)):
        reduce: Callable[..., torch.Tensor] = function
        got += [k.reduce_rows(x, how), k.reduce_all(x, how)]
        want += [reduce(wide, dim=-1), reduce(wide, dim=(0, 1))]
    x[1, 2] = float("nan")
    assert torch.isnan(k.reduce_rows(x, "max")).tolist() == [row == 1 for row in range(rows)]
    return tuple(got), tuple(w.to(dtype) for w in want)


def out_of_range(k: ModuleType) -> cases.Answer:
    logits = torch.randn(3, 8)
    loss = k.cross_entropy(logits, torch.tensor([1, 8, -1]), "none")
    return torch.isnan(loss).float(), torch.tensor([0.0, 1.0, 1.0])


def strange_product(k: ModuleType) -> cases.Answer:
    """A NaN and an infinity reach their row only, also through an activation and beside a tile's padding."""
    a, weight = cases.rand(20, 37, dtype=FP16), cases.rand(24, 37, dtype=FP16)
    a[1, 3], a[2, 2] = float("nan"), float("inf")
    exact = a.double() @ weight.double().t()
    found = (k.matmul(a, weight.t()), k.matmul(a, weight.t(), None, "relu"))
    return tuple(map(cases.with_nans, found)), tuple(
        cases.with_nans(want.to(FP16)) for want in (exact, torch.relu(exact))
    )


def strange_attention(k: ModuleType) -> cases.Answer:
    """A NaN in a query reaches its row only, one in a value its column; large scores do not overflow."""
    q, key, value = (cases.rand(1, 1, n, 40, dtype=BF16) for n in (70, 90, 90))
    q[0, 0, 3], q[0, 0, 4] = float("nan"), 1e4
    value[0, 0, 80, 7] = float("nan")
    want = (q.double() @ key.double().transpose(-1, -2) / 40**0.5).softmax(-1) @ value.double()
    return cases.with_nans(k.attention(q, key, value)), cases.with_nans(want.to(BF16))


def attention_of_infinities(k: ModuleType) -> cases.Answer:
    """Scores of -inf in the whole first tile count as 0 weights; without keys the answer is 0."""
    q, key, value = (cases.rand(1, 1, n, 40, dtype=BF16).abs() for n in (20, 90, 90))
    key[..., :70, 0] = -float("inf")
    want = (q.double() @ key.double().transpose(-1, -2) / 40**0.5).softmax(-1) @ value.double()
    none = k.attention(q, key[:, :, :0], value[:, :, :0])
    return (k.attention(q, key, value), none), (want.to(BF16), torch.zeros_like(none))


def refused(call: Callable[..., torch.Tensor], *shapes: tuple[int, ...]) -> cases.Answer:
    """Shapes that do not fit are an error and no reads beyond a tensor."""
    try:
        call(*map(torch.ones, shapes))
    except ValueError as error:
        assert "does not fit" in str(error)
        return torch.ones(1), torch.ones(1)
    raise AssertionError("it was launched")


def unaligned_rotary(k: ModuleType, *shape: int) -> cases.Answer:
    def shifted(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        memory = torch.empty(x.numel() + 1, dtype=x.dtype)
        return k.rotary(memory[1:].view(x.shape).copy_(x), cos, sin)  # type: ignore[no-any-return]

    return cases.rotary(cast(ModuleType, SimpleNamespace(rotary=shifted)), *shape, dtype=BF16)


CASES: dict[str, tuple[str, dict[str, int], Callable[[ModuleType], cases.Answer]]] = {
    "softmax": ("cuda-softmax", {}, lambda k: cases.softmax(k, (3, 5, 37))),
    "softmax wide access": ("cuda-softmax", {}, lambda k: cases.softmax(k, (4, 1024))),
    "softmax not staged": ("cuda-softmax", FEW, lambda k: cases.softmax(k, (3, 333))),
    "softmax bf16": ("cuda-softmax", FEW, lambda k: cases.softmax(k, (3, 104), BF16)),
    "softmax fp16": ("cuda-softmax", {}, lambda k: cases.softmax(k, (3, 101), FP16)),
    "softmax strange rows": ("cuda-softmax", {}, lambda k: cases.strange_rows(k, 40)),
    "softmax not staged, strange rows": ("cuda-softmax", FEW, lambda k: cases.strange_rows(k, 1040, BF16)),
    "rmsnorm": ("cuda-norms", {}, lambda k: rmsnorm(k, (2, 3, 61))),
    "rmsnorm not staged": ("cuda-norms", FEW, lambda k: rmsnorm(k, (3, 256))),
    "rmsnorm bf16": ("cuda-norms", {}, lambda k: rmsnorm(k, (3, 104), BF16)),
    "layernorm": ("cuda-norms", {}, lambda k: cases.layernorm(k, (2, 3, 64))),
    "layernorm not staged": ("cuda-norms", FEW, lambda k: cases.layernorm(k, (3, 257))),
    "layernorm fp16": ("cuda-norms", FEW, lambda k: cases.layernorm(k, (3, 104), FP16)),
    "cross-entropy": ("cuda-cross-entropy", {}, lambda k: cases.cross_entropy(k, 7, 61)),
    "cross-entropy few threads": ("cuda-cross-entropy", FEW, lambda k: cases.cross_entropy(k, 3, 332)),
    "cross-entropy strange rows": ("cuda-cross-entropy", FEW, lambda k: cases.strange_rows(k, 1040, FP16)),
    "cross-entropy bf16": ("cuda-cross-entropy", {}, lambda k: cases.cross_entropy(k, 5, 104, BF16)),
    "cross-entropy class out of range": ("cuda-cross-entropy", {}, out_of_range),
    "reduction": ("cuda-reduction", {}, lambda k: reduction(k, 5, 61)),
    "reduction pieces": ("cuda-reduction", FEW, lambda k: reduction(k, 33, 132)),
    "reduction strange rows": ("cuda-reduction", FEW, lambda k: cases.strange_rows(k, 136)),
    "reduction fp16": ("cuda-reduction", FEW, lambda k: reduction(k, 5, 61, FP16)),
    "attention": ("cuda-attention", {}, lambda k: cases.attention(k, 2, 70, 70, 32)),
    "attention odd, few threads": ("cuda-attention", FEW, lambda k: cases.attention(k, 2, 37, 53, 75)),
    "attention fp16": ("cuda-attention", {}, lambda k: cases.attention(k, 2, 70, 150, 24, FP16)),
    "attention fp16 long heads": ("cuda-attention", {}, lambda k: cases.attention(k, 1, 130, 129, 128, FP16)),
    "attention bf16": ("cuda-attention", FEW, lambda k: cases.attention(k, 1, 33, 40, 13, BF16)),
    "attention of NaN": ("cuda-attention", {}, strange_attention),
    "attention of infinities": ("cuda-attention", {}, attention_of_infinities),
    "attention of fewer heads": (
        "cuda-attention",
        {},
        lambda k: refused(k.attention, (1, 4, 5, 8), (1, 2, 5, 8), (1, 2, 5, 8)),
    ),
    "matmul of other sizes": ("cuda-matmul", {}, lambda k: refused(k.matmul, (3, 4), (5, 6))),
    "matmul with a short bias": ("cuda-matmul", {}, lambda k: refused(k.matmul, (3, 4), (4, 6), (5,))),
    "fused mlp of other sizes": (
        "cuda-fused-mlp",
        {},
        lambda k: refused(k.gated_products, (3, 4), (5, 4), (6, 4)),
    ),
    "rotary of fewer positions": (
        "cuda-rotary",
        {},
        lambda k: refused(k.rotary, (1, 2, 3, 8), (2, 8), (2, 8)),
    ),
    "matmul of NaN and infinity": ("cuda-matmul", {}, strange_product),
    "matmul": ("cuda-matmul", {}, lambda k: cases.matmul(k, 33, 65, 40)),
    "matmul several tiles": ("cuda-matmul", {"group": 1}, lambda k: cases.matmul(k, 140, 136, 68)),
    "matmul tiles in groups": ("cuda-matmul", {"group": 2}, lambda k: cases.matmul(k, 300, 136, 20)),
    "matmul fp16": ("cuda-matmul", {}, lambda k: cases.matmul(k, 33, 65, 40, FP16)),
    "matmul fp16 several tiles": ("cuda-matmul", {}, lambda k: cases.matmul(k, 140, 264, 136, FP16)),
    "matmul bf16 odd": ("cuda-matmul", {}, lambda k: cases.matmul(k, 130, 17, 37, BF16)),
    "fused mlp": ("cuda-fused-mlp", {}, lambda k: cases.fused_mlp(k, 9, 40, 70)),
    "fused mlp odd": ("cuda-fused-mlp", {}, lambda k: cases.fused_mlp(k, 9, 37, 51)),
    "fused mlp fp16 several tiles": (
        "cuda-fused-mlp",
        {"group": 1},
        lambda k: cases.fused_mlp(k, 130, 136, 72, FP16),
    ),
    "fused mlp bf16": ("cuda-fused-mlp", {}, lambda k: cases.fused_mlp(k, 9, 40, 33, BF16)),
    "rotary": ("cuda-rotary", {}, lambda k: cases.rotary(k, 2, 3, 5, 12)),
    "rotary wide access": ("cuda-rotary", {}, lambda k: cases.rotary(k, 2, 11, 37, 64)),
    "rotary many batches": ("cuda-rotary", {}, lambda k: cases.rotary_in_parts(k, 5, 3, 4, 64)),
    "rotary fp16 odd": ("cuda-rotary", FEW, lambda k: cases.rotary(k, 2, 3, 37, 6, dtype=FP16)),
    "rotary fp16 wide access": ("cuda-rotary", FEW, lambda k: cases.rotary(k, 1, 5, 9, 32, dtype=FP16)),
    "rotary bf16": ("cuda-rotary", {}, lambda k: cases.rotary(k, 1, 4, 3, 16, dtype=BF16)),
    "rotary bf16 unaligned": ("cuda-rotary", {}, lambda k: unaligned_rotary(k, 1, 4, 3, 16)),
    "reduction bf16": ("cuda-reduction", {}, lambda k: reduction(k, 4, 128, BF16)),
}
"""Case to kernel, parameters and what is computed."""


def build(template: KernelTemplate, folder: Path, cache: Path) -> dict[str, Any]:
    """Build a kernel's file for the emulator; what the build says."""
    folder.mkdir(parents=True)
    sources = {"model_new.py": template.render(), **{f.path: f.content for f in template.files}}
    solution = make_solution("cuda", sources, tuple(f"--target={t}" for t in ("sm_80", "sm_90", "sm_100")))
    built = languages.create("cuda").build(solution, folder, cache=cache, run=run_command, timeout_s=200)
    resources = [r.model_dump(mode="json") for r in built.resources]
    return {"ok": built.ok and not built.unjudged, "log": built.log + built.unjudged, "resources": resources}


def load(name: str, folder: Path) -> ModuleType:
    """What was built, as a module."""
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location(name, folder / "model_new.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def most_shared(module: ModuleType) -> int:
    """Bytes of shared memory that a block asks for at its launch, at most."""
    if not hasattr(module, "shared_bytes"):
        return getattr(module, "SHARED", 0)
    tile = module.PARAMETERS["threads"] // 2
    return max(module.shared_bytes(tile, 128, torch.empty(0, dtype=t)) for t in (torch.float32, BF16))


def main(root: Path, names: list[str]) -> None:
    """Build the kernels, two at a time; run their cases."""
    torch.set_num_threads(1)
    found = [kernel_templates()[name] for name in names]
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda t: build(t, root / t.id, root / "cache"), found))
    for template, line in zip(found, said, strict=True):
        module = load(template.id, root / template.id)
        print(json.dumps({"kernel": template.id, "shared": most_shared(module), **line}), flush=True)
        defaults = dict(module.PARAMETERS)
        for case, (kernel, parameters, run) in CASES.items():
            if kernel == template.id:
                module.PARAMETERS.update({**defaults, **parameters})
                print(json.dumps(answer(case, run, module)), flush=True)


def answer(case: str, run: Callable[[ModuleType], cases.Answer], module: ModuleType) -> dict[str, Any]:
    torch.manual_seed(0)
    try:
        return {"case": case, "errors": errors(*run(module))}
    except Exception as error:
        return {"case": case, "raised": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
