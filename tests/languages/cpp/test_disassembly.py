"""Hot loops of machine code."""

from __future__ import annotations

import subprocess
from pathlib import Path

from agentforge.languages import CommandResult
from agentforge.languages.cpp.disassembly import (
    disassemble,
    loop_metrics,
    loops_of,
    machine_code,
    object_hash,
)

SOURCE = """
extern "C" double quotients(const double* x, long n) {
    double sum = 0;
    for (long j = 0; j < n; j++) sum += 1.0 / x[j];
    return sum;
}
"""
LISTING = """
0000000000001000 <f(float*)>:
    1000:\tvmovups zmm0,ZMMWORD PTR [rdi]        # a comment
    1010:\tadd    rdi,0x40
    1020:\tvfmadd231ps zmm1,zmm0,ZMMWORD PTR [rsp+0x8]
    1030:\tcmp    rdi,rsi
    1040:\tjne    1010 <f(float*)+0x10>
    1050:\tdec    rax
    1060:\tjne    1000 <f(float*)>
    1070:\tret
"""


def test_the_innermost_loop_is_shown_with_its_kinds_of_instructions() -> None:
    said = loops_of(LISTING)
    head, *lines = said.splitlines()
    assert head == ("Innermost loop in f(float*): 4 instructions (1 512-bit, 1 multiply-add, 1 stack access)")
    assert [line.split()[0] for line in lines] == ["add", "vfmadd231ps", "cmp", "jne"]
    assert loops_of("") == "its machine code has no loop"


def test_the_heaviest_loop_and_the_object_are_measured() -> None:
    calls = """
0000000000002000 <g()>:
    2000:\tcall   1030 <GOMP_parallel@plt>
    2008:\tvmovntps ZMMWORD PTR [rdi],zmm0
    2010:\tprefetcht0 BYTE PTR [rdi+0x400]
"""
    assert {m.name: m.value for m in loop_metrics(LISTING + calls)} == {
        "loop_vector_bits": 512, "loop_operations": 1, "loop_gathers": 0, "loop_stack_accesses": 1,
        "streaming_stores": 1, "prefetches": 1, "parallel_regions": 1,
    }  # fmt: skip
    assert not any(m.value for m in loop_metrics(""))


def run(argv, *, cwd, timeout_s, env=None):
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=timeout_s)
    return CommandResult(done.returncode, done.stdout, done.stderr, 0.0)


def test_objects_of_equal_machine_code_have_one_hash(tmp_path: Path) -> None:
    rooted = SOURCE.replace("1.0 / x[j]", "__builtin_sin(x[j])")
    sources = {
        "as it is": SOURCE,
        "renamed": SOURCE.replace("sum", "total").replace("{\n", "{  // adds\n"),
        "another constant": SOURCE.replace("1.0", "1.5"),
        "a call": rooted,
        "another call": rooted.replace("sin", "cos"),
    }
    found = {}
    for name, source in sources.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "a.cpp").write_text(source)
        subprocess.run(["g++", "-O2", "-shared", "-fPIC", "a.cpp", "-o", "a.so"], cwd=folder, check=True)
        found[name] = object_hash(folder, run)
    assert found["as it is"] == found["renamed"] != ""
    assert len(set(found.values())) == len(sources) - 1
    assert object_hash(tmp_path / "nothing", run) == ""
    (tmp_path / "broken.so").write_text("no object")
    assert object_hash(tmp_path, run) == ""


def test_a_compiled_object_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text(SOURCE)
    command = ["g++", "-O2", "-shared", "-fPIC", str(tmp_path / "a.cpp"), "-o", str(tmp_path / "a.so")]
    subprocess.run(command, check=True)

    listing = disassemble([tmp_path / "a.so"], tmp_path, run)
    assert listing is not None and "<quotients>" in listing
    assert disassemble([tmp_path / "no.so"], tmp_path, run) is None
    said = machine_code(tmp_path, run)
    assert "Innermost loop in quotients" in said
    assert "division or root" in said
    assert machine_code(tmp_path / "nothing", run) == "it has no compiled C++ object"
