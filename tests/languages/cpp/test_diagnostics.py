"""Compiler output becomes diagnostics and metrics."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentforge.languages.cpp import parse_diagnostics


def test_plain_text_of_gcc_and_clang() -> None:
    text = """\
In file included from k.cpp:1:
sub/k.hpp:4:10: fatal error: nothing.h: No such file or directory
    4 | #include "nothing.h"
k.cpp:9:5: warning: unused variable 'x' [-Wunused-variable]
k.cpp:12: note: declared here
cc1plus: warning: command-line option '-Wpointer-sign' is valid for C/ObjC but not for C++
"""
    found = parse_diagnostics(text)
    assert [(d.severity, d.file, d.line, d.column) for d in found] == [
        ("error", "sub/k.hpp", 4, 10),
        ("warning", "k.cpp", 9, 5),
        ("note", "k.cpp", 12, 0),
        ("warning", "", 0, 0),
    ]


def test_linker() -> None:
    text = "/usr/bin/ld: k.o: in function `f':\nk.cpp:(.text+0x1): undefined reference to `g'\n"
    found = parse_diagnostics(text + "collect2: error: ld returned 1 exit status\n")
    assert any("undefined reference to `g'" in d.message for d in found)
    assert {d.severity for d in found} == {"error"}


def test_errors_come_first_and_there_is_an_end() -> None:
    text = "a.cpp:1:1: warning: w\n" * 100 + "a.cpp:2:1: error: e\n"
    found = parse_diagnostics(text)
    assert found[0].message == "e"
    assert len(found) == 50


@given(st.text(max_size=300))
def test_never_raises_on_text(text: str) -> None:
    parse_diagnostics(text)
    parse_diagnostics("k.cpp:" + text)


@pytest.mark.parametrize("line", ["k.cpp:{}: error: e", "k.cpp:1:{}: error: e"])
def test_lines_that_are_no_numbers_of_a_file(line: str) -> None:
    parse_diagnostics(line.format("9" * 5000))
