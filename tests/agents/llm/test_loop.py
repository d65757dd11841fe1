"""Model agents through the real loop, store, referee and SDKs, against a scripted endpoint."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from agentforge.agents.llm.facts import steady
from agentforge.config import LLMSettings, RefereeSettings, SearchSettings, load_settings
from agentforge.devices import DeviceSpec, detect
from agentforge.frontends import FrontendOptions
from agentforge.knowledge import KnowledgeBase
from agentforge.llm import Ledger
from agentforge.loop import SearchResult
from agentforge.referee import Referee
from agentforge.runs import ModelStart, start_run
from agentforge.schema import AttemptStatus, Budget, EvaluationStatus, Evidence, Profile, Solution
from agentforge.search import BestFirst
from agentforge.store import Store
from tests.llm.conftest import server
from tests.llm.server import LLMServer
from tests.loop.conftest import make_run
from tests.loop.scripted import NullKnowledge
from tests.steady import SteadyReferee

from . import kernels
from .scene import Script, profile
from .searching import agents_of, search_with

__all__ = ["server"]

KEY = "sk-secret-of-the-loop-test"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AGENTFORGE_LLM_API_KEY"):
        monkeypatch.setenv(name, KEY)


@pytest.fixture(scope="module")
def referee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SteadyReferee]:
    settings = RefereeSettings(
        quick_seconds=0.2, random_seeds=1, compile_baseline=False, quick_blocks=2, threads=2, task_seconds=0
    )
    with Referee(settings, device=detect("cpu"), cache=tmp_path_factory.mktemp("cache")) as real:
        yield SteadyReferee(real, speed)


def speed(solution: Solution) -> float:
    return 0.9 if any("volatile double" in file.content for file in solution.sources) else 3.0


def search(
    store: Store,
    folder: Path,
    spec: str,
    device: DeviceSpec,
    budget: Budget,
    referee: SteadyReferee,
    region: Profile | None = None,
    language: str = "cpp",
    knowledge: KnowledgeBase | None = None,
    agents: Literal["one-shot", "dialogue"] = "one-shot",
    **llm: object,
) -> SearchResult:
    ledger = Ledger(store, "run", budget)
    return search_with(
        agents_of(spec, ledger, LLMSettings.model_validate({"retries": 0, **llm})),
        store,
        folder,
        budget=budget,
        policy=BestFirst(repairs=3, starts=1),
        settings=SearchSettings(patience=6, language=language, agents=agents),
        region=region,
        evaluator=referee,
        knowledge=knowledge or NullKnowledge(),
        device=device,
    )


@pytest.mark.slow
def test_from_a_compile_error_to_a_fast_kernel(
    server: LLMServer, referee: SteadyReferee, tmp_path: Path
) -> None:
    script = Script(
        deque(
            [
                kernels.DOES_NOT_COMPILE,
                kernels.WRONG_LAST_COLUMNS,
                kernels.RIGHT_AND_SLOW,
                kernels.RIGHT_AND_FAST,
            ]
        )
    )
    server.script = script
    spec = f"openai:m@{server.url}"
    cassette = tmp_path / "run.jsonl"
    device = detect("cpu")
    budget = Budget(attempts=4)
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run(budget=budget).model_copy(update={"device": device.name}))
        result = search(store, tmp_path, spec, device, budget, referee, record=cassette)
        attempts = store.attempts("run")
        statuses = [store.get_evaluation(a.evaluation).status.value for a in attempts if a.evaluation]
        assert statuses == ["COMPILE_ERROR", "INCORRECT_NUMERICAL", "PASSED", "PASSED"]
        assert all(a.status is AttemptStatus.DONE for a in attempts)
        assert [a.critique.error_class for a in attempts if a.critique][:2] == ["compile", "numerical"]
        assert [win.attempt for win in result.wins] == [attempts[3].id]
        assert result.wins[0].evaluation.verified
        calls = store.calls("run")
        assert sum(c.tokens_in for c in calls) == sum(i for i, _ in server.billed)
        assert sum(c.tokens_out for c in calls) == sum(o for _, o in server.billed)
        assert not any(KEY in c.model_dump_json() for c in calls)
    coder = script.of("coder")
    assert "does not compile" in coder[1]
    assert "expected" in coder[1]  # g++'s own words
    assert "elements of out are wrong" in coder[2]
    assert KEY not in cassette.read_text()
    assert KEY not in (tmp_path / "a.db").read_bytes().decode("latin-1")
    replayed(tmp_path, cassette, device, server, referee)


@pytest.mark.slow
def test_the_same_failures_are_repaired_within_one_attempt(
    server: LLMServer, referee: SteadyReferee, tmp_path: Path
) -> None:
    codes = [kernels.DOES_NOT_COMPILE, kernels.WRONG_LAST_COLUMNS, kernels.RIGHT_AND_FAST]
    server.script = script = Script(deque(codes))
    device, budget, cassette = detect("cpu"), Budget(attempts=1), tmp_path / "run.jsonl"
    spec = f"openai:m@{server.url}"
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run(budget=budget).model_copy(update={"device": device.name}))
        result = search(store, tmp_path, spec, device, budget, referee, agents="dialogue", record=cassette)
        assert [win.evaluation.verified for win in result.wins] == [True]
    shown = script.of("coder")
    assert len(shown) == 3
    assert "error" in shown[1] or "expected" in shown[1]  # g++'s own words
    assert "INCORRECT_NUMERICAL" in shown[2]
    assert len(script.of("judge")) == 1
    with Store(f"sqlite:///{tmp_path / 'b.db'}") as store:
        store.create_run(make_run(budget=budget).model_copy(update={"device": device.name}))
        again = search(
            store, tmp_path / "again", f"replay:{cassette}", device, budget, referee, agents="dialogue"
        )
        assert [win.solution.hash for win in again.wins] == [win.solution.hash for win in result.wins]


def replayed(
    folder: Path, cassette: Path, device: DeviceSpec, server: LLMServer, referee: SteadyReferee
) -> None:
    """The same run without a network: measured times differ, what is proposed does not."""
    asked = len(server.seen)
    other = folder / "again"
    other.mkdir()
    budget = Budget(attempts=3)
    with Store(f"sqlite:///{other / 'a.db'}") as store:
        store.create_run(make_run(budget=budget).model_copy(update={"device": device.name}))
        search(store, other, f"replay:{cassette}", device, budget, referee)
        statuses = [store.get_evaluation(a.evaluation).status for a in store.attempts("run") if a.evaluation]
    assert statuses == [
        EvaluationStatus.COMPILE_ERROR,
        EvaluationStatus.INCORRECT_NUMERICAL,
        EvaluationStatus.PASSED,
    ]
    assert len(server.seen) == asked


MODEL = """\
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(0.5, 1.5, 67))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def get_inputs():
    return [torch.randn(32768, 67)]


def get_init_inputs():
    return []
"""


@pytest.mark.slow
@pytest.mark.usefixtures("known_roofline", "no_slow_parts")
@pytest.mark.parametrize(
    "clock", ["steady", pytest.param("real", marks=[pytest.mark.timing, pytest.mark.timeout(900)])]
)
def test_what_is_verified_is_stored_and_stitched(
    server: LLMServer, referee: SteadyReferee, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: str
) -> None:
    """The kernel reads each row once, eager five times; torch.compile comes close to it.

    On a real clock nothing but noise and torch.compile may keep it from winning.
    """
    monkeypatch.setenv("AGENTFORGE_HOME", str(tmp_path))
    (tmp_path / "model.py").write_text(MODEL)
    whole = kernels.RIGHT_AND_FAST + kernels.MODEL
    server.script = Script(
        deque([kernels.DOES_NOT_COMPILE, kernels.WRONG_LAST_COLUMNS, kernels.RIGHT_AND_SLOW, whole])
    )
    agents = [f"search.{role}=openai:m@{server.url}" for role in ("planner", "coder", "judge")]
    settings = load_settings([*agents, "search.children=1", "search.min_share=0", "search.sol_fraction=1",
                              "search.agents=one-shot", "llm.retries=0", "budget.attempts=4",
                              "budget.minutes=15",
                              "referee.full_seconds=1.5", "referee.task_seconds=0"])  # fmt: skip
    if clock == "steady":
        writable_box = contextlib.nullcontext(referee)
        monkeypatch.setattr("agentforge.runs.pipeline.LazyReferee", lambda *_, **__: referee)
        monkeypatch.setattr("agentforge.runs.pipeline.closing", lambda _: writable_box)
    report = start_run(ModelStart(str(tmp_path / "model.py"), FrontendOptions()), settings, device="cpu")
    with Store(settings.url) as store:
        attempts = store.attempts(report.run.id)
        judged = [store.get_evaluation(a.evaluation) for a in attempts if a.evaluation]
        won = [(p.solution, p.evaluation) for p in store.promotions(report.run.id)]
        (strategy,) = (s for s in KnowledgeBase(store, ()).strategies() if s.id == "one-pass-rows")
    assert [e.status.value for e in judged] == ["COMPILE_ERROR", "INCORRECT_NUMERICAL", "PASSED", "PASSED"]
    if clock == "real" and not steady(judged[3]):
        pytest.skip(f"the machine disturbed the clock: {'; '.join(judged[3].reasons)}")
    assert judged[3].verified, judged[3].reasons
    assert won == [(attempts[3].solution, attempts[3].evaluation)]
    least = min(judged[3].speedup.values(), key=lambda interval: interval.low)
    if clock == "real" and not report.mode.startswith("kernels") and least.low <= 1:
        pytest.skip(f"torch.compile is as fast here: {least} over it")
    assert sum(record.n for record in strategy.records) >= 1
    assert report.proven, report.headline
    assert report.headline.startswith("Verified: ")
    assert report.mode.startswith("kernels")
    (region,) = (r for r in report.regions if r.solution)
    assert (region.outcome, region.solution) == ("integrated", attempts[3].solution)
    assert region.calls
    if clock == "real":
        assert judged[3].performance is not None
        assert judged[3].performance.speedup["eager"].low > 1


@pytest.mark.slow
def test_triton_in_its_interpreter_is_right_in_the_end(
    server: LLMServer, referee: SteadyReferee, tmp_path: Path
) -> None:
    pytest.importorskip("triton")
    if detect("auto").kind != "cpu":
        pytest.skip("there is a GPU here: Triton kernels run on it")
    codes = [kernels.TRITON_DOES_NOT_COMPILE, kernels.TRITON_WRONG_LAST_COLUMNS, kernels.TRITON_RIGHT]
    script = Script(deque(codes))
    server.script = script
    device, budget = detect("cpu"), Budget(attempts=3)
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run(budget=budget).model_copy(update={"device": device.name}))
        spec = f"anthropic:m@{server.root}"
        result = search(store, tmp_path, spec, device, budget, referee, profile(16, 131), "triton")
        judged = [store.get_evaluation(a.evaluation) for a in store.attempts("run") if a.evaluation]
    assert [e.status.value for e in judged] == ["COMPILE_ERROR", "INCORRECT_NUMERICAL", "PASSED"]
    assert judged[-1].performance is None, "what is simulated is not timed"
    assert judged[-1].evidence is Evidence.UNVERIFIED
    assert "no GPU" in " ".join(judged[-1].reasons)
    assert not result.wins
    assert "does not compile" in script.of("coder")[1]


@pytest.mark.slow
def test_a_cheat_ends_rejected_and_is_not_shown_again(
    server: LLMServer, referee: SteadyReferee, tmp_path: Path
) -> None:
    """The cheat also looks for keys in its environment, and would fail otherwise if there were one."""
    script = Script(
        deque([kernels.CHEAT, kernels.RIGHT_AND_FAST + kernels.MODEL]),
        deque(["in-place", "in-place", "rows"]),
    )
    server.script = script
    device, budget = detect("cpu"), Budget(attempts=2)
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run(budget=budget).model_copy(update={"device": device.name}))
        knowledge = KnowledgeBase(store, ())
        spec = f"openai:m@{server.url}"
        result = search(store, tmp_path, spec, device, budget, referee, knowledge=knowledge)
        learned = knowledge.get("in-place")
        (record,) = learned.records
        assert (record.n, record.failures) == (0, 1), "a failure of the strategy, and no more"
        assert learned.lessons == ()
        assert knowledge.stats().cheating == 1
        first, second = store.attempts("run")
        assert first.evaluation is not None
        evaluation = store.get_evaluation(first.evaluation)
        assert evaluation.status is EvaluationStatus.CHEATING, evaluation.reasons
        assert first.critique is not None
        assert first.critique.kind == "abandon"
        assert second.plan is not None
        assert second.plan.strategy == "rows"
        assert first.id not in [win.attempt for win in result.wins]
    assert not any("mul_(" in prompt for _, prompt in script.prompts)
    assert any("`in-place`: the referee rejected" in prompt for prompt in script.of("planner"))
