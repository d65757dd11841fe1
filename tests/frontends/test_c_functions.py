"""C functions are read without a compiler; what cannot be called with arrays and numbers is passed over."""

from __future__ import annotations

import pytest

from agentforge.frontends.c_functions import Unusable, choose_function, functions
from agentforge.schema import TargetError


def declared(source: str) -> list[str]:
    return [p.declaration for p in choose_function(source).parameters]


@pytest.mark.parametrize(
    ("head", "parameters"),
    [
        ("void f(const float* x, float* out, int n)", ["const float* x", "float* out", "int n"]),
        ("void f(float const *x, float out[], int n)", ["const float* x", "float* out", "int n"]),
        ("void f(const double *__restrict__ x, int64_t n)", ["const double* x", "int64_t n"]),
        ("static inline float f(const float x[128], size_t n)", ["const float* x", "size_t n"]),
        ('extern "C" void f(const std::int32_t* x, long long n)', ["const int32_t* x", "long long n"]),
        ("void f(unsigned char* x, const int n = 4)", ["unsigned char* x", "int n"]),
    ],
)
def test_parameters_as_c_spells_them(head: str, parameters: list[str]) -> None:
    assert declared(f"#include <cmath>\n{head} {{ }}\n") == parameters


def test_the_function_named_like_the_file_goes_first_then_the_last_one() -> None:
    source = "void a(float* x, int n) { }\nfloat helper(float v) { return v; }\nvoid b(float* x, int n) { }\n"
    assert choose_function(source, "a").name == "a"
    assert choose_function(source, "file").name == "b"


def test_comments_strings_and_macros_are_not_read() -> None:
    source = """\
// void no(float* x, int n) { }
#define M(x) void nope(float* x, int n) { x; }
/* void neither(float* y) { */
const char* text = "void never(float* x) {";
namespace inner {
void yes(const float* x, float* out, int n) {
    for (int i = 0; i < n; i++) { if (x[i] > 0) { out[i] = x[i]; } }
}
}
"""
    assert [f.name for f in functions(source)] == ["yes"]


@pytest.mark.parametrize(
    "source",
    [
        "",
        "int main() { return 0; }",
        "void f(std::vector<float>& x) { }",
        "void f(float** rows, int n) { }",
        "template <class T> void f(T* x, int n) { }",
    ],
)
def test_what_takes_no_arrays_is_refused_with_what_to_give(source: str) -> None:
    with pytest.raises(TargetError, match=r"give void f\(const float\*, float\*, int\)"):
        choose_function(source)


def test_what_cannot_be_called_says_why() -> None:
    (found,) = functions("void f(float** rows, int n) { }")
    assert isinstance(found, Unusable)
    assert "rows" in found.why
