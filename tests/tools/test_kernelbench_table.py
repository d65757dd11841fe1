"""The scores of the campaign over KernelBench are made from its exported state."""

from __future__ import annotations

from pathlib import Path

from agentforge.campaigns.exports.state import export_state
from agentforge.schema import SearchSummary, TryOutcome
from agentforge.store import Store
from tests.campaigns.conftest import finish, store  # noqa: F401
from tools import kernelbench_table


def test_the_tables_come_from_the_exported_state(store: Store, tmp_path: Path) -> None:  # noqa: F811
    slower = next(i for i in store.campaign_items("night") if (i.problem, i.arm) == ("level1/2_b", "base"))
    summary = SearchSummary(reason="the budget of 1 minute is used up", attempts=3)
    store.save_record(slower.run or "", summary)
    export_state(store, "night", tmp_path / "night.jsonl.gz", tmp_path)
    lines = kernelbench_table.content(tmp_path / "night.jsonl.gz").splitlines()
    assert lines[0].startswith("7 of 8 problems have ended; without a verdict or a reason: none; kept and")
    assert "slower than eager: none." in lines[0]
    levels = {line.split(" | ")[0].strip("| "): line for line in lines if line.startswith("| level")}
    shares = "100.0% (interval above: 50.0%) | 50.0% (interval above: 50.0%)"
    assert levels["level1 (base)"].startswith(f"| level1 (base) | 2 | 2 | 2 | {shares} | 1.77x |")
    (loss,) = (line for line in lines if line.startswith("| level1/2_b | 0.53x | 1.05x"))
    known = "regions with own kernels: 0; attempts: 3, then the budget of 1 minute is used up"
    assert f"torch.compile is faster; {known}" in loss
    reasons = lines[lines.index("Problems without a verified solution:") :]
    assert any("failed: it does not import | 1 | level2/10_d" in line for line in reasons)
    assert any("its inputs accept wrong answers" in line for line in reasons)


def test_what_breaks_the_promises_is_named(store: Store, tmp_path: Path) -> None:  # noqa: F811
    item = store.take_item("night", "host:1", 600)
    assert item is not None
    finish(store, "slow", speedup=0.5)
    store.attach_run(item, "slow")
    store.end_item(item, TryOutcome.DONE)
    export_state(store, "night", tmp_path / "night.jsonl.gz", tmp_path)
    head = kernelbench_table.content(tmp_path / "night.jsonl.gz").splitlines()[0]
    assert f"kept and slower than eager: {item.problem}." in head


def test_without_a_state_nothing_is_claimed(tmp_path: Path) -> None:
    assert kernelbench_table.content(tmp_path / "nowhere.gz") == "Not measured yet.\n"


def test_the_page_has_the_tables_of_the_state() -> None:
    assert kernelbench_table.TABLE.is_current(kernelbench_table.content())
