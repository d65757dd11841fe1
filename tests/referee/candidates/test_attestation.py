"""What a dispatch mode sees, and what it must not spoil."""

import ctypes
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from agentforge.referee.candidates import attestation, recorder
from agentforge.referee.candidates.attestation import observe
from agentforge.referee.candidates.recorder import unusual_modes


def test_lists_operators_that_move_data() -> None:
    seen = observe(lambda x: (x.reshape(-1) * 2).exp(), (torch.ones(2, 3),), {})
    assert {name: count for name, (count, _) in seen["operators"].items()} == {
        "aten.mul.Tensor": 1,
        "aten.exp.default": 1,
    }


def test_compiled_code_stays_compiled_afterwards() -> None:
    runs = []

    def backend(graph: torch.fx.GraphModule, _: list[torch.Tensor]) -> Callable[..., Any]:
        def run(*args: torch.Tensor) -> Any:
            runs.append(1)
            return graph.forward(*args)

        return run

    x = torch.ones(3)
    compiled = torch.compile(lambda x: x.exp() + 1, backend=backend)
    with torch.no_grad():
        compiled(x)
        assert "aten.exp.default" in observe(compiled, (x,), {})["operators"]
        before = len(runs)
        compiled(x)
    assert len(runs) == before + 1


@pytest.fixture
def library() -> Iterator[torch.library.Library]:
    with torch.library._scoped_library("attestation_test", "DEF") as found:
        yield found


def _operators(model: Callable[..., Any], *args: Any) -> set[str]:
    with torch.no_grad():
        return set(observe(model, args, {})["operators"])


def test_looks_into_the_body_of_an_operator_in_python(library: torch.library.Library) -> None:
    library.define("view(Tensor x) -> Tensor")
    library.impl("view", lambda x: torch.ops.aten.exp.default(x), "CPU")
    assert _operators(torch.ops.attestation_test.view, torch.ones(3)) == {"aten.exp.default"}


def test_looks_into_bodies_within_bodies(library: torch.library.Library) -> None:
    library.define("inner(Tensor x) -> Tensor")
    library.define("outer(Tensor x, Tensor[] others) -> Tensor")
    library.impl("inner", lambda x: x.exp(), "CompositeExplicitAutograd")
    library.impl("outer", lambda x, others: torch.ops.attestation_test.inner(x) + others[0], "CPU")
    x = torch.ones(3)
    assert _operators(torch.ops.attestation_test.outer, x, [x]) == {"aten.exp.default", "aten.add.Tensor"}


def test_an_operator_without_tensors_has_a_body_too(library: torch.library.Library) -> None:
    library.define("made(int n) -> Tensor")
    library.impl("made", lambda n: torch.arange(n), "CompositeExplicitAutograd")
    assert _operators(torch.ops.attestation_test.made, 3) == {"aten.arange.default"}


def test_looks_into_a_custom_operator() -> None:
    @torch.library.custom_op("attestation_test_custom::tripled", mutates_args=())
    def tripled(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    assert _operators(tripled, torch.ones(3)) == {"aten.mul.Tensor"}


@pytest.mark.filterwarnings("ignore:Warning only once")
def test_looks_into_what_replaces_an_operator_of_torch() -> None:
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("_efficientzerotensor", lambda size, **_: torch.arange(3), "CPU")
        assert _operators(lambda: torch._efficientzerotensor(3)) == {"aten.arange.default"}


def test_torchs_own_operators_in_other_namespaces_count() -> None:
    x = torch.ones(3, 3)
    model = torch.ops.mkldnn._linear_pointwise
    found = _operators(lambda x: model(x, x, None, "none", [], ""), x)
    assert found == {"mkldnn._linear_pointwise.default"}


def test_an_operator_of_packed_tensors_counts() -> None:
    """torch has no name in Python for the dispatch key of such tensors."""
    weight = torch.ones(3, 3).to_mkldnn()
    assert _operators(torch._C._nn.mkldnn_linear, torch.ones(3, 3).to_mkldnn(), weight) >= {
        "aten.mkldnn_linear.default"
    }


@pytest.mark.parametrize(("size", "counts"), [(1_000, set()), (100_000, {"aten.zeros.default"})])
def test_filling_a_little_memory_is_no_work(size: int, counts: set[str]) -> None:
    assert _operators(lambda: torch.zeros(size)) == counts
    assert _operators(lambda: [torch.zeros(100) for _ in range(size // 100)] and None) == counts


_REGISTERED = """
made = torch.library.Library("attestation_test_own", "DEF")
made.define("softcap(Tensor x) -> Tensor")
made.impl("softcap", lambda x: x.tanh(), "CPU")
"""


@pytest.mark.parametrize("built", [True, False])
def test_an_operator_that_a_built_source_registers_is_an_own_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: bool
) -> None:
    (tmp_path / "kernel.cpp").touch()
    paths = {tmp_path / "kernel.0123.so": None} if built else {}
    monkeypatch.setitem(sys.modules, "agentforge_cpp", SimpleNamespace(_LIBRARIES=paths))
    scope: dict[str, Any] = {"torch": torch}
    exec(compile(_REGISTERED, "kernel.cpp", "exec"), scope)
    try:
        seen = observe(torch.ops.attestation_test_own.softcap, (torch.ones(3),), {})
    finally:
        scope["made"]._destroy()
    name = "attestation_test_own.softcap.default"
    assert seen["own"] == ({name: 1} if built else {})
    assert set(seen["operators"]) == ({"aten.tanh.default"} if built else {name})


def test_an_own_operator_without_a_dispatch_key_is_seen_by_the_profiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch takes it apart before a dispatch mode sees it, as it does with `m.def(name, &function)`."""
    (tmp_path / "kernel.cpp").touch()
    paths = {tmp_path / "kernel.0123.so": SimpleNamespace()}
    monkeypatch.setitem(sys.modules, "agentforge_cpp", SimpleNamespace(_LIBRARIES=paths))
    scope: dict[str, Any] = {"torch": torch}
    source = _REGISTERED.replace('"CPU"', '"CompositeImplicitAutograd"')
    exec(compile(source, "kernel.cpp", "exec"), scope)
    try:
        seen = observe(torch.ops.attestation_test_own.softcap, (torch.ones(3),), {}, closely=True)
    finally:
        scope["made"]._destroy()
    assert seen["own"] == {"attestation_test_own.softcap": 1}
    assert set(seen["operators"]) == {"aten.tanh.default"}


def test_a_processor_that_computes_otherwise_is_seen() -> None:
    def in_a_thread(changes: Callable[[], object]) -> dict[str, str]:
        changes()
        return unusual_modes()

    with ThreadPoolExecutor(1) as pool:  # settings are those of a thread
        assert pool.submit(in_a_thread, lambda: None).result() == {}
        flushing = pool.submit(in_a_thread, lambda: torch.set_flush_denormal(True)).result()
    if torch.set_flush_denormal(False):
        assert [*flushing] == ["the processor's subnormal numbers"]


@pytest.mark.parametrize("mode", [0x400, 0x800, 0xC00], ids=["down", "up", "to zero"])
def test_another_rounding_is_seen(mode: int) -> None:
    libm = ctypes.CDLL("libm.so.6")
    with ThreadPoolExecutor(1) as pool:
        if pool.submit(libm.fesetround, mode).result():
            pytest.skip("not a mode of this processor")
        assert [*pool.submit(unusual_modes).result()] == ["the processor's rounding"]


def test_modes_of_torch_that_stay_on_are_seen() -> None:
    mode = torch.inference_mode()
    with ThreadPoolExecutor(1) as pool:  # it is a mode of a thread
        pool.submit(mode.__enter__).result()
        assert [*pool.submit(unusual_modes).result()] == ["torch's inference mode"]
    torch.set_default_dtype(torch.float64)
    try:
        assert [*unusual_modes()] == ["torch's default type"]
    finally:
        torch.set_default_dtype(torch.float32)


class _Gpu(TorchDispatchMode):
    """A GPU by a clock of its own: an operator is launched in 10 us, and works when somebody waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **work_ns: int) -> None:
        super().__init__()
        self.work_ns = work_ns
        self.now = self.queued = 0
        clock = SimpleNamespace(perf_counter_ns=lambda: self.now)
        for module in (attestation, recorder):
            monkeypatch.setattr(module, "time", clock)
        monkeypatch.setattr(attestation, "first_on_gpu", lambda values: values[0][0])
        monkeypatch.setattr(attestation, "settle", self.wait)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.launch(self.work_ns.get(func.__name__.partition(".")[0], 2_000))
        return func(*args, **(kwargs or {}))

    def launch(self, work_ns: int) -> None:
        self.now += 10_000
        self.queued += work_ns

    def wait(self) -> None:
        self.now += self.queued
        self.queued = 0


def _share(gpu: _Gpu, model: Callable[..., Any], operator: str) -> float:
    with gpu:
        seen = observe(model, (torch.ones(8, 8),), {})
    calls, spent = seen["operators"][operator]
    assert calls == 1
    return float(spent / seen["ns"])


def test_on_a_gpu_an_operators_time_is_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = _Gpu(monkeypatch, _softmax=500_000)

    def model(x: torch.Tensor) -> torch.Tensor:
        gpu.launch(1_000_000)
        return torch.softmax(x, -1)

    assert _share(gpu, model, "aten._softmax.default") == pytest.approx(1 / 3, rel=0.02)


def test_on_a_gpu_launching_a_small_operator_is_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = _Gpu(monkeypatch)

    def model(x: torch.Tensor) -> torch.Tensor:
        gpu.launch(1_000_000)
        narrow = x.half()
        gpu.launch(1_000_000)
        return narrow

    assert _share(gpu, model, "aten._to_copy.default") == 0.0


def test_launches_count_if_a_gpu_does_little_else(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = _Gpu(monkeypatch, _softmax=5_000)

    def model(x: torch.Tensor) -> torch.Tensor:
        gpu.launch(5_000)
        return torch.softmax(x, -1)

    assert _share(gpu, model, "aten._softmax.default") == pytest.approx(0.5)


def test_tensors_on_a_cpu_are_not_waited_for() -> None:
    assert recorder.first_on_gpu(((torch.ones(3), 2), {"x": [torch.ones(3)]})) is None
