"""A campaign's state: written on one machine, continued on another."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, update

from agentforge.campaigns.exports import elsewhere, export_artifacts, export_campaign
from agentforge.campaigns.exports.state import export_state, read_state
from agentforge.campaigns.exports.state_import import import_state
from agentforge.campaigns.extend import extend, retry
from agentforge.campaigns.item import _spent_by_others
from agentforge.campaigns.report import build_report
from agentforge.campaigns.start import parse_arms, plan_campaign
from agentforge.campaigns.worker import Worker
from agentforge.config import Settings
from agentforge.schema import (
    ArtifactReport,
    CampaignItem,
    ItemState,
    JudgingCode,
    LLMCall,
    SuiteProblem,
    TryOutcome,
    UsageError,
)
from agentforge.store import Store
from agentforge.store.tables import TryRow
from tests.campaigns.conftest import finish
from tests.store import nouns


def other(tmp_path: Path) -> Store:
    return Store(f"sqlite:///{tmp_path / 'other.db'}")


def test_the_report_of_an_imported_campaign_is_the_same(store: Store, tmp_path: Path) -> None:
    while (item := store.take_item("night", "host:1", 600)) is not None:
        store.end_item(item, TryOutcome.FAILED, f"it failed in {tmp_path}/runs")
    store.save_record("run-1", JudgingCode(codes=("one",)))
    export_state(store, "night", tmp_path / "night.gz", tmp_path)
    with other(tmp_path) as elsewhere:
        import_state(elsewhere, read_state(tmp_path / "night.gz"), "")
        there, here = build_report(elsewhere, "night"), build_report(store, "night")
    seconds = [[arm.seconds for arm in report.arms] for report in (there, here)]
    assert seconds[0] == pytest.approx(seconds[1], abs=0.1)
    assert [a.model_copy(update={"seconds": 0.0}) for a in there.arms] == [
        a.model_copy(update={"seconds": 0.0}) for a in here.arms
    ]
    assert [i.speedup for i in there.items] == [i.speedup for i in here.items]
    assert [i.codes for i in there.items] == [i.codes for i in here.items]
    assert there.items[0].codes == ("one",)
    assert [i.reason for i in there.items if "in HOME/runs" in i.reason]
    assert str(tmp_path) not in gzip.decompress((tmp_path / "night.gz").read_bytes()).decode()


def test_only_paths_become_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder := tmp_path / "work").mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr("tempfile.tempdir", "/nowhere/tmp")  # tests run in the real one
    ids = (f"x{folder}load_1", f"x{folder}/2", "plain")
    with other(tmp_path) as made:
        campaign, _ = nouns.campaign(len(ids))
        problems = [SuiteProblem(id=name, target="x.py") for name in ids]
        made.create_campaign(campaign.model_copy(update={"arms": campaign.arms[:1]}), problems)
        for _ in ids:
            item = made.take_item("night", "host:1", 600)
            assert item is not None
            reason = f"in {folder}/a.py:\n{folder}/b.py, {folder}. {folder}er and {folder}.py are not in it"
            made.end_item(item, TryOutcome.FAILED, reason)
        export_state(made, "night", tmp_path / "night.gz", tmp_path / "home")
    lines = read_state(tmp_path / "night.gz").items
    assert tuple(line.problem.id for line in lines) == ids
    reason = lines[-1].item.reason
    assert reason.startswith("in FOLDER/a.py:\nFOLDER/b.py, FOLDER. ")
    assert f"{folder}er and {folder}.py are" in reason


def test_a_state_names_no_user_and_no_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/alice")
    monkeypatch.setattr("sys.prefix", "/opt/alice-venv")
    monkeypatch.setattr("tempfile.tempdir", "/var/tmp/alice")
    said = (
        "in /home/alice/lib.py, /opt/alice-venv/lib/torch.py and /var/tmp/alice/x: no space",
        "worker alice-pc.example:4711.815 died; it said last: nothing",
        "there is no route to http://alice-gpu:8000/v1",
    )
    agent, file = "openai:m@http://alice-gpu:8000/v1", tmp_path / "night.gz"
    with other(tmp_path) as made:
        campaign, problems = nouns.campaign(len(said))
        arms = (campaign.arms[0].model_copy(update={"agent": agent}),)
        llm = {"prices": "/data/alice/prices.toml", "seed": 1}
        settings = campaign.settings.model_copy(update={"llm": llm})
        made.create_campaign(campaign.model_copy(update={"arms": arms, "settings": settings}), problems)
        for reason in said:
            item = made.take_item("night", "host:1", 600)
            assert item is not None
            made.create_run(nouns.run(run := f"run-{item.id}"))
            made.attach_run(item, run)
            asked = {"key": run, "run": run, "role": "coder", "prompt": "p", "status": "answered"}
            made.save_call(LLMCall.model_validate({**asked, "model": agent, "time": nouns.NOW}))
            made.end_item(item, TryOutcome.FAILED, reason)
        export_state(made, "night", file, tmp_path)
        state = read_state(file)
        assert import_state(made, state, "").name == "night", "what was cut makes no other campaign"
        assert made.get_campaign("night").arms == arms
        assert made.get_campaign("night").settings == settings
    assert "alice" not in gzip.decompress(file.read_bytes()).decode()
    assert [line.item.reason for line in state.items] == [
        "in ~/lib.py, PYTHON/lib/torch.py and TMP/x: no space",
        "worker HOST died; it said last: nothing",
        "there is no route to http://HOST/v1",
    ]
    assert state.campaign.arms[0].agent == "openai:m@http://HOST/v1"
    assert state.campaign.settings.llm == {"seed": 1}
    with Store(f"sqlite:///{tmp_path / 'third.db'}") as third:
        (first, *others) = state.items
        waiting = first.model_copy(
            update={"item": first.item.model_copy(update={"state": ItemState.WAITING}), "result": None}
        )
        with pytest.raises(UsageError, match="serves the model of arm base: export it with --solutions"):
            left = state.model_copy(update={"items": (waiting, *others)})
            import_state(third, left, f"folder:{tmp_path}")
        import_state(third, state, "")


def test_a_file_with_solutions_says_who_serves_the_model_that_an_earlier_one_hid(
    store: Store, suite: Path, tmp_path: Path
) -> None:
    begun(store, suite, 1, 2)
    store.end_item(store.campaign_items("kb")[2], TryOutcome.FAILED, "it does not build")
    (arm,) = store.get_campaign("kb").arms
    arms = (arm.model_copy(update={"agent": "openai:m@http://alice-gpu:8000/v1"}),)
    store._with_changes("kb", lambda _: {"arms": arms})
    bare, whole, place = tmp_path / "bare.gz", tmp_path / "whole.gz", f"kernelbench:{suite}"
    export_state(store, "kb", bare, tmp_path)
    export_state(store, "kb", whole, tmp_path, solutions=True)
    state = read_state(bare)
    (*lines, last) = state.items
    waiting = last.model_copy(
        update={"item": last.item.model_copy(update={"state": ItemState.WAITING}), "result": None}
    )
    with other(tmp_path) as there:
        import_state(there, state, place)
        assert there.get_campaign("kb").arms[0].agent == "openai:m@http://HOST/v1"

        def left() -> None:
            import_state(there, state.model_copy(update={"items": (*lines, waiting)}), place)

        for refused in (lambda: extends(there), lambda: retries(there), left):
            with pytest.raises(UsageError, match="serves the model of arm playbook: export it with --sol"):
                refused()
        Worker(there, "kb", tell=print)  # nothing is left
        there.retry_items("kb", (ItemState.FAILED,))  # as an earlier version did
        with pytest.raises(UsageError, match="serves the model of arm playbook: export it with --sol"):
            Worker(there, "kb", tell=print)
        import_state(there, read_state(whole), "")
        assert there.get_campaign("kb").arms == arms
        import_state(there, state, place)
        assert there.get_campaign("kb").arms == arms
        Worker(there, "kb", tell=print)
        assert extends(there) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({'"name":"night"': '"name":"../night"'}, "'../night' is no name of a campaign"),
        ({'"name":"base"': '"name":"../up"', '"arm":"base"': '"arm":"../up"'}, "'../up' is no name of"),
        ({"level1/1_a": "../../x"}, "problem '../../x' or its definition has no usable name"),
        ({'"id":"level1/1_a"': '"id":"level1/1_a","definition":"../x"'}, "problem 'level1/1_a' or its"),
        ({'"problem":"level1/1_a"': '"problem":"level1/9_z"'}, "the item of 'level1/1_a' has another"),
        ({'"arm":"llm"': '"arm":"third"'}, "has another problem or an unknown arm"),
        ({'"id":"run-1"': '"id":".."'}, "'..' is no name of a campaign, an arm or a run"),
    ],
)
def test_a_name_that_would_be_another_path_is_refused(
    store: Store, tmp_path: Path, changes: dict[str, str], words: str
) -> None:
    export_state(store, "night", tmp_path / "night.gz", tmp_path)
    text = gzip.decompress((tmp_path / "night.gz").read_bytes()).decode()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "night.gz").write_bytes(gzip.compress(text.encode()))
    with pytest.raises(UsageError, match=f"is no state of a campaign .*{re.escape(words)}") as caught:
        read_state(tmp_path / "night.gz")
    assert "\n" not in str(caught.value)


def test_an_imported_campaign_exports_what_is_here(store: Store, tmp_path: Path) -> None:
    while (item := store.take_item("night", "host:1", 600)) is not None:
        store.end_item(item, TryOutcome.FAILED, "it failed")
    assert elsewhere(store, build_report(store, "night")) == ()
    export_state(store, "night", tmp_path / "night.gz", tmp_path)
    with other(tmp_path) as there:
        import_state(there, read_state(tmp_path / "night.gz"), "")
        names = ("level1/1_a (base)", "level1/1_a (llm)", "level1/2_b (base)")
        assert elsewhere(there, build_report(there, "night")) == names
        files = export_campaign(there, build_report(there, "night"), tmp_path / "files")
        with pytest.raises(UsageError, match="was imported without its solutions"):
            export_artifacts(there, build_report(there, "night"), tmp_path / "artifacts", tmp_path / "cache")
    assert not [file for file in files if file.suffix == ".py"]
    results = json.loads((tmp_path / "files/runs/night-base-level1/eval_results.json").read_text())
    assert [found[0]["correctness"] for found in results.values()] == [True, True]


def test_a_state_with_solutions_has_what_artifacts_are_made_of(store: Store, tmp_path: Path) -> None:
    while (item := store.take_item("night", "host:1", 600)) is not None:
        store.end_item(item, TryOutcome.FAILED, "it failed")
    whole = nouns.target().model_copy(update={"definition": nouns.definition()})
    store.save_target(whole)
    report = ArtifactReport(data={"mode": "kernels"})
    store.save_record("run-1", report)
    bare, full = tmp_path / "bare.gz", tmp_path / "full.gz"
    export_state(store, "night", bare, tmp_path)
    export_state(store, "night", full, tmp_path, solutions=True)
    with other(tmp_path) as there:
        import_state(there, read_state(bare), "")
        import_state(there, read_state(full), "")  # adds what the first one lacked
        assert elsewhere(there, build_report(there, "night")) == ()
        files = export_campaign(there, build_report(there, "night"), tmp_path / "files")
        export_state(there, "night", tmp_path / "again.gz", tmp_path, solutions=True)
        assert there.get_target(whole.definition.hash) == whole
        assert there.get_record("run-1", ArtifactReport) == report
    assert len([file for file in files if file.suffix == ".py"]) == 3
    assert [line.result for line in read_state(tmp_path / "again.gz").items] == [
        line.result for line in read_state(full).items
    ]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite" / "level1"
    folder.mkdir(parents=True)
    for number in (1, 2, 3):
        (folder / f"{number}_a.py").write_text(f"class Model: a = {number}\n")
    return folder.parent


def begun(store: Store, suite: Path, *numbers: int) -> None:
    """A campaign over the suite in which problems of these numbers are done, by a first worker each."""
    campaign, problems = plan_campaign(f"kernelbench:{suite}", parse_arms(()), Settings(), name="kb")
    store.create_campaign(campaign, problems)
    for number in (1, 2, 3):
        item = store.take_item("kb", "host:1", 600)
        assert item is not None
        if number in numbers:
            finish(store, f"kb-{number}", speedup=1.0 + number)
            store.attach_run(item, f"kb-{number}")
            store.end_item(item, TryOutcome.DONE)


def test_another_machine_does_the_rest_and_sittings_add_up(store: Store, suite: Path, tmp_path: Path) -> None:
    begun(store, suite, 1, 3)
    export_state(store, "kb", tmp_path / "kb.gz", tmp_path)
    text = gzip.decompress((tmp_path / "kb.gz").read_bytes()).decode()
    assert "class Model" not in text
    moved = suite.rename(tmp_path / "moved")
    with other(tmp_path) as elsewhere:
        for _ in range(2):  # again changes nothing
            import_state(elsewhere, read_state(tmp_path / "kb.gz"), f"kernelbench:{moved}")
        assert [i.state for i in elsewhere.campaign_items("kb")] == [
            ItemState.DONE, ItemState.WAITING, ItemState.DONE,
        ]  # fmt: skip
        item = elsewhere.take_item("kb", "host:2", 600)
        assert item is not None and item.problem == "level1/2_a" and item.run is None
        assert "a = 2" in elsewhere.campaign_problem("kb", item.problem).source
        finish(elsewhere, "kb-2", speedup=4.0)
        elsewhere.attach_run(item, "kb-2")
        elsewhere.end_item(item, TryOutcome.DONE)
        report = build_report(elsewhere, "kb")
        assert report.finished and report.arms[0].verified == 3
        export_state(elsewhere, "kb", tmp_path / "kb.gz", tmp_path)
    with Store(f"sqlite:///{tmp_path / 'third.db'}") as third:
        begun(third, moved)
        import_state(third, read_state(tmp_path / "kb.gz"), f"kernelbench:{moved}")
        assert {i.state for i in third.campaign_items("kb")} == {ItemState.RUNNING}  # a worker has them


def test_an_item_that_is_visited_again_travels_with_its_result(
    store: Store, suite: Path, tmp_path: Path
) -> None:
    begun(store, suite, 1, 2, 3)
    items = store.campaign_items("kb")
    store.extend_items("kb", {items[0].id: 1, items[1].id: 1})
    assert store.take_item("kb", "elsewhere:1", 600) is not None
    export_state(store, "kb", tmp_path / "kb.gz", tmp_path)
    with other(tmp_path) as elsewhere:
        import_state(elsewhere, read_state(tmp_path / "kb.gz"), f"kernelbench:{suite}")
        there = elsewhere.campaign_items("kb")
        waiting = (ItemState.WAITING, 2, "kb-1")
        assert (there[0].state, there[0].visits, there[0].result_run) == waiting
        assert build_report(elsewhere, "kb").arms[0].verified == 3


@pytest.mark.slow
def test_an_import_replaces_failures_and_results_of_fewer_visits(
    store: Store, suite: Path, tmp_path: Path
) -> None:
    begun(store, suite, 1, 2, 3)
    second = store.campaign_items("kb")[1]
    store.extend_items("kb", {second.id: 1})
    again = store.take_item("kb", "host:1", 600)
    assert again is not None and again.id == second.id
    finish(store, "kb-2-again", speedup=9.0)
    store.attach_run(again, "kb-2-again")
    store.attach_result(again, "kb-2-again")
    store.end_item(again, TryOutcome.DONE)
    export_state(store, "kb", tmp_path / "kb.gz", tmp_path)
    with other(tmp_path) as there:
        begun(there, suite, 2, 3)  # problem 2 is done after one visit, and 1 still has a worker
        failed = there.campaign_items("kb")[0]
        there.end_item(failed, TryOutcome.FAILED, "it does not build")
        found = import_state(there, read_state(tmp_path / "kb.gz"), f"kernelbench:{suite}")
        assert (found.taken, found.left) == (2, 0)  # 3 is the same run
        items = there.campaign_items("kb")
        assert [(i.state, i.visits, i.result_run, i.reason) for i in items] == [
            (ItemState.DONE, 1, "kb-1", ""),
            (ItemState.DONE, 2, "kb-2-again", ""),
            (ItemState.DONE, 1, "kb-3", ""),
        ]
        there.extend_items("kb", {items[0].id: 1})
        found = import_state(there, read_state(tmp_path / "kb.gz"), f"kernelbench:{suite}")
        assert (found.taken, found.left) == (0, 0)
        assert (there.campaign_items("kb")[0].state, there.campaign_items("kb")[0].visits) == (
            ItemState.WAITING,
            2,
        )


def test_an_import_leaves_other_results_and_says_how_many(store: Store, suite: Path, tmp_path: Path) -> None:
    begun(store, suite, 1, 2, 3)
    export_state(store, "kb", tmp_path / "kb.gz", tmp_path)
    with other(tmp_path) as there:
        begun(there, suite)  # a worker has all items
        item = there.campaign_items("kb")[0]
        finish(there, "kb-own", speedup=4.0)
        there.attach_run(item, "kb-own")
        there.end_item(item, TryOutcome.DONE)
        found = import_state(there, read_state(tmp_path / "kb.gz"), f"kernelbench:{suite}")
        assert (found.name, found.taken, found.left) == ("kb", 0, 3)
        assert there.campaign_items("kb")[0].result_run == "kb-own"


def test_what_does_not_fit_is_one_clear_sentence(store: Store, suite: Path, tmp_path: Path) -> None:
    begun(store, suite, 1)
    file = tmp_path / "kb.gz"
    export_state(store, "kb", file, tmp_path)
    with other(tmp_path) as elsewhere:
        with pytest.raises(UsageError, match="campaign kb is not over: name the place"):
            import_state(elsewhere, read_state(file), "")
        (suite / "level1" / "2_a.py").write_text("class Model: a = 5\n")
        with pytest.raises(UsageError, match="another text of level1/2_a, or an older version"):
            import_state(elsewhere, read_state(file), f"kernelbench:{suite}")
        (suite / "level1" / "2_a.py").unlink()
        with pytest.raises(UsageError, match="has no problem level1/2_a"):
            import_state(elsewhere, read_state(file), f"kernelbench:{suite}")
        assert elsewhere.list_campaigns() == ()
    whole = gzip.decompress(file.read_bytes())
    (tmp_path / "part.gz").write_bytes(gzip.compress(b"".join(whole.splitlines(keepends=True)[:-1])))
    with pytest.raises(UsageError, match=r"is no state of a campaign \(it has 2 of 3 items\)"):
        read_state(tmp_path / "part.gz")
    for place in range(10, 138):
        damaged = bytearray(file.read_bytes())
        damaged[place] ^= 0xFF
        (tmp_path / "bad.gz").write_bytes(damaged)
        with pytest.raises(UsageError, match="is no state of a campaign"):
            read_state(tmp_path / "bad.gz")
    for content in (b"", b"text", gzip.compress(b'{"format": "x"}\n{}\n'), file.read_bytes()[:200]):
        (tmp_path / "bad.gz").write_bytes(content)
        with pytest.raises(UsageError, match="is no state of a campaign"):
            read_state(tmp_path / "bad.gz")
    with pytest.raises(UsageError, match="is no state of a campaign"):
        read_state(tmp_path / "nowhere.gz")
    for wrong in (tmp_path / "nowhere" / "kb.gz", tmp_path, Path()):
        with pytest.raises(UsageError, match="cannot be written"):
            export_state(store, "kb", wrong, tmp_path)


def done(store: Store, item: CampaignItem | None, run: str, **result: Any) -> None:
    assert item is not None
    finish(store, run, **result)
    store.attach_run(item, run)
    store.end_item(item, TryOutcome.DONE)


def test_an_import_loses_no_faster_result(store: Store, suite: Path, tmp_path: Path) -> None:
    place = f"kernelbench:{suite}"
    begun(store, suite, 1, 2, 3)  # 2x, 3x and 4x
    first, _, third = store.campaign_items("kb")
    store.extend_items("kb", {first.id: 1, third.id: 1})
    for number in (1, 3):  # again for nothing
        item = store.take_item("kb", "host:1", 600)
        assert item is not None
        store.end_item(item, TryOutcome.DONE)
        assert item.run == f"kb-{number}"
    export_state(store, "kb", tmp_path / "kb.gz", tmp_path)
    with other(tmp_path) as there:
        campaign, problems = plan_campaign(place, parse_arms(()), Settings(), name="kb")
        there.create_campaign(campaign, problems)
        done(there, there.take_item("kb", "host:2", 600), "own-1", speedup=9.0)
        done(there, there.take_item("kb", "host:2", 600), "own-2", speedup=2.5)
        done(there, there.take_item("kb", "host:2", 600), "own-3", speedup=None, mode="eager")
        for _ in range(2):  # again changes nothing
            found = import_state(there, read_state(tmp_path / "kb.gz"), place)
            items = there.campaign_items("kb")
            assert [(i.visits, i.result_run) for i in items] == [(2, "own-1"), (1, "kb-2"), (2, "kb-3")]
            assert [i.speedup["eager"].point for i in build_report(there, "kb").items] == [9.0, 3.0, 4.0]
        assert (found.taken, found.left) == (0, 1)
        there.extend_items("kb", {items[1].id: 1})
        done(there, there.take_item("kb", "host:2", 600), "own-4", speedup=1.0)
        export_state(there, "kb", tmp_path / "there.gz", tmp_path)
    found = import_state(store, read_state(tmp_path / "there.gz"), place)
    assert (found.taken, found.left) == (1, 0)
    items = store.campaign_items("kb")
    assert [(i.visits, i.result_run) for i in items] == [(2, "own-1"), (2, "kb-2"), (2, "kb-3")]


def spend(store: Store, item: CampaignItem, run: str, dollars: float) -> None:
    store.create_run(nouns.run(run, origin="/home/me/model.py"))
    assert store.attach_run(item, run)
    call = {"key": f"{run}-1", "run": run, "role": "coder", "model": "m", "prompt": "p", "status": "answered"}
    said = {"tokens_in": 10, "tokens_out": 5, "dollars": dollars, "response": "secret", "time": nouns.NOW}
    store.save_call(LLMCall.model_validate({**call, **said}))


def test_what_all_runs_of_an_item_spent_travels(store: Store, suite: Path, tmp_path: Path) -> None:
    """A run that was given up, one in progress at Ctrl-C, one that failed, and that of a result."""
    place, file = f"kernelbench:{suite}", tmp_path / "kb.gz"
    campaign, problems = plan_campaign(place, parse_arms(()), Settings(), name="kb")
    campaign = campaign.model_copy(update={"arms": nouns.campaign()[0].arms[1:]})
    store.create_campaign(campaign, problems)
    first, second, third = (store.take_item("kb", "host:1", 600) for _ in range(3))
    assert first is not None and second is not None and third is not None
    for item, run, price in ((first, "given-up", 0.25), (third, "slow", 2.0)):
        spend(store, item, run, price)
        store.end_item(item, TryOutcome.RELEASED)
    spend(store, second, "failed", 1.0)
    store.end_item(second, TryOutcome.FAILED, "it does not build")
    first, third = (store.take_item("kb", "elsewhere:1", 600) for _ in range(2))
    assert first is not None and first.run is None
    spend(store, first, "in-progress", 0.5)
    store.end_item(first, TryOutcome.RELEASED)
    done(store, third, "fast", speedup=2.0)
    export_state(store, "kb", file, tmp_path)
    text = gzip.decompress(file.read_bytes()).decode()
    assert "secret" not in text and "/home/me" not in text
    dollars = [item.dollars for item in build_report(store, "kb").items]
    assert dollars == [0.75, 1.0, 2.0]
    with other(tmp_path) as there:
        for _ in range(2):  # again adds nothing
            import_state(there, read_state(file), place)
            assert [item.dollars for item in build_report(there, "kb").items] == dollars
            assert there.campaign_spending("kb") == store.campaign_spending("kb") == (60, 3.75, 0)
        assert [item.state for item in there.campaign_items("kb")] == [
            ItemState.WAITING, ItemState.FAILED, ItemState.DONE,
        ]  # fmt: skip
        again = there.take_item("kb", "host:2", 600)
        assert again is not None and (again.problem, again.run) == (first.problem, None)
        assert _spent_by_others(there, again) == 0.75
        assert there.end_item(again, TryOutcome.FAILED, "it does not build")
        assert there.retry_items("kb", (ItemState.FAILED,)) == 2
        assert [item.dollars for item in build_report(there, "kb").items] == dollars
        export_state(there, "kb", tmp_path / "again.gz", tmp_path)
    import_state(store, read_state(tmp_path / "again.gz"), place)  # where the calls were made
    assert [item.dollars for item in build_report(store, "kb").items] == dollars
    assert [call.response for call in store.calls("given-up")] == ["secret"]


def test_a_file_without_other_runs_is_read(store: Store, tmp_path: Path) -> None:
    export_state(store, "night", tmp_path / "night.gz", tmp_path)
    assert '"others"' not in gzip.decompress((tmp_path / "night.gz").read_bytes()).decode()
    assert {line.others for line in read_state(tmp_path / "night.gz").items} == {()}


def extends(store: Store) -> int:
    return len(Counter(v.item for v in extend(store, "kb", "speedup", seconds=1e6).visits))


def retries(store: Store) -> int:
    return retry(store, "kb", (ItemState.FAILED,))


@pytest.mark.slow
def test_an_import_without_texts_is_not_worked_on_until_they_follow(
    store: Store, suite: Path, tmp_path: Path
) -> None:
    begun(store, suite, 1, 2)
    store.end_item(store.campaign_items("kb")[2], TryOutcome.FAILED, "it does not build")
    bare, whole = tmp_path / "bare.gz", tmp_path / "whole.gz"
    export_state(store, "kb", bare, tmp_path)
    export_state(store, "kb", whole, tmp_path, solutions=True)
    texts = store.campaign_problems("kb")
    moved = suite.rename(tmp_path / "moved")
    for number, (file, place) in enumerate(((bare, f"kernelbench:{moved}"), (whole, ""))):
        with Store(f"sqlite:///{tmp_path / f'there-{number}.db'}") as there:
            import_state(there, read_state(bare), "")
            assert not any(problem.source for problem in there.campaign_problems("kb"))
            for again in (extends, retries):
                with pytest.raises(
                    UsageError, match=r"level1/._a: run `agentforge campaign import FILE --suite"
                ):
                    again(there)
            assert all(item.state.over for item in there.campaign_items("kb"))
            import_state(there, read_state(file), place)
            assert [p.hash for p in there.campaign_problems("kb")] == [p.hash for p in texts]
            assert there.get_campaign("kb").suite == (place or "kernelbench:suite")
            assert (extends(there), retries(there)) == (2, 1)
            newer = moved.rename(tmp_path / f"moved-{number}")
            import_state(there, read_state(bare), f"kernelbench:{newer}")
            assert there.get_campaign("kb").suite == f"kernelbench:{newer}"
            assert {p.file for p in there.campaign_problems("kb")} == {
                str(file) for file in newer.glob("*/*.py")
            }
            moved = newer


def took(store: Store, item: CampaignItem, seconds: float) -> None:
    """Let the item's last try have begun earlier."""
    with store._db.write() as session:
        own = (TryRow.item == item.id, TryRow.number == item.tries)
        session.execute(update(TryRow).where(*own).values(begun=TryRow.begun - seconds))


def seconds_of(store: Store) -> list[float]:
    return [round(item.seconds, -1) for item in store.campaign_items("kb")]


@pytest.mark.slow
def test_the_seconds_of_a_try_count_once_in_each_database(store: Store, suite: Path, tmp_path: Path) -> None:
    place, file, back = f"kernelbench:{suite}", tmp_path / "kb.gz", tmp_path / "back.gz"
    campaign, problems = plan_campaign(place, parse_arms(()), Settings(), name="kb")
    store.create_campaign(campaign, problems)
    first = store.take_item("kb", "host:1", 600)
    assert first is not None
    took(store, first, 100.0)
    store.end_item(first, TryOutcome.FAILED, "it does not build")
    export_state(store, "kb", file, tmp_path)
    with other(tmp_path) as there:
        there.create_campaign(campaign, problems)
        own = there.take_item("kb", "host:2", 600)
        assert own is not None
        took(there, own, 30.0)
        done(there, own, "there", speedup=2.0)
        for _ in range(2):
            import_state(there, read_state(file), place)
            assert seconds_of(there) == [130.0, 0.0, 0.0], "a failure replaces no result, and took time"
        assert build_report(there, "kb").items[0].ended is not None, "when its own try ended"
        export_state(there, "kb", back, tmp_path)
    assert import_state(store, read_state(back), place).taken == 1
    assert seconds_of(store) == [130.0, 0.0, 0.0], "its own 100 s came back"
    with Store(f"sqlite:///{tmp_path / 'third.db'}") as third:
        for _ in range(2):
            import_state(third, read_state(back), place)
            import_state(third, read_state(file), place)
            assert seconds_of(third) == [130.0, 0.0, 0.0]
        assert build_report(third, "kb").items[0].ended is None


def test_an_old_file_has_the_seconds_of_an_item_alone(store: Store, suite: Path, tmp_path: Path) -> None:
    begun(store, suite, 1)
    took(store, store.campaign_items("kb")[1], 50.0)
    store.end_item(store.campaign_items("kb")[1], TryOutcome.FAILED, "it does not build")
    export_state(store, "kb", tmp_path / "kb.gz", tmp_path)
    state = read_state(tmp_path / "kb.gz")
    old = state.model_copy(
        update={"items": tuple(line.model_copy(update={"tries": {}}) for line in state.items)}
    )
    with other(tmp_path) as there:
        for _ in range(2):
            import_state(there, old, f"kernelbench:{suite}")
            assert seconds_of(there) == [0.0, 50.0, 0.0]
        again = there.take_item("kb", "host:2", 600)
        assert again is not None and again.problem == "level1/3_a"
        with there._db.write() as session:  # as an older version left it: without such a try
            session.execute(delete(TryRow).where(TryRow.number < 0))
        export_state(there, "kb", tmp_path / "there.gz", tmp_path)
    with Store(f"sqlite:///{tmp_path / 'third.db'}") as third:
        import_state(third, read_state(tmp_path / "there.gz"), f"kernelbench:{suite}")
        assert seconds_of(third) == [0.0, 50.0, 0.0]


def test_an_imported_campaign_keeps_its_kind_of_device_and_its_own_limit(
    store: Store, suite: Path, tmp_path: Path
) -> None:
    begun(store, suite, 1)
    place, file = f"kernelbench:{suite}", tmp_path / "kb.gz"
    export_state(store, "kb", tmp_path / "open.gz", tmp_path)
    store.fix_device("kb", "cuda")
    store.set_campaign_limit("kb", 90.0)
    export_state(store, "kb", file, tmp_path)
    with other(tmp_path) as there:
        import_state(there, read_state(file), place)
        assert (there.get_campaign("kb").device, there.get_campaign("kb").limit_s) == ("cuda", 90.0)
        there.set_campaign_limit("kb", 60.0)
        import_state(there, read_state(tmp_path / "open.gz"), place)
        assert (there.get_campaign("kb").device, there.get_campaign("kb").limit_s) == ("cuda", 60.0)
    with Store(f"sqlite:///{tmp_path / 'third.db'}") as third:
        begun(third, suite)
        import_state(third, read_state(file), place)
        assert third.get_campaign("kb").device == "cuda"
    with Store(f"sqlite:///{tmp_path / 'fourth.db'}") as fourth:
        begun(fourth, suite)
        fourth.fix_device("kb", "cpu")
        with pytest.raises(UsageError, match="exists with other device"):
            import_state(fourth, read_state(file), place)
