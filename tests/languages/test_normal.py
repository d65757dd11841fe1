"""Solutions that are the same program."""

from __future__ import annotations

import pytest

from agentforge.languages.normal import normalised, of_compiled
from agentforge.schema import BuildSpec, Solution, SourceFile

PYTHON = "class ModelNew:\n    def forward(self, x):\n        return x  # as it is\n"
CPP = """#include <cmath>
// adds
float add(float a, float b) {
    return a + b;  /* two
    lines */
}
const char* text = "// no comment";
"""


def solution(python: str = PYTHON, cpp: str = CPP, **spec: tuple[str, ...]) -> Solution:
    files = (SourceFile(path="model_new.py", content=python), SourceFile(path="kernel.cpp", content=cpp))
    return Solution(
        name="a", definition="d", author="me", spec=BuildSpec(language="cpp", **spec), sources=files
    )


@pytest.mark.parametrize(
    ("python", "cpp"),
    [
        (PYTHON.replace("  # as it is", ""), CPP),
        (PYTHON.replace("    ", "  "), CPP),
        (PYTHON, CPP.replace("// adds", "/* sums */")),
        (PYTHON, CPP.replace("    return", "  return").replace("a + b;", "a +  b;\n")),
    ],
)
def test_comments_and_layout_make_no_difference(python: str, cpp: str) -> None:
    assert normalised(solution(python, cpp)) == normalised(solution())


@pytest.mark.parametrize(
    ("python", "cpp"),
    [
        (PYTHON.replace("return x", "return -x"), CPP),
        ("class ModelNew:\n    def forward(self, x):\n        pass\n    return x\n", CPP),
        (PYTHON + 'SOURCE = "#pragma unroll 4"\n', CPP),
        (PYTHON, CPP.replace("// no comment", "// other text")),
        (PYTHON, CPP.replace("// adds", "// @tune N = 4 in {4, 8}")),
        (PYTHON, CPP.replace("a + b", "a - b")),
    ],
)
def test_what_a_program_does_makes_one(python: str, cpp: str) -> None:
    other = normalised(solution(python, cpp))
    assert other != normalised(solution())
    assert normalised(solution(python + 'MORE = "#pragma unroll 8"\n', cpp)) != other


def test_flags_count_and_the_compilers_files_need_not() -> None:
    assert normalised(solution(flags=("-O3",))) != normalised(solution())
    assert of_compiled(solution(cpp="int x;")) == of_compiled(solution())
    assert of_compiled(solution("class ModelNew: ...")) != of_compiled(solution())


def test_text_that_is_no_python_is_compared_as_it_is() -> None:
    assert normalised(solution("class (")) == normalised(solution("class ("))
    assert normalised(solution("class (")) != normalised(solution("class ( "))
