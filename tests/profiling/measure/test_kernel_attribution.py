"""Kernels are bound to operators by the rows of a profiler's trace; the rows are written by hand."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from agentforge.cli.commands.profile import show
from agentforge.devices import DeviceSpec
from agentforge.profiling import worker
from agentforge.profiling.measure import modules as unexported
from agentforge.profiling.measure.device import HOST, host_share, measure_on_device
from agentforge.profiling.measure.kernel_attribution import MARK, device_time, family
from agentforge.schema import CallSite, Profile
from agentforge.testing.agents import make_task
from tests.profiling.captured import capture_units


def row(
    cat: str,
    name: str,
    ts: float,
    dur: float,
    correlation: int | None = None,
    tid: int = 1,
    external: int | None = None,
) -> Any:
    numbers = {"correlation": correlation, "External id": external}
    args = {name: number for name, number in numbers.items() if number is not None}
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
    assert found.launches == 4


def test_time_that_overlaps_counts_once() -> None:
    assert device_time(forward()).busy_s == pytest.approx(100e-6)


def test_rows_that_are_no_work_of_the_gpu_are_not_counted() -> None:
    rows = [
        *forward(),
        row("gpu_user_annotation", f"{MARK}linear", 9, 52, tid=7),  # the mark's own range over its kernels
        row("gpu_user_annotation", "ProfilerStep#1", 0, 500, tid=7),
        row("overhead", "Activity Buffer Request", 0, 1800, tid=0),
        row("overhead", "Command Buffer Full", 61, 40, tid=0),
        row("cuda_sync", "Context Sync", 0, 300, 15, tid=7),
        row("cuda_runtime", "cudaDeviceSynchronize", 70, 90, 15),
    ]
    assert device_time(rows) == device_time(forward())


def test_kernels_of_a_cuda_graph_belong_to_who_launched_it() -> None:
    rows = [
        row("user_annotation", f"{MARK}layer", 0, 20),
        row("cuda_runtime", "cudaGraphLaunch", 5, 3, 9),
        *(row("kernel", f"k{n}", 100 + 10 * n, 5, 9, tid=7) for n in range(3)),
        row("gpu_memset", "Memset (Device)", 140, 1, 9, tid=7),
    ]
    found = device_time(rows)
    assert found.kernels == {"layer": ("k0", "k1", "k2", "Memset (Device)")}
    assert found.by_mark == pytest.approx({"layer": 16e-6})
    assert found.launches == 1


def test_a_drivers_call_inside_a_runtimes_is_the_same_launch() -> None:
    rows = [
        row("user_annotation", f"{MARK}op", 0, 20),
        row("cuda_runtime", "cudaLaunchKernel", 5, 9, 3),
        row("cuda_driver", "cuLaunchKernel", 7, 5, 3),
        row("kernel", "k", 50, 10, 3, tid=7),
    ]
    assert device_time(rows).by_mark == pytest.approx({"op": 10e-6})


def test_a_launch_without_a_row_is_its_operators() -> None:
    """Of the driver's calls the profiler keeps two; a graph that the driver launches has no row."""
    rows = [
        row("user_annotation", f"{MARK}op", 0, 20),
        row("cpu_op", "mine::op", 1, 18, external=40),
        row("kernel", "k", 50, 10, 3, tid=7, external=40),
        row("kernel", "from before", 30, 4, 2, tid=7),
    ]
    found = device_time(rows)
    assert found.kernels == {"op": ("k",)}


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


def test_nothing_ran() -> None:
    found = device_time([])
    assert (found.busy_s, found.launches) == (0.0, 0)


def _nested(draw: Any, begin: int, end: int, depth: int) -> list[tuple[int, int]]:
    """Ranges within another that nest or are apart."""
    found: list[tuple[int, int]] = []
    while begin < end and depth and draw(st.booleans()):
        first = draw(st.integers(begin, end - 1))
        last = draw(st.integers(first + 1, end))
        found += [(first, last), *_nested(draw, first, last, depth - 1)]
        begin = last + 1
    return found


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.data())
def test_any_trace(data: st.DataObject) -> None:
    """Each kernel's time goes to one place, the smallest mark around its launch."""
    marks = _nested(data.draw, 0, 60, 4)
    kernel = st.tuples(st.integers(0, 60), st.integers(100, 200), st.integers(1, 20))
    kernels = data.draw(st.lists(kernel, max_size=12))
    found = device_time(
        data.draw(
            st.permutations(
                [
                    *(
                        row("user_annotation", f"{MARK}{n}", begin, end - begin)
                        for n, (begin, end) in enumerate(marks)
                    ),
                    *(row("cuda_runtime", "l", at, 0, n) for n, (at, _, _) in enumerate(kernels)),
                    *(row("kernel", f"k{n}", ts, dur, n, 7) for n, (_, ts, dur) in enumerate(kernels)),
                ]
            )
        )
    )
    lengths: dict[int | None, int] = {}
    for at, _, duration in kernels:
        around = [end - begin for begin, end in marks if begin <= at <= end]
        lengths[min(around, default=None)] = lengths.get(min(around, default=None), 0) + duration
    by_length: dict[int, float] = {}
    for name, seconds in found.by_mark.items():
        begin, end = marks[int(name)]
        by_length[end - begin] = by_length.get(end - begin, 0.0) + seconds * 1e6
    lengths.pop(None, None)  # launched in no mark
    assert by_length == pytest.approx(lengths)
    covered = {moment for _, ts, duration in kernels for moment in range(ts, ts + duration)}
    assert found.busy_s * 1e6 == pytest.approx(len(covered))


@pytest.mark.parametrize(
    ("kernel", "whose"),
    [
        # cuBLAS on Ampere, Hopper and Blackwell
        ("nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NNT", "cuBLAS"),
        ("nvjet_sm100_tst_32x64_64x16_4x2_2cta_h_bz_splitK_bias_TNN", "cuBLAS"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1", "cuBLAS"),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_kernel__5x_cublas", "cuBLAS"),
        ("ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn", "cuBLAS"),
        ("void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float>", "cuBLAS"),
        ("std::enable_if<!T7, void>::type internal::gemvx::kernel<int, int, __nv_bfloat16>", "cuBLAS"),
        ("void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4>", "cuBLAS"),
        ("void gemmk1_kernel<int, float, 256, 5, true, false, false, false>", "cuBLAS"),
        ("void gemmSN_TN_kernel<float, 128, 16, 2, 4, 8, 9, false>", "cuBLAS"),
        ("void sgemm_largek_lds64<true, true, 6, 3, 4, 5, 2, 66>", "cuBLAS"),
        # CUTLASS, as cuBLAS and others launch it
        ("cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8", "CUTLASS"),
        ("cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_void_bf16_128x128x64_2x1x1_0", "CUTLASS"),
        ("cutlass3x_sm100_tensorop_s256x256x32gemm_f8_f8_f32_f16_f16", "CUTLASS"),
        ("void cutlass::device_kernel<flat::kernel::FlatKernelTmaWarpSpecializedDeltaRule<...>>", "CUTLASS"),
        # cuDNN
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x64x32", "cuDNN"),
        ("sm80_xmma_wgrad_implicit_gemm_indexed_f16f16_f16f32_f32_nhwckrsc_nhwc", "cuDNN"),
        ("void cudnn::engines_precompiled::nchwToNhwcKernel<__half, __half, float, false, true>", "cuDNN"),
        ("void cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_128x128>", "cuDNN"),
        ("void implicit_convolve_sgemm<float, float, 128, 6, 7, 3, 3, 5, 1, false>", "cuDNN"),
        ("void wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>", "cuDNN"),
        ("ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", "cuDNN"),
        # attention, whatever it is built with
        (
            "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, cutlass::bfloat16_t>>",
            "attention",
        ),
        (
            "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<...>>>",
            "attention",
        ),
        (
            "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel<...>)",
            "attention",
        ),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x", "attention"),
        ("fmhaSm100aKernel_QE4m3KvE2m1OE4m3H128PagedKvDenseP16VarSeqQ8Kv128", "attention"),
        # Inductor names its kernels after the operators in them
        ("triton_poi_fused__scaled_dot_product_flash_attention_clone_3", "Triton"),
        ("triton_red_fused__to_copy_addmm_cudnn_batch_norm_mean_0", "Triton"),
        ("triton_tem_fused_flex_attention_0", "Triton"),
        # torch's own
        ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>", "torch"),
        ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>", "torch"),
        ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true>", "torch"),
        ("void at_cuda_detail::cub::DeviceScanKernel<at_cuda_detail::cub::AgentScanPolicy<...>>", "torch"),
        ("at::cuda::(anonymous namespace)::spin_kernel(long)", "torch"),
        # the rest
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "NCCL"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)", "NCCL"),
        ("Memcpy DtoD (Device -> Device)", "copy"),
        ("Memcpy HtoD (Pageable -> Device)", "copy"),
        ("Memset (Device)", "fill"),
        ("void fbgemm_gpu::permute_2D_data_kernel<false, int, int>", "other"),
        ("softmax_kernel", "other"),
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
    names = [f"kernel of {MARK}/{node.name}" for node in operators]
    assert found.kernels_of(operators) == tuple(names)


def test_forwards_are_timed_before_the_profiler_is_there() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    x = torch.randn(2, 4)
    order: list[str] = []

    def forward() -> Any:
        order.append("forward")
        return model(x)

    def profiler(call: Any) -> Any:
        order.append("profiler")
        return simulated(call)

    units = capture_units(model, (x,), {}).units
    measure_on_device(forward, units, torch.device("cpu"), 3, profiler)
    assert order[:5] == ["forward"] * 4 + ["profiler"]
    assert order.count("profiler") == 1 + 2 * 3  # the model, and all units together


@pytest.mark.parametrize(
    ("kernels", "lost", "traced"), [(True, False, True), (False, False, True), (True, True, False)]
)
def test_operators_are_timed_one_by_one_if_the_profiler_sees_no_kernels(
    kernels: bool, lost: bool, traced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    x = torch.randn(2, 4)
    runs: list[Any] = []

    def profiler(call: Any) -> Any:
        runs.append(call)
        return [r for r in simulated(call) if kernels or r["cat"] != "kernel"]

    monkeypatch.setattr(worker, "measure_on_device", partial(measure_on_device, profiler=profiler))
    captured = capture_units(model, (x,), {})
    gpu = DeviceSpec(kind="cuda", name="a GPU", architecture="sm_90")
    device = gpu.model_copy(update={"fallbacks": ("no-kernel-times",) if lost else ()})
    neither = torch.device("meta")  # no CPU, and nothing to wait for
    traces, found = worker._measure(lambda: model(x), captured, neither, 5, lambda: None, device)
    assert bool(runs) == traced and (found is not None) == (kernels and not lost)
    operators = [n for u in captured.units for n in u.graph_module.graph.nodes if n.op == "call_function"]
    assert all(traces.time_of([node]) > 0 for node in operators)


def test_what_was_not_exported_has_its_modules_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU the host's time is a place of its own: a module has its kernels' time only."""
    model = torch.nn.ModuleDict({"out": torch.nn.ReLU(), "in": torch.nn.Linear(4, 4)})
    x = torch.randn(2, 4)
    monkeypatch.setattr(unexported, "profiled", simulated)
    watch = unexported.KernelTime()
    times = unexported.self_times(model, lambda: model["out"](model["in"](x)), ["out"], 2, watch)
    assert times == pytest.approx({"in": 2e-6})


@pytest.mark.parametrize(("sites", "share"), [({HOST: 0.5, "a": 1.5}, 0.25), ({"a": 2.0}, 0.0), ({}, 0.0)])
def test_the_hosts_share_of_a_profile(sites: dict[str, float], share: float) -> None:
    places = tuple(CallSite(name=n, nodes=(), operators=(), time_s=s) for n, s in sites.items())
    profile = Profile.model_construct(total_s=sum(sites.values()), call_sites=places)
    assert host_share(profile) == share


def test_a_profile_says_whose_kernels_run_now(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    bottleneck = make_task().bottleneck
    site = bottleneck.call_sites[0].model_copy(
        update={
            "kernels": ("nvjet_tst_64x8_64x16_4x1_v_bz_splitK_TNT", "void cublasLt::splitKreduce_kernel<32>")
        }
    )
    product = bottleneck.definition.model_copy(update={"op_type": "gemm"})
    vendor = bottleneck.model_copy(
        update={"definition": product, "call_sites": (site,), "optimizable": False}
    )
    profile = Profile(
        target="t",
        device="an H100",
        architecture="sm_90",
        total_s=1e-3,
        traces=5,
        attributed=1.0,
        call_sites=(site,),
        bottlenecks=(vendor,),
    )
    show(profile)
    assert "the vendor's library computes it, cuBLAS" in capsys.readouterr().out
