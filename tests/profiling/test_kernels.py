"""Kernels are bound to operators by the rows of a profiler's trace; the rows are written by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from agentforge.profiling.capture import capture_units
from agentforge.profiling.kernels import MARK, device_time, family
from agentforge.profiling.on_device import HOST, host_share, measure_on_device
from agentforge.schema import CallSite, Profile


def row(cat: str, name: str, ts: float, dur: float, correlation: int | None = None, tid: int = 1) -> Any:
    args = {} if correlation is None else {"correlation": correlation}
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "tid": tid, "args": args}


def forward() -> list[dict[str, Any]]:
    """Two operators; the second one's kernels run later, one of them beside the other's copy."""
    return [
        row("user_annotation", f"{MARK}linear", 0, 20),
        row("cpu_op", "aten::linear", 1, 18),
        row("cpu_op", "aten::addmm", 2, 15),
        row("cuda_runtime", "cudaLaunchKernel", 5, 3, 11),
        row("user_annotation", f"{MARK}softmax", 30, 20),
        row("cuda_driver", "cuLaunchKernelEx", 35, 3, 12),
        row("cuda_runtime", "cudaMemcpyAsync", 40, 3, 13),
        row("cuda_runtime", "cudaLaunchKernel", 60, 3, 14),
        row("kernel", "nvjet_hsh_128x256_64x4", 10, 50, 11, tid=7),
        row("kernel", "void softmax_warp_forward<float>", 100, 30, 12, tid=7),
        row("gpu_memcpy", "Memcpy DtoD", 120, 20, 13, tid=8),
        row("kernel", "void at::native::vectorized_elementwise_kernel", 150, 10, 14, tid=7),
        {"ph": "M", "name": "process_name"},
        {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 11, "ts": 10},
    ]


def test_kernels_belong_to_the_operator_that_launched_them() -> None:
    found = device_time(forward())
    assert found.by_mark == pytest.approx({"linear": 50e-6, "softmax": 50e-6})
    assert found.kernels["softmax"] == ("void softmax_warp_forward<float>", "Memcpy DtoD")
    assert found.unbound_s == pytest.approx(10e-6)
    assert found.launches == 4


def test_time_that_overlaps_counts_once_and_gaps_are_the_hosts() -> None:
    found = device_time(forward())
    assert found.span_s == pytest.approx(150e-6)
    assert found.busy_s == pytest.approx(100e-6)
    assert found.gaps_s == pytest.approx(50e-6)


def test_marks_nest_and_threads_are_apart() -> None:
    rows = [
        row("user_annotation", f"{MARK}outer", 0, 100),
        row("user_annotation", f"{MARK}inner", 10, 20),
        row("cuda_runtime", "cudaLaunchKernel", 15, 1, 1),
        row("cuda_runtime", "cudaLaunchKernel", 50, 1, 2),
        row("cuda_runtime", "cudaLaunchKernel", 20, 1, 3, tid=2),
        *(row("kernel", f"k{n}", 200 + 10 * n, 5, n, tid=7) for n in (1, 2, 3)),
    ]
    found = device_time(rows)
    assert found.kernels == {"inner": ("k1",), "outer": ("k2",)}
    assert found.unbound_s == pytest.approx(5e-6)


def test_nothing_ran() -> None:
    found = device_time([])
    assert (found.busy_s, found.span_s, found.gaps_s, found.launches) == (0.0, 0.0, 0.0, 0)


@pytest.mark.parametrize(
    ("kernel", "whose"),
    [
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", "cuBLAS"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64>", "CUTLASS"),
        ("cudnn_infer_ampere_scudnn_winograd_128x128", "cuDNN"),
        ("void pytorch_flash::flash_fwd_kernel<...>", "attention"),
        ("triton_per_fused_native_layer_norm_0", "Triton"),
        ("void at::native::reduce_kernel<512, 1>", "torch"),
        ("ampere_sgemm_128x64_tn", "cuBLAS"),
        ("my_kernel", "other"),
    ],
)
def test_whose_kernel_it_is(kernel: str, whose: str) -> None:
    assert family(kernel) == whose


def test_marks_of_a_real_trace_have_the_names_that_are_looked_for(tmp_path: Any) -> None:
    import json

    activities = [torch.profiler.ProfilerActivity.CPU]
    with (
        torch.profiler.profile(activities=activities) as profiler,
        torch.profiler.record_function(MARK + "relu"),
    ):
        torch.relu(torch.ones(4))
    place = tmp_path / "trace.json"
    profiler.export_chrome_trace(str(place))
    rows = json.loads(place.read_text())["traceEvents"]
    marked = [r for r in rows if r.get("name") == f"{MARK}relu"]
    assert len(marked) == 1
    assert marked[0]["ph"] == "X"
    assert marked[0]["cat"] in {"user_annotation", "cpu_op"}
    assert device_time(rows).launches == 0


def simulated(call: Any) -> list[dict[str, Any]]:
    """A GPU on which each marked operator launches one kernel of 2 us, 5 us after the one before."""
    marks: list[str] = []

    class Mark:
        def __init__(self, name: str) -> None:
            marks.append(name)

        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.profiler, "record_function", Mark)
        call()
    rows: list[dict[str, Any]] = []
    for number, name in enumerate(marks or ["eager 1", "eager 2"]):
        ts = 10.0 * number
        rows.append(row("user_annotation", name, ts, 8))
        rows.append(row("cuda_runtime", "cudaLaunchKernel", ts + 1, 1, number))
        rows.append(row("kernel", f"kernel of {name}", 1000 + 5 * number, 2, number, tid=7))
    return rows


def test_operators_are_timed_by_their_kernels_and_the_host_by_the_rest() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    x = torch.randn(2, 4)
    units = capture_units(model, (x,), {}).units
    found = measure_on_device(lambda: model(x), units, torch.device("cpu"), 3, simulated)
    operators = [n for u in units for n in u.graph_module.graph.nodes if n.op == "call_function"]
    assert len(operators) == 2
    assert found.traces.time_of(operators) == pytest.approx(2 * 2e-6)
    assert found.launches == 2
    assert found.host_s == pytest.approx(found.traces.total_s - 4e-6)
    assert found.call_site().name == HOST
    assert "waits for the host" in found.notes()[0]
    assert len(found.kernels) >= 2


@pytest.mark.parametrize(("sites", "share"), [({HOST: 0.5, "a": 1.5}, 0.25), ({"a": 2.0}, 0.0), ({}, 0.0)])
def test_the_hosts_share_of_a_profile(sites: dict[str, float], share: float) -> None:
    places = tuple(CallSite(name=n, nodes=(), operators=(), time_s=s) for n, s in sites.items())
    profile = Profile.model_construct(total_s=sum(sites.values()), call_sites=places)
    assert host_share(profile) == share
