"""What operators say of a reference."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from agentforge.referee.baselines.operators import Operators, watching

IDS, TABLE = torch.randint(0, 64, (8, 8)), torch.randn(64, 4)


def hashed(ids: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        ids = (ids ^ (ids >> 15)) * 2246822519
    return (ids ^ (ids >> 16)) % 64


@pytest.mark.parametrize(
    "compute",
    [
        hashed,
        lambda ids: torch.nn.functional.embedding(hashed(ids), TABLE),
        lambda ids: TABLE[(ids.view(-1) * 31) & 63].sum(0),
        lambda ids: ids @ ids,
        lambda ids: torch.einsum("ij,kj->ik", ids, ids),
        lambda ids: ids.clone().mul_(3).bitwise_xor_(ids).sum(1),
        lambda ids: torch.stack([part + 1 for part in ids.split(4)]) % 7 < 3,
    ],
)
def test_integers_that_a_reference_only_computes_with(compute: Callable[[torch.Tensor], object]) -> None:
    with torch.no_grad(), Operators([TABLE, IDS]) as seen:
        compute(IDS)
    assert seen.arithmetic == [1]


@pytest.mark.parametrize(
    "compute",
    [
        lambda ids: TABLE[ids],
        lambda ids: torch.nn.functional.embedding(ids.view(-1) * 1, TABLE),
        lambda ids: torch.arange(8) < ids.sum(1, keepdim=True),
        lambda ids: torch.zeros(int(ids[0].sum())),
        lambda ids: (ids.sum(), [0] * ids.view(-1)[3:].tolist()[0]),
        lambda ids: (ids + 1).numpy(),
        lambda ids: (ids * 2).float().sum(),
        lambda ids: torch.where(ids > 3, ids, 0),
        lambda ids: torch.nn.functional.one_hot(ids.unbind()[0] + 0),
        lambda ids: torch.add(ids, ids, out=torch.empty_like(ids)) < 3,
        lambda ids: torch.zeros(8, 8).scatter(0, ids % ids.clamp(min=8), 1.0),
        lambda ids: torch.ones(3),
    ],
)
def test_integers_that_may_be_places_or_lengths(compute: Callable[[torch.Tensor], object]) -> None:
    with torch.no_grad(), Operators([IDS]) as seen:
        compute(IDS)
    assert not seen.arithmetic


def test_a_model_alone_is_watched() -> None:
    found: list[Operators] = []
    with torch.no_grad():
        watching(lambda table, ids: ids * 3, found)(TABLE, IDS).numpy()
    assert [seen.arithmetic for seen in found] == [[1]]


@pytest.mark.parametrize(
    ("compute", "chosen"),
    [
        (lambda ids: torch.where((ids * 5 + 2) // 153 < 10, ids + 3, ids - 9), [0]),
        (lambda ids: ids // 4 + ((ids + 1) <= 2), [0]),
        (lambda ids: torch.div(ids, 4, rounding_mode="floor") % 7, [0]),
        (lambda ids: ids / 4, []),
        (lambda ids: (ids * 3) % 7 <= 2, []),  # what a remainder leaves is no input's
        (lambda ids: (ids + 0 >= 3) & (ids * 2 < 90), [0]),
        (lambda ids: ids * 3, []),
        (lambda ids: ids >= 3, []),
        (lambda ids: ids + 1 > ids * 0, []),
        (lambda ids: TABLE[torch.where(ids + 0 < 10, ids, 0)], []),
        (lambda ids: torch.where(ids + 0 < 10, 1.0, 0.0), []),
    ],
)
def test_integers_among_whose_results_constants_choose(
    compute: Callable[[torch.Tensor], object], chosen: list[int]
) -> None:
    with torch.no_grad(), Operators([IDS]) as seen:
        compute(IDS)
    assert seen.chosen == chosen


@pytest.mark.parametrize(
    ("compute", "as_floats"),
    [
        (lambda ids: torch.outer(ids[0].float(), torch.rand(4)).cos(), [0]),
        (lambda ids: torch.empty(8, 8).copy_(ids * 3 + 1).sin(), [0]),
        (lambda ids: torch.where(ids + 0 < 10, ids, 0).double(), [0]),
        (lambda ids: (ids % 7).float(), []),  # what a remainder leaves is no input's
        (lambda ids: TABLE[ids].sum() + ids.float(), []),
        (lambda ids: ids.float().sum() + ids < 3, []),
        (lambda ids: (ids >= 3).float(), []),
        (lambda ids: ids.int(), []),
        (lambda ids: ids / 4, []),
        (lambda ids: ids * 3, []),
    ],
)
def test_integers_that_a_reference_makes_floats_of(
    compute: Callable[[torch.Tensor], object], as_floats: list[int]
) -> None:
    with torch.no_grad(), Operators([IDS]) as seen:
        compute(IDS)
    assert seen.as_floats == as_floats
    assert not as_floats or not {*seen.arithmetic, *seen.chosen}


@pytest.mark.parametrize(
    ("compute", "told_apart"),
    [
        (lambda ids: ids.clamp(min=0), [-1]),
        (lambda ids: ids.clamp(0, 9), [-1, 10]),
        (lambda ids: ids.clamp_max(9), [10]),
        (lambda ids: ids.view(-1).unsqueeze(1) >= 3, [2, 3]),
        (lambda ids: TABLE[ids] * (ids > 0)[..., None], [0, 1]),
        (lambda ids: TABLE[ids].masked_fill((ids == 5)[..., None], 0.0), [5]),
        (lambda ids: torch.arange(8) < ids, []),
        (lambda ids: (ids * 2) >= 3, []),
        (lambda ids: TABLE[ids] > 3, []),
    ],
)
def test_integers_that_a_constant_tells_apart(
    compute: Callable[[torch.Tensor], object], told_apart: list[int]
) -> None:
    with torch.no_grad(), Operators([TABLE, IDS]) as seen:
        compute(IDS)
    assert seen.of_inputs["thresholds"] == [[1, value] for value in told_apart]


@pytest.mark.parametrize(
    ("compute", "compared"),
    [
        (lambda ids: torch.arange(8) < ids, [1]),
        (lambda ids: ids.unsqueeze(1) >= 3, [1]),
        (lambda ids: ids == 3, []),
        (lambda ids: TABLE[ids] > 3, []),
    ],
)
def test_integers_that_are_compared_by_their_order(
    compute: Callable[[torch.Tensor], object], compared: list[int]
) -> None:
    with torch.no_grad(), Operators([TABLE, IDS]) as seen:
        compute(IDS)
    assert seen.of_inputs["compared"] == compared


@pytest.mark.parametrize(
    ("compute", "lowers"),
    [
        (lambda x: (x.bfloat16() @ x.t().bfloat16()).float(), True),
        (lambda x: x.half().float(), True),
        (lambda x: x @ x.t(), False),
        (lambda x: x.double().float().long(), False),
    ],
)
def test_a_reference_that_computes_in_16_bit_floats(
    compute: Callable[[torch.Tensor], object], lowers: bool
) -> None:
    with torch.no_grad(), Operators() as seen:
        compute(TABLE)
        compute(IDS.float())
    assert seen.lowers is lowers


def test_autocast_lowers_and_16_bit_inputs_alone_do_not() -> None:
    with torch.no_grad(), Operators() as seen, torch.autocast("cpu", dtype=torch.bfloat16):
        torch.nn.functional.linear(TABLE, TABLE)
    assert seen.lowers
    with torch.no_grad(), Operators() as seen:
        half = torch.ones(4, 4, dtype=torch.bfloat16)
        torch.nn.functional.layer_norm(half @ half, (4,)).relu()
    assert not seen.lowers


@pytest.mark.parametrize(
    ("compute", "places"),
    [
        (lambda ids: TABLE[ids.view(-1)], True),
        (lambda ids: torch.nn.functional.embedding(ids, TABLE), True),
        (lambda ids: TABLE.gather(0, ids[:, :4]), True),
        (lambda ids: torch.zeros(64, 4).index_add(0, ids.view(-1), torch.ones(ids.numel(), 4)), True),
        (lambda ids: torch.zeros(64).scatter_add(0, ids.view(-1), torch.ones(ids.numel())), True),
        (lambda ids: TABLE[ids % 64], False),
        (lambda ids: (TABLE[ids], ids + 1), False),
        (lambda ids: ids[torch.arange(4)], False),
        (lambda ids: torch.zeros(64).scatter(0, ids.view(-1), 1.0), False),
        (lambda ids: (TABLE[ids], ids.tolist()), False),
        (lambda ids: torch.ones(3), False),
    ],
)
def test_integers_that_are_only_places(compute: Callable[[torch.Tensor], object], places: bool) -> None:
    with torch.no_grad(), Operators([TABLE, IDS]) as seen:
        compute(IDS)
    assert seen.of_inputs["places"] == [1] * places


@pytest.mark.parametrize(
    ("compute", "measured"),
    [
        (lambda table, ids: torch.ones(table.shape[0], ids.size(-1)), [0, 1]),
        (lambda table, ids: table.view(1, *table.shape).mT.size(), [0]),
        (lambda table, ids: torch.nn.functional.layer_norm(table, (4,)), []),
        (lambda table, ids: (table[ids].shape, ids.dim()), []),
    ],
)
def test_inputs_whose_sizes_a_reference_reads(
    compute: Callable[[torch.Tensor, torch.Tensor], object], measured: list[int]
) -> None:
    with torch.no_grad(), Operators([TABLE, IDS]) as seen:
        compute(TABLE, IDS)
    assert seen.of_inputs["measured"] == measured
