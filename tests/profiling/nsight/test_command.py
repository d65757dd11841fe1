"""Command lines, names of metrics, refusals."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentforge.profiling.nsight.capability import (
    Refusal,
    RefusalReporter,
    Refused,
    available_ncu,
    error_line,
    install_folders,
    refusal_in,
    version_of,
)
from agentforge.profiling.nsight.command import kernel_filter, profile_command, query_command
from agentforge.profiling.nsight.metrics import CUDAFORGE, KERNELAGENT, WANTED, existing, parse_query

QUERY = """\
Device NVIDIA H100 PCIe (GH100)
------------------------------- --------------- ------------ -------------------------------
Metric Name                     Metric Type     Metric Unit  Metric Description
------------------------------- --------------- ------------ -------------------------------
dram__bytes                     Counter         byte         # of bytes accessed in DRAM
sm__throughput                  Throughput      %            SM throughput
lts__t_sector_hit_rate          Ratio                        proportion of L2 sector hits
"""


def test_the_sets_of_published_judges():
    assert len(CUDAFORGE) == 24
    assert len(set(KERNELAGENT)) == 29
    assert set(KERNELAGENT) <= set(WANTED)
    assert len(WANTED) == len(set(WANTED))


def test_metrics_that_a_chip_lacks_are_left_out():
    known = parse_query(QUERY)
    assert known == {"dram__bytes", "sm__throughput", "lts__t_sector_hit_rate"}
    wanted = ("dram__bytes.sum.per_second", "launch__registers_per_thread", "sm__inst_executed.sum")
    assert existing(wanted, known) == wanted[:2]
    assert existing(wanted, frozenset()) == ()  # the query failed: ncu's own sets must do


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.text())
def test_any_answer_to_a_query_is_survived(text: str):
    parse_query(text)


def test_a_profile_leaves_the_clocks_alone_and_skips_the_warm_up():
    command = profile_command(
        "ncu", ["python", "x.py"], Path("r.ncu-rep"), kernels=["softmax", "a.b"], metrics=["m1", "m2"]
    )
    text = " ".join(command)
    assert "--clock-control none" in text
    assert "--profile-from-start off" in text
    assert "--metrics m1,m2" in text
    assert command[-2:] == ["python", "x.py"]
    assert "--kernel-name" not in profile_command("ncu", ["x"], Path("r.ncu-rep"))
    assert query_command("ncu", "gh100") == ["ncu", "--query-metrics", "--chips", "gh100"]


def test_the_filter_takes_own_kernels_only():
    kind, _, pattern = kernel_filter(["softmax", "a.b", "softmax"]).partition(":")
    assert kind == "regex"
    expression = re.compile(pattern)
    assert expression.search("softmax")
    assert expression.search("softmax_0d1d2")
    assert not expression.search("vectorized_softmax")
    assert not expression.search("softmax_warp_forward")
    assert not expression.search("aXb")


@pytest.mark.parametrize(
    ("said", "kind", "advice"),
    [
        (
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance "
            "Counters on the target device 0. For instructions on enabling permissions see ...",
            Refusal.PERMISSION,
            "NVreg_RestrictProfilingToAdminUsers=0",
        ),
        (
            "==ERROR== An error was reported by the driver:\n==ERROR== Profiling failed because a driver "
            "resource was unavailable. Ensure that no other tool (like DCGM) is concurrently collecting ...",
            Refusal.PERMISSION,
            "dcgmi profile --pause",
        ),
        (
            "==ERROR== An error was reported by the counter measurement library:\n==ERROR== Failed to "
            "initialize the profiler: LibraryNotLoaded. Check that a compatible driver library is loaded.",
            Refusal.PERMISSION,
            "compute and utility",
        ),
        (
            "==ERROR== Profiling is not supported on device 0 as it uses the Windows Subsystem for Linux.",
            Refusal.PERMISSION,
            "Windows",
        ),
        (
            "==ERROR== An error was reported by the driver:\n"
            "==ERROR== Cuda driver is not compatible with Nsight Compute.",
            Refusal.OTHER_VERSION,
            "does not match the driver",
        ),
        (
            "==ERROR== Profiling is not supported on device 0. To find out supported GPUs refer --list-chips "
            "option.\n==WARNING== No kernels were profiled.",
            Refusal.OTHER_VERSION,
            "does not support the GPU",
        ),
    ],
)
def test_refusals_are_understood(said: str, kind: Refusal, advice: str):
    """What ncu is known to have printed on other people's machines."""
    refused = refusal_in(f"==PROF== Connected to process 12 (/usr/bin/python3)\n{said}\n")
    assert refused is not None
    assert refused.kind is kind
    assert advice in str(refused)


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("==ERROR== The application returned an error code (11).", "returned an error code (11)"),
        ("==ERROR== Unknown Error on device 0.\n==PROF== Disconnected from process 9", "Unknown Error"),
        (
            "==ERROR== An error was reported by the driver\n\n"
            "==ERROR== Cannot lock GPU clock frequencies on MIG!\n"
            '==ERROR== Failed to profile "softmax" in process 12',
            "Cannot lock GPU clock frequencies on MIG!",
        ),
        ("==ERROR== Failed to open/create lock file /tmp/nsight-compute-lock", "nsight-compute-lock"),
        (
            "==WARNING== No kernels were profiled.\nAvailable Kernels:\n1. softmax",
            "No kernels were profiled.",
        ),
        ("==PROF== Disconnected from process 12\n", "Disconnected from process 12"),
        ("", "it printed nothing"),
    ],
)
def test_what_else_goes_wrong_is_one_line(said: str, complaint: str):
    assert refusal_in(said) is None
    assert complaint in error_line(said)
    assert "\n" not in error_line(said)


def test_a_refusal_is_said_once():
    said: list[str] = []
    once = RefusalReporter(said.append)
    for _ in range(3):
        once(Refused(Refusal.NO_NCU, "no ncu here"))
    once(Refused(Refusal.PERMISSION, "not allowed"))
    assert len(said) == 2
    assert said[0].startswith("no ncu here; falling back")


def test_versions():
    assert version_of("2025.3.1.0") == (2025, 3)
    assert version_of("none") is None


def test_here_or_not(monkeypatch: pytest.MonkeyPatch):
    module = "agentforge.profiling.nsight.capability"
    monkeypatch.setattr(f"{module}.find_ncu", lambda: None)
    with pytest.raises(Refused) as caught:
        available_ncu()
    assert caught.value.kind is Refusal.NO_NCU
    monkeypatch.setattr(f"{module}.find_ncu", lambda: "/x/ncu")
    monkeypatch.setattr(f"{module}.tool_version", lambda tool: "2019.4.0")
    with pytest.raises(Refused) as caught:
        available_ncu()
    assert caught.value.kind is Refusal.OTHER_VERSION
    monkeypatch.setattr(f"{module}.tool_version", lambda tool: "2025.3.1")
    assert available_ncu() == "/x/ncu"


def test_the_toolkits_script_is_told_from_the_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("agentforge.profiling.nsight.capability._FOLDERS", (str(tmp_path / "opt"),))
    (tmp_path / "opt" / "2025.3.2" / "extras").mkdir(parents=True)
    for version in ("2024.1.0", "2025.3.1"):
        (tmp_path / f"nsight-compute-{version}" / "extras").mkdir(parents=True)
    (tmp_path / "bin").mkdir()  # where users keep other things too
    (tmp_path / "bin" / "ncu").touch()
    names = [folder.name for folder in install_folders(str(tmp_path / "bin" / "ncu"))]
    assert names == ["nsight-compute-2025.3.1", "nsight-compute-2024.1.0", "2025.3.2"]
