"""A bandit of models through the real loop, store, ledger and SDKs, against a local endpoint."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentforge.agents import create_coder
from agentforge.analysis import build_report
from agentforge.llm import Ledger, totals
from agentforge.schema import Budget, LLMCall, UsageError
from agentforge.store import Store
from tests.cli.conftest import Run, home, run
from tests.llm.conftest import server
from tests.llm.server import LLMServer
from tests.loop.conftest import make_run

from .ensemble import Ensemble, searched
from .scene import profile

__all__ = ["home", "run", "server"]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTFORGE_LLM_API_KEY", "sk-none")


def speed(model: str, number: int) -> float:
    return {"good": 2.5, "poor": 0.5}[model]


def models(server: LLMServer) -> dict[str, str]:
    return {"good": f"openai:good@{server.url}", "poor": f"anthropic:poor@{server.root}"}


def bandit(server: LLMServer) -> str:
    return f"bandit({', '.join(models(server).values())})"


def price_table(folder: Path, server: LLMServer) -> Path:
    table = folder / "prices.toml"
    table.write_text(
        f'[openai]\n"good@{server.url}" = {{ input = 10.0, output = 50.0 }}\n'
        f'"boss@{server.url}" = {{ input = 0.0, output = 0.0 }}\n'
        f'[anthropic]\n"poor@{server.root}" = {{ input = 1.0, output = 5.0 }}\n'
    )
    return table


@pytest.mark.slow
def test_the_better_model_writes_most_and_each_pays_its_own_price(server: LLMServer, tmp_path: Path) -> None:
    server.script = script = Ensemble(speed)
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run())
        store.save_profile("run", profile())
        prices = price_table(tmp_path, server)
        searched(store, tmp_path, server, bandit(server), 12, prices=prices)
        made, calls, report = store.attempts("run"), store.calls("run"), build_report(store, "run")
        names = {a.id: store.get_solution(a.solution or "").author for a in made}
    good, poor = models(server).values()
    drawn = Counter(a.coder for a in made)
    assert drawn.total() == 12
    assert drawn[good] >= 8
    assert drawn[poor] >= 1
    assert [a.coder for a in made] == [models(server)[name] for name in script.writers]
    assert {(c.attempt, c.model) for c in calls if c.role == "coder"} == {(a.id, a.coder) for a in made}
    assert all(models(server)[names[a.id]] == a.coder for a in made)
    paid = {t.model: t for t in totals(calls) if t.role == "coder"}
    for spec, million in ((good, (10.0, 50.0)), (poor, (1.0, 5.0))):
        total = paid[spec]
        cost = (total.tokens_in * million[0] + total.tokens_out * million[1]) / 1e6
        assert total.dollars == pytest.approx(cost)
    shown = {m.model: m for m in report.models}
    assert {name: m.attempts for name, m in shown.items()} == drawn
    assert {name: m.dollars for name, m in shown.items()} == {
        name: pytest.approx(t.dollars) for name, t in paid.items()
    }
    assert (shown[good].reward or 0) > 0.5 > (shown[poor].reward or 0)


@pytest.mark.slow
@pytest.mark.parametrize("children", [1, 3])
def test_a_run_that_goes_on_draws_as_one_that_was_never_interrupted(
    server: LLMServer, tmp_path: Path, children: int
) -> None:
    drawn = {}
    for name, stops in (("whole", (12,)), ("resumed", (3, 6, 12))):
        folder = tmp_path / name
        folder.mkdir()
        server.script = Ensemble(lambda model, number: 2.0)  # so that dollars decide
        with Store(f"sqlite:///{folder / 'a.db'}") as store:
            store.create_run(make_run())
            prices = price_table(folder, server)
            for stop in stops:
                searched(store, folder, server, bandit(server), stop, prices=prices, children=children)
                cut_off = LLMCall(
                    key=f"cut {stop}", run="run", attempt="run/0001", role="coder", prompt="p", dollars=9.0,
                    model=models(server)["poor"], status="begun", time=datetime.now(UTC),
                )  # fmt: skip
                store.save_call(cut_off)  # as a kill leaves it: its highest cost is no cost of the attempt
            drawn[name] = [a.coder for a in store.attempts("run")]
    assert len(drawn["whole"]) == 12
    assert set(drawn["whole"]) == set(models(server).values())
    assert drawn["resumed"] == drawn["whole"]


def test_a_model_of_unknown_price_is_named_before_a_call(server: LLMServer, tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run())
        with pytest.raises(UsageError, match="the price of openai:good@"):
            create_coder(bandit(server), Ledger(store, "run", Budget(dollars=1.0)))
    assert server.seen == []


def test_models_are_shown_with_what_they_reached_and_cost(
    server: LLMServer, tmp_path: Path, home: Path, run: Run
) -> None:
    server.script = Ensemble(speed)
    home.mkdir()
    with Store(f"sqlite:///{home / 'agentforge.db'}") as store:
        store.create_run(make_run())
        store.save_profile("run", profile())
        searched(store, tmp_path, server, bandit(server), 3)  # no price is known
        unplanned = store.attempts("run")[-1].model_copy(update={"id": "run/0004", "number": 4, "plan": None})
        store.save_attempt(unplanned)
    shown = run("runs", "show", "run")
    assert shown.code == 0, shown.err
    assert "mean reward" in shown.out
    good, poor = models(server).values()
    body = run("runs", "show", "run", "--json").json
    assert {m["model"] for m in body["models"]} == {good, poor}
    assert all(m["dollars"] is None for m in body["models"])
    assert sum(m["attempts"] for m in body["models"]) == 3, "its planner failed: it wrote nothing"
    assert {a["coder"] for a in body["tried"]} == {good, poor}
    assert shown.out.count(good) > 2, "each attempt says who wrote it"


@pytest.mark.parametrize("spec", ["bandit()", "bandit(nobody:m)", "bandit(bandit(openai:m))"])
def test_bad_input_ends_before_anything_is_loaded(run: Run, home: Path, spec: str) -> None:
    Path("model.py").write_text("raise SystemExit('loaded')")
    answer = run("optimize", "model.py", "--coder", spec)
    assert answer.code == 2
    said = [line for line in answer.err.splitlines() if line.strip()]
    assert len(said) == 1
    assert said[0].startswith("agentforge: ")
    assert not (home / "agentforge.db").exists()
