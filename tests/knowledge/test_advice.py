"""Which cards an agent gets, in which order, and how many."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from agentforge.agents.llm.prompts import with_advice
from agentforge.knowledge import Advisor, line_of
from agentforge.knowledge.advice import FRAME
from agentforge.schema import (
    Advice,
    Bound,
    CardKind,
    Classification,
    Context,
    Metric,
    Reason,
    ReasonCode,
    ResourceUsage,
)
from agentforge.testing.agents import make_task
from tests.store import nouns

ALL = (CardKind.AVOID, CardKind.SYMPTOM, CardKind.HARDWARE)
CONTEXT = Context(op_type="norm", architecture="x86-64 avx512", bound=Bound.MEMORY)


def card(name: str, kind: CardKind = CardKind.AVOID, **changes: Any) -> Advice:
    fields = {"title": name, "summary": f"About {name}.", "source": "A paper, 2020", **changes}
    return Advice.model_validate({"id": name, "kind": kind, **fields})


def chosen(*cards: Advice, tokens: int = 600, **changes: Any) -> list[str]:
    call = {"evaluation": None, "words": "", "kinds": ALL}
    call |= {name: changes.pop(name) for name in list(changes) if name in call}
    fields = {"context": CONTEXT, "languages": ("cpp",), "device": "cpu", **changes}
    return [c.id for c in Advisor(cards, tokens=tokens, **fields)(**call)]


@pytest.mark.parametrize(
    ("changes", "applies"),
    [
        ({}, True),
        ({"op_types": ["norm"]}, True),
        ({"op_types": ["softmax"]}, False),
        ({"bounds": ["memory"]}, True),
        ({"bounds": ["compute"]}, False),
        ({"languages": ["cpp"]}, True),
        ({"languages": ["triton"]}, False),
        ({"devices": ["cuda"]}, False),
        ({"architectures": ["avx512"]}, True),
        ({"architectures": ["x86-64", "neon"]}, True),
        ({"architectures": ["avx2"]}, False),
        ({"signals": ["launches >= 1"]}, False),
    ],
)
def test_structure_decides_first(changes: dict[str, Any], applies: bool) -> None:
    assert bool(chosen(card("x", **changes))) is applies


def test_without_a_gpu_kernels_for_one_get_the_facts_of_its_target() -> None:
    facts = [
        card("h100", CardKind.HARDWARE, architectures=["sm_90"], devices=["cuda"]),
        card("zmm", CardKind.HARDWARE, architectures=["avx512"]),
    ]
    assert chosen(*facts, languages=("triton",)) == ["h100"]
    assert chosen(*facts) == ["zmm"]


def test_cupy_reads_the_cards_of_cuda() -> None:
    cards = [card("ptx", languages=["cuda"], devices=["cuda"]), card("mask", languages=["triton"])]
    assert chosen(*cards, languages=("cupy",)) == ["ptx"]


def test_signals_of_the_evaluation_are_matched() -> None:
    seen = nouns.evaluation(nouns.solution()).model_copy(
        update={
            "metrics": (
                Metric(name="missed_loops", value=2),
                Metric(name="launches", value=9, kernel="other"),
                Metric(name="launches", value=1, kernel="k"),
            ),
            "codes": (ReasonCode.NOISY_CONTROL,),
            "resources": (ResourceUsage(kernel="k", target="sm_90", registers=255, spill_store_bytes=8),),
            "classification": Classification(
                bound=Bound.COMPUTE,
                kernel="k",
                reasons=(Reason(metric="flops_share", value=0.7, relation="at least", threshold=0.6),),
            ),
        }
    )
    shown = ["missed_loops >= 1", "noisy_control", "spilled_bytes >= 1", "flops_share", "launches < 2"]
    hidden = ["missed_loops < 2", "incorrect_numerical", "occupancy < 1", "launches >= 5", "bandwidth_share"]
    cards = [card(f"c{i}", CardKind.SYMPTOM, signals=[s]) for i, s in enumerate([*shown, *hidden])]
    assert sorted(chosen(*cards, evaluation=seen)) == ["c0", "c1", "c2", "c3", "c4"]
    both = card("z", CardKind.SYMPTOM, signals=shown[:2])
    assert chosen(*cards, both, evaluation=seen)[0] == "z"
    assert chosen(card("m", bounds=["memory"]), card("c", bounds=["compute"]), evaluation=seen) == ["c"]


def test_a_closer_card_then_a_likelier_text_comes_first() -> None:
    cards = [
        card("b", summary="Tiles of a matrix."),
        card("a", summary="Rows of a softmax."),
        card("n", op_types=["norm"]),
    ]
    assert chosen(*cards) == ["n", "a", "b"]
    assert chosen(*cards, words="a matrix (tiled)") == ["n", "b", "a"]
    assert chosen(*cards, words='"quotes" OR NEAR( * AND') == ["n", "a", "b"]


def test_kinds_alternate_within_the_budget() -> None:
    cards = [card(f"a{i}") for i in range(9)] + [card(f"h{i}", CardKind.HARDWARE) for i in range(9)]
    avoid, hardware = (len(line_of(card)) + 1 for card in (cards[0], cards[9]))
    assert chosen(*cards, tokens=tokens(2 * avoid + 2 * hardware)) == ["a0", "h0", "a1", "h1"]
    assert chosen(*cards, tokens=0) == []
    assert chosen(*cards, kinds=(CardKind.HARDWARE,), tokens=tokens(2 * hardware)) == ["h0", "h1"]


def tokens(characters: int) -> int:
    """Of lines and the frame around them."""
    return math.ceil((FRAME + characters) / 4)


def test_the_budget_is_that_of_the_rendered_text() -> None:
    cards = [card(f"c{i}", summary="Words. " * 60) for i in range(9)] + [card("short", CardKind.HARDWARE)]
    scene = make_task()
    for limit in (0, 49, 60, 200, 600):
        advisor = Advisor(cards, CONTEXT, ("cpp",), "cpu", limit)
        shown = with_advice("", replace(scene, advise=advisor), ALL, None, "")
        assert len(shown) <= 4 * limit
        more = Advisor(cards, CONTEXT, ("cpp",), "cpu", limit + 120)
        assert len(with_advice("", replace(scene, advise=more), ALL, None, "")) > 4 * limit, "it is used"


def test_the_order_of_the_cards_does_not_matter() -> None:
    cards = [card(name, summary=f"{name} {name * 3}") for name in ("alpha", "beta", "gamma")]
    assert chosen(*cards, words="gamma beta") == chosen(*cards[::-1], words="gamma beta")
