"""`agentforge runs` over a store with a searched run."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentforge.store import Store
from tests.loop.conftest import Bench, make_run
from tests.loop.scripted import bottleneck, profile

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


def test_list(run: Run, searched: Path) -> None:
    answer = run("runs", "list", "--json")
    assert {r["id"] for r in answer.json["runs"]} == {"run", "other"}
    shown = run("runs", "list")
    assert "searching" in shown.out
    assert shown.err == ""


def test_show(run: Run, searched: Path) -> None:
    body = run("runs", "show", "run", "--json").json
    assert body["run"]["id"] == "run"
    assert body["headline"].startswith("Not finished")
    assert [t["result"].get("evidence") for t in body["tried"]] == ["verified", None, "unverified"]
    shown = run("runs", "show", "ru").out
    assert "2.00x eager" in shown
    assert "no [template]" in shown


def test_an_identifier_may_be_cut_short_but_not_ambiguous(run: Run, searched: Path) -> None:
    with Store(f"sqlite:///{searched / 'agentforge.db'}") as store:
        store.create_run(make_run("other-2"))
    assert run("runs", "show", "othe").code == 2
    assert run("runs", "show", "other-").code == 0
