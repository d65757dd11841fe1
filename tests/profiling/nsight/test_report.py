"""Reports: rows by hand, files that are not reports, and a report that was written on an H100."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from agentforge.profiling.nsight import Refused, read_report
from agentforge.profiling.nsight.convert import by_kernel, classification_of, findings_of, metrics_of
from agentforge.profiling.nsight.report import KernelReport, read_action
from agentforge.profiling.nsight.source import SAMPLES
from agentforge.schema import Bound

from . import h100
from .fakes import FakeAction, FakeMetric, FakePlace

WANTED = (
    "gpu__time_duration.sum",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram__bytes_read.sum",
)

RULE = {
    "rule_identifier": "CPIStall",
    "name": "Warp Stall",
    "rule_message": {
        "title": "Long Scoreboard",
        "message": "See @section:SourceCounters:Counters@.",
        "type": 2,
    },
    "speedup_estimation": {"type": 2, "speedup": 50.0},
}
INFORMS = {"rule_identifier": "Roofline", "name": "Roofline", "rule_message": {"message": "fine", "type": 1}}
LOCAL = {**RULE, "speedup_estimation": {"type": 1, "speedup": 90.0}, "rule_identifier": "Local"}
NOT_ITS_OWN = {**RULE, "rule_identifier": "MemoryL2Compression"}


def _action() -> FakeAction:
    return FakeAction(
        "softmax",
        {
            "gpu__time_duration.sum": FakeMetric(12_000.0, "ns"),
            "sm__throughput.avg.pct_of_peak_sustained_elapsed": FakeMetric(math.nan, "%"),
            SAMPLES: FakeMetric(100.0, instances={16: 60, 32: 30, 48: 9, 64: 1}),
            "smsp__pcsamp_warps_issue_stalled_long_scoreboard": FakeMetric(1.0, instances={16: 50, 48: 1}),
            "smsp__pcsamp_warps_issue_stalled_wait": FakeMetric(1.0, instances={16: 5, 48: 7}),
        },
        [RULE, INFORMS, LOCAL, NOT_ITS_OWN],
        {16: FakePlace("/tmp/b/kernel.cu", 7), 32: FakePlace("/tmp/b/kernel.cu", 7)},
    )


def test_what_was_not_collected_is_none_and_no_row():
    report = read_action(_action(), WANTED)
    assert report.values == {WANTED[0]: 12_000.0, WANTED[1]: None, WANTED[2]: None}
    rows = metrics_of([report])
    assert [(m.name, m.value, m.unit, m.source, m.kernel) for m in rows] == [
        (WANTED[0], 12_000.0, "ns", "ncu", "softmax")
    ]


def test_rules_keep_their_estimates():
    report = read_action(_action(), WANTED)
    assert [r.speedup for r in report.rules][:3] == [
        2.0,
        None,
        None,
    ]  # a local estimate is none of the kernel
    rules = [f for f in findings_of([report]) if f.source == "ncu-rule"]
    assert [f.estimated_speedup for f in rules] == [2.0, None]
    assert rules[0].message == "See Counters."


def test_the_numbers_of_estimates_are_the_readers():
    reader = pytest.importorskip("ncu_report")
    assert RULE["speedup_estimation"]["type"] == reader.SpeedupType.GLOBAL
    assert LOCAL["speedup_estimation"]["type"] == reader.SpeedupType.LOCAL
    assert RULE["rule_message"]["type"] == reader.MsgType.OPTIMIZATION
    assert INFORMS["rule_message"]["type"] == reader.MsgType.OK


def test_hot_lines_add_up_over_instructions():
    report = read_action(_action(), WANTED)
    assert [(h.line, h.share, h.stall) for h in report.lines] == [
        (7, 0.9, "long_scoreboard"),
        (0, 0.09, "wait"),
    ]
    found = [f for f in findings_of([report], ["kernel.cu"]) if f.source == "ncu-line"]
    assert (found[0].file, found[0].line) == ("kernel.cu", 7)
    assert str(found[0]).startswith("kernel.cu:7: hot line (90% of samples)")
    assert found[1].title == "hot instruction"


def test_what_tensor_cores_wait_for_on_hopper_is_named():
    stall = "smsp__pcsamp_warps_issue_stalled_"
    metrics = {
        SAMPLES: FakeMetric(100.0, instances={16: 100}),
        f"{stall}warpgroup_arrive": FakeMetric(80.0, instances={16: 80}),
        f"{stall}wait": FakeMetric(20.0, instances={16: 20}),
    }
    (line,) = read_action(FakeAction("product", metrics), WANTED).lines
    assert line.stall == "warpgroup_arrive"


def test_a_handful_of_samples_names_no_line():
    few = {SAMPLES: FakeMetric(2.0, instances={16: 1, 32: 1})}
    assert read_action(FakeAction("short", few), WANTED).lines == ()


def test_one_launch_a_kernel_and_the_costliest_first():
    reports = [
        KernelReport(kernel="small", values={"gpu__time_duration.sum": 10.0}),
        KernelReport(kernel="large", values={"gpu__time_duration.sum": 12.0}),
        KernelReport(kernel="small", values={"gpu__time_duration.sum": 11.0}),
    ]
    assert [(r.kernel, r.values["gpu__time_duration.sum"]) for r in by_kernel(reports)] == [
        ("small", 11.0),
        ("large", 12.0),
    ]
    assert classification_of([]) is None


@pytest.mark.parametrize("content", [b"", b"hello", b"\x00" * 4096])
def test_a_file_that_is_no_report(tmp_path: Path, content: bytes):
    pytest.importorskip("ncu_report")
    path = tmp_path / "x.ncu-rep"
    path.write_bytes(content)
    with pytest.raises(Refused, match=r"not an Nsight Compute report|cannot be read"):
        read_report(path)


def test_a_file_that_is_not_there(tmp_path: Path):
    pytest.importorskip("ncu_report")
    with pytest.raises(Refused, match="cannot be read"):
        read_report(tmp_path / "none.ncu-rep")


def test_a_report_of_an_h100(tmp_path: Path):
    pytest.importorskip("ncu_report")
    (report,) = read_report(h100.written_to(tmp_path))
    assert report.kernel == h100.KERNEL
    read = report.values["dram__bytes_read.sum"]
    assert read is not None
    assert 4096 * 4096 * 4 <= read < 4096 * 4096 * 4 * 1.01
    assert report.values["sm__inst_executed.sum"] is None  # not in ncu's set `detailed`
    assert report.values["gpu__time_duration.sum"] == pytest.approx(42_688)
    assert report.values["dram__throughput.avg.pct_of_peak_sustained_elapsed"] is None
    assert len(report.rules) == 5
    assert len(report.lines) == 8
    assert "SOLBottleneck" in {rule.rule for rule in report.rules}
    classification = classification_of([report])
    assert classification is not None
    assert classification.bound is Bound.MEMORY
    assert classification.reasons[0].value == pytest.approx(78.20, abs=0.01)
    assert {f.estimated_speedup for f in findings_of([report])} == {None, 4 / 3}
    assert {Path(line.file).name for line in report.lines} >= {"rows.cuh"}
