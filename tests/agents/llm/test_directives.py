"""Directives through the real loop, store, ledger and SDKs, against a local endpoint."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentforge.agents.directives import PLAIN
from agentforge.schema import MOST_DIRECTIVE, Attempt, Directive, Directives
from agentforge.store import Store
from tests.cli.conftest import Run, home, run
from tests.llm.conftest import server
from tests.llm.server import LLMServer, Reply
from tests.loop.conftest import make_run

from .ensemble import Ensemble, searched
from .scene import profile, role_of, said

__all__ = ["home", "run", "server"]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTFORGE_LLM_API_KEY", "sk-none")


class Evolving(Ensemble):
    """Its editor writes one fragment after the other, and its coder is faster with a later one."""

    def __init__(self, *, usable: bool = True) -> None:
        super().__init__(lambda model, number: 1.0)
        self.usable = usable

    def __call__(self, body: dict[str, Any]) -> Reply:
        if role_of(body) != "coder":
            return super().__call__(body)
        prompt = said(body)[1]
        self.prompts.append(("coder", prompt))
        found = re.search(r"fragment number (\d+)", prompt)
        speed = 1.1 + 0.4 * int(found[1] if found else 0)
        answer = json.dumps({"speed": speed, "answer": next(self.numbers)})
        return Reply(f"FILE: model_new.py\n```python\nSAID = {answer}\nclass ModelNew: ...\n```\n")

    def _editor(self, prompt: str) -> Reply:
        text = f"fragment number {len(self.of('editor'))}" if self.usable else "x" * (MOST_DIRECTIVE + 1)
        return Reply(json.dumps({"fragment": text}))


def made(
    folder: Path, server: LLMServer, script: Ensemble, stops: tuple[int, ...], **settings: Any
) -> tuple[tuple[Attempt, ...], tuple[Directive, ...]]:
    """A search that was stopped after these attempts, and went on."""
    folder.mkdir(exist_ok=True)
    server.script = script
    with Store(f"sqlite:///{folder / 'agentforge.db'}") as store:
        store.create_run(make_run())
        store.save_profile("run", profile())
        for stop in stops:
            searched(store, folder, server, f"openai:m@{server.url}", stop, **settings)
        return store.attempts("run"), (store.get_record("run", Directives) or Directives()).written


@pytest.mark.slow
def test_the_fragment_that_helps_is_edited_and_drawn_most(server: LLMServer, home: Path, run: Run) -> None:
    attempts, written = made(home, server, script := Evolving(), (32,), directives=8)
    assert [one.text for one in written] == [f"fragment number {n}" for n in (1, 2, 3)]
    assert [one.parent for one in written] == [PLAIN, "d1", "d2"]
    drawn = Counter(a.directive for a in attempts)
    assert drawn[PLAIN] >= 10
    assert Counter(a.directive for a in attempts[-11:])[PLAIN] <= 2
    shown = [re.findall(r"fragment number \d+", prompt) for prompt in script.of("coder")]
    texts = {one.id: [one.text] for one in written}
    assert shown == [texts.get(a.directive, []) for a in attempts]
    asked = script.of("editor")
    assert "The slot is empty now" in asked[0]
    assert "fragment number 1" in asked[1]
    assert "1. `rows-" in asked[0] and "measured" in asked[0]

    answer = run("runs", "show", "run")
    assert answer.code == 0, answer.err
    assert "mean gain" in answer.out and "fragment number 2" in answer.out
    told = {d["id"]: d for d in run("runs", "show", "run", "--json").json["directives"]}
    assert {name: d["attempts"] for name, d in told.items()} == drawn
    assert told["d1"]["gain"] > told[PLAIN]["gain"]


@pytest.mark.slow
def test_a_run_that_goes_on_makes_the_same_fragments(server: LLMServer, tmp_path: Path) -> None:
    found = {}
    for name, stops in (("whole", (24,)), ("resumed", (3, 9, 12, 24))):
        attempts, written = made(tmp_path / name, server, Evolving(), stops, directives=4, children=3)
        found[name] = [a.directive for a in attempts], written
    assert len(found["whole"][1]) == 2
    assert found["resumed"] == found["whole"]


@pytest.mark.slow
def test_a_model_that_writes_no_usable_fragment_ends_nothing(server: LLMServer, tmp_path: Path) -> None:
    attempts, written = made(tmp_path, server, Evolving(usable=False), (12,), directives=8)
    assert len(attempts) == 12
    assert [one.text for one in written] == [""]
    assert {a.directive for a in attempts} == {PLAIN}


@pytest.mark.slow
def test_without_the_setting_nothing_is_drawn_or_asked(server: LLMServer, tmp_path: Path) -> None:
    attempts, written = made(tmp_path, server, script := Evolving(), (12,))
    assert {a.directive for a in attempts} == {""}
    assert not written and not script.of("editor")


@pytest.mark.parametrize("coder", ["playbook", "playbook,openai:m@http://h/v1"])
def test_a_coder_without_prompt_is_refused_before_anything_is_loaded(
    run: Run, home: Path, coder: str
) -> None:
    Path("model.py").write_text("raise SystemExit('loaded')")
    answer = run("optimize", "model.py", "--coder", coder, "-c", "search.directives=8")
    assert answer.code == 2
    assert "search.directives" in answer.err and "Traceback" not in answer.err
