"""The page shows everything that is known of an attempt, and is nothing but text and our own tags."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest

import agentforge.analysis as af
from agentforge.store import Store

from .hostile import EVIL, NEVER_SEEN, fill

OURS = {"div", "style", "section", "h3", "h4", "p", "b", "i", "span", "code", "pre", "ul", "li", "br",
        "details", "summary"}  # fmt: skip
PANDAS = {"div", "style", "table", "thead", "tbody", "tr", "th", "td", "p"}
EMPTY = {"br"}


class Page(HTMLParser):
    """Tags, attributes and text of a page whose tags close in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def __contains__(self, words: str) -> bool:
        return words in " ".join(" ".join(self.text).split())


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path_factory.mktemp('hostile') / 'agentforge.db'}") as store:
        fill(store)
        yield store


@pytest.mark.slow
def test_an_attempt_is_shown_with_all_that_is_known_of_it(url: str) -> None:
    page = Page(af.trajectory("run", url)._repr_html_())
    for words in (
        "target on null device",
        "norm has the most seconds to gain",
        "pointwise, memory-bound, 50.0% of the time: 2000 ms in 1 call site(s), 100 ms at the speed of light",
        "#1 fuse-row-program",
        "2.00x [1.98, 2.02] over eager, 2.00x [1.98, 2.02] over torch.compile in 500 ms (expected 1.00x over",
        "hardware (ncu), kernel softmax: memory-bound , for gpu__dram_throughput",
        "_elapsed 87.5 % is at least 60 %",
        "Long Scoreboard [estimated 1.25x]: Warps wait for memory.",
        "model_new.py:2: hot line (90% of samples): `LDG.E R16, [R2.64]`: warps wait there for",
        "class ModelNew: ...",
        "lesson: one pass over the row is enough",
        "no such template",
        "INCORRECT_NUMERICAL",
        "source (python, by scripted)",
    ):
        assert words in page, words
    assert page.tags <= OURS


def test_a_child_shows_what_it_changed(hostile: Store) -> None:
    html = af.trajectory(store=hostile)._repr_html_()
    assert "changes to #1 (" in html
    assert html.count('<span class="added">+') > html.count('<span class="removed">-')
    assert "margin-left: 1.5em" in html


def test_no_text_leaves_its_place(hostile: Store) -> None:
    html = af.trajectory(store=hostile)._repr_html_()
    page = Page(html)
    assert page.tags <= OURS
    assert page.attributes <= {"class", "style", "open"}
    assert sum(text.count("<script>alert(1)</script>") for text in page.text) > 30
    assert not any(character in html for character in NEVER_SEEN)
    assert "\\u202e" in html
    assert "{{ 7 * 7 }}" in html


def test_no_text_leaves_its_cell(hostile: Store) -> None:
    for table in (af.runs, af.bottlenecks, af.attempts, af.metrics, af.kernels, af.resources, af.findings):
        frame = table(store=hostile)
        assert len(frame)
        assert Page(frame._repr_html_()).tags <= PANDAS


def test_no_text_leaves_its_place_in_a_figure(hostile: Store) -> None:
    found = af.trajectory(store=hostile)
    for figure in (found.plot(), found.roofline()):
        shown = list(_strings(figure.to_plotly_json()))
        assert any("&lt;script&gt;alert(1)" in text for text in shown)
        assert not [text for text in shown if "<" in text.replace("<br>", "") or "$" in text]
        assert not [text for text in shown for character in NEVER_SEEN if character in text]
        assert "<img" not in figure.to_html(include_plotlyjs=False)
        assert "<script>alert" not in figure.to_html(include_plotlyjs=False)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            if name != "template":
                yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)
    elif hasattr(value, "tolist"):
        yield from _strings(value.tolist())


def test_evil_is_what_it_says() -> None:
    """The parser would notice."""
    with pytest.raises(AssertionError):
        Page(f"<div><pre>{EVIL}</pre></div>")
