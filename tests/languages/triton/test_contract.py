from __future__ import annotations

from pathlib import Path

import pytest

from agentforge.languages import PRELUDE, languages, run_command, write_solution
from agentforge.languages.triton import language
from agentforge.languages.triton.compile.ahead import judge
from agentforge.languages.triton.language import TARGETS
from agentforge.languages.triton.launches import Launch
from agentforge.testing.language import LanguageContract, make_solution

pytest.importorskip("triton", reason="Triton is not installed")

SCALE = """import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        scale[(triton.cdiv(x.numel(), 256),)](x, o, x.numel(), BLOCK=256)
        return o
"""


class TestTriton(LanguageContract):
    name = "triton"
    working = {"model_new.py": SCALE}
    broken = {"model_new.py": SCALE.replace("BLOCK: tl.constexpr):", "BLOCK: tl.constexpr)")}
    broken_file = "model_new.py"
    broken_line = 7


@pytest.mark.parametrize(
    ("here", "flags", "targets"),
    [
        ("", (), TARGETS),
        ("sm_89", (), ("sm_89",)),
        ("sm_75", (), TARGETS),
        ("sm_89", ("--target=sm_90",), ("sm_90",)),
    ],
)
def test_kernels_are_compiled_for_the_gpu_that_is_here(
    here: str, flags: tuple[str, ...], targets: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language, "gpu_target", lambda: here)
    assert language.solution_targets(make_solution("triton", {"model_new.py": SCALE}, flags)) == targets


WRITES = """
import os
from pathlib import Path

HERE = Path(__file__).parent
HERE.joinpath("model_new.py").write_text("class ModelNew: pass")
HERE.joinpath("more.py").write_text("")
HERE.joinpath("linked.py").symlink_to("/etc/hostname")
HERE.joinpath("linked.so").symlink_to("/etc/hostname")
os.mkfifo("pipe.py")
os.mkfifo(HERE / "pipe.so")
"""
LAUNCH = {"kernel": "scale", "types": {"x": "*fp32", "o": "*fp32", "n": "i32"}, "constants": {"BLOCK": 256}}


@pytest.mark.slow
def test_what_a_solution_writes_when_it_is_compiled_is_not_built(tmp_path: Path) -> None:
    source = f"{SCALE}\n{WRITES}\nAHEAD_OF_TIME = [{LAUNCH!r}]\n"
    solution = make_solution("triton", {"model_new.py": source}, ("--target=sm_90",))
    folders = tmp_path / "built", tmp_path / "written"
    for folder in folders:
        folder.mkdir()
    result = languages.create("triton").build(
        solution, folders[0], cache=tmp_path / "cache", run=run_command, timeout_s=120
    )
    assert result.ok and [r.target for r in result.resources] == ["sm_90"], result.log
    write_solution(solution, folders[1])
    files = [{p.name: p.read_bytes() for p in folder.rglob("*") if p.name != PRELUDE} for folder in folders]
    assert files[0] == files[1]


@pytest.mark.parametrize("value", ["{[]: 0}", "[*x]", "0", "[{'kernel': 'scale'}]"])
def test_launches_that_are_none(value: str) -> None:
    solution = make_solution("triton", {"model_new.py": f"x[0x{'f' * 8000}] = 1\nAHEAD_OF_TIME = {value}\n"})
    launches, problems = language.declared_launches(solution)
    assert not launches and "must be a literal list" in problems[0].message


COMPILED = {
    "launch": 0, "target": "sm_90", "warps": 4, "registers": 16, "shared": 0,
    "spill_stores": 0, "spill_loads": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    "answer",
    [
        {"absent": 5},
        {"absent": [["a"], {"b": 1}, None]},
        {"compiled": 5, "errors": {"a": 1}},
        {"compiled": [{**COMPILED, "target": "sm_1"}]},
        {"compiled": [{**COMPILED, "target": ["sm_90"]}]},
        {"compiled": [{**COMPILED, "warps": float("inf")}]},
        {"compiled": [{**COMPILED, "registers": 10**400, "shared": "9" * 5000}]},
        {"errors": [{"launch": 10**9, "line": "x", "message": None}]},
    ],
)
def test_any_answer_of_the_compiler_s_process_is_survived(answer: dict[str, object]) -> None:
    found = judge(answer, [Launch.model_validate(LAUNCH)], ["sm_90"])
    assert found.resources == ()


def test_an_answer_of_the_compiler_s_process() -> None:
    found = judge({"compiled": [COMPILED]}, [Launch.model_validate(LAUNCH)], ["sm_90"])
    assert found.ok and [r.registers for r in found.resources] == [16]
