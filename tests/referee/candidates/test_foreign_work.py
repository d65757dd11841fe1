"""What counts as the work of others, and what does not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from agentforge.referee.candidates.elf import imported
from agentforge.referee.candidates.foreign_work import foreign_functions, is_product

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


@pytest.mark.parametrize(
    "name",
    ["aten.mm.default", "aten.addmm.out", "aten.baddbmm_.default", "aten._int_mm.default", "aten.dot.default",
     "aten.convolution.default", "aten.slow_conv3d_forward.default", "aten._conv_depthwise2d.default",
     "aten.cudnn_convolution_transpose.default", "aten.linear.default", "mkldnn._linear_pointwise.default",
     "mkldnn._reorder_linear_weight.default", "onednn.qlinear_pointwise.default"],
)  # fmt: skip
def test_products_of_matrices_and_convolutions_are_products(name: str) -> None:
    assert is_product(name)


@pytest.mark.parametrize(
    "name",
    ["aten.upsample_bilinear2d.default", "aten.upsample_linear1d.default", "aten.cummax.default",
     "aten._scaled_dot_product_flash_attention_for_cpu.default", "aten.lgamma.default", "aten.add.Tensor",
     "aten.scaled_dot_product_attention.default", "aten._addmm_activation.default", "mine.mm.default", "mm"],
)  # fmt: skip
def test_other_operators_are_no_products(name: str) -> None:
    assert not is_product(name)


def _built(folder: Path, source: str) -> Path:
    (folder / "k.cpp").write_text(source)
    subprocess.run(["g++", "-shared", "-fPIC", "-fopenmp", "k.cpp", "-o", "k.so"], cwd=folder, check=True)
    return folder


@needs_compiler
def test_functions_of_others_are_found(tmp_path: Path) -> None:
    _built(
        tmp_path,
        """
        #include <dlfcn.h>
        namespace at {
        struct Tensor { int id; };
        namespace cpu { void mm_out(Tensor&); void sigmoid(const Tensor&); Tensor empty(long); }
        namespace native { namespace cpublas { void gemm(float); } }
        namespace _ops {
        struct exp { static Tensor call(const Tensor&); static Tensor redispatch(long, const Tensor&); };
        struct mm { static Tensor redispatch(long, const Tensor&); };
        struct view { static Tensor redispatch(long, const Tensor&); };
        }
        int get_num_threads();
        void enableRecordFunction(bool);
        }
        extern "C" void cblas_sgemm(float*);
        extern "C" void vsExp(float*);
        extern "C" void vsTanh(float*) __attribute__((weak));
        extern "C" float Sleef_expf8_u10(float);
        extern "C" void f(float* x, at::Tensor& t) {
            at::cpu::mm_out(t), at::cpu::sigmoid(t), at::cpu::empty(at::get_num_threads());
            at::_ops::exp::call(t), at::_ops::exp::redispatch(1, t);
            at::_ops::mm::redispatch(1, t), at::_ops::view::redispatch(1, t), at::native::cpublas::gemm(*x);
            cblas_sgemm(x), vsExp(x), vsTanh(x), at::enableRecordFunction(false), dlsym(nullptr, "sgemm_");
            *x = Sleef_expf8_u10(*x);
        }
        """,
    )
    others = {"at::cpu::sigmoid", "at::_ops::exp::redispatch", "vsExp", "vsTanh", "dlsym"}
    others |= {"at::enableRecordFunction"}
    products = {"at::cpu::mm_out", "at::_ops::mm::redispatch", "at::native::cpublas::gemm", "cblas_sgemm"}
    assert set(foreign_functions(tmp_path, products=False)) == others | products
    assert set(foreign_functions(tmp_path, products=True)) == others


@needs_compiler
def test_run_times_and_own_functions_are_not_of_others(tmp_path: Path) -> None:
    _built(
        tmp_path,
        """
        #include <cmath>
        #include <cstdlib>
        #include <mutex>
        #include <string>
        #include <threads.h>
        #include <vector>
        std::mutex lock;
        extern "C" void inner(float* x) { *x = std::tanh(*x) + std::pow(*x, 2.0f); }
        extern "C" void f(float* x, long n) {
            std::vector<std::string> v(n, std::to_string(n));
            #pragma omp parallel for
            for (long i = 0; i < n; ++i) { std::lock_guard<std::mutex> held(lock); inner(x + i); }
            std::free(std::aligned_alloc(64, 128));
            if (v.empty()) throw std::string("none");
        }
        """,
    )
    assert foreign_functions(tmp_path, products=False) == []


def test_a_file_of_another_format_has_no_functions(tmp_path: Path) -> None:
    (tmp_path / "a.so").write_bytes(b"\x7fELF\x02\x01" + bytes(10))
    (tmp_path / "b.so").write_bytes(b"")
    assert imported(tmp_path) == set()
