"""The ledger over a real store: paid once, within the budget, nothing forgotten."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentforge.llm import (
    CallFailed,
    CannotAfford,
    Ledger,
    Message,
    Prices,
    PromptRefused,
    Request,
    Response,
    Tokens,
)
from agentforge.llm.ledger import LEAST_TOKENS
from agentforge.schema import Budget, LLMCall, OutageError, UnsupportedTargetError, UsageError
from agentforge.store import Store
from tests.loop.conftest import make_run

PRICED = "anthropic:claude-haiku-4-5"


class Fake:
    """A model whose answers a test writes; `spec` decides the price."""

    def __init__(self, answer: Callable[[Request], Response], spec: str = PRICED) -> None:
        self.spec, self.model, self.endpoint = spec, "fake", "nowhere"
        self.answer = answer
        self.calls = 0

    def complete(self, request: Request) -> Response:
        self.calls += 1
        return self.answer(request)


def said(text: str = "ok", tokens_in: int = 1000, tokens_out: int = 100) -> Response:
    return Response(text=text, model="fake", tokens=Tokens(input=tokens_in, output=tokens_out))


def request(text: str = "hello", max_tokens: int = 1000) -> Request:
    return Request(messages=(Message(role="user", text=text),), max_tokens=max_tokens)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'agentforge.db'}") as opened:
        opened.create_run(make_run())
        yield opened


def test_a_call_is_journaled_before_it_is_used_and_not_made_again(store: Store) -> None:
    states: list[tuple[str, str]] = []

    def answer(asked: Request) -> Response:
        states.append(("while", store.calls("run")[0].status))
        return said()

    model = Fake(answer)
    first = Ledger(store, "run").ask(model, request(), role="coder", attempt="run/0001")
    again = Ledger(store, "run").ask(model, request(), role="coder", attempt="run/0001")
    assert states == [("while", "begun")]
    assert model.calls == 1
    assert again == first
    assert first.usage.dollars == pytest.approx((1000 * 1.0 + 100 * 5.0) / 1e6)
    (call,) = store.calls("run")
    assert (call.status, call.role, call.prompt) == ("answered", "coder", request().hash)


def test_another_attempt_role_or_prompt_is_another_call(store: Store) -> None:
    model, ledger = Fake(lambda _: said()), Ledger(store, "run")
    for role, attempt, text in (
        ("coder", "1", "a"),
        ("coder", "2", "a"),
        ("judge", "1", "a"),
        ("coder", "1", "b"),
    ):
        ledger.ask(model, request(text), role=role, attempt=attempt)
    assert model.calls == 4


def test_a_failed_call_is_kept_and_made_again(store: Store) -> None:
    answers = iter([CallFailed("busy", Tokens(input=500)), said()])

    def answer(_: Request) -> Response:
        value = next(answers)
        if isinstance(value, CallFailed):
            raise value
        return value

    model, ledger = Fake(answer), Ledger(store, "run")
    with pytest.raises(CallFailed):
        ledger.ask(model, request(), role="coder")
    ledger.ask(model, request(), role="coder")
    assert [c.status for c in store.calls("run")] == ["failed", "answered"]
    assert ledger.dollars == pytest.approx((500 + 1000 + 100 * 5) / 1e6)
    assert Ledger(store, "run").dollars == pytest.approx(ledger.dollars)


def failing(kind: type[CallFailed]) -> Fake:
    def answer(_: Request) -> Response:
        raise kind("busy")

    return Fake(answer)


def test_many_failures_in_a_row_end_the_run(store: Store) -> None:
    ledger = Ledger(store, "run")
    for _ in range(5):
        with pytest.raises(CallFailed):
            ledger.ask(failing(CallFailed), request(), role="coder")
    with pytest.raises(OutageError, match=r"6 calls .* in a row"):
        ledger.ask(failing(CallFailed), request(), role="coder")


def test_prompts_that_are_refused_are_the_problems_fault_and_not_the_machines(store: Store) -> None:
    """A worker of a campaign goes on with the next problem, and no outage is blamed on this one."""
    ledger = Ledger(store, "run")
    for kind in [CallFailed] * 5 + [PromptRefused] * 5:
        with pytest.raises(kind):
            ledger.ask(failing(kind), request(), role="coder")
    with pytest.raises(UnsupportedTargetError, match="6 prompts of this problem") as caught:
        ledger.ask(failing(PromptRefused), request(), role="coder")
    assert "resume" not in str(caught.value)
    ledger.ask(Fake(lambda _: said()), request(), role="coder")
    with pytest.raises(PromptRefused):
        ledger.ask(failing(PromptRefused), request("again"), role="coder")


def test_a_budget_is_never_passed(store: Store) -> None:
    model = Fake(lambda _: said(tokens_in=10, tokens_out=900))
    ledger = Ledger(store, "run", Budget(dollars=0.02))
    made = 0
    with pytest.raises(CannotAfford, match=r"budget of 0\.02 are used: raise --dollars to at least 0\.023"):
        for made in range(100):
            ledger.ask(model, request(str(made)), role="coder")
    assert made == 4  # 0.0045 each, and the next one can cost 0.005
    assert sum(c.dollars or 0 for c in store.calls("run")) <= 0.02


def test_calls_in_flight_count(store: Store) -> None:
    go, begun = threading.Event(), threading.Event()

    def answer(_: Request) -> Response:
        begun.set()
        go.wait(30)
        return said(tokens_in=10, tokens_out=10)

    def second() -> None:
        ledger.ask(after, request("2"), role="coder")

    ledger, after = (
        Ledger(store, "run", Budget(tokens=1420)),
        Fake(lambda _: said(tokens_in=10, tokens_out=400)),
    )
    threads = [
        threading.Thread(target=ledger.ask, args=(Fake(answer), request("1")), kwargs={"role": "coder"})
    ]
    threads[0].start()
    assert begun.wait(30)
    threads.append(threading.Thread(target=second))
    threads[1].start()
    threads[1].join(0.3)
    assert after.calls == 0, "it waits for the call that has reserved the budget"
    go.set()
    for thread in threads:
        thread.join(30)
    assert after.calls == 1
    with pytest.raises(CannotAfford, match="raise --tokens to at least"):
        ledger.ask(after, request("3"), role="coder")


def test_a_small_budget_limits_the_answer_and_can_make_a_call(store: Store) -> None:
    asked: list[int] = []

    def answer(sent: Request) -> Response:
        asked.append(sent.max_tokens)
        return said(tokens_in=2000, tokens_out=300)

    dear = Fake(answer, "anthropic:claude-sonnet-4-6")  # 3 and 15 dollars per million tokens
    prompt = "x" * 7800
    ledger = Ledger(store, "run", Budget(dollars=0.05))
    first = ledger.ask(dear, request(prompt, 16384), role="coder", attempt="1")
    assert LEAST_TOKENS <= asked[0] < 16384
    assert f"an answer of {asked[0]} tokens" in first.limited
    assert ledger.dollars == pytest.approx(first.usage.dollars)
    again = Ledger(store, "run", Budget(dollars=1.0)).ask(
        dear, request(prompt, 16384), role="coder", attempt="1"
    )
    assert again == first, "the limit is no part of the question"
    assert len(asked) == 1


def test_an_unknown_price_is_unknown_and_no_budget(store: Store, tmp_path: Path) -> None:
    model = Fake(lambda _: said(), "openai:mine@http://127.0.0.1:8000/v1")
    assert Ledger(store, "run").ask(model, request(), role="coder").usage.dollars is None
    assert store.calls("run")[0].dollars is None
    with pytest.raises(UsageError, match=r"price .* is not known"):
        Ledger(store, "run", Budget(dollars=1)).ask(model, request("x"), role="coder")
    table = tmp_path / "prices.toml"
    table.write_text('[openai]\n"mine@http://127.0.0.1:8000/v1" = { input = 0.0, output = 0.0 }\n')
    ledger = Ledger(store, "run", Budget(dollars=1), Prices(table))
    assert ledger.ask(model, request("y"), role="coder").usage.dollars == 0.0


def test_calls_are_told(store: Store) -> None:
    told: list[LLMCall] = []
    Ledger(store, "run", on_call=told.append).ask(Fake(lambda _: said()), request(), role="judge")
    assert [c.status for c in told] == ["begun", "answered"]


_KILLED = """
import os, signal, sys
from agentforge.llm import Ledger
from agentforge.store import Store
from tests.llm.test_ledger import Fake, request, said
store = Store(sys.argv[1])
Ledger(store, "run").ask(Fake(lambda _: said()), request("first"), role="coder", attempt="1")
end = Fake(lambda _: os.kill(os.getpid(), signal.SIGKILL))
Ledger(store, "run").ask(end, request("second"), role="coder")
"""


@pytest.mark.slow
def test_a_kill_forgets_nothing(store: Store) -> None:
    url = store.where
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, url], cwd=Path(__file__).parents[2], env={**os.environ}, timeout=120
    )
    assert done.returncode == -signal.SIGKILL
    model = Fake(lambda _: said())
    ledger = Ledger(store, "run")
    ledger.ask(model, request("first"), role="coder", attempt="1")
    assert model.calls == 0
    assert [c.status for c in store.calls("run")] == ["answered", "begun"]
    in_doubt = store.calls("run")[1].dollars
    assert in_doubt is not None
    assert ledger.dollars == pytest.approx(0.0015 + in_doubt)
    ledger.ask(model, request("second"), role="coder")
    assert [c.status for c in store.calls("run")] == ["answered", "begun", "answered"]


def test_refusals_after_an_answer_end_the_search_and_not_the_run(store: Store) -> None:
    Ledger(store, "run").ask(Fake(lambda _: said()), request(), role="coder")
    ledger = Ledger(store, "run")  # a later session knows of the answer
    for number in range(5):
        with pytest.raises(PromptRefused):
            ledger.ask(failing(PromptRefused), request(str(number)), role="coder")
    with pytest.raises(CannotAfford, match="6 prompts of this problem"):
        ledger.ask(failing(PromptRefused), request(), role="judge")
