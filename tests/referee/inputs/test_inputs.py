from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from agentforge.referee.inputs import mixing as recipes
from agentforge.referee.inputs.inputs import FRESH_BYTES, Arguments, Inputs, arguments_of, drawn_numbers
from agentforge.schema import Distribution, DType, ScalarInput, TensorInput, Workload

SMALL, LARGE = (16, 32), (512, 1024)


def workload(shape, **inputs):
    tensors = [TensorInput(name=n, shape=shape, dtype=d, distribution=x) for n, (d, x) in inputs.items()]
    return Workload(name="w", inputs=(*tensors, ScalarInput(name="eps", value=1e-6, keyword=True)))


def made(load):
    return Inputs(load, arguments_of(load), None)


@pytest.mark.parametrize("shape", [SMALL, LARGE])
def test_content_is_new_each_time_and_keeps_its_distribution(shape):
    load = workload(
        shape,
        x=(DType.FLOAT32, Distribution(kind="uniform", a=2.0, b=3.0)),
        ids=(DType.INT64, Distribution(kind="integers", a=5, b=50)),
        mask=(DType.BOOL, Distribution(kind="bernoulli", a=0.3)),
        one=(DType.FLOAT32, Distribution(kind="constant", a=1.0)),
    )
    inputs = made(load)
    assert (inputs.slot_bytes > FRESH_BYTES) == (shape == LARGE)
    seen = []
    for _ in range(4):
        inputs.fill(0)
        x, ids, mask, one = (t.clone() for t in inputs.tensors(0))
        assert x.min() >= 2.0
        assert x.max() <= 3.0
        assert ids.min() >= 5
        assert ids.max() < 50
        assert 0.2 < mask.float().mean() < 0.4
        assert (one == 1).all()
        seen.append(x)
    assert all(not torch.equal(a, b) for i, a in enumerate(seen) for b in seen[:i])
    assert sum(float((a == b).float().mean()) for a, b in pairwise(seen)) < 0.01
    inputs.close()


def test_a_recipe_can_be_applied_again_anywhere():
    inputs = made(workload(LARGE, x=(DType.FLOAT32, Distribution())))
    recipes = [inputs.prepare() for _ in range(3)]
    inputs.apply(recipes[1], 0)
    inputs.apply(recipes[0], 1)
    inputs.apply(recipes[1], 2)
    first, other, again = (inputs.tensors(slot)[0] for slot in range(3))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    inputs.close()


def test_masks_and_normalised_rows_keep_their_form():
    mask = torch.full((1024, 1024), float("-inf")).triu(1)
    rows = torch.randn(1024, 1024).softmax(1)
    arguments = arguments_of(
        workload((1024, 1024), mask=(DType.FLOAT32, Distribution()), rows=(DType.FLOAT32, Distribution()))
    )
    load = Workload(name="w", source="reference")
    inputs = Inputs(load, arguments, lambda seed: [mask, rows])
    inputs.fill(0)
    got_mask, got_rows = inputs.tensors(0)
    assert set(got_mask.unique().tolist()) <= {0.0, float("-inf")}
    assert torch.allclose(got_rows.sum(1), torch.ones(1024), atol=1e-4)
    inputs.close()


def test_strides_of_the_specification_are_kept():
    spec = TensorInput(name="x", shape=(8, 4), dtype=DType.FLOAT32, strides=(1, 8))
    inputs = made(Workload(name="w", inputs=(spec,)))
    inputs.fill(1)
    assert inputs.tensors(1)[0].stride() == (1, 8)
    assert arguments_of(workload(SMALL)).encoded["kwargs"] == {"eps": 1e-6}
    inputs.close()


@pytest.mark.parametrize("shape", [SMALL, LARGE])
def test_each_content_of_a_slot_is_another_one(shape):
    inputs = made(workload(shape, x=(DType.FLOAT32, Distribution())))
    inputs.fill(0)
    first, seen = inputs.content(0), inputs.tensors(0)[0].clone()
    inputs.fill(0)
    assert inputs.content(0) is not first
    assert torch.equal(first.tensor(inputs.layouts[0]), seen)
    assert not torch.equal(inputs.tensors(0)[0], seen)
    content = inputs.make(inputs.prepare())
    inputs.place(content, 1)
    assert inputs.content(1) is content
    inputs.close()


@pytest.mark.parametrize("roll", [1, 137, 511])
def test_content_made_by_pieces_is_what_it_is_made_from(roll, monkeypatch):
    monkeypatch.setattr(recipes, "_PIECE_BYTES", 96 << 10)
    inputs = made(workload(LARGE, x=(DType.FLOAT32, Distribution())))
    base, weights = torch.randn(LARGE), recipes.Weights.drawn(0.5, torch.Generator())
    inputs.apply([recipes.Rolled(recipes.stored([base])[0], weights, roll)], 0)
    everywhere = weights.of(0, base.numel(), torch.float32).view(LARGE)
    assert torch.equal(inputs.tensors(0)[0], torch.lerp(base, base.roll(-roll, 0), everywhere))
    inputs.close()


@pytest.mark.parametrize("rows", [1, 8])
def test_no_mixture_of_earlier_contents_is_a_later_one(rows):
    inputs = made(workload((rows, (1 << 19) // rows), x=(DType.FLOAT32, Distribution())))
    inputs.fill(0)
    assert inputs.slot_bytes > FRESH_BYTES
    seen = []
    for _ in range(6):
        inputs.fill(0)
        seen.append(inputs.tensors(0)[0].double())
    some = torch.arange(0, seen[0].shape[1], 100)
    known, last = torch.cat(seen[:-1])[:, some], seen[-1][:, some]
    mixture = torch.linalg.lstsq(known.T, last.T).solution
    assert (known.T @ mixture - last.T).norm() > 1e-2 * last.norm()
    inputs.close()


def test_a_slot_has_its_content_again_after_it_was_given_another():
    inputs = made(workload(SMALL, x=(DType.FLOAT32, Distribution())))
    inputs.fill(0)
    before = inputs.tensors(0)[0].clone()
    with inputs.kept(0):
        inputs.give(0, [before + 1])
        assert torch.equal(inputs.tensors(0)[0], before + 1)
    assert torch.equal(inputs.tensors(0)[0], before)
    inputs.close()


@pytest.mark.parametrize(("most", "anew"), [(1 << 50, True), (1000, False)])
@pytest.mark.parametrize("shape", [(), (1,), (3,)])
def test_a_few_integers_of_many_values_are_drawn_anew(most, anew, shape):
    load = workload(LARGE, x=(DType.FLOAT32, Distribution()))
    integers = Distribution(kind="integers", a=0, b=most)
    seed = TensorInput(name="seed", shape=shape, dtype=DType.INT64, distribution=integers)
    inputs = made(load.model_copy(update={"inputs": (*load.inputs, seed)}))
    seen = []
    for _ in range(6):
        inputs.fill(0)
        seen += inputs.tensors(0)[-1].flatten().tolist()
    assert inputs.anew is anew
    if anew:
        assert len(set(seen)) == len(seen)
    inputs.close()


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [(5, 900_000, True), (5, 70, False), (0.5, 0.6, True), (0.5, 0.5, False), (False, True, False)],
)
def test_numbers_that_are_drawn_are_told_from_constants(one, other, differ):
    tensor = {"tensor": [[4], "int64", [1], 0]}

    def given(value):
        return Arguments({"args": [tensor, {"tuple": [value, "text"]}], "kwargs": {"k": 3}}, 64)

    assert drawn_numbers(given(one), lambda: given(other)) is differ
