"""A campaign's state: written on one machine, continued on another."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from agentforge.campaigns.exports import elsewhere, export_artifacts, export_campaign
from agentforge.campaigns.exports.state import export_state, import_state, read_state
from agentforge.campaigns.report import build_report
from agentforge.campaigns.start import parse_arms, plan_campaign
from agentforge.config import Settings
from agentforge.schema import ArtifactReport, ItemState, JudgingCode, SuiteProblem, TryOutcome, UsageError
from agentforge.store import Store
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
    assert there.arms == here.arms
    assert [i.speedup for i in there.items] == [i.speedup for i in here.items]
    assert [i.codes for i in there.items] == [i.codes for i in here.items]
    assert there.items[0].codes == ("one",)
    assert [i.reason for i in there.items if "in HOME/runs" in i.reason]
    assert str(tmp_path) not in gzip.decompress((tmp_path / "night.gz").read_bytes()).decode()


def test_only_paths_become_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder := tmp_path / "work").mkdir()
    monkeypatch.chdir(folder)
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


def test_an_imported_campaign_exports_what_is_here(store: Store, tmp_path: Path) -> None:
    while (item := store.take_item("night", "host:1", 600)) is not None:
        store.end_item(item, TryOutcome.FAILED, "it failed")
    assert elsewhere(store, "night") == ()
    export_state(store, "night", tmp_path / "night.gz", tmp_path)
    with other(tmp_path) as there:
        import_state(there, read_state(tmp_path / "night.gz"), "")
        names = ("level1/1_a (base)", "level1/1_a (llm)", "level1/2_b (base)")
        assert elsewhere(there, "night") == names
        files = export_campaign(there, "night", tmp_path / "files")
        with pytest.raises(UsageError, match="was imported without its solutions"):
            export_artifacts(there, "night", tmp_path / "artifacts", tmp_path / "cache")
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
        assert elsewhere(there, "night") == ()
        files = export_campaign(there, "night", tmp_path / "files")
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
        with pytest.raises(UsageError, match="has another text of level1/2_a"):
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
