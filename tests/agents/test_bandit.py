"""The bandit over models: what it draws, and which specifications make one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentforge.agents import BanditCoder, Draft, Past, Pull, Task, agents_in, check_agents, choose
from agentforge.config import LLMSettings, SearchSettings
from agentforge.schema import BuildSpec, CannotCode, Plan, Solution, SourceFile, UsageError
from agentforge.search import draw_by, gain_of
from tests.agents.llm.scene import CONTEXT, HARDWARE, bottleneck

ARMS = ("openai:a", "openai:b", "anthropic:c")

PULLS = st.lists(
    st.builds(
        Pull,
        st.sampled_from(ARMS),
        st.none() | st.floats(0, 0.8),
        st.none() | st.floats(0, 10),
    ),
    max_size=40,
)
WEIGHTS = st.floats(0, 1)


@given(PULLS, st.integers(), WEIGHTS)
def test_the_same_history_draws_the_same_model(pulls: list[Pull], seed: int, weight: float) -> None:
    drawn = choose(ARMS, pulls, Random(seed), weight)
    assert drawn in ARMS
    assert choose(ARMS, tuple(pulls), Random(seed), weight) == drawn
    others = [Pull("openai:gone", 0.8, 1.0)]
    assert choose(ARMS, [*others, *pulls, *others], Random(seed), weight) == drawn


@given(PULLS, st.integers())
def test_each_model_is_drawn_once_first(pulls: list[Pull], seed: int) -> None:
    seen = {pull.arm for pull in pulls}
    assume(seen != set(ARMS))
    assert choose(ARMS, pulls, Random(seed), 0.2) not in seen


@given(PULLS, st.integers(), WEIGHTS)
def test_without_a_price_dollars_decide_nothing(pulls: list[Pull], seed: int, weight: float) -> None:
    unpriced = [*pulls, Pull("openai:a", 0.1, None)]
    free = [replace(pull, dollars=0.0) for pull in unpriced]
    assert choose(ARMS, unpriced, Random(seed), weight) == choose(ARMS, free, Random(seed), 0.0)


@given(PULLS, st.integers(), WEIGHTS)
def test_the_unit_of_money_decides_nothing(pulls: list[Pull], seed: int, weight: float) -> None:
    paid = [replace(pull, dollars=2.0 ** round(pull.dollars or 0)) for pull in pulls]
    other = [replace(pull, dollars=(pull.dollars or 0) * 8.0) for pull in paid]  # exact in binary
    assert choose(ARMS, paid, Random(seed), weight) == choose(ARMS, other, Random(seed), weight)


def drawn(
    gain: Callable[[str], float], dollars: Callable[[str], float], weight: float = 0.2, number: int = 60
) -> Counter[str]:
    """How often each model is drawn, over twenty runs of attempts one after the other."""
    found: Counter[str] = Counter()
    for run in range(20):
        pulls: list[Pull] = []
        for attempt in range(number):
            arm = choose(ARMS, pulls, draw_by(str(run), str(attempt)), weight)
            pulls.append(Pull(arm, gain(arm), dollars(arm)))
        found.update(pull.arm for pull in pulls)
    return found


def test_the_model_that_gains_most_writes_most() -> None:
    gains = {"openai:a": 0.1, "openai:b": 0.5, "anthropic:c": 0.0}
    found = drawn(gains.__getitem__, lambda _: 1.0)
    assert found["openai:b"] > 0.6 * found.total()
    assert min(found.values()) >= 20, "none is given up"
    small = drawn(lambda arm: gains[arm] / 100, lambda _: 1.0)
    assert small["openai:b"] > 0.6 * small.total(), "gains count against the largest one"


def test_of_equal_models_the_cheaper_one_writes_most() -> None:
    prices = {"openai:a": 1.0, "openai:b": 0.02, "anthropic:c": 0.5}
    found = drawn(lambda _: 0.3, prices.__getitem__)
    assert found["openai:b"] > 1.5 * max(found["openai:a"], found["anthropic:c"])
    equal = drawn(lambda _: 0.3, prices.__getitem__, weight=0.0)
    assert max(equal.values()) < 1.3 * min(equal.values())
    only = drawn(lambda arm: 0.5 if arm == "openai:a" else 0.0, prices.__getitem__, weight=1.0)
    assert only["openai:b"] > 0.8 * only.total()


def cheapest(*pulls: Pull) -> str:
    """The model that is drawn most if only dollars count."""
    ((arm, often),) = Counter(choose(ARMS, pulls, Random(seed), 1.0) for seed in range(100)).most_common(1)
    assert often > 80
    return arm


def test_calls_that_failed_make_no_model_look_cheap() -> None:
    """They are free, and give no code."""
    dear, cheap = [Pull("openai:a", 0.3, 2.0)] * 9, [Pull("openai:b", 0.3, 1.0)] * 9
    failed = [Pull("openai:a", 0.0, 0.0, coded=False)] * 9
    never = [Pull("anthropic:c", 0.0, 0.0, coded=False)] * 9
    assert cheapest(*dear, *failed, *cheap, *never) == "openai:b"
    unpriced = [Pull("openai:a", 0.0, None, coded=False)]
    assert cheapest(*dear, *unpriced, *cheap, *never) == "openai:b", "its price is known"


def test_beside_a_free_model_the_cheaper_paid_one_writes_more() -> None:
    prices = {"openai:a": 0.0, "openai:b": 0.02, "anthropic:c": 1.0}
    found = drawn(lambda arm: 0.0 if arm == "openai:a" else 0.3, prices.__getitem__)
    assert found["openai:b"] > 1.5 * found["anthropic:c"]
    free = drawn(lambda _: 0.3, prices.__getitem__)
    assert free["openai:a"] > 1.5 * free["anthropic:c"], "it is as cheap as the cheapest paid one"


def test_a_model_that_gets_better_is_found_again() -> None:
    old = [Pull("openai:a", 0.5)] * 30 + [Pull("openai:b", 0.0)] * 5 + [Pull("anthropic:c", 0.0)] * 5
    new = [Pull("openai:a", 0.0), Pull("openai:b", 0.5)] * 20
    found = Counter(choose(ARMS, [*old, *new], Random(seed), 0.2) for seed in range(100))
    assert found["openai:b"] > 80


def test_attempts_under_way_make_the_next_draw_another() -> None:
    done = [Pull(arm, 0.3) for arm in ARMS]
    begun = [Pull("openai:a", None)] * 8 + [Pull("openai:b", None)] * 8
    found = Counter(choose(ARMS, [*done, *begun], Random(seed), 0.2) for seed in range(100))
    assert found["anthropic:c"] > 80


def test_a_gain_is_over_the_parent_and_over_a_baseline() -> None:
    assert gain_of(0.9) == pytest.approx(0.7)
    assert gain_of(0.9, 0.5) == pytest.approx(0.4)
    assert gain_of(0.4, 0.5) == gain_of(0.1, 0.02) == 0.0


class Writer:
    """A coder that signs what it writes."""

    def __init__(self, name: str) -> None:
        self.name = name

    def code(self, task: Task, plan: Plan, parent: Past | None) -> Draft:
        source = SourceFile(path="model_new.py", content=self.name)
        spec = BuildSpec(language="python")
        return Draft(Solution(name="n", definition="d", author=self.name, spec=spec, sources=(source,)))


def test_the_drawn_model_writes() -> None:
    coder = BanditCoder({arm: Writer(arm) for arm in ARMS})
    task = Task(bottleneck(), HARDWARE, CONTEXT, ())
    plan = Plan(strategy="s")
    assert coder.name == "bandit(openai:a,openai:b,anthropic:c)"
    for arm in ARMS:
        assert coder.code(replace(task, coder=arm), plan, None).solution.author == arm
    assert coder.code(task, plan, None).solution.author == ARMS[0]
    with pytest.raises(CannotCode, match="openai:gone was drawn"):
        coder.code(replace(task, coder="openai:gone"), plan, None)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("bandit()", "names no model"),
        ("bandit( )", "names no model"),
        ("bandit(openai:a@http://h/v1,)", "a model that is empty"),
        ("bandit(openai:a@http://h/v1", "an open bracket"),
        ("playbook,bandit(openai:a@http://h/v1)", "more than bandit"),
        ("bandit(openai:a@http://h/v1),playbook", "more than bandit"),
        ("bandit(openai:a@http://h/v1,bandit(openai:b@http://h/v1))", "a bandit within a bandit"),
        ("bandit(openai:a@http://h/v1,openai:a@http://h/v1)", "more than once"),
        ("bandit(openai:a@http://h/v1,playbook)", "'playbook' in .* is no language model"),
        ("bandit(openai:a@http://h/v1,nobody:b)", "nobody"),
        ("bandit(openai:a@http://h/v1,openai:)", "names no model"),
        ("bandit", "none of the coders called 'bandit'"),
    ],
)
def test_a_wrong_bandit_is_refused_in_one_sentence(
    spec: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTFORGE_LLM_API_KEY", "sk-none")
    with pytest.raises(UsageError, match=says) as refused:
        check_agents(SearchSettings(coder=spec), LLMSettings())
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("role", ["planner", "judge"])
def test_only_a_coder_is_drawn(role: str) -> None:
    settings = SearchSettings.model_validate({role: "bandit(openai:a@http://h/v1)"})
    with pytest.raises(UsageError, match="give it to --coder"):
        check_agents(settings, LLMSettings())


def test_the_agents_of_a_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    assert agents_in("playbook, openai:m") == ("playbook", "openai:m")
    assert agents_in(" bandit( openai:m , replay:f ) ") == ("openai:m", "replay:f")
    monkeypatch.setenv("AGENTFORGE_LLM_API_KEY", "sk-none")
    search = SearchSettings(coder="bandit(openai:a@http://h/v1,anthropic:b@http://h)")
    check_agents(search, LLMSettings())
    assert search.width == 3
    assert search.most_without_gain == 8
