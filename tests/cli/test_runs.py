"""`agentforge runs` over a store with a searched run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from agentforge.cli import _options
from agentforge.runs import resumption
from agentforge.schema import MachineError, RunResumed
from agentforge.store import Store
from tests.loop.conftest import Bench, make_run
from tests.loop.scripted import bottleneck, profile
from tests.store import nouns
from tests.store.test_calls import call
from tests.store.test_opening import _older

from .conftest import Run


@pytest.fixture
def searched(home: Path) -> Path:
    home.mkdir()
    with Store(f"sqlite:///{home / 'agentforge.db'}") as store:
        store.create_run(make_run())
        store.create_run(make_run("other"))
        found = profile(bottleneck("norm"))
        store.save_profile("run", found)
        Bench(store, home).search(
            found, {"norm": [{"speed": 2.0}, {"speed": 1.0, "cannot": "no [template]"}, {"speed": 1.5}]}
        )
    return home


@pytest.mark.parametrize(("command", "name"), [("runs", "runs"), ("campaign", "campaigns")])
def test_a_list_makes_no_database(run: Run, home: Path, command: str, name: str) -> None:
    assert run(command, "list", "--json").json == {name: []}
    assert run(command, "list").code == 0
    assert not home.exists()


def test_list(run: Run, searched: Path) -> None:
    answer = run("runs", "list", "--json")
    assert {r["id"] for r in answer.json["runs"]} == {"run", "other"}
    assert [r["alive"] for r in answer.json["runs"]] == [False, False]
    shown = run("runs", "list")
    assert "stopped while searching" in shown.out
    assert shown.err == ""
    with Store(f"sqlite:///{searched / 'agentforge.db'}") as store, store.lock_run("run"):
        (alive,) = [r["id"] for r in run("runs", "list", "--json").json["runs"] if r["alive"]]
    assert alive == "run"


def test_show(run: Run, searched: Path) -> None:
    body = run("runs", "show", "run", "--json").json
    assert body["run"]["id"] == "run"
    assert body["headline"].startswith("Not finished")
    assert [t["result"].get("evidence") for t in body["tried"]] == ["verified", None, "unverified"]
    shown = run("runs", "show", "ru").out
    assert "2.00x over eager" in shown
    assert re.search(r"search: 3 attempts; .+; the run took \d+ s", shown)
    assert "no [template]" in shown


def test_what_language_models_cost_is_said(run: Run, searched: Path) -> None:
    assert "language models:" not in run("runs", "show", "run").out
    with Store(f"sqlite:///{searched / 'agentforge.db'}") as store:
        store.save_call(call("a", status="answered", tokens_in=1000, tokens_out=50, dollars=0.01))
        store.save_call(call("b", status="failed", tokens_in=500, dollars=0.005))
    assert (
        "language models: 2 calls (1 failed), 1550 tokens, 0.0150 dollars" in run("runs", "show", "run").out
    )


def test_the_source_of_what_was_chosen(run: Run, searched: Path) -> None:
    assert "class ModelNew" not in run("runs", "show", "run").out
    shown = run("runs", "show", "run", "--source").out
    assert "attempt 1, chosen: model_new.py" in shown
    assert "class ModelNew" in shown
    (kernel,) = run("runs", "show", "run", "--source", "--json").json["kernels"]
    assert (kernel["attempt"], kernel["state"]) == (1, "chosen")


def test_an_identifier_may_be_cut_short_but_not_ambiguous(run: Run, searched: Path) -> None:
    with Store(f"sqlite:///{searched / 'agentforge.db'}") as store:
        store.create_run(make_run("other-2"))
    assert run("runs", "show", "othe").code == 2
    assert run("runs", "show", "other-").code == 0


def test_a_run_is_removed_with_its_folder_unless_a_process_works_on_it(run: Run, searched: Path) -> None:
    folder = searched / "runs" / "run"
    folder.mkdir(parents=True, exist_ok=True)
    with Store(f"sqlite:///{searched / 'agentforge.db'}") as store, store.lock_run("run"):
        answer = run("runs", "rm", "other", "run")
        assert answer.code == 2
        assert "nothing was removed, because a process works on run run" in answer.err
        assert {r.id for r in store.list_runs()} == {"run", "other"}
    assert folder.is_dir()
    assert run("runs", "rm", "run", "--json").json == {"removed": ["run"]}
    assert not folder.exists()
    assert {r["id"] for r in run("runs", "list", "--json").json["runs"]} == {"other"}
    assert run("runs", "show", "run").code == 2


def test_an_exported_run_has_all_that_is_stored_of_it(run: Run, searched: Path, tmp_path: Path) -> None:
    with Store(f"sqlite:///{searched / 'agentforge.db'}") as store:
        store.update_run("run", target=store.save_target(nouns.target()))
    whole = run("runs", "export", "run").json
    assert whole["format"] == "agentforge-run-1"
    assert [a["number"] for a in whole["attempts"]] == [1, 2, 3]
    assert {a["evaluation"] for a in whole["attempts"] if a["evaluation"]} == set(whole["evaluations"])
    assert {a["solution"] for a in whole["attempts"] if a["solution"]} == set(whole["solutions"])
    assert "priors" in whole["records"]
    file = tmp_path / "run.json"
    assert run("runs", "export", "run", "--out", str(file), "--json").json["file"] == str(file)
    assert json.loads(file.read_text()) == whole
    assert run("runs", "export", "run", "--out", str(tmp_path)).code == 2


def test_runs_are_compared_region_by_region(
    run: Run, searched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = run("runs", "compare", "run", "other", "--json").json["runs"]
    assert [b["run"]["id"] for b in bodies] == ["run", "other"]
    name = "20260102-030405-a-model-with-a-name-ab12"
    monkeypatch.setenv("COLUMNS", "80")
    with Store(f"sqlite:///{searched / 'agentforge.db'}") as store:
        store.create_run(make_run(name))
        found = profile(bottleneck("norm"))
        store.save_profile(name, found)
        Bench(store, searched).search(found, {"norm": [{"speed": 3.0}]}, name=name)
    shown = run("runs", "compare", "run", name).out
    assert "2.00x" in shown
    assert "3.00x" in shown
    assert name in shown
    assert "over eager" in shown.splitlines()[1]


@pytest.mark.slow
def test_identifiers_of_runs_are_completed(searched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMP_WORDS", "agentforge runs show o")
    monkeypatch.setenv("COMP_CWORD", "3")
    monkeypatch.setenv("_AGENTFORGE_COMPLETE", "complete_bash")
    command = [sys.executable, "-m", "agentforge.cli"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["other"]


def test_completion_upgrades_no_database(home: Path) -> None:
    _older(f"sqlite:///{home / 'agentforge.db'}", "0015").dispose()
    before = (home / "agentforge.db").read_bytes()
    assert _options._known_runs("") == []
    assert (home / "agentforge.db").read_bytes() == before


@pytest.fixture
def weights(searched: Path) -> list[Path]:
    """Files of two days ago that both runs read, that one reads, and that none reads."""
    live = searched / "live"
    live.mkdir()
    files = [live / f"{name}.pt" for name in ("both", "one", "none")]
    for file in files:
        file.touch()
        os.utime(file, (then := file.stat().st_mtime - 2 * 24 * 3600, then))
    with Store(f"sqlite:///{searched / 'agentforge.db'}") as store:
        for name, read in (("run", files[:2]), ("other", files[:1])):
            source = "\n".join(f"_WEIGHTS = Path({str(file)!r})" for file in read)
            target = nouns.target()
            definition = target.definition.model_copy(update={"reference": source})
            key = store.save_target(target.model_copy(update={"definition": definition}))
            store.update_run(name, target=key)
    return files


def test_weights_go_with_the_last_run_that_reads_them(run: Run, weights: list[Path]) -> None:
    run("runs", "rm", "run")
    assert [file.exists() for file in weights] == [True, False, True]
    run("runs", "rm", "other")
    assert [file.exists() for file in weights] == [False, False, True]  # nothing is known of the last one


def test_weights_stay_that_a_run_may_need_which_is_not_in_the_database(
    run: Run, searched: Path, weights: list[Path]
) -> None:
    weights[0].touch()  # as a parallel `optimize` does
    named = f"database_url=sqlite:///{searched / 'agentforge.db'}"
    assert run("runs", "rm", "run", "-c", named).code == 0
    assert run("runs", "rm", "other").code == 0
    assert [file.exists() for file in weights] == [True, True, True]


def test_a_limit_is_an_option_or_a_setting(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def resume(*_: Any, limits: dict[str, float], **__: Any) -> NoReturn:
        raise MachineError(f"limits: {limits}")

    monkeypatch.setattr(resumption, "resume", resume)
    words = ("runs", "resume", "run", "-c", "budget.minutes=30", "-c", "referee.processes=5")
    assert "limits: {'minutes': 30.0}" in run(*words).err
    assert "limits: {'minutes': 1.0, 'tokens': 9}" in run(*words, "--minutes", "1", "--tokens", "9").err
    assert "limits: {}" in run(*words[:3]).err


def test_a_run_that_fails_says_how_to_continue(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def resume(*_: Any, on_event: Any, **__: Any) -> NoReturn:
        on_event(RunResumed(run="r", target="t", device="d"))
        raise MachineError("the quota is used up", shown="in full")

    monkeypatch.setattr(resumption, "resume", resume)
    there = f"sqlite:///{home / 'other.db'}"
    command = f"agentforge runs resume r -c database_url={there}"
    words = ("runs", "resume", "r", "-c", f"database_url={there}")
    error = {"error": "the quota is used up", "exit_code": 2, "shown": "in full", "run": "r"}
    assert run(*words, "--json").json == {**error, "resume": command}
    assert run(*words).err.endswith(f"agentforge: the quota is used up\nin full\ncontinue with: {command}\n")
