"""Solutions of earlier runs in a coder's prompt: from different buckets, worst to best, within the budget."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from math import log
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentforge.agents import Past, Task
from agentforge.agents.llm import prompts
from agentforge.agents.llm.history import CHARACTERS_PER_TOKEN, length, precedents
from agentforge.knowledge import APART, KnowledgeBase
from agentforge.llm import Message, Request
from agentforge.llm.cassette import _masked
from agentforge.schema import BuildSpec, Evidence, Precedent, Solution, SourceFile
from agentforge.store import Store
from tests.llm.conftest import server
from tests.llm.server import LLMServer
from tests.loop.conftest import make_run

from .ensemble import Ensemble, searched
from .scene import CONTEXT, HARDWARE, bottleneck

__all__ = ["server"]


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTFORGE_LLM_API_KEY", "sk-none")


def precedent(speedup: float, characters: int = 100, *others: SourceFile) -> Precedent:
    text = f"// {speedup}\n".ljust(characters, "x")
    solution = Solution(
        name="n", definition=bottleneck().definition.hash, author="m", spec=BuildSpec(language="cpp"),
        sources=(SourceFile(path="model_new.py", content=text), *others),
    )  # fmt: skip
    return Precedent(solution=solution, strategy=f"s{speedup:g}", log_speedup=log(speedup))


def task(*found: Precedent, tokens: int = 1000) -> Task:
    own = Task(bottleneck(), HARDWARE, CONTEXT, ())
    return replace(own, precedents=lambda language: found, contrast_tokens=tokens)


def speeds(own: Task) -> list[str]:
    return [p.strategy for p in precedents(own, "cpp")]


def test_one_of_each_bucket_the_slowest_first() -> None:
    found = [precedent(s) for s in (2.9, 1.0, 3.0, 2.8, 1.1, 1.7, 2.2)]
    assert speeds(task(*found)) == ["s1.1", "s1.7", "s3"]
    assert speeds(task(precedent(1.0), precedent(2.0))) == ["s1", "s2"]


def test_one_bucket_is_no_contrast() -> None:
    assert speeds(task()) == speeds(task(precedent(2.0))) == []
    assert speeds(task(precedent(2.0), precedent(2.3))) == []
    assert speeds(Task(bottleneck(), HARDWARE, CONTEXT, ())) == []
    assert prompts.with_precedents("Write.", task(precedent(2.0), precedent(2.3)), "cpp") == "Write."


def test_long_code_is_left_out() -> None:
    long, short = precedent(4.0, 2100), [precedent(1.0, 1500), precedent(2.0, 1500), precedent(3.0, 1500)]
    assert speeds(task(long, *short)) == ["s1", "s3"], "a third one would be too much"
    assert speeds(task(long, *short[:1])) == []
    header = SourceFile(path="vector_math.h", content="y" * 9000)
    assert speeds(task(precedent(1.0, 100, header), precedent(2.0))) == ["s1", "s2"], "it is not shown"
    assert "yyy" not in prompts.with_precedents("", task(precedent(1.0, 100, header), precedent(2.0)), "cpp")


def test_what_this_run_wrote_is_not_shown_again() -> None:
    found = [precedent(1.0), precedent(2.0)]
    past = Past("run/0001", None, None, found[1].solution, None, None)
    assert speeds(replace(task(*found), past=(past,))) == []


@given(
    st.lists(st.tuples(st.floats(0.2, 20), st.integers(20, 3000)), max_size=12),
    st.integers(0, 2000),
)
def test_the_budget_and_the_distance_are_kept(made: list[tuple[float, int]], tokens: int) -> None:
    found = [precedent(speedup, characters) for speedup, characters in made]
    shown = precedents(task(*found, tokens=tokens), "cpp")
    assert len(shown) in (0, 2, 3)
    assert sum(length(p.solution) for p in shown) <= tokens * CHARACTERS_PER_TOKEN
    gaps = [b.log_speedup - a.log_speedup for a, b in pairwise(shown)]
    assert all(gap >= APART for gap in gaps)
    fitting = [p.log_speedup for p in found if 2 * length(p.solution) <= tokens * CHARACTERS_PER_TOKEN]
    if shown:
        assert shown[-1].log_speedup == max(fitting)
    elif fitting:
        assert max(fitting) - min(fitting) < APART


def test_the_prompt_asks_for_the_difference_before_the_code() -> None:
    text = prompts.with_precedents("Write the solution.", task(precedent(1.25), precedent(2.5)), "cpp")
    assert text.startswith("Write the solution.\n")
    assert re.findall(r"`(s\S+)`: (\S+)x, verified", text) == [("s1.25", "1.25"), ("s2.5", "2.5")]
    assert "what makes the faster ones faster?" in text[text.index("// 2.5") :]
    assert "Solutions of this problem" in text
    other = precedent(2.5).solution.model_copy(update={"definition": "other"})
    similar = [precedent(1.25), precedent(2.5).model_copy(update={"solution": other})]
    assert "the most similar problem" in prompts.with_precedents("", task(*similar), "cpp")


def test_it_does_not_change_what_a_recording_matches() -> None:
    def mask(text: str) -> str:
        return _masked(Request(system=("s",), messages=(Message(role="user", text=text),)))

    text = prompts.with_precedents("Write.", task(precedent(1.25), precedent(2.5)), "cpp")
    assert mask(text) == mask("Write.")


@pytest.mark.slow
@pytest.mark.usefixtures("key")
def test_a_later_run_contrasts_what_an_earlier_one_verified(server: LLMServer, tmp_path: Path) -> None:
    """Both runs in one database; the third one may show nothing."""
    rising = {1: 1.3, 2: 2.0, 3: 3.0}
    coder, script = f"openai:m@{server.url}", Ensemble(lambda _, number: rising.get(number, 1.0))
    server.script = script
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        for run in ("run", "later", "plain"):
            store.create_run(make_run(run))
            knowledge, tokens = KnowledgeBase(store, ()), 0 if run == "plain" else 4000
            searched(store, tmp_path, server, coder, 3, run=run, knowledge=knowledge, contrast_tokens=tokens)
        first = [store.get_evaluation(a.evaluation or "") for a in store.attempts("run")]
    assert [e.evidence for e in first] == [Evidence.VERIFIED] * 3
    told = script.of("coder")
    assert len(told) == 9
    assert not any("from earlier runs" in prompt for prompt in (*told[:3], *told[6:]))
    for prompt in told[3:6]:
        shown = prompt[prompt.index("from earlier runs") :]
        assert re.findall(r": (\S+)x, verified\n", shown) == ["1.3", "2", "3"]
        assert [float(s) for s in re.findall(r'"speed": ([\d.]+)', shown)] == [1.3, 2.0, 3.0]
