"""What experience from elsewhere weighs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentforge.knowledge.ranking.similarity import DEFAULT, freshness, similarity
from agentforge.schema import Context
from agentforge.store import Experience
from tests.store.nouns import context

NOW = datetime(2026, 6, 1, tzinfo=UTC)
KINDS = st.dictionaries(st.sampled_from(["reduction", "pointwise", "gemm"]), st.integers(1, 9))
CONTEXTS = st.builds(
    Context,
    op_type=st.sampled_from(["norm", "softmax", "custom"]),
    shape_class=st.sampled_from(["", "dram/many-rows", "l2/few-rows"]),
    dtype=st.sampled_from(["float32", "bfloat16"]),
    architecture=st.sampled_from(["x86_64 avx2", "x86_64 avx512", "aarch64 neon", "sm_80", "sm_90", ""]),
    toolchain=st.sampled_from(["", "g++-12", "g++-14", "clang++-17", "triton-3"]),
    bound=st.sampled_from(["", "memory", "compute"]),
    operators=KINDS.map(lambda kinds: tuple(sorted(kinds.items()))),
    intensity=st.none() | st.integers(-4, 8),
)


@given(CONTEXTS, CONTEXTS)
def test_it_is_symmetric_and_at_most_one(first: Context, second: Context) -> None:
    weight = similarity(first, second)
    assert weight == pytest.approx(similarity(second, first))
    assert 0 <= weight <= 1 + 1e-12
    assert similarity(first, first) == 1


@pytest.mark.parametrize(
    ("changes", "weight"),
    [
        ({"shape_class": "l2/many-rows"}, 0.7),
        ({"shape_class": "l2/few-rows"}, 0.49),
        ({"dtype": "bfloat16"}, 0.67),
        ({"toolchain": "g++-14"}, 0.85**2),
        ({"toolchain": "clang++-12"}, 0.85**3),
        ({"bound": "compute"}, 0.55),
        ({"bound": ""}, 1.0),
        ({"architecture": "x86_64 avx2"}, 0.4),
        ({"architecture": "sm_90"}, 0.0),
    ],
)
def test_each_part_that_differs_costs_its_factor(changes: dict[str, str], weight: float) -> None:
    asked = context(architecture="x86_64 avx512")
    assert similarity(context(**{"architecture": "x86_64 avx512", **changes}), asked) == pytest.approx(weight)


@pytest.mark.parametrize(
    "changes",
    [
        {"toolchain": "g++-²"},
        {"toolchain": "g++-" + "9" * 5000},
        {"architecture": "sm_" + "9" * 5000},
    ],
)
def test_a_name_that_only_looks_like_a_version_is_another_one(changes: dict[str, str]) -> None:
    assert similarity(context(**changes), context(architecture="sm_90")) < 1


def test_two_generations_of_a_gpu_are_farther_than_one() -> None:
    asked = context(architecture="sm_100")
    one, two = (similarity(context(architecture=name), asked) for name in ("sm_90", "sm_80"))
    assert (one, two) == (pytest.approx(0.4), pytest.approx(0.16))


def of(op_type: str, intensity: int = 0, **kinds: int) -> Context:
    return context(op_type=op_type).model_copy(
        update={"operators": tuple(kinds.items()), "intensity": intensity}
    )


def test_other_operators_with_a_graph_like_it_say_something() -> None:
    norm = of("norm", reduction=1, pointwise=4)
    softmax = of("softmax", reduction=2, pointwise=3)
    product = of("gemm", gemm=1)
    assert similarity(softmax, norm) > 0.4
    assert similarity(product, norm) == 0
    assert similarity(context(op_type="softmax"), context()) == 0, "without a graph a class is all there is"


def test_a_whole_kernel_learns_from_regions() -> None:
    assert similarity(of("norm", reduction=1, pointwise=4), of("custom", reduction=2, pointwise=9)) > 0.4


def test_the_class_of_whole_references_says_nothing() -> None:
    product, rows = of("custom", gemm=1), of("custom", reduction=2, pointwise=9)
    assert similarity(product, rows) == 0
    assert similarity(product, product.model_copy(update={"dtype": "bfloat16"})) == DEFAULT.dtype
    unknown = context(op_type="custom")
    assert similarity(unknown, context(op_type="custom", shape_class="l2/few-rows")) == 0
    assert similarity(unknown, rows) == 0


def test_intensity_separates_what_kinds_do_not() -> None:
    asked = of("attention", 2, gemm=2)
    assert similarity(of("attention", 2, gemm=4), asked) > similarity(of("attention", 6, gemm=4), asked)


def test_experience_ages_by_time_generator_and_pair() -> None:
    def weight(days: float = 0, after: str = "", generator: str = "") -> float:
        newest = NOW - timedelta(days=days)
        record = Experience(context=context(), newest=newest, after=after, generator=generator)
        return freshness(record, "fuse", "new", NOW)

    assert weight(after="fuse") == 1
    assert weight() == DEFAULT.after
    assert weight(after="fuse", generator="new") == 1
    assert weight(after="fuse", generator="old") == DEFAULT.generator
    assert weight(180, after="fuse") == pytest.approx(0.5)
    assert weight(5000, after="fuse") == DEFAULT.least_age
    assert weight(-5000, after="fuse") == 1, "nothing from the future weighs more"
