"""Tables say what the store says, in the types that their columns are documented with."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import agentforge.analysis as af
from agentforge.analysis import rows
from agentforge.schema import Attempt, FrozenModel, KernelUse, MachineError, Metric, ResourceUsage, StoreError
from agentforge.store import Store
from tests.loop.conftest import make_run
from tests.loop.scripted import bottleneck, profile
from tests.loop.test_bottleneck_state import measured
from tools import docs_reference

DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
TABLES: dict[Callable[..., Any], type[FrozenModel]] = {
    af.bottlenecks: rows.BottleneckRow,
    af.attempts: rows.AttemptRow,
    af.metrics: rows.MetricRow,
    af.kernels: rows.KernelRow,
    af.resources: rows.ResourceRow,
    af.findings: rows.FindingRow,
}


@pytest.mark.slow
def test_attempts(url: str) -> None:
    frame = af.attempts("run", url).set_index("strategy")
    assert frame.loc["fuse-row-program", "speedup_eager"] == 2.0
    wider = frame.loc["wider-loads"]
    assert (wider.eager_low, wider.speedup_eager, wider.eager_high) == pytest.approx((2.97, 3.0, 3.03))
    assert (wider.compile_low, wider.speedup_compile) == pytest.approx((0.7425, 0.75))
    assert (wider.best_low, wider.speedup_best) == pytest.approx((0.7425, 0.75))
    assert (wider.status, wider.evidence, wider.level, wider.bound) == (
        "PASSED",
        "verified",
        "full",
        "memory",
    )
    assert frame.loc["strategy-2", "error"] == "no such template"
    assert frame["parent"].dtype == "Int64"
    assert frame["speedup_eager"].isna().sum() == 2
    assert frame["promoted"].sum() == 2


def test_counters_are_rows_that_pivot(url: str) -> None:
    frame = af.metrics("run", url)
    ncu = frame[frame.source == "ncu"]
    assert set(ncu.kernel) == {"softmax", "vectorized_elementwise_kernel"}
    table = ncu.pivot_table(index=["number", "kernel"], columns="metric", values="value")
    assert set(table[DRAM]) == {87.5}
    assert set(ncu[ncu.metric == DRAM].unit) == {"%"}
    assert {"achieved_bandwidth", "flops_share"} <= set(frame.metric)


def test_findings_come_with_gain_and_source_line(url: str) -> None:
    frame = af.findings("run", url)
    assert set(frame[frame.source == "ncu-rule"].estimated_speedup) == {1.25}
    hottest = frame[frame.share == 0.9].iloc[0]
    assert (hottest.file, hottest.line, hottest.text) == ("model_new.py", 2, "class ModelNew: ...")
    assert frame["line"].dtype == "Int64"


def test_bottlenecks_and_runs(url: str) -> None:
    frame = af.bottlenecks("run", url)
    assert list(frame.bottleneck) == ["norm", "softmax", "vendor"]
    assert list(frame.attempts) == [3, 1, 0]
    assert list(frame.failed) == [1, 1, 0]
    assert frame.speedup_eager[0] == 3.0
    assert not frame.optimizable[2]
    (run,) = af.runs(url).itertuples()
    assert (run.run, run.name, run.status, str(run.created.tz)) == ("run", "target", "searching", "UTC")


def test_kernels_resources_and_metrics(tmp_path: Path) -> None:
    """What the referee saw run, and what the assembler says."""
    usage = ResourceUsage(kernel="k", target="sm_90", registers=40, threads=256, occupancy=0.75)
    use = KernelUse(name="k", own=True, calls=2, share=0.9)
    metrics = (
        Metric(name="vector_bytes", value=64, unit="B", source="compiler"),
        Metric(name="x", value=math.nan),
    )
    made = {"kernels": (use,), "resources": (usage,), "metrics": metrics}
    evaluation = measured(2.0).model_copy(update=made)
    with Store(f"sqlite:///{tmp_path / 'agentforge.db'}") as store:
        store.create_run(make_run())
        store.save_profile("run", profile(norm := bottleneck("norm")))
        identifier = store.save_evaluation(evaluation, "run")
        key = norm.definition.hash
        store.save_attempt(Attempt(id="run/1", run="run", bottleneck=key, number=1, evaluation=identifier))
        (kernel,) = af.kernels(store=store).itertuples(index=False)
        (taken,) = af.resources(store=store).itertuples(index=False)
        (metric,) = af.metrics(store=store).itertuples(index=False)
    assert tuple(kernel) == (1, "norm", "k", True, 2, 0.9)
    assert (taken.target, taken.registers, taken.threads, taken.occupancy) == ("sm_90", 40, 256, 0.75)
    assert (metric.metric, metric.value, metric.evaluation) == ("vector_bytes", 64, identifier)


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.__name__)
def test_columns_are_documented_and_the_same_without_rows(
    table: Callable[..., Any], url: str, tmp_path: Path
) -> None:
    columns = list(TABLES[table].model_fields)
    with Store(f"sqlite:///{tmp_path / 'agentforge.db'}") as store:
        store.create_run(make_run())
        empty = table(store=store)
    full = table(store=url)
    assert list(empty.columns) == list(full.columns) == list(full.attrs["columns"]) == columns
    assert list(empty.dtypes) == list(full.dtypes)
    assert len(empty) == 0


def test_docs_name_every_table_and_column() -> None:
    page = (Path(__file__).parents[2] / "docs" / "notebook.md").read_text()
    _, *sections = "\n".join(docs_reference.tables_page()).split("\n## ")
    for section, (table, row) in zip(sections, {af.runs: rows.RunRow, **TABLES}.items(), strict=True):
        assert f"| `{table.__name__}` |" in page
        assert section.startswith(f"`{table.__name__}`")
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(row.model_fields)


def test_without_the_extra_the_install_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "plotly", "plotly.subplots"):
        monkeypatch.setitem(sys.modules, name, None)
    found = af.trajectory(store=url)
    assert "fuse-row-program" in found._repr_html_()
    for needs in (lambda: af.runs(url), found.plot):
        with pytest.raises(MachineError, match=r"needs the package .*: run pip install '\.\[notebook\]'"):
            needs()


def test_a_missing_database_is_said_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no database"):
        af.runs(f"sqlite:///{tmp_path / 'new' / 'none.db'}")
    assert not (tmp_path / "new").exists()


def test_a_database_that_is_none() -> None:
    with pytest.raises(StoreError, match="is no database URL"):
        af.runs("/home/somebody/agentforge.db")
