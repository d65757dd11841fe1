"""Cards, right and wrong."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentforge.knowledge import load_folder, parse_card
from agentforge.resources import resource
from agentforge.schema import Advice, Strategy, UsageError

GOOD = """---
id: fuse-rows
title: Fuse the rows
summary: >
  One pass
  over memory.
op_types: [norm, softmax]
template: rows.cpp.j2
parameters:
  unroll: [4, 8]
  stream: [true, false]
prior_log_speedup: 0.7
---
# Why

---

Because a rule is no fence.
"""


def test_a_card() -> None:
    card = parse_card(GOOD, "x.md")
    assert isinstance(card, Strategy)
    assert card.id == "fuse-rows"
    assert card.summary == "One pass over memory.\n"
    assert card.op_types == ("norm", "softmax")
    assert card.parameters == {"unroll": (4, 8), "stream": (True, False)}
    assert card.body.startswith("# Why")
    assert card.body.endswith("Because a rule is no fence.")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "first line"),
        ("# no front matter", "first line"),
        ("---\nid: x\n", "does not end"),
        ("---\nid: [x\n---\n", "no YAML"),
        ("---\njust words\n---\n", "must map"),
        ("---\ntitle: x\nsummary: y\n---\n", "field 'id'"),
        ("---\nid: x\ntitle: x\nsummary: y\ncolour: red\n---\n", "field 'colour'"),
        ("---\nid: x\ntitle: x\nsummary: y\nprior_log_speedup: fast\n---\n", "field 'prior_log_speedup'"),
        ("---\nid: x\nkind: opinion\ntitle: x\nsummary: y\nsource: z\n---\n", "field 'kind'"),
        ("---\nid: x\nkind: avoid\ntitle: x\nsummary: y\n---\n", "field 'source'"),
        ("---\nid: x\ntitle: x\nsummary: y\nrecords: []\n---\n", "'records'"),
        ("---\nid: x\ntitle: x\nsummary: y\n? [a]\n: b\n---\n", "card x.md"),
        ("---\nid: x\ntitle: x\nsummary: y\nbounds: [memory]\nbounds: []\n---\n", "'bounds' is there twice"),
        ("---\nid: x\ntitle: x\nsummary: y\nparameters: {u: [1], u: [2]}\n---\n", "'u' is there twice"),
        ("---\nid: x\ntitle: x\nsummary: y\nprior_log_speedup: .nan\n---\n", "field 'prior_log_speedup'"),
        ("---\nid: x\ntitle: x\nsummary: y\nprior_log_speedup: 50\n---\n", "field 'prior_log_speedup'"),
        ("---\nid: x\ntitle: x\nsummary: y\nprior_weight: -1\n---\n", "field 'prior_weight'"),
    ],
)
def test_a_wrong_card_names_file_and_field(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_card(text, "x.md")
    assert "x.md" in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=200))
def test_any_text_is_a_card_or_an_error(text: str) -> None:
    for card in (text, f"---\n{text}\n---\n"):
        with suppress(UsageError):
            assert isinstance(parse_card(card, "x.md"), Strategy | Advice)


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(GOOD)
    (tmp_path / "README.md").write_text("about these cards")
    (tmp_path / "notes.txt").write_text("no card")
    assert list(load_folder(tmp_path)) == ["fuse-rows"]
    (tmp_path / "b.md").write_text(GOOD)
    with pytest.raises(UsageError, match=r"b\.md.*'fuse-rows'"):
        load_folder(tmp_path)


def test_kinds_and_subfolders(tmp_path: Path) -> None:
    (tmp_path / "avoid").mkdir()
    (tmp_path / "a.md").write_text(GOOD)
    fields = "id: no-trick\nkind: avoid\ntitle: x\nsummary: y\nsource: A paper, 2020\n"
    (tmp_path / "avoid" / "b.md").write_text(f"---\n{fields}---\n")
    assert list(load_folder(tmp_path)) == ["fuse-rows", "no-trick"]


def test_no_folder(tmp_path: Path) -> None:
    assert load_folder(tmp_path / "nothing") == {}


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"---\xff\xfe")
    with pytest.raises(UsageError, match=r"a\.md"):
        load_folder(tmp_path)


def test_the_shipped_cards_are_right() -> None:
    for name, card in load_folder(resource("knowledge_base", "playbook")).items():
        assert card.id == name
        assert card.summary
        if isinstance(card, Strategy) and card.template:
            assert resource("knowledge_base", "templates").is_dir()


@pytest.mark.parametrize("language", ["cuda", "cupy"])
def test_the_prompts_and_the_card_say_the_same_of_tensor_cores_without_a_gpu(language: str) -> None:
    card = load_folder(resource("knowledge_base", "playbook"))["inline-ptx-without-a-gpu"]
    prompt = resource("prompts", "coder", "languages", f"{language}.md.j2").read_text()
    assert "runs tensor cores as `nvcuda::wmma` with 16-bit floats" in prompt
    assert "`nvcuda::wmma` with 16-bit floats runs in the emulator" in card.body
