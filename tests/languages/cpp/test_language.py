"""The `cpp` language beyond the contract: cache, sub-folders, hostile solutions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

from agentforge.languages import BuildResult, languages, run_command
from agentforge.languages.cpp import language as cpp_language
from agentforge.languages.cpp.cache import BuildRecord, ObjectCache
from agentforge.schema import MachineError, Solution
from agentforge.testing.language import make_solution

from ..sources import RMSNORM, RMSNORM_CPP, RMSNORM_PY, SCALE_HPP, rmsnorm_solution


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., BuildResult]:
    """Build a solution into `tmp_path/<name>` with one cache."""

    def call(solution: Solution, name: str = "built", timeout_s: float = 60.0) -> BuildResult:
        folder = tmp_path / name
        folder.mkdir()
        return languages.create("cpp").build(
            solution, folder, cache=tmp_path / "cache", run=run_command, timeout_s=timeout_s
        )

    return call


def test_built_solution_is_right(
    build: Callable[..., BuildResult], tmp_path: Path, import_folder: Callable[[Path], ModuleType]
) -> None:
    result = build(rmsnorm_solution())
    assert result.ok
    metrics = {m.name: m.value for m in result.metrics}
    assert metrics["vectorised_loops"] >= 1
    before = sorted(tmp_path.rglob("*"))
    model = import_folder(tmp_path / "built").ModelNew()
    assert [p for p in sorted(tmp_path.rglob("*")) if p not in before and p.suffix == ".so"] == []
    x, weight = torch.randn(33, 65), torch.randn(65)
    torch.testing.assert_close(model(x, weight), torch.nn.functional.rms_norm(x, (65,), weight, 1e-6))


class TestCache:
    def test_second_build_is_cached_with_what_the_compiler_said(
        self, build: Callable[..., BuildResult]
    ) -> None:
        warned = rmsnorm_solution(kernel_cpp=RMSNORM_CPP + "#warning read me\n")
        first, second = build(warned, "one"), build(warned, "two")
        assert not first.cached and second.cached and second.ok
        assert second.metrics == first.metrics
        assert second.diagnostics == first.diagnostics
        assert "read me" in second.log
        assert [f.name for f in first.files] == [f.name for f in second.files]

    @pytest.mark.slow
    def test_headers_flags_and_the_compiler_count(
        self, build: Callable[..., BuildResult], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        build(rmsnorm_solution(), "one")
        assert not build(rmsnorm_solution(scale_hpp=SCALE_HPP + "// other"), "two").cached
        assert not build(make_solution("cpp", RMSNORM, ("-DX=1",)), "three").cached
        monkeypatch.setattr(cpp_language, "compiler_version", lambda: "another g++")
        assert not build(rmsnorm_solution(), "four").cached

    @pytest.mark.parametrize("name", ["impl.py", "impl.cc"])
    def test_what_does_not_count_cannot_be_compiled_in(
        self, build: Callable[..., BuildResult], name: str
    ) -> None:
        hidden = f'#define HIDDEN "{name}"\n#include HIDDEN\n'
        files = {**RMSNORM, "kernel.cpp": hidden + RMSNORM_CPP, name: "// otherwise another object's\n"}
        result = build(make_solution("cpp", files))
        assert not result.ok
        assert name in result.log

    def test_a_pipe_in_the_place_of_the_report_holds_nobody_up(
        self, build: Callable[..., BuildResult]
    ) -> None:
        swap = '"$@"\ncode=$?\nrm -f .output/vectorised.txt\nmkfifo .output/vectorised.txt\nexit $code\n'
        result = build(make_solution("cpp", {**RMSNORM, "swap.sh": swap}, ("-wrapper", "/bin/sh,./swap.sh")))
        assert result.ok and {m.source for m in result.metrics} == {"disassembly"}

    def test_an_output_folder_that_leads_elsewhere_is_refused(
        self, build: Callable[..., BuildResult], tmp_path: Path
    ) -> None:
        (tmp_path / "elsewhere").mkdir()
        swap = f'"$@" || exit 1\nmv .output/* {tmp_path}/elsewhere\nrm -rf .output\n'
        swap += f"ln -s {tmp_path}/elsewhere .output\n"
        result = build(make_solution("cpp", {**RMSNORM, "swap.sh": swap}, ("-wrapper", "/bin/sh,./swap.sh")))
        assert not result.ok

    def test_the_python_file_does_not_count(self, build: Callable[..., BuildResult]) -> None:
        build(rmsnorm_solution(), "one")
        assert build(rmsnorm_solution(model_new_py=RMSNORM_PY + "# other"), "two").cached

    def test_a_damaged_entry_is_built_again(self, build: Callable[..., BuildResult], tmp_path: Path) -> None:
        build(rmsnorm_solution(), "one")
        for record in (tmp_path / "cache").rglob("*.json"):
            record.write_text("{")
        again = build(rmsnorm_solution(), "two")
        assert again.ok and not again.cached

    def test_an_object_that_is_no_file_is_refused(self, tmp_path: Path) -> None:
        secret = tmp_path / "secret"
        secret.write_text("secret")
        link = tmp_path / "built.so"
        link.symlink_to(secret)
        with pytest.raises(ValueError, match="not a regular file"):
            ObjectCache(tmp_path / "cache").store("key", link, BuildRecord())

    @pytest.mark.slow
    def test_an_object_that_would_fill_the_disk_is_refused(
        self, build: Callable[..., BuildResult], tmp_path: Path
    ) -> None:
        result = build(rmsnorm_solution(kernel_cpp=RMSNORM_CPP + "char large[65 << 20] = {1};\n"))
        assert not result.ok and "64 are the limit" in result.log
        assert not list((tmp_path / "cache").rglob("*.so"))

    def test_a_cache_that_cannot_be_written_is_no_failure(
        self, build: Callable[..., BuildResult], tmp_path: Path
    ) -> None:
        (tmp_path / "cache").write_text("a file in its place")
        assert build(rmsnorm_solution()).ok

    @pytest.mark.slow
    def test_processes_share_it(self, tmp_path: Path) -> None:
        program = """
import sys
from pathlib import Path
from agentforge.languages import languages, run_command
from tests.languages.sources import rmsnorm_solution
folder = Path(sys.argv[1]); folder.mkdir()
cache = Path(sys.argv[2])
r = languages.create("cpp").build(rmsnorm_solution(), folder, cache=cache, run=run_command, timeout_s=60)
assert r.ok, r.log
"""
        command = [sys.executable, "-c", program]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
        running = [
            subprocess.Popen([*command, str(tmp_path / f"b{i}"), str(tmp_path / "cache")], env=environment)
            for i in range(3)
        ]
        assert [p.wait(120) for p in running] == [0, 0, 0]
        assert len(list((tmp_path / "cache").rglob("*.so"))) == 1
        assert not list((tmp_path / "cache").rglob(".new-*"))


class TestFolders:
    def test_every_source_becomes_an_object_beside_it(
        self, build: Callable[..., BuildResult], tmp_path: Path
    ) -> None:
        files = {
            "model_new.py": "class ModelNew: pass\n",
            "kernels/a/kernel.cpp": 'extern "C" int value() { return VALUE; }',
            "kernels/a/solution.json": json.dumps({"language": "cpp", "flags": ["-DVALUE=1"]}),
            "kernels/b/kernel.cpp": 'extern "C" int value() { return VALUE; }',
            "kernels/b/solution.json": json.dumps({"language": "cpp", "flags": ["-DVALUE=2"]}),
        }
        result = build(make_solution("cpp", files))
        assert result.ok, result.log
        assert sorted(f.parent.name for f in result.files) == ["a", "b"]
        from agentforge.languages.cpp.shipped.agentforge_cpp import load

        for folder, value in (("a", 1), ("b", 2)):
            here = tmp_path / "built" / "kernels" / folder
            assert load(str(here / "x.py"), "kernel.cpp").value() == value
            assert len(list(here.glob("*.so"))) == 1, "the built object was not found"

    def test_no_source_at_all(self, build: Callable[..., BuildResult]) -> None:
        result = build(make_solution("cpp", {"model_new.py": "class ModelNew: pass\n"}))
        assert result.ok and not result.files and not result.cached

    def test_our_run_time_module_wins(self, build: Callable[..., BuildResult], tmp_path: Path) -> None:
        build(make_solution("cpp", {**RMSNORM, "agentforge_cpp.py": "def load(*a): return None\n"}))
        assert "def parse_prototypes" in (tmp_path / "built" / "agentforge_cpp.py").read_text()


class TestFailures:
    def test_undefined_symbols_of_the_linker(self, build: Callable[..., BuildResult]) -> None:
        result = build(make_solution("cpp", RMSNORM, ("-Wl,--no-undefined", "-lno_such_library")))
        assert not result.ok
        assert any("no_such_library" in d.message for d in result.diagnostics)

    def test_unknown_flag(self, build: Callable[..., BuildResult]) -> None:
        result = build(make_solution("cpp", RMSNORM, ("-fno-such-thing",)))
        assert not result.ok and "-fno-such-thing" in result.log

    def test_a_compiler_that_cannot_write_json(
        self, build: Callable[..., BuildResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """g++ 16 cannot."""
        newer = tmp_path / "newer"
        newer.write_text('#!/bin/sh\ncase "$*" in *format=json*) exit 1;; esac\nexec g++ "$@"\n')
        newer.chmod(0o755)
        monkeypatch.setenv("CXX", str(newer))
        assert build(rmsnorm_solution()).ok
        result = build(rmsnorm_solution(kernel_cpp="#warning read me\n#error no\n"), "wrong")
        found = [(d.severity, d.file, d.line) for d in result.diagnostics]
        assert found == [("error", "kernel.cpp", 2), ("warning", "kernel.cpp", 1)]

    def test_time_out(self, build: Callable[..., BuildResult]) -> None:
        slow = "template<int N> struct F { static constexpr long v = F<N-1>::v + F<N-2>::v; };\n"
        endless = (
            slow + "constexpr int f() { int x = 0; for (;;) x ^= 1; return x; }\nstatic_assert(f() == 1);"
        )
        flags = ("-fconstexpr-loop-limit=2147483647", "-fconstexpr-ops-limit=99999999999")
        files = {"model_new.py": "class ModelNew: pass\n", "kernel.cpp": endless}
        start = time.monotonic()
        result = build(make_solution("cpp", files, flags), timeout_s=1.0)
        assert time.monotonic() - start < 20
        assert not result.ok and result.timed_out
        assert "time-out" in result.diagnostics[0].message

    def test_no_compiler(self, build: Callable[..., BuildResult], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CXX", "no-such-compiler")
        assert "install g++" in languages.create("cpp").available().detail
        with pytest.raises(MachineError, match="install g"):
            build(rmsnorm_solution())

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "manifest",
        ['{"language": "cpp", "flags": 5}', '{"language": "cpp", "dependencies": {"a": 1}}', "[", "7"],
    )
    def test_hostile_manifest(self, build: Callable[..., BuildResult], manifest: str) -> None:
        files = {**RMSNORM, "sub/solution.json": manifest, "sub/k.cpp": 'extern "C" int f() { return 1; }'}
        assert build(make_solution("cpp", files)).ok

    def test_too_many_sources(self, build: Callable[..., BuildResult]) -> None:
        files = {f"{n}.cpp": "" for n in range(129)}
        result = build(make_solution("cpp", {**RMSNORM, **files}))
        assert not result.ok and "130 C++ sources" in result.log

    def test_a_file_named_like_a_flag(self, build: Callable[..., BuildResult], tmp_path: Path) -> None:
        files = {"model_new.py": "class ModelNew: pass\n", "-ofoo.cpp": 'extern "C" int f() { return 1; }'}
        result = build(make_solution("cpp", files))
        assert result.ok and result.files[0].name.startswith("-ofoo.")

    def test_unknown_dependency(self, build: Callable[..., BuildResult]) -> None:
        manifest = '{"language": "cpp", "dependencies": ["boost"]}'
        files = {**RMSNORM, "sub/solution.json": manifest, "sub/k.cpp": 'extern "C" int f() { return 1; }'}
        result = build(make_solution("cpp", files))
        assert not result.ok and "unknown dependency 'boost'" in result.log

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["/dev/zero", "/proc/kcore", "../../../../../../proc/kcore"])
    def test_hostile_includes_are_not_read_by_us(self, build: Callable[..., BuildResult], name: str) -> None:
        start = time.monotonic()
        build(rmsnorm_solution(kernel_cpp=f'#if 0\n#include "{name}"\n#endif\n' + RMSNORM_CPP))
        assert time.monotonic() - start < 20


@pytest.mark.slow
def test_torch_headers(build: Callable[..., BuildResult], tmp_path: Path) -> None:
    source = """
    #include <ATen/cpu/vec/vec.h>
    extern "C" void expo(const float* x, float* out) {
        at::vec::Vectorized<float>::loadu(x).exp().store(out);
    }
    """
    solution = make_solution("cpp", {"model_new.py": "class ModelNew: pass\n", "kernel.cpp": source})
    spec = solution.spec.model_copy(
        update={"dependencies": ("torch-headers",), "flags": ("-DCPU_CAPABILITY_AVX2",)}
    )
    result = build(solution.model_copy(update={"spec": spec}))
    assert result.ok, result.log
    from agentforge.languages.cpp.shipped.agentforge_cpp import load

    x, out = torch.randn(64), torch.zeros(64)
    load(str(tmp_path / "built" / "model_new.py"), "kernel.cpp").expo(x, out)
    torch.testing.assert_close(out[:8], x[:8].exp())


class TestRunCommand:
    def test_output_and_code(self, tmp_path: Path) -> None:
        done = run_command(["sh", "-c", "echo out; echo err >&2; pwd; exit 3"], cwd=tmp_path, timeout_s=20)
        assert (done.returncode, done.stderr, done.timed_out) == (3, "err\n", False)
        assert done.stdout.splitlines() == ["out", str(tmp_path)]

    def test_missing_program(self, tmp_path: Path) -> None:
        assert run_command(["no-such-program"], cwd=tmp_path, timeout_s=5).returncode == 127

    def test_undecodable_output(self, tmp_path: Path) -> None:
        done = run_command(["printf", r"\377\376"], cwd=tmp_path, timeout_s=5)
        assert done.stdout == "\ufffd\ufffd"

    def test_the_whole_group_dies_at_the_time_out(self, tmp_path: Path) -> None:
        script = "trap '' TERM; sleep 300 & echo $! > child; wait"
        start = time.monotonic()
        done = run_command(["sh", "-c", script], cwd=tmp_path, timeout_s=0.5)
        assert done.timed_out and time.monotonic() - start < 10
        assert done.returncode == -signal.SIGKILL
        child = int((tmp_path / "child").read_text())
        for _ in range(100):
            try:
                state = Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[0]
            except FileNotFoundError:
                return
            if state == "Z":
                return
            time.sleep(0.05)
        pytest.fail("the grandchild lives")
