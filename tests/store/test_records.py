"""Records of runs: kept and replaced."""

from __future__ import annotations

import pytest

from agentforge.schema import (
    ArtifactReport,
    Directive,
    Directives,
    GivenKernel,
    GivenKernels,
    Intent,
    JudgingCode,
    ModelPlan,
    NativeVerdict,
    OriginalMetric,
    Priors,
    RegionPlan,
    RunSettings,
    SearchSummary,
    StitchResult,
    StoreError,
    UsageError,
)
from agentforge.store import Store
from agentforge.store._records import RECORDS as KINDS

from . import nouns

PLAN = ModelPlan(
    regions=(RegionPlan(bottleneck="d", name="norm", fuse=True, expected_speedup=2.0),), diagnosis="slow"
)
RECORDS = (
    RunSettings(search={"policy": "best-first"}, referee={"processes": 5}, out="made"),
    GivenKernels(kernels=(GivenKernel(strategy="given-kernel", solution="s"),)),
    Intent(text="softmax"),
    OriginalMetric(value=0.9),
    Priors(by_bottleneck={"d": 0.4}),
    PLAN,
    SearchSummary(reason="done", attempts=3, wins=1),
    StitchResult(mode="kernels", summary="1 kernel won", proven=True, calls={"d": 3}, packed=("p",)),
    ArtifactReport(data={"mode": "kernels", "kernels": [{"speedup": 1.5}]}),
    Directives(written=(Directive(id="d1", parent="plain", text="Read rows in order."),)),
    NativeVerdict(evaluation="e", accepted=False, message="mismatch found"),
    JudgingCode(codes=("one", "other")),
)


def test_each_record_is_kept_and_replaced(store: Store) -> None:
    assert {record.record_name: type(record) for record in RECORDS} == KINDS
    stored = "settings kernels intent metric priors plan search stitch report directives native code"
    assert [record.record_name for record in RECORDS] == stored.split()
    run = nouns.run()
    store.create_run(run)
    for record in RECORDS:
        assert store.get_record(run.id, type(record)) is None
        store.save_record(run.id, record)
    assert tuple(store.get_record(run.id, type(record)) for record in RECORDS) == RECORDS
    store.save_record(run.id, Intent(text="softmax", written=True))
    assert store.get_record(run.id, Intent) == Intent(text="softmax", written=True)


def test_a_run_begins_with_all_its_records_or_does_not_exist(store: Store) -> None:
    run = nouns.run()
    with pytest.raises(StoreError):
        store.create_run(run, [PLAN, Intent(text="softmax"), PLAN])
    with pytest.raises(UsageError, match="no run"):
        store.get_run(run.id)
    store.create_run(run, RECORDS)
    assert tuple(store.get_record(run.id, type(record)) for record in RECORDS) == RECORDS


def test_no_record_without_a_run(store: Store) -> None:
    with pytest.raises(UsageError, match="no run"):
        store.save_record("nothing", PLAN)
