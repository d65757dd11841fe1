"""Campaigns over problems of a suite, on the CPU. Other tests load and call problems of each suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentforge.campaigns import worker as workers
from agentforge.campaigns.exports import export_campaign
from agentforge.campaigns.render import markdown
from agentforge.campaigns.report import build_report
from agentforge.campaigns.start import parse_arms, plan_campaign
from agentforge.campaigns.suites import Selection
from agentforge.campaigns.worker import Worker
from agentforge.config import load_settings
from agentforge.schema import ItemState, StitchResult
from agentforge.store import Store
from tests.campaigns.test_worker import QUICK

from . import test_traces as traces


@pytest.mark.slow
def test_a_definition_is_judged_on_all_of_its_workloads(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One item, one search and one verdict; the kernels of the playbook, a figure for each workload."""
    monkeypatch.setattr(workers, "_ITEM", "tests.campaigns.fake_items:on_a_steady_clock")
    axes = {**traces.definition()["axes"], "K": {"type": "const", "value": 1024}}
    body = "x[:, : y.shape[1]] * y * scale"
    reference = traces.REFERENCE.replace(body, f"torch.relu({body} + 1.0) * torch.sigmoid(y)")
    about = traces.definition(reference=reference, axes=axes)
    traces.write_sol(tmp_path / "s" / "scaled", about, *map(traces.workload, (64, 256, 100)))
    settings = load_settings([*QUICK, "budget.attempts=1", "referee.patience_s=0"])
    campaign, problems = plan_campaign(
        f"sol:{tmp_path / 's'}", parse_arms(()), settings, name="night", device="cpu"
    )
    assert [problem.id for problem in problems] == ["scaled"]
    with Store(settings.url) as store:
        store.create_campaign(campaign, problems)
        Worker(store, "night", tell=lambda line: None).work()
        (item,), report = store.campaign_items("night"), build_report(store, "night")
        assert item.state is ItemState.DONE, item.reason
        (found,), (about_it,) = report.items, report.definitions
        assert found.verified and found.mode.startswith("kernels"), found
        assert list(found.workload_speedup) == list(found.workload_s) == ["1", "2", "3"]
        assert (about_it.definition, about_it.workloads, about_it.verified) == ("scaled", 3, 3)
        assert about_it.speedup["eager"] == pytest.approx(2.0)
        assert found.sol_s
        assert "## Workloads of one verdict" in markdown(report)
        (file,) = export_campaign(store, report, tmp_path / "out")
        assert "on its 3 workloads in one verdict" in file.read_text()
        assert found.run is not None
        stitched = store.get_record(found.run, StitchResult)
        assert stitched is not None and stitched.evaluation is not None
        assert len(store.get_evaluation(stitched.evaluation).workloads) == 3


def _sol(folder: Path) -> str:
    about = traces.definition(custom_inputs_entrypoint="make")
    custom = {"y": {"type": "custom"}}
    traces.write_sol(folder / "scaled", about, traces.workload(64, **custom), traces.workload(32, **custom))
    return f"sol:{folder}"


@pytest.mark.slow
def test_a_problem_of_a_suite_is_carried_out(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_ITEM", "tests.campaigns.fake_items:on_a_known_machine")
    (tmp_path / "suite").mkdir()
    settings = load_settings(QUICK)
    campaign, problems = plan_campaign(
        _sol(tmp_path / "suite"),
        parse_arms(()),
        settings,
        selection=Selection(only="scaled/*"),
        name="night",
        device="cpu",
    )
    with Store(settings.url) as store:
        store.create_campaign(campaign, problems)
        Worker(store, "night", tell=lambda line: None).work()
        items, report = store.campaign_items("night"), build_report(store, "night")
    assert [(item.state, item.reason) for item in items] == [(ItemState.DONE, "")] * len(problems)
    assert [d.workloads for d in report.definitions] == ([len(problems)] if problems[0].definition else [])


@pytest.mark.slow
def test_a_problem_that_does_not_import_says_so(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = "import a_package_that_is_nowhere\n" + traces.REFERENCE
    traces.write_sol(tmp_path / "s" / "broken", traces.definition(reference=broken), traces.workload(4))
    settings = load_settings(QUICK)
    campaign, problems = plan_campaign(f"sol:{tmp_path / 's'}", parse_arms(()), settings, name="night")
    with Store(settings.url) as store:
        store.create_campaign(campaign, problems)
        Worker(store, "night", tell=lambda line: None).work()
        (item,) = store.campaign_items("night")
    assert item.state is ItemState.FAILED
    assert "broken imports a_package_that_is_nowhere, which is not installed: run pip install" in item.reason


@pytest.mark.slow
def test_what_the_machine_cannot_run_is_unsupported_and_can_be_tried_again(
    home: Path, tmp_path: Path
) -> None:
    complex_inputs = traces.REFERENCE.replace("torch.ones(", "1j * torch.ones(").replace(
        "device=device)", "dtype=torch.float64)"
    )
    about = traces.definition(custom_inputs_entrypoint="make", reference=complex_inputs)
    custom = traces.workload(4, y={"type": "custom"})
    lost = traces.workload(4, y={"type": "safetensors", "path": "gone", "tensor_key": "y"})
    traces.write_sol(tmp_path / "s", about, custom, lost)
    settings = load_settings(QUICK)
    campaign, problems = plan_campaign(f"sol:{tmp_path / 's'}", parse_arms(()), settings, name="night")
    with Store(settings.url) as store:
        store.create_campaign(campaign, problems)
        for _ in range(2):
            Worker(store, "night", tell=lambda line: None).work()
            odd, missing = store.campaign_items("night")
            assert {odd.state, missing.state} == {ItemState.UNSUPPORTED}
            assert "dtype torch.complex128 are not supported" in odd.reason
            assert missing.reason == "its tensors are in gone, which is not on this machine"
            assert store.retry_items("night", (ItemState.UNSUPPORTED,)) == 2
