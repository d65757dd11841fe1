"""The run-time module: loading, argument checks, counters, opaque operators."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import timeit
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from agentforge.languages.cpp.shipped import agentforge_cpp as runtime
from agentforge.languages.cpp.shipped.agentforge_cpp import Library, Strided, load

from ..sources import RMSNORM


def write(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (folder / name).write_text(text)
    return str(folder / "caller.py")


class TestCalls:
    def test_scalars_and_results(self, kinds: Library) -> None:
        assert kinds.scalars(1, 2**40, 0.5, 0.25, True, 3) == 2**40 + 5.75

    def test_tensors(self, kinds: Library) -> None:
        x = torch.randn(1000)
        out = torch.empty_like(x)
        assert kinds.add_one(x, out, 1000) == 1000
        assert torch.equal(out, x + 1)

    def test_parameters_and_subclasses_are_tensors(self, kinds: Library) -> None:
        class Sub(torch.Tensor):
            pass

        out = torch.empty(3)
        kinds.add_one(torch.nn.Parameter(torch.ones(3)), out, 3)
        assert out.sum() == 6
        kinds.add_one(torch.ones(3).as_subclass(Sub), out, 3)
        assert out.sum() == 6

    def test_functions_named_like_python_keywords(self, kinds: Library) -> None:
        assert getattr(kinds, "lambda")(7, 1) == 7

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.uint16])
    def test_half_types_pass_as_bits(self, kinds: Library, dtype: torch.dtype) -> None:
        x = torch.arange(64).to(dtype)
        out = torch.empty_like(x)
        kinds.copy_bits(x, out, 64)
        assert torch.equal(out.float(), x.float())

    def test_bool_tensors_pass_as_bytes(self, kinds: Library) -> None:
        mask = torch.tensor([True, False, True])
        kinds.flip(mask, 3)
        assert mask.tolist() == [False, True, False]

    def test_none_is_a_null_pointer(self, kinds: Library) -> None:
        assert kinds.is_null(None) is True
        assert kinds.is_null(torch.zeros(1, dtype=torch.float64)) is False

    def test_empty_tensors(self, kinds: Library) -> None:
        assert kinds.add_one(torch.empty(0), torch.empty(0, 5), 0) == 0

    def test_strided(self, kinds: Library) -> None:
        x = torch.randn(8, 6)[1:, ::2].t()
        got = kinds.strided_sum(Strided(x), *x.shape, *x.stride())
        assert got == pytest.approx(x.sum().item(), abs=1e-4)

    def test_a_large_tensor(self, kinds: Library) -> None:
        x = torch.zeros(1 << 26)
        assert kinds.add_one(x, x, x.numel()) == 1 << 26
        assert x.min() == x.max() == 1

    def test_nan_keeps_its_meaning(self, kinds: Library) -> None:
        assert kinds.nans(torch.tensor([1.0, float("nan"), float("inf")]), 3) == 1

    def test_a_new_thread_has_torch_s_number_of_threads(self, tmp_path: Path) -> None:
        counted = (
            "int n = 0;\n#pragma omp parallel\n#pragma omp single\nn = omp_get_num_threads();\nreturn n;"
        )
        source = f'#include <omp.h>\nextern "C" int count() {{ {counted} }}'
        library, seen = load(write(tmp_path, {"k.cpp": source}), "k.cpp"), []
        before = torch.get_num_threads()
        for number in (1, 3):
            torch.set_num_threads(number)
            thread = threading.Thread(target=lambda: seen.append(library.count()))
            thread.start()
            thread.join()
        torch.set_num_threads(before)
        assert seen == [1, 3]

    def test_temporaries_stay_alive(self, kinds: Library) -> None:
        for _ in range(200):
            out = torch.empty(4096)
            kinds.add_one(torch.full((4096,), 3.0), out, 4096)
            assert out.min() == out.max() == 4


class TestRefusals:
    def test_dtype(self, kinds: Library) -> None:
        with pytest.raises(
            TypeError, match=r"argument 1 \(float\* x\) of add_one must be torch.float32, not .*64"
        ):
            kinds.add_one(torch.zeros(3).double(), torch.zeros(3), 3)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.int8])
    def test_dtype_of_bits(self, kinds: Library, dtype: torch.dtype) -> None:
        with pytest.raises(TypeError, match=r"torch.uint16 or torch.bfloat16 or torch.float16"):
            kinds.copy_bits(torch.zeros(3, dtype=dtype), torch.zeros(3), 3)

    def test_strides(self, kinds: Library) -> None:
        with pytest.raises(ValueError, match=r"not contiguous \(shape \(3, 2\), strides \(1, 3\)\)"):
            kinds.add_one(torch.zeros(2, 3).t(), torch.zeros(6), 6)

    def test_expanded(self, kinds: Library) -> None:
        with pytest.raises(ValueError, match="not contiguous"):
            kinds.add_one(torch.zeros(1).expand(6), torch.zeros(6), 6)

    def test_device(self, kinds: Library) -> None:
        with pytest.raises(TypeError, match=r"CPU tensor, not torch.strided on meta"):
            kinds.add_one(torch.zeros(3, device="meta"), torch.zeros(3), 3)

    def test_sparse(self, kinds: Library) -> None:
        with pytest.raises(TypeError, match="dense CPU tensor"):
            kinds.add_one(torch.eye(3).to_sparse(), torch.zeros(3), 3)

    def test_lazy_negative(self, kinds: Library) -> None:
        x = torch.zeros(3, dtype=torch.complex64).conj().imag
        assert x.is_neg()
        with pytest.raises(TypeError, match="lazy negative"):
            kinds.strided_sum(Strided(x), 1, 3, 0, x.stride(0))

    @pytest.mark.parametrize(
        "of", [torch.Tensor.conj, lambda x: x.conj().imag], ids=["conjugate", "negative"]
    )
    def test_a_lazy_tensor_that_is_contiguous(
        self, kinds: Library, of: Callable[[torch.Tensor], torch.Tensor]
    ) -> None:
        lazy = of(torch.ones(1, dtype=torch.complex64))
        assert lazy.is_contiguous()
        with pytest.raises(TypeError, match="lazy negative or conjugate"):
            kinds.copy_bits(torch.ones(1, dtype=torch.uint16), lazy, 1)

    @pytest.mark.filterwarnings("ignore:Accessing the data pointer")
    def test_a_fake_tensor_does_not_reach_the_kernel(self, kinds: Library) -> None:
        from torch._subclasses import FakeTensorMode

        with FakeTensorMode(), pytest.raises(TypeError, match="real tensors"):
            kinds.add_one(torch.zeros(3), torch.zeros(3), 3)

    @pytest.mark.parametrize("value", [3, [1.0], "x", object()])
    def test_no_tensor(self, kinds: Library, value: object) -> None:
        with pytest.raises(TypeError, match=r"must be a torch.Tensor or None"):
            kinds.add_one(value, torch.zeros(3), 3)

    @pytest.mark.parametrize("value", [0.5, "3", None, torch.tensor(3)])
    def test_no_integer(self, kinds: Library, value: object) -> None:
        with pytest.raises(TypeError, match=r"argument 3 \(int64_t n\) of add_one must be an int"):
            kinds.add_one(torch.zeros(3), torch.zeros(3), value)

    @pytest.mark.parametrize(
        "arguments", [(2**31, 0, 0.0, 0.0, 0, 0), (0, 2**63, 0.0, 0.0, 0, 0), (0, 0, 0.0, 0.0, 0, -1)]
    )
    def test_integers_out_of_range(self, kinds: Library, arguments: tuple[float, ...]) -> None:
        with pytest.raises(OverflowError, match="cannot represent"):
            kinds.scalars(*arguments)

    def test_no_float(self, kinds: Library) -> None:
        with pytest.raises(TypeError, match=r"double scalars\(int32_t a, .*: argument 3"):
            kinds.scalars(0, 0, "x", 0.0, False, 0)

    def test_number_of_arguments(self, kinds: Library) -> None:
        with pytest.raises(TypeError, match="missing 1 required positional argument"):
            kinds.add_one(torch.zeros(3), torch.zeros(3))

    def test_unknown_function(self, kinds: Library) -> None:
        with pytest.raises(
            AttributeError, match=r'no extern "C" function \'nothing\'; it has: add_one, scalars'
        ):
            kinds.nothing()

    def test_function_with_types_that_cannot_be_passed(self, kinds: Library) -> None:
        with pytest.raises(AttributeError, match="pointer to a pointer"):
            kinds.pointers(None)


class TestCounters:
    def test_count_each_function(self, kinds: Library) -> None:
        runtime.reset_calls()
        x = torch.zeros(2)
        for _ in range(3):
            kinds.add_one(x, x, 2)
        kinds.is_null(None)
        with pytest.raises(TypeError):
            kinds.flip(x, 2)
        seen = {name: n for name, n in runtime.calls().items() if n}
        assert seen == {"add_one": 3, "is_null": 1}


class TestLoad:
    def test_compiles_at_first_use_and_finds_it_again(self, tmp_path: Path) -> None:
        beside = write(tmp_path, dict(RMSNORM))
        load(beside, "kernel.cpp")
        (built,) = tmp_path.glob("*.so")
        stamp = built.stat().st_mtime_ns
        assert load(beside, "kernel.cpp") is load(beside, "kernel.cpp")
        assert built.stat().st_mtime_ns == stamp

    def test_a_changed_header_is_another_object(self, tmp_path: Path) -> None:
        beside = write(tmp_path, dict(RMSNORM))
        first = load(beside, "kernel.cpp")
        (tmp_path / "scale.hpp").write_text("inline float scale(float x) { return 2 * x; }\n")
        second = load(beside, "kernel.cpp")
        x, weight = torch.randn(4, 8), torch.ones(8)
        one, two = torch.empty(4, 8), torch.empty(4, 8)
        first.rmsnorm(x, weight, one, 4, 8, 1e-6)
        second.rmsnorm(x, weight, two, 4, 8, 1e-6)
        torch.testing.assert_close(2 * one, two)

    def test_flags_are_part_of_the_name(self, tmp_path: Path) -> None:
        source = tmp_path / "kernel.cpp"
        source.write_text("")
        assert runtime.object_name(source, [], []) != runtime.object_name(source, ["-O1"], [])
        assert runtime.object_name(source, ["a", "b"], []) != runtime.object_name(source, ["a"], ["b"])

    def test_only_instruction_sets_identify_a_processor(self) -> None:
        text = "vendor_id\t: GenuineIntel\nmodel\t\t: 207\nstepping\t: 2\nflags\t\t: {}\nbugs\t\t: spectre_v1"
        known = runtime.processor(text.format("fpu sse2 ssse3 avx2 avx512_bf16 amx_tile fma"))
        assert known == ["vendor_id: GenuineIntel", "model: 207", "amx_tile avx2 avx512_bf16 fma sse2 ssse3"]
        assert (
            runtime.processor(text.format("fma ibpb md_clear sse2 ssse3 avx2 avx512_bf16 sev amx_tile"))
            == known
        )
        assert runtime.processor(text.format("sse2 ssse3 avx2 fma")) != known
        arm = runtime.processor("Features\t: fp asimd evtstrm sve2 cpuid bf16 sb\nCPU part\t: 0xd4f")
        assert arm == ["asimd bf16 fp sve2", "CPU part: 0xd4f"]
        assert runtime.machine().count("\n") >= 1

    def test_flags_reach_the_compiler(self, tmp_path: Path) -> None:
        beside = write(tmp_path, {"k.cpp": 'extern "C" int value() { return VALUE; }'})
        assert load(beside, "k.cpp", flags=["-DVALUE=5"]).value() == 5
        assert load(beside, "k.cpp", flags=["-DVALUE=6"]).value() == 6
        (tmp_path / "solution.json").write_text('{"language": "cpp", "flags": ["-DVALUE=7"]}')
        assert load(beside, "k.cpp").value() == 7

    def test_missing_source(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match=r"no kernel source .*kernel\.cpp"):
            load(str(tmp_path / "caller.py"), "kernel.cpp")

    def test_compile_error_shows_the_line(self, tmp_path: Path) -> None:
        beside = write(tmp_path, {"k.cpp": 'extern "C" int f() {\n  return x;\n}'})
        with pytest.raises(RuntimeError, match=r"cannot compile .*k\.cpp:\n(.|\n)*k\.cpp:2:10: error"):
            load(beside, "k.cpp")
        assert not list(tmp_path.glob("*.so"))
        assert not list(tmp_path.glob(".build-*"))

    def test_no_compiler(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CXX", "no-such-compiler")
        with pytest.raises(RuntimeError, match=r"no-such-compiler does not run .*; install g"):
            load(write(tmp_path, {"k.cpp": 'extern "C" int f() { return 1; }'}), "k.cpp")

    def test_a_folder_that_cannot_be_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = tmp_path / "solution"
        folder.mkdir()
        beside = write(folder, {"k.cpp": 'extern "C" int f() { return 8; }'})
        real = os.access
        monkeypatch.setattr(os, "access", lambda p, mode: Path(p) != folder and real(p, mode))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        assert load(beside, "k.cpp").f() == 8
        assert [p.name for p in folder.iterdir()] == ["k.cpp"]
        assert list((tmp_path / "cache").rglob("k.*.so"))

    @pytest.mark.slow
    def test_processes_that_build_at_the_same_time(self, tmp_path: Path) -> None:
        beside = write(tmp_path, {"k.cpp": 'extern "C" int f() { return 9; }'})
        shipped = "from agentforge.languages.cpp.shipped import agentforge_cpp"
        program = f"{shipped}; assert agentforge_cpp.load({beside!r}, 'k.cpp').f() == 9"
        running = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3)]
        assert [process.wait(60) for process in running] == [0, 0, 0]
        assert len(list(tmp_path.glob("*.so"))) == 1
        assert not list(tmp_path.glob(".build-*"))

    def test_denormals_survive_a_kernel(self, kinds: Library) -> None:
        assert torch.tensor([1e-40]).mul(0.5).item() > 0


class TestEmpty:
    @pytest.mark.parametrize("shape", [(), (3, 5), (0, 4), (5, 1 << 20)])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bool])
    def test_is_as_torch_makes_it(self, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        made, expected = runtime.empty(shape, dtype), torch.empty(shape, dtype=dtype)
        assert (made.shape, made.dtype, made.stride()) == (expected.shape, expected.dtype, expected.stride())
        assert made.fill_(1).sum() == made.numel()

    def test_memory_is_used_again_when_nothing_holds_it(self) -> None:
        runtime.empty_cache()
        first = runtime.empty((5, 1 << 20))
        first.fill_(3)
        where, part = first.data_ptr(), first[2:3, :7]
        del first
        second = runtime.empty((5, 1 << 20))
        second.fill_(4)
        assert second.data_ptr() != where
        assert (part == 3).all()
        del part
        assert runtime.empty((1 << 20, 5)).data_ptr() == where
        assert runtime.empty((6, 1 << 20)).data_ptr() != where

    def test_what_is_kept_is_bounded(self) -> None:
        runtime.empty_cache()
        held = [runtime.empty((300 << 20,), torch.uint8) for _ in range(5)]
        assert not any(runtime._IDLE.values())
        held.clear()
        assert sum(map(len, runtime._IDLE.values())) == 3
        runtime.empty_cache()
        assert not runtime._IDLE


@pytest.mark.timing
def test_call_overhead(kinds: Library) -> None:
    x, out = torch.empty(8), torch.empty(8)
    best = min(timeit.repeat(lambda: kinds.add_one(x, out, 0), number=5000, repeat=7)) / 5000
    assert best < 10e-6, f"{best * 1e6:.1f} us for two tensors"
