from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from agentforge.languages import CommandResult, write_solution
from agentforge.languages.cpp.sanitizers import sanitizers
from agentforge.languages.cpp.sanitizers.sanitizers import MEMORY, RACES, NotBuilt, build, read_report
from agentforge.schema import BuildSpec, Solution, SourceFile
from agentforge.testing.language import make_solution

needs_tsan = pytest.mark.skipif(not RACES.available(), reason="the compiler brings no ThreadSanitizer")

MAIN = """
#include <cstdio>
#include <omp.h>
#include <threads.h>
#include <vector>

int main() {{
    int n = 1000;
    std::vector<int> seen(n), cell(8);
    long total = 0, tasks = 0;
    {body}
    std::printf("%ld %ld\\n", total, tasks);
}}
"""
RIGHT = """
    #pragma omp parallel for reduction(+ : total) schedule(static)
    for (int i = 0; i < n; ++i) total += i, seen[i]++;
    #pragma omp parallel num_threads(3)
    {
        #pragma omp for schedule(dynamic, 7)
        for (int i = 0; i < n; ++i) seen[i]++;
        #pragma omp for schedule(guided)
        for (unsigned long i = n; i > 0; --i) seen[i - 1]++;
        #pragma omp single
        for (int i = 0; i < n; ++i) total += seen[i] == 3;
        #pragma omp critical
        total += 10000000;
        #pragma omp barrier
        #pragma omp master
        total += 1;
        #pragma omp barrier
        #pragma omp sections
        {
            #pragma omp section
            cell[0] = 1;
            #pragma omp section
            cell[1] = 2;
        }
        int given = 0;
        #pragma omp single copyprivate(given)
        given = 5;
        #pragma omp atomic
        total += given;
        #pragma omp single
        {
            for (int i = 0; i < 4; ++i) {
                #pragma omp task firstprivate(i)
                cell[i] = i + 1;
            }
            #pragma omp taskwait
            for (int i = 0; i < 4; ++i) tasks += cell[i];
        }
    }
    omp_lock_t lock;
    omp_init_lock(&lock);
    #pragma omp parallel
    {
        omp_set_lock(&lock);
        tasks += 100;
        omp_unset_lock(&lock);
    }
    mtx_t mutex;
    cnd_t condition;
    mtx_init(&mutex, mtx_plain), cnd_init(&condition);
    int turn = 0;
    #pragma omp parallel num_threads(4)
    {
        mtx_lock(&mutex);
        while (turn != omp_get_thread_num()) cnd_wait(&condition, &mutex);
        ++turn;
        cnd_broadcast(&condition);
        mtx_unlock(&mutex);
        while (mtx_trylock(&mutex) != thrd_success) {}
        tasks += 1000;
        mtx_unlock(&mutex);
    }
"""
RACY = {
    "a sum without a reduction": "#pragma omp parallel for\n for (int i = 0; i < n; ++i) total += i;",
    "cells that threads share": "#pragma omp parallel for schedule(dynamic)\n"
    " for (int i = 0; i < n; ++i) cell[i % 8] = i;",
    "a loop that does not wait": """#pragma omp parallel
    {
        #pragma omp for schedule(static) nowait
        for (int i = 0; i < n; ++i) seen[i] = i;
        #pragma omp for schedule(static)
        for (int i = 0; i < n; ++i) if (seen[n - 1 - i] < 0) __builtin_abort();
    }""",
    "a mutex for each thread": """#pragma omp parallel
    {
        mtx_t mine;
        mtx_init(&mine, mtx_plain);
        mtx_lock(&mine);
        total += 1;
        mtx_unlock(&mine);
    }""",
    "tasks that nobody waits for": """#pragma omp parallel
    #pragma omp single
    {
        #pragma omp task shared(total)
        total += 1;
        #pragma omp task shared(total)
        total += 2;
    }""",
}


def plain(
    argv: Sequence[str], *, cwd: Path, timeout_s: float, env: Mapping[str, str] | None = None
) -> CommandResult:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=timeout_s, check=False)
    return CommandResult(done.returncode, done.stdout, done.stderr, 0.0)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our OpenMP, compiled."""
    target = tmp_path_factory.mktemp("openmp") / "openmp.o"
    flags = ["-std=c++20", "-O1", "-fvisibility=hidden"]
    subprocess.run(["g++", *flags, "-c", str(sanitizers._OPENMP), "-o", str(target)], check=True)
    return target


def run(body: str, folder: Path, ours: Path) -> subprocess.CompletedProcess[str]:
    """A program with our OpenMP, under ThreadSanitizer."""
    (folder / "kernel.cpp").write_text(MAIN.format(body=body))
    program = folder / "program"
    command = ["g++", *RACES.compile, "-std=c++20", "-fopenmp", "-c", "kernel.cpp", "-o", "kernel.o"]
    subprocess.run(command, cwd=folder, check=True)
    subprocess.run(["g++", *RACES.link, "kernel.o", str(ours), "-o", str(program)], cwd=folder, check=True)
    environment = {**os.environ, **RACES.environment}
    return subprocess.run([str(program)], env=environment, capture_output=True, text=True, check=False)


def solution(source: str, header: str = "") -> Solution:
    contents = {"model_new.py": "", "kernel.cpp": source, "spin.h": header}
    files = tuple(SourceFile(path=path, content=content) for path, content in contents.items())
    spec = BuildSpec(language="cpp", entry_point="model_new.py::ModelNew")
    return Solution(name="s", definition="d", author="test", spec=spec, sources=files)


@pytest.mark.slow
@needs_tsan
def test_right_openmp_is_right_and_not_accused(tmp_path, ours):
    done = run(RIGHT, tmp_path, ours)
    assert "ThreadSanitizer" not in done.stderr
    assert done.stdout == f"{499500 + 1000 + 30000000 + 1 + 15} {10 + 400 + 4000}\n"


@pytest.mark.slow
@needs_tsan
@pytest.mark.parametrize("name", RACY)
def test_a_race_is_found_at_its_line(name, tmp_path, ours):
    done = run(RACY[name], tmp_path, ours)
    assert done.returncode == 66
    fault = read_report(done.stderr, solution(""))
    assert fault is not None
    assert fault.file == "kernel.cpp"
    assert fault.line > 10
    assert "data race" in fault.message


@pytest.mark.slow
@needs_tsan
def test_what_our_openmp_lacks_is_not_checked(tmp_path):
    source = """extern "C" void f(float* x, int n) {
    #pragma omp parallel for ordered
    for (int i = 0; i < n; ++i) {
        #pragma omp ordered
        x[i] = i;
    }
}"""
    made = solution(source)
    for file in made.sources:
        (tmp_path / file.path).write_text(file.content)
    with pytest.raises(NotBuilt, match="GOMP_"):
        build(made, tmp_path, RACES, cache=tmp_path / "cache", run=plain, timeout_s=120)


@pytest.mark.parametrize("fence", ["__atomic_thread_fence(4)", "#pragma omp  flush"])
def test_fences_are_not_checked_for_races(tmp_path, fence):
    with pytest.raises(NotBuilt, match="ThreadSanitizer does not support"):
        build(solution(fence), tmp_path, RACES, cache=tmp_path / "cache", run=plain, timeout_s=120)


def test_a_fence_in_a_header_is_not_checked_for_races(tmp_path):
    fence = "inline void all() { std::atomic_thread_fence(std::memory_order_seq_cst); }\n"
    made = solution('#include "spin.h"\n', fence)
    for file in made.sources:
        (tmp_path / file.path).write_text(file.content)
    with pytest.raises(NotBuilt, match=r"spin\.h uses atomic_thread_fence"):
        build(made, tmp_path, RACES, cache=tmp_path / "cache", run=plain, timeout_s=120)


@pytest.mark.skipif(not MEMORY.available(), reason="the compiler brings no AddressSanitizer")
def test_one_of_two_tables_is_indexed_rightly(tmp_path):
    """g++ 12 with -fsanitize=integer-divide-by-zero computes `k / 2` for one of the two tables alone."""
    (tmp_path / "kernel.cpp").write_text("""#include <cstdio>
int even[4], odd[4];
int main(int argc, char**) {
    for (int k = 0; k < 8; ++k) (k % 2 ? odd : even)[k / 2] = k + argc;
    std::printf("%d %d\\n", even[3], odd[3]);
}""")
    subprocess.run(["g++", *MEMORY.compile, "-c", "kernel.cpp", "-o", "kernel.o"], cwd=tmp_path, check=True)
    subprocess.run(["g++", *MEMORY.link, "kernel.o", "-o", "m"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "m"], capture_output=True, text=True, check=True)
    assert done.stdout == "7 8\n"


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", [MEMORY, RACES], ids=lambda sanitizer: sanitizer.name)
def test_aligned_alloc_takes_any_size(tmp_path, sanitizer):
    if not sanitizer.available():
        pytest.skip("the compiler lacks this sanitizer")
    made = solution("""
    #include <cstdlib>
    extern "C" int f() {
        void* p = std::aligned_alloc(64, 100);
        const bool right = p != nullptr && reinterpret_cast<unsigned long>(p) % 64 == 0;
        std::free(p);
        return right;
    }""")
    for file in made.sources:
        (tmp_path / file.path).write_text(file.content)
    build(made, tmp_path, sanitizer, cache=tmp_path / "cache", run=plain, timeout_s=120)
    (built,) = tmp_path.glob("*.so")
    call = f"import ctypes, sys; sys.exit(ctypes.CDLL({str(built)!r}).f() != 1)"
    environment = {**os.environ, **sanitizer.environment, "LD_PRELOAD": sanitizer.available()}
    assert subprocess.run([sys.executable, "-c", call], env=environment, check=False).returncode == 0


ASAN = """==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x6150 at pc 0x7f bp 0x7f sp 0x7f
WRITE of size 4 at 0x6150 thread T3
    #0 0x7f06 in relu._omp_fn.0 kernel.cpp:5
    #1 0x7f07 in GOMP_parallel (libgomp.so.1+0x1)

0x6150 is located 0 bytes to the right of 512-byte region [0x6140,0x6150)
allocated by thread T0 here:
    #0 0x7f in posix_memalign ../../src/asan_malloc_linux.cpp:226
"""


def test_reports_become_sentences():
    fault = read_report(ASAN, solution(""))
    assert fault is not None
    assert (fault.file, fault.line) == ("kernel.cpp", 5)
    expected = "writes 4 bytes 0 bytes to the right of a 512-byte allocation (heap-buffer-overflow)"
    assert fault.message == expected
    undefined = "./kernel.cpp:3:7: runtime error: index 4 out of bounds for type 'float [4]'\n"
    assert read_report(undefined, solution("")).line == 3
    negative = "kernel.cpp:5:7: runtime error: variable length array bound evaluates to non-positive value -3"
    assert read_report(f"{negative[:-2]}0\n{negative}\n", solution("")).message.endswith("value -3")


@pytest.mark.parametrize(
    "log",
    ["", "ERROR: AddressSanitizer: ", ASAN.replace("kernel.cpp", "torch.cpp"),
     "WARNING: ThreadSanitizer: data race (pid=1)\n  Write of size 8 at 0x1 by main thread:\n",
     "other.cpp:3:7: runtime error: index 4 out of bounds",
     "kernel.cpp:3:7: runtime error: variable length array bound evaluates to non-positive value 0"],
)  # fmt: skip
def test_faults_of_others_are_not_a_solutions(log):
    assert read_report(log, solution("")) is None


def test_both_sanitizers_name_what_a_process_must_load():
    for sanitizer in (MEMORY, RACES):
        path = sanitizer.available()
        assert not path or Path(path).is_file()


@pytest.mark.skipif(not MEMORY.available(), reason="the compiler brings no AddressSanitizer")
def test_a_program_that_the_compiler_runs_changes_nothing_but_its_own_folder(tmp_path):
    """`-wrapper` runs any program: here one that puts a link in the place of the next source's folder."""
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "built"
    elsewhere.mkdir()
    source = 'extern "C" int f() { return 1; }\n'
    swap = f'"$@" || exit 1\ncp sub/b.cpp {elsewhere}\nrm -rf sub\nln -s {elsewhere} sub\n'
    files = {"model_new.py": "", "a.cpp": source, "sub/b.cpp": source, "swap.sh": swap}
    made = make_solution("cpp", files, ("-wrapper", "/bin/sh,./swap.sh"))
    write_solution(made, folder)
    build(made, folder, MEMORY, cache=tmp_path / "cache", run=plain, timeout_s=120)
    assert not list(elsewhere.glob("*.so")) and len(list(folder.rglob("*.so"))) == 2
