"""Solutions on disk and back."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentforge.languages import export_single_file, read_solution, run_command, write_solution
from agentforge.languages.solutions.single_file import _literal
from agentforge.schema import BuildSpec, Solution, SourceFile, UsageError
from agentforge.testing.language import make_solution

from ..sources import RMSNORM, RMSNORM_PY, rmsnorm_solution

HASH = "0" * 16
PLAIN = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n"


def file(folder: Path, text: str | bytes, name: str = "solution.py") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


class TestRead:
    def test_a_plain_file(self, tmp_path: Path) -> None:
        solution = read_solution(file(tmp_path, PLAIN), HASH)
        assert solution.spec == BuildSpec(language="python", entry_point="solution.py::ModelNew")
        assert (solution.name, solution.author, solution.definition) == ("solution", "person", HASH)

    @pytest.mark.parametrize(
        "text",
        [
            "from elsewhere import ModelNew\n",
            "from elsewhere import *\n",
            "import torch\nif True:\n    class ModelNew(torch.nn.Module): pass\n",
            "try:\n    import x\nexcept ImportError:\n    ModelNew = None\n",
            "ModelNew: type = object\n",
            "\ufeffclass ModelNew: pass\n",
        ],
    )
    def test_ways_to_define_it(self, tmp_path: Path, text: str) -> None:
        assert read_solution(file(tmp_path, text), HASH).entry_class == "ModelNew"

    def test_load_inline_is_python(self, tmp_path: Path) -> None:
        text = "from torch.utils.cpp_extension import load_inline\n" + PLAIN
        assert read_solution(file(tmp_path, text), HASH).spec.language == "python"

    def test_an_extension_that_its_entry_file_compiles_is_python(self, tmp_path: Path) -> None:
        file(tmp_path, "#include <torch/extension.h>\n", "softcap.cpp")
        file(tmp_path, "from torch.utils.cpp_extension import load\n" + PLAIN)
        solution = read_solution(tmp_path, HASH)
        assert solution.spec.language == "python"
        assert {source.path for source in solution.sources} == {"softcap.cpp", "solution.py"}

    def test_a_folder(self, tmp_path: Path) -> None:
        for name, text in RMSNORM.items():
            file(tmp_path, text, name)
        (tmp_path / "__pycache__").mkdir()
        file(tmp_path / "__pycache__", b"\xff", "model_new.cpython-311.pyc")
        file(tmp_path, b"\x7fELF\xff", "kernel.0123.so")
        solution = read_solution(tmp_path, HASH)
        assert solution.hash == rmsnorm_solution().hash
        assert solution.spec.language == "cpp"

    def test_a_file_with_its_kernels_beside_it(self, tmp_path: Path) -> None:
        for name, text in {**RMSNORM, "unrelated.py": "x = 1\n", "other.cpp": ""}.items():
            file(tmp_path, text, name)
        solution = read_solution(tmp_path / "model_new.py", HASH)
        assert solution.hash == rmsnorm_solution().hash

    def test_a_folder_with_another_entry_name(self, tmp_path: Path) -> None:
        file(tmp_path, PLAIN, "fast.py")
        file(tmp_path, "x = 1\n", "helper.py")
        assert read_solution(tmp_path, HASH).entry_file == "fast.py"


class TestRoundTrips:
    solution = Solution(
        name='ü "quoted" \\ name',
        definition=HASH,
        author="playbook",
        description="a technique",
        parameters={"unroll": 4, "nt": True},
        spec=BuildSpec(language="cpp", flags=("-DX=1",), dependencies=("torch-headers",)),
        sources=make_solution("cpp", {**RMSNORM, "sub/k.cpp": "// ü ''' \\", "data.txt": "a\r\nb"}).sources,
    )

    def test_folder(self, tmp_path: Path) -> None:
        write_solution(self.solution, tmp_path / "s")
        assert (tmp_path / "s" / "agentforge_cpp.py").is_file()
        again = read_solution(tmp_path / "s", HASH)
        assert again.hash == self.solution.hash
        unordered = {"sources": ()}
        assert again.model_copy(update=unordered) == self.solution.model_copy(update=unordered)
        assert read_solution(tmp_path / "s" / "model_new.py", HASH).hash == self.solution.hash

    def test_single_file(self, tmp_path: Path) -> None:
        again = read_solution(file(tmp_path, export_single_file(self.solution)), HASH)
        assert again.hash == self.solution.hash
        assert (again.name, again.author, again.parameters) == (
            self.solution.name,
            "playbook",
            {"unroll": 4, "nt": True},
        )

    def test_a_changed_export_is_judged_by_what_it_does(self, tmp_path: Path) -> None:
        text = export_single_file(self.solution) + "\n\nclass ModelNew:\n    pass\n"
        again = read_solution(file(tmp_path, text), HASH)
        assert again.spec.language == "python"
        assert again.sources[0].content == text

    @given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
    def test_any_text_has_a_literal(self, text: str) -> None:
        assert eval(_literal(text)) == text

    @given(text=st.text(alphabet="'\"\\\n\r\t ab{}ü", max_size=60))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
    def test_any_source_survives_both(self, tmp_path: Path, text: str) -> None:
        solution = make_solution("python", {"model_new.py": PLAIN, "other.txt": text})
        write_solution(solution, tmp_path / "s")
        assert read_solution(tmp_path / "s", HASH).hash == solution.hash
        again = read_solution(file(tmp_path, export_single_file(solution)), HASH)
        assert again.hash == solution.hash


class TestSingleFileRuns:
    """In a fresh process in which AgentForge cannot be imported, as KernelBench's evaluator runs it."""

    def run(self, tmp_path: Path, program: str, **environment: str) -> str:
        path = file(tmp_path, export_single_file(rmsnorm_solution()), "exported.py")
        head = f"""
            import sys
            sys.modules["agentforge"] = None
            import torch
            path = {str(path)!r}
            x, weight = torch.randn(16, 32), torch.randn(32)
            expected = torch.nn.functional.rms_norm(x, (32,), weight, 1e-6)
        """
        text = textwrap.dedent(head) + textwrap.dedent(program)
        env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "xdg"), **environment}
        done = run_command([sys.executable, "-I", "-c", text], cwd=tmp_path, timeout_s=120, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @pytest.mark.slow
    def test_by_exec_without_a_file_name(self, tmp_path: Path) -> None:
        program = """
            context = {}
            exec(open(path).read(), context)
            torch.testing.assert_close(context["ModelNew"]()(x, weight), expected)
            assert not any("agentforge/solutions" in p for p in sys.path)
        """
        self.run(tmp_path, program)
        (built,) = (tmp_path / "xdg").rglob("kernel.*.so")
        stamp = built.stat().st_mtime_ns
        self.run(tmp_path, program)
        assert built.stat().st_mtime_ns == stamp, "the second process compiled again"

    @pytest.mark.slow
    def test_by_two_processes_at_once(self, tmp_path: Path) -> None:
        program = """
            import os, shutil
            rename = os.rename
            def late(scratch, folder):
                shutil.copytree(scratch, folder)
                rename(scratch, folder)
            os.rename = late
            exec(open(path).read(), {})
        """
        self.run(tmp_path, program)
        (unpacked,) = (tmp_path / "xdg" / "agentforge" / "solutions").iterdir()
        assert not unpacked.name.startswith(".")

    @pytest.mark.slow
    def test_imported_from_a_temporary_file(self, tmp_path: Path) -> None:
        program = """
            import importlib.util
            spec = importlib.util.spec_from_file_location("temp_module", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            torch.testing.assert_close(module.ModelNew()(x, weight), expected)
        """
        self.run(tmp_path, program)

    @pytest.mark.slow
    def test_where_the_cache_cannot_be_written(self, tmp_path: Path) -> None:
        program = """
            import os
            os.access = lambda *a, **k: False
            context = {}
            exec(open(path).read(), context)
            torch.testing.assert_close(context["ModelNew"]()(x, weight), expected)
        """
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        self.run(tmp_path, program, TMPDIR=str(scratch))
        assert not (tmp_path / "xdg" / "agentforge").exists()


class TestBadInput:
    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            (b"", "is empty"),
            (b" \n\t\n", "is empty"),
            (b"\x7fELF\x02\x01\x01\xff\xfe", "not UTF-8 text"),
            (b"class ModelNew: pass\0", "NUL"),
            (b"class ModelNew(:\n", "is not Python: line 1"),
            (b"int main() { return 0; }\n", "is not Python"),
            (b"class Model: pass\n", "defines no class ModelNew"),
            (b"(" * 10_000, "is not Python"),
            (b"AGENTFORGE_FILES = {[]: 1}\n", "defines no class ModelNew"),
            (b"AGENTFORGE_FILES = {}\n", "defines no class ModelNew"),
            (b"AGENTFORGE_FILES = {'../x': 'a', 'solution.json': '[]'}\n", "defines no class ModelNew"),
        ],
    )
    def test_files(self, tmp_path: Path, content: bytes, sentence: str) -> None:
        with pytest.raises(UsageError, match=sentence) as caught:
            read_solution(file(tmp_path, content), HASH)
        assert "\n" not in str(caught.value)

    def test_two_gigabytes(self, tmp_path: Path) -> None:
        path = tmp_path / "huge.py"
        with path.open("wb") as stream:
            stream.truncate(2 << 30)
        with pytest.raises(UsageError, match="2048 MiB; a solution's source has at most 8 MiB"):
            read_solution(path, HASH)

    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="does not exist"):
            read_solution(tmp_path / "nothing.py", HASH)

    def test_a_device(self) -> None:
        with pytest.raises(UsageError, match="neither a file nor a folder"):
            read_solution(Path("/dev/zero"), HASH)

    def test_an_empty_folder(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="no Python file that defines class ModelNew"):
            read_solution(tmp_path, HASH)

    def test_a_folder_of_many_files(self, tmp_path: Path) -> None:
        for i in range(600):
            (tmp_path / f"{i}.txt").touch()
        with pytest.raises(UsageError, match="more than 512 files"):
            read_solution(tmp_path, HASH)

    @pytest.mark.parametrize(
        "manifest",
        [
            {"language": "cpp", "entry_point": "nowhere.py::ModelNew"},
            {"language": "cpp", "entry_point": "model_new.py"},
            {"language": "cpp", "entry_point": 5},
            {"language": "cpp", "flags": "-O2"},
            {"language": "cpp", "entry_point": "model_new.py::Other"},
        ],
    )
    def test_manifests(self, tmp_path: Path, manifest: dict[str, object]) -> None:
        write_solution(rmsnorm_solution(), tmp_path)
        (tmp_path / "solution.json").write_text(json.dumps(manifest))
        with pytest.raises(UsageError):
            read_solution(tmp_path, HASH)

    @given(st.binary(max_size=200))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_any_bytes(self, tmp_path: Path, content: bytes) -> None:
        with pytest.raises(UsageError):
            read_solution(file(tmp_path, content), HASH)


def test_an_exported_source_is_readable() -> None:
    solution = make_solution("cpp", RMSNORM)
    text = export_single_file(solution)
    assert RMSNORM_PY in text, "sources stay readable"
    assert "agentforge." not in text.replace("agentforge_cpp", "")
    assert solution.sources == tuple(SourceFile(path=p, content=c) for p, c in RMSNORM.items())
