"""Drafts of cards from outcomes."""

from __future__ import annotations

from pathlib import Path

from agentforge.knowledge import drafts, lint, parse_card
from agentforge.schema import Advice, CardKind, EvaluationStatus, Evidence, Outcome, Strategy
from tests.store.nouns import NOW, context


def outcome(
    number: int,
    log: float | None,
    *,
    op_type: str = "norm",
    shape: str = "dram/many-rows",
    claimed: bool = False,
) -> Outcome:
    return Outcome(
        id=f"{op_type}{shape}{number}",
        strategy="my-trick",
        context=context(op_type=op_type, shape_class=shape),
        solution=f"s{number}",
        evaluation=f"e{number}",
        status=EvaluationStatus.PASSED if log is not None else EvaluationStatus.CRASHED,
        evidence=Evidence.VERIFIED if log is not None else Evidence.UNVERIFIED,
        log_speedup=log,
        time=NOW,
        claimed=claimed,
    )


WINS = [outcome(1, 0.2), outcome(2, 0.3), outcome(3, 0.1, shape="l2/few-rows")]


def test_three_wins_in_two_contexts_are_a_technique() -> None:
    (draft,) = drafts(WINS, known=(), languages={})
    card = parse_card(draft.text, "draft.md")
    assert isinstance(card, Strategy)
    assert (card.id, card.op_types, card.prior_log_speedup) == ("my-trick", ("norm",), 0.2)
    assert "evaluation e3" in card.body


def test_a_strategy_with_a_card_needs_no_technique() -> None:
    assert drafts(WINS, known=["my-trick"], languages={}) == ()


def test_too_few_wins_or_contexts_or_claims_are_no_technique() -> None:
    assert drafts(WINS[:2], known=(), languages={}) == ()
    assert drafts([outcome(n, 0.2) for n in range(5)], known=(), languages={}) == ()
    claimed = [o.model_copy(update={"claimed": True}) for o in WINS]
    assert drafts(claimed, known=(), languages={}) == ()


def test_four_losses_are_to_be_avoided_for_that_operator() -> None:
    lost = [outcome(n, -0.1, op_type="softmax") for n in range(3)] + [outcome(9, None, op_type="softmax")]
    (draft,) = drafts([*WINS, *lost], known=["my-trick"], languages={})
    card = parse_card(draft.text, "draft.md")
    assert isinstance(card, Advice)
    assert (card.id, card.kind, card.op_types) == ("avoid-my-trick-for-softmax", CardKind.AVOID, ("softmax",))
    assert "CRASHED" in card.body
    assert drafts(lost[:3], known=["my-trick"], languages={}) == ()
    unsupported = lost[3].model_copy(update={"status": EvaluationStatus.UNSUPPORTED})
    assert drafts([*lost[:3], unsupported], known=["my-trick"], languages={}) == (), "it says nothing"
    assert drafts([*lost, outcome(10, 0.5, op_type="softmax")], known=["my-trick"], languages={}) == ()


LOSSES = [
    *(outcome(n, -0.1, op_type="gated_activation") for n in range(3)),
    outcome(9, None, op_type="gated_activation"),
]


def test_an_avoid_card_that_exists_is_not_drafted_again() -> None:
    (draft,) = drafts(LOSSES, known=["my-trick"], languages={})
    assert drafts(LOSSES, known=["my-trick", draft.id], languages={}) == ()


def test_an_unedited_draft_has_faults(tmp_path: Path) -> None:
    for draft in (*drafts(WINS, known=(), languages={}), *drafts(LOSSES, known=(), languages={})):
        (tmp_path / "draft.md").write_text(draft.text)
        faults, _ = lint(tmp_path / "draft.md", languages=["cpp"], devices=["cpu"], metrics=())
        assert {"title", "summary", "body"} <= {fault.field for fault in faults if "TODO" in fault.problem}


def test_a_draft_is_for_the_languages_and_devices_of_its_outcomes() -> None:
    gpu = [o.model_copy(update={"context": context(architecture="sm_90")}) for o in WINS[:1]]
    (draft,) = drafts([*gpu, *WINS[1:]], known=(), languages={"my-trick": ("triton", "cuda")})
    card = parse_card(draft.text, "draft.md")
    assert isinstance(card, Strategy)
    assert (card.languages, card.devices) == (("triton", "cuda"), ("cpu", "cuda"))


def test_a_follow_up_counts_with_its_own_gain() -> None:
    """Each is faster than the baseline, and slower than what it was built on."""
    slower = [
        outcome(n, 0.3, shape=f"dram/{n}").model_copy(update={"after": "fuse", "log_gain": -0.1})
        for n in range(4)
    ]
    (draft,) = drafts(slower, known=(), languages={})
    assert draft.kind is CardKind.AVOID
    assert "0.905x after fuse" in draft.text
