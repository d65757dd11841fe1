"""Suites: the contract for each, and the peculiarities of each form."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from agentforge.campaigns.suites import Selection, open_suite, selected
from agentforge.schema import UsageError
from agentforge.testing.suite import SuiteContract

MODEL = "class Model: ...\n"


def write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\n{MODEL}", errors="replace")


def test_a_name_that_is_not_utf_8_is_refused_with_a_sentence(tmp_path: Path) -> None:
    write(tmp_path, "odd_\udcff")
    with pytest.raises(UsageError, match=r"odd_\\udcff\.py is not UTF-8: rename the file"):
        selected(open_suite(f"folder:{tmp_path}"), Selection())
    write(tmp_path, "good")
    good, odd = selected(open_suite(f"folder:{tmp_path}"), Selection())
    assert (good.id, odd.id, good.unsupported) == ("good", r"odd_\udcff", "")
    assert odd.unsupported == r"the name odd_\udcff.py is not UTF-8: rename the file or leave it out"


def test_an_empty_suite_blames_no_pattern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = open_suite(f"folder:{tmp_path}")
    monkeypatch.setattr(suite, "problems", lambda _: ())
    with pytest.raises(UsageError, match=r"^the suite has no problem: name the place of another one$"):
        selected(suite, Selection())


class TestKernelBench(SuiteContract):
    name = "kernelbench"

    def good(self, folder: Path) -> str:
        write(folder, "level1/10_b", "level1/9_a", "level2/1_c")
        return str(folder)

    def missing(self, folder: Path) -> str:
        return str(folder / "nowhere")

    def broken_in_part(self, folder: Path) -> str:
        where = self.good(folder)
        (folder / "level1" / "9_a.py").write_bytes(b"\xff")
        return where

    def test_problems_come_by_level_and_number(self, tmp_path: Path) -> None:
        found = selected(self.open(self.good(tmp_path)), Selection())
        assert [p.id for p in found] == ["level1/9_a", "level1/10_b", "level2/1_c"]
        assert [p.group for p in found] == ["level1", "level1", "level2"]

    def test_a_level_is_selected_or_named_as_missing(self, tmp_path: Path) -> None:
        suite = self.open(self.good(tmp_path))
        assert [p.id for p in selected(suite, Selection(levels=(2,)))] == ["level2/1_c"]
        with pytest.raises(UsageError, match="no level 3; its levels are: 1, 2"):
            selected(suite, Selection(levels=(3,)))

    def test_the_folder_of_a_clone_will_do(self, tmp_path: Path) -> None:
        write(tmp_path / "KernelBench", "level3/1_x")
        assert [p.id for p in selected(self.open(str(tmp_path)), Selection())] == ["level3/1_x"]

    def test_a_suite_that_is_half_there(self, tmp_path: Path) -> None:
        (tmp_path / "level1").mkdir()
        with pytest.raises(UsageError, match="contains no Python file"):
            selected(self.open(str(tmp_path)), Selection())
        with pytest.raises(UsageError, match="no folder level1 to level4"):
            selected(self.open(str(tmp_path / "level1")), Selection())

    def test_the_data_set_in_the_cache_of_hugging_face(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
        with pytest.raises(UsageError, match=r"run pip install '\.\[hf,suites\]' .*, then `hf download"):
            selected(self.open("hf"), Selection())
        data = tmp_path / "datasets--ScalingIntelligence--KernelBench" / "snapshots" / "abc" / "data"
        data.mkdir(parents=True)
        rows = [(10, "10_b"), (9, "9_a")]
        made = [{"code": MODEL, "level": 1, "name": name, "problem_id": number} for number, name in rows]
        parquet.write_table(pyarrow.Table.from_pylist(made), data / "level_1-00000-of-00001.parquet")
        found = selected(self.open("hf"), Selection())
        assert [(p.id, p.group, p.source) for p in found] == [
            ("level1/9_a", "level1", MODEL),
            ("level1/10_b", "level1", MODEL),
        ]
        with pytest.raises(UsageError, match="has no level 3"):
            selected(self.open("hf"), Selection(levels=(3,)))

    def test_a_data_set_that_is_half_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
        data = tmp_path / "datasets--ScalingIntelligence--KernelBench" / "snapshots" / "abc" / "data"
        data.mkdir(parents=True)
        row = {"code": MODEL, "level": 1, "name": "9_a", "problem_id": 9}
        first, third = (data / f"level_{level}-00000-of-00001.parquet" for level in (1, 3))
        for file in (first, third):
            parquet.write_table(pyarrow.Table.from_pylist([row]), file)
        with pytest.raises(
            UsageError, match=r"has the levels 1, 3 alone: name those .* with --levels, or down"
        ):
            selected(self.open("hf"), Selection())
        assert [p.id for p in selected(self.open("hf"), Selection(levels=(3,)))] == ["level3/9_a"]
        third.rename(data / "level_1-00001-of-00003.parquet")
        first.rename(data / "level_1-00000-of-00003.parquet")
        with pytest.raises(UsageError, match="is one of 3 files, and others are missing: download"):
            selected(self.open("hf"), Selection())
        (data / "level_1-00001-of-00003.parquet").unlink()
        whole = (data / "level_1-00000-of-00003.parquet").rename(first).read_bytes()
        for content in (whole[:-40], b"", b"version https://git-lfs.github.com/spec/v1\n"):
            first.write_bytes(content)
            with pytest.raises(UsageError, match=rf"{first} is no level of KernelBench \(.*: download"):
                selected(self.open("hf"), Selection())
        for changes in ({"code": None}, {"problem_id": None}, {"problem_id": "x"}):
            parquet.write_table(pyarrow.Table.from_pylist([{**row, **changes}]), first)
            with pytest.raises(UsageError, match="is no level of KernelBench"):
                selected(self.open("hf"), Selection())
        parquet.write_table(pyarrow.Table.from_pylist([{"text": MODEL}]), first)
        with pytest.raises(UsageError, match=r"is no level of KernelBench \(KeyError"):
            selected(self.open("hf"), Selection())


class TestModelFolder(SuiteContract):
    name = "folder"

    def good(self, folder: Path) -> str:
        write(folder, "a", "b", "_helper")
        return str(folder)

    def missing(self, folder: Path) -> str:
        return str(folder / "nowhere")

    def broken_in_part(self, folder: Path) -> str:
        where = self.good(folder)
        (folder / "b.py").write_bytes(b"\xff")
        return where

    def test_helpers_are_no_problems_and_there_are_no_levels(self, tmp_path: Path) -> None:
        suite = self.open(self.good(tmp_path))
        assert [p.id for p in selected(suite, Selection())] == ["a", "b"]
        with pytest.raises(UsageError, match="leave out --levels"):
            selected(suite, Selection(levels=(1,)))

    def test_a_problem_is_the_same_in_another_folder(self, tmp_path: Path) -> None:
        one, other = tmp_path / "one", tmp_path / "other"
        hashes = [
            [p.hash for p in selected(self.open(self.good(folder)), Selection())] for folder in (one, other)
        ]
        assert hashes[0] == hashes[1]
        (other / "a.py").write_text(MODEL + "x = 1\n")
        changed = [p.hash for p in selected(self.open(str(other)), Selection())]
        assert [a == b for a, b in zip(hashes[0], changed, strict=True)] == [False, True]


class TestTomlList(SuiteContract):
    name = "list"

    def good(self, folder: Path) -> str:
        write(folder, "models/a")
        listed = folder / "list.toml"
        listed.write_text(
            '[[problems]]\ntarget = "models/a.py"\n\n'
            '[[problems]]\ntarget = "models/a.py:Model"\ninput_shapes = ["8,512"]\ngroup = "own"\n\n'
            '[[problems]]\ntarget = "hf:config.json"\nid = "llama"\n'
        )
        return str(listed)

    def missing(self, folder: Path) -> str:
        return str(folder / "nowhere.toml")

    def test_entries_keep_their_options(self, tmp_path: Path) -> None:
        file, named, other = selected(self.open(self.good(tmp_path)), Selection())
        assert (file.id, named.id, other.id) == ("a", "a.Model", "llama")
        assert named.target == f"{tmp_path}/models/a.py:Model"
        assert (named.input_shapes, named.group) == (("8,512",), "own")
        assert (other.target, other.file, other.source) == ("hf:config.json", "", "")

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("problems = ", "is not TOML"),
            ("", "no \\[\\[problems\\]\\]"),
            ("[[problems]]\nid = 'x'", "problem 1 has no target"),
            ("[[problems]]\ntarget = 'a.py'\nshape = 1", "unknown key 'shape'"),
            ("[[problems]]\ntarget = 'nowhere.py'", "cannot be read"),
            ("[[problems]]\ntarget = 'hf:x'\ninput_shapes = 3", "problem 1, input_shapes"),
            (
                "[[problems]]\ntarget = 'hf:x'\n[[problems]]\ntarget = 'hf:x'",
                "two problems 'hf.x': give one another id",
            ),
            ("[[problems]]\ntarget = 'hf:x'\nid = '../x'", "an id is a relative path"),
            ("[[problems]]\ntarget = 'hf:x'\nid = '/etc/x'", "an id is a relative path"),
            ("[[problems]]\ntarget = 'hf:x'\nid = '" + "x" * 256 + "'", "of at most 255 characters"),
            (
                "[[problems]]\ntarget = 'hf:x'\ninput_shapes = '8,512'",
                "input_shapes: write a list of strings",
            ),
        ],
    )
    def test_a_wrong_list_is_one_clear_sentence(self, tmp_path: Path, text: str, words: str) -> None:
        (tmp_path / "list.toml").write_text(text)
        with pytest.raises(UsageError, match=words) as caught:
            selected(self.open(str(tmp_path / "list.toml")), Selection())
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("spec", ["kernelbench", "kernelbench:", "nothing:x", "model.py"])
def test_what_is_no_suite_names_the_forms(spec: str) -> None:
    with pytest.raises(UsageError, match="is no suite; give one of: kernelbench:PLACE, folder:PLACE"):
        open_suite(spec)
