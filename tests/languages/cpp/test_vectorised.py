"""The vectoriser's report, read from text and from a real compile."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentforge.languages.cpp.vectorised import read_report, vectorisation

REPORT = """\
k.cpp:6:32: optimized: loop vectorized using 32 byte vectors
k.cpp:6:32: optimized:  loop versioned for vectorization because of possible aliasing
k.cpp:6:32: optimized: loop vectorized using 16 byte vectors
./sub/k.cpp:9:1: missed: couldn't vectorize loop
./sub/k.cpp:9:7: missed: not vectorized: control flow in loop.
k.cpp:6:32: missed: couldn't vectorize loop
/usr/include/c++/12/bits/stl_algo.h:99:2: missed: couldn't vectorize loop
/usr/include/c++/12/bits/stl_algo.h:99:2: missed: not vectorized: number of iterations unknown
k.cpp:20:3: missed: couldn't vectorize loop
k.cpp:21:3: missed: couldn't vectorize loop
k.cpp:22:3: missed:  statement clobbers memory: _6 = __builtin_expf (_5);
garbage
"""


def test_a_report_by_lines():
    metrics, findings = vectorisation(REPORT)
    values = {m.name: m.value for m in metrics}
    assert values == {"vectorised_loops": 1, "missed_loops": 3, "vector_bytes": 32}
    assert [str(f) for f in findings] == [
        "sub/k.cpp:9: loop not vectorised: control flow in loop.",
        "k.cpp:20: loop not vectorised",
        "k.cpp:21: loop not vectorised: statement clobbers memory: _6 = __builtin_expf (_5);",
        "k.cpp:6: loop vectorised with 32-byte vectors",
    ]


NESTS = """\
k.cpp:6:32: missed: couldn't vectorize loop
k.cpp:6:32: missed: not vectorized: loop nest containing two or more consecutive inner loops
k.cpp:12:66: optimized: loop vectorized using 64 byte vectors
k.cpp:16:27: missed: couldn't vectorize loop
k.cpp:17:78: missed: not vectorized: complicated access pattern.
k.cpp:17:31: optimized: loop vectorized using 64 byte vectors
k.cpp:20:27: missed: couldn't vectorize loop
k.cpp:20:27: missed: not vectorized: multiple nested loops.
k.cpp:21:31: missed: couldn't vectorize loop
k.cpp:22:93: missed: not vectorized: complicated access pattern.
"""


def test_a_loop_around_vectorised_ones_is_not_missed():
    metrics, findings = vectorisation(NESTS)
    assert {m.name: m.value for m in metrics}["missed_loops"] == 1
    assert [f.line for f in findings if f.title == "loop not vectorised"] == [21]


def test_nothing_to_say():
    metrics, findings = vectorisation("")
    assert {m.value for m in metrics} == {0}
    assert findings == ()


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.text())
def test_any_text_is_survived(text: str):
    vectorisation(text)


def test_a_long_report_is_cut(tmp_path: Path):
    path = tmp_path / "report.txt"
    path.write_text("k.cpp:1:1: missed: couldn't vectorize loop\n" * 200_000)
    _, findings = vectorisation(read_report(path))
    assert len(findings) == 1


@pytest.mark.skipif(not shutil.which("g++"), reason="no g++")
def test_the_compiler_says_it_in_these_words(tmp_path: Path):
    (tmp_path / "k.cpp").write_text(
        'extern "C" void scale(const float* x, float* y, long n) {\n'
        "  for (long i = 0; i < n; i++) y[i] = 2 * x[i];\n"
        "}\n"
        'extern "C" long first(const float* x, long n) {\n'
        "  for (long i = 0; i < n; i++) if (x[i] < 0) return i;\n"
        "  return -1;\n"
        "}\n"
    )
    command = ["g++", "-O3", "-c", "k.cpp", "-o", "k.o", "-fopt-info-vec-optimized-missed=report.txt"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    metrics, findings = vectorisation(read_report(tmp_path / "report.txt"))
    assert next(m.value for m in metrics if m.name == "vectorised_loops") == 1
    by_line = {f.line: f.title for f in findings}
    assert by_line[2].startswith("loop vectorised with")
    # Newer compilers vectorise loops with an early exit.
    assert by_line.get(5) is None or by_line[5].startswith("loop ")


@pytest.mark.parametrize(
    "line",
    [
        "k.cpp:{}:1: optimized: loop vectorized using 32 byte vectors",
        "k.cpp:1:1: optimized: loop vectorized using {} byte vectors",
        "k.cpp:{}:1: missed: couldn't vectorize loop",
        "k.cpp:1:1: missed: couldn't vectorize loop\nk.cpp:{}:1: missed: x",
    ],
)
def test_numbers_that_no_compiler_writes(line: str):
    vectorisation(line.format("9" * 5000))
