"""A coder that calls tools before it answers."""

from __future__ import annotations

import json
import math
from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest

from agentforge.agents import Task
from agentforge.agents.llm.role import MOST_CHARACTERS, Role
from agentforge.agents.llm.tools import CoderTools
from agentforge.config import LLMSettings
from agentforge.llm import CannotAfford, Ledger, NoUsableAnswer, Response, Tokens, ToolCall, ToolSpec
from agentforge.llm._base import SIGNED
from agentforge.schema import (
    Budget,
    Correctness,
    Evaluation,
    EvaluationStatus,
    Level,
    Solution,
    SourceFile,
    StrategyRecord,
)
from agentforge.store import Store
from agentforge.testing.agents import STRATEGY, make_evaluation, make_solution, make_task
from tests.llm.server import LLMServer, Reply
from tests.loop.conftest import make_run
from tests.loop.scripted import SimulatedReferee

from .scene import Script, Scripted
from .test_dialogue import code, key, searched

__all__ = ["key"]


class WithTools(Script):
    """Calls the given tools before it writes."""

    def __init__(self, calls: list[tuple[str, str]], codes: list[str]) -> None:
        super().__init__(deque(codes))
        self.calls = deque(calls)

    def _coder(self, prompt: str) -> Reply:
        return Reply(calls=(self.calls.popleft(),)) if self.calls else super()._coder(prompt)


def sent(text: str) -> str:
    return json.dumps({"code": text})


def test_tools_are_called_in_one_attempt_and_the_last_code_is_handed_in(tmp_path: Path) -> None:
    calls = [
        ("compile", sent(code(2.0, "COMPILE_ERROR"))),
        ("check", sent(code(2.0, "INCORRECT_NUMERICAL"))),
        ("quick_time", sent(code(2.5))),
        ("quick_time", "{}"),
    ]
    script = WithTools(calls, ["DONE"])
    referee = SimulatedReferee()
    with LLMServer(script) as server, Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run())
        result = searched(store, server.url, tmp_path, referee, "dialogue", 1)
        assert [win.solution.source("model_new.py").split("\n")[0] for win in result.wins] == [
            'SAID = {"speed": 2.5, "status": "PASSED"}'
        ]
        told = script.of("coder")[1:]
        assert told[0].startswith("COMPILE_ERROR")
        assert told[1].startswith("INCORRECT_NUMERICAL")
        assert "one call takes 4e+05 us" in told[2]
        assert "eager: 1e+06 us, so it is 2.5x as fast" in told[3]
        made = store.attempts("run")
        assert len(made) == 1
        coded = [c for c in store.calls("run") if c.role == "coder"]
        assert len(coded) == 5
        assert all(c.status == "answered" for c in coded)
        assert sum(a.usage.tokens_in for a in made) == sum(c.tokens_in for c in store.calls("run"))
    assert len(referee.evaluations) == len(set(referee.evaluations)), "what was tried is not measured again"


def test_a_model_that_only_calls_tools_is_stopped_and_its_code_is_the_attempt(tmp_path: Path) -> None:
    script = WithTools([("check", sent(code(2.0 + i / 10))) for i in range(40)], [])
    with LLMServer(script) as server, Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run())
        result = searched(store, server.url, tmp_path, SimulatedReferee(), "dialogue", 1)
        assert result.attempts == 1
        assert len(script.of("coder")) == 12 + 3
        assert script.of("coder")[-1] == "no calls are left: answer now with the code"
        assert '"speed": 3.1' in result.wins[0].solution.source("model_new.py")


def test_right_code_is_the_attempt_if_worse_code_and_no_answer_follow(tmp_path: Path) -> None:
    calls = [("quick_time", sent(code(2.5))), ("check", sent(code(2.0, "CRASHED")))]
    with (
        LLMServer(WithTools(calls, [])) as server,
        Store(f"sqlite:///{tmp_path / 'a.db'}") as store,
    ):
        store.create_run(make_run())
        result = searched(store, server.url, tmp_path, SimulatedReferee(), "dialogue", 1)
        assert ['"speed": 2.5' in w.solution.source("model_new.py") for w in result.wins] == [True]


def test_one_shot_offers_no_tools(tmp_path: Path) -> None:
    with LLMServer(Script(deque([code(2.0)]))) as server, Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run())
        searched(store, server.url, tmp_path, SimulatedReferee(), "one-shot", 1)
        assert not any("tools" in seen.body for seen in server.seen)


def tools(task: Task) -> tuple[CoderTools, list[Solution]]:
    written: list[Solution] = []
    solution = make_solution(task)

    def read(text: str) -> Solution:
        return solution.model_copy(update={"sources": (SourceFile(path="model_new.py", content=text),)})

    return CoderTools(task, read, written), written


def checked(evaluation: Evaluation) -> Task:
    return replace(make_task(strategies=(STRATEGY,)), check=lambda solution, level: evaluation)


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("rm", "{}", "there is no tool 'rm': the tools are compile, check, quick_time"),
        ("check", "{", "the arguments of check are no JSON"),
        ("check", "[1]", "the arguments of check are no object: send one with code"),
        ("check", '{"file": "x"}', "check has no argument 'file': it takes code"),
        ("check", '{"code": 3}', "the argument 'code' of check must be a text"),
        ("check", "", "the code cannot be used: there is none yet: send it as `code`"),
        ("knowledge", "{}", "the argument 'query' is missing"),
        ("inductor_code", '{"x": "y"}', "inductor_code has no argument 'x': it takes none"),
    ],
)
def test_wrong_arguments_are_a_result(name: str, arguments: str, says: str) -> None:
    offered, _ = tools(checked(make_evaluation(make_task())))
    assert offered(ToolCall(id="1", name=name, arguments=arguments)).startswith(says)


def test_a_wrong_answer_is_described_and_a_right_one_has_its_tolerance() -> None:
    found = Correctness(
        max_absolute_error=1.0, max_relative_error=0.5, tolerance=1e-6, reference_error=1e-7, checked_calls=1,
        mismatch=("6 of the 12 elements of out are wrong",),
    )  # fmt: skip
    for status, says in (
        (EvaluationStatus.INCORRECT_NUMERICAL, "- 6 of the 12 elements of out are wrong"),
        (EvaluationStatus.PASSED, "one call was right\nrelative error 0.5, allowed 1e-06"),
    ):
        evaluation = make_evaluation(make_task(), status).model_copy(update={"correctness": found})
        offered, written = tools(checked(evaluation))
        assert says in offered(ToolCall(id="1", name="check", arguments=sent("x")))
        assert written[-1].source("model_new.py") == "x"


def test_knowledge_is_found_by_words() -> None:
    asked = checked(make_evaluation(make_task()))
    offered, _ = tools(asked)
    word = STRATEGY.summary.split()[0]
    said = offered(ToolCall(id="1", name="knowledge", arguments=json.dumps({"query": word})))
    assert said.startswith(f"{STRATEGY.id}: {STRATEGY.title}")
    assert asked.served == {STRATEGY.id}
    nothing = offered(ToolCall(id="1", name="knowledge", arguments='{"query": "zyzzyva"}'))
    assert nothing == f"no technique has these words; there are: {STRATEGY.id}"


def test_knowledge_has_the_credit_beside_the_whole_speedup() -> None:
    task = make_task()
    record = StrategyRecord(
        context=task.context, n=2, mean_log_speedup=math.log(3), mean_credit=math.log(1.5)
    )
    known = replace(task, strategies=(STRATEGY.model_copy(update={"records": (record,)}),))
    said = CoderTools(known, lambda text: make_solution(known), [])(
        ToolCall(id="1", name="knowledge", arguments=json.dumps({"query": STRATEGY.id}))
    )
    assert "on average 3x the best baseline, 1.5x without what they were built on" in said


def test_levels_and_the_used_up_budget() -> None:
    levels: list[Level] = []

    def check(solution: Solution, level: Level) -> Evaluation | None:
        levels.append(level)
        return None

    offered, _ = tools(replace(make_task(), check=check))
    for name in ("compile", "check", "quick_time"):
        said = offered(ToolCall(id="1", name=name, arguments=sent("x")))
        assert said == "the run's budget is used up: answer now with the code"
    assert levels == [Level.SMOKE] * 3


def test_a_conversation_that_becomes_too_long_loses_signed_reasoning_before_its_turns(tmp_path: Path) -> None:
    def called(reasoning: str) -> Response:
        call = ToolCall(id="call_0", name="check", arguments="{}")
        return Response(text="", model="scripted-1", calls=(call,), reasoning=reasoning)

    long = "x" * (MOST_CHARACTERS // 2)
    model = Scripted(called(SIGNED + long), called(SIGNED + long), called(long), called(long), "done")
    tool = ToolSpec(name="check", description="", parameters={})
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run())
        role = Role("coder", model, Ledger(store, "run"), LLMSettings())
        role.ask((), "write", lambda response, again: response.text, attempt="", tools=(tool,))
    asked = [[len(m.reasoning) > 0 for m in request.messages[1::2]] for request in model.asked]
    assert asked == [[], [True], [False, False], [False, False, True], [True]]


def test_a_conversation_that_is_cut_begins_with_the_newest_files(tmp_path: Path) -> None:
    call = ToolCall(id="call_0", name="check", arguments="{}")
    long = "x" * (MOST_CHARACTERS // 2)
    model = Scripted(*[Response(text=long, model="scripted-1", calls=(call,))] * 3, "done")
    tool = ToolSpec(name="check", description="", parameters={})
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run())
        role = Role("coder", model, Ledger(store, "run"), LLMSettings())
        role.ask(
            (),
            "write",
            lambda response, again: response.text,
            attempt="",
            tools=(tool,),
            newest=lambda: "the files",
        )
    begun = [request.messages[0].text for request in model.asked]
    assert begun[:2] == ["write"] * 2
    assert "write\n\nthe files" in begun


def test_an_answer_that_the_budget_cut_ends_the_search_and_blames_no_setting(tmp_path: Path) -> None:
    cut = Response(text="a", model="scripted-1", stop="length", tokens=Tokens(input=10, output=1))
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run())
        for budget, error, says in (
            (Budget(tokens=5000), CannotAfford, "which was too short: raise --dollars or --tokens"),
            (Budget(), NoUsableAnswer, "llm.max_tokens"),
        ):
            role = Role("coder", Scripted(*[cut] * 3), Ledger(store, "run", budget), LLMSettings())
            with pytest.raises(error, match=says):
                role.ask((), says, lambda response, again: response.text, attempt="")
