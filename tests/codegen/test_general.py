"""Generated kernels for a range of sizes, really compiled and run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from agentforge.codegen import Options, flags_of, generate
from agentforge.schema import ScalarInput, Workload

from .compiled import load, problem

BODY = """
n0, n1 = x0.shape[0], x0.shape[1]
h = F.layer_norm(x0 + x1, [48], x2, x2)
return F.gelu(h).view(n0 * n1, 48), h.transpose(1, 2).softmax(-1)
"""


@pytest.mark.slow
def test_one_program_is_right_between_the_sizes_that_it_was_made_from(tmp_path: Path) -> None:
    torch.manual_seed(0)

    def inputs(batch: int, length: int) -> list[torch.Tensor]:
        x = torch.randn(batch, length, 48)
        return [x, torch.randn_like(x), torch.randn(48)]

    sizes = [(1, 4), (1, 700), (4, 64), (9, 4), (9, 700)]
    definition, _ = problem(BODY, inputs(1, 4))
    workloads = tuple(Workload(name=str(s), inputs=problem(BODY, inputs(*s))[1].inputs) for s in sizes)
    options = Options(threads=2)
    files = generate(definition, workloads, options)
    new = load(files, tmp_path, flags_of(options))
    kernels = next(f.content for f in files if f.path == "kernel.cpp")
    assert "int64_t n0" in kernels
    from agentforge.problems.kernelbench import load_problem

    old = load_problem(definition).build(0)
    for batch, length in [*sizes, (2, 5), (3, 77), (7, 131), (8, 699), (1, 97), (9, 48), (2, 2)]:
        given = inputs(batch, length)
        torch.testing.assert_close(new(*given), old(*given), rtol=2e-5, atol=2e-5)
    for batch, length in [(10, 64), (4, 701)]:
        with pytest.raises(ValueError, match="generated for other inputs"):
            new(*inputs(batch, length))


@pytest.mark.slow
def test_a_program_for_a_range_checks_indices(tmp_path: Path) -> None:
    table, body = torch.randn(50, 16), "return F.embedding(x1, x0) * 2"
    sizes = [torch.randint(0, 50, (count, 3)) for count in (4, 64, 700)]
    definition, _ = problem(body, [table, sizes[0]])
    workloads = tuple(Workload(name=str(len(i)), inputs=problem(body, [table, i])[1].inputs) for i in sizes)
    options = Options(threads=2)
    files = generate(definition, workloads, options)
    assert any("int64_t n0" in f.content for f in files)
    new = load(files, tmp_path, flags_of(options))
    indices = torch.randint(0, 50, (77, 3))
    assert torch.equal(new(table, indices), table[indices] * 2)
    indices[76, 2] = 50
    with pytest.raises(IndexError, match="index 50 is out of bounds"):
        new(table, indices)


UNLIKE: dict[str, tuple[str, tuple[int, ...], tuple[int, ...]]] = {
    "full groups of rows": (
        "n = x0.shape[1]\n"
        "w = F.pad(x0, (0, 0, 0, -n % 8)).view(2, -1, 8, 64)\n"
        "return (w - w.mean(2, keepdim=True)).view(2, -1, 64)[:, :n]",
        (256, 512, 1024),
        (304, 640),
    ),
    "a branch on parity": (
        "return x0 * 2 if x0.shape[1] % 2 else x0 + 1",
        (10, 20, 41, 50, 61, 70, 71),
        (),
    ),
    "a branch on size": (
        "return x0 * 2 if x0.shape[1] > 500 else x0 + 1",
        (256, 300, 350, 512, 700, 1024),
        (301, 640),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", UNLIKE)
def test_sizes_for_which_the_reference_does_something_else_are_refused(name: str, tmp_path: Path) -> None:
    body, sizes, between = UNLIKE[name]
    inputs = {n: torch.randn(2, n, 64) for n in (*sizes, *between, 15, 16, 45, 69, 407, 490, 499, 501, 703)}
    definition, _ = problem(body, [inputs[sizes[0]]])
    workloads = tuple(Workload(name=str(n), inputs=problem(body, [inputs[n]])[1].inputs) for n in sizes)
    options = Options(threads=2)
    new = load(generate(definition, workloads, options), tmp_path, flags_of(options))
    from agentforge.problems.kernelbench import load_problem

    old = load_problem(definition).build(0)
    for n, x in inputs.items():
        try:
            got = new(x)
        except ValueError:
            assert n not in (*sizes, *between)
            continue
        torch.testing.assert_close(got, old(x))


@pytest.mark.slow
@pytest.mark.parametrize("body", ["return x0 + x1", "return (x0 + x1).softmax(-1)"])
def test_streamed_rows_may_be_longer_than_those_that_a_program_was_made_from(
    body: str, tmp_path: Path
) -> None:
    sizes = (200, 431, 600, 1000, 2000)
    inputs = {n: [torch.randn(512, n), torch.randn(n)] for n in (*sizes, 1500)}
    definition, _ = problem(body, inputs[200])
    workloads = tuple(Workload(name=str(n), inputs=problem(body, inputs[n])[1].inputs) for n in sizes)
    options = Options(threads=2, nontemporal="on", stage="off")
    files = generate(definition, workloads, options)
    kernels = next(f.content for f in files if f.path == "kernel.cpp").split('extern "C"')
    written = [line for k in kernels if "int64_t n0" in k for line in k.splitlines() if "tile0[c" in line]
    assert written
    assert all("- (low)]" in line for line in written)
    new = load(files, tmp_path, flags_of(options))
    x, y = inputs[1500]
    expected = x + y if "softmax" not in body else (x + y).softmax(-1)
    torch.testing.assert_close(new(x, y), expected)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(4, 64, 700), (4, 4, 4)])
def test_numbers_choose_the_program(sizes: tuple[int, ...], tmp_path: Path) -> None:
    """One number for all sizes, or one size with several numbers."""
    one = len(set(sizes)) > 1
    values = (2.5, 2.5, 2.5) if one else (2, 2.0, True)
    tensors = [torch.randn(n, 33) for n in sizes]
    definition, _ = problem("return x0 * s", tensors[:1])
    definition = definition.model_copy(
        update={"reference": definition.reference.replace("forward(self, x0)", "forward(self, x0, s)")}
    )
    workloads = tuple(
        Workload(name=str(n), inputs=(*problem("", [t])[1].inputs, ScalarInput(name="s", value=value)))
        for n, (t, value) in enumerate(zip(tensors, values, strict=True))
    )
    options = Options(threads=2)
    files = generate(definition, workloads, options)
    assert any("int64_t n0" in f.content for f in files) == one
    new = load(files, tmp_path, flags_of(options))
    for tensor, value in zip(tensors, values, strict=True):
        assert torch.equal(new(tensor, value), tensor * value)
        assert torch.equal(new(tensor), tensor * values[0])
    if one:
        assert torch.equal(new(torch.ones(77, 33), 2.5), torch.full((77, 33), 2.5))
    for other in (3.5, 3, False, None):
        with pytest.raises(ValueError, match="generated for other inputs"):
            new(tensors[0], other)
