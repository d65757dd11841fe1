"""`@tune` comments: the values they set, and the errors of bad ones."""

from __future__ import annotations

import pytest

from agentforge.languages.tune import BadTune, tunables, with_values
from agentforge.schema import Solution
from agentforge.testing.language import make_solution

KERNEL = """constexpr int BLOCK = 128;  // @tune BLOCK = 128 in {64, 128, 256}
#define ROWS 4 // @tune ROWS = 4 in {1, 4}
// @tune UNROLL = 2 in {2, 4}
static const long UNROLL = 2;  // 2 at a time
int other = 128;
"""
TRITON = "    STAGES: tl.constexpr = 3  # @tune STAGES = 3 in {1, 2, 3}\n"


def made(kernel: str = KERNEL, python: str = TRITON) -> Solution:
    return make_solution("cpp", {"model_new.py": python, "kernel.cpp": kernel})


def test_values_are_put_where_the_names_are_set() -> None:
    before = made()
    assert {t.name: (t.default, t.values) for t in tunables(before)} == {
        "STAGES": (3, (1, 2, 3)), "BLOCK": (128, (64, 128, 256)), "ROWS": (4, (1, 4)), "UNROLL": (2, (2, 4)),
    }  # fmt: skip
    after = with_values(before, {"BLOCK": 64, "ROWS": 1, "UNROLL": 4, "STAGES": 2})
    assert after.source("model_new.py") == "    STAGES: tl.constexpr = 2  # @tune STAGES = 2 in {1, 2, 3}\n"
    assert after.source("kernel.cpp") == (
        "constexpr int BLOCK = 64;  // @tune BLOCK = 64 in {64, 128, 256}\n"
        "#define ROWS 1 // @tune ROWS = 1 in {1, 4}\n"
        "// @tune UNROLL = 4 in {2, 4}\n"
        "static const long UNROLL = 4;  // 2 at a time\n"
        "int other = 128;\n"
    )
    assert after.parameters == {"BLOCK": 64, "ROWS": 1, "UNROLL": 4, "STAGES": 2}
    assert after.hash != before.hash
    assert with_values(after, {t.name: t.default for t in tunables(before)}).hash == before.hash
    assert tunables(made("int x;", "")) == ()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "int B = 1; // @tune B [1, 2]",
            r"kernel.cpp, line 1: write `// @tune NAME = DEFAULT in \{A, B, C\}`",
        ),
        ("int B = 1; // @tune B = 1 in {x, y}", "with whole numbers"),
        ("int B = 1; // @tune B = 1 in {2, 3}", "its default 1 among them"),
        ("int B = 1; // @tune B = 1 in {1}", "2 to 16 different values"),
        ("int B = 1; // @tune B = 1 in {1, 1}", "different values"),
        ("int B = 2; // @tune B = 1 in {1, 2}", "must set B to 1, as `constexpr int B = 1;` does"),
        ("int C = 1; // @tune B = 1 in {1, 2}", "must set B to 1"),
        ("int B = 10; // @tune B = 1 in {1, 2}", "must set B to 1"),
        ("// @tune B = 1 in {1, 2}", "must set B to 1"),
        ("int B = 1; // @tune B = 1 in {1, 2}\n" * 2, "names B twice"),
        ("".join(f"int B{i} = 1; // @tune B{i} = 1 in {{1, 2}}\n" for i in range(7)), "keep the 6"),
    ],
)
def test_a_bad_comment_says_how_to_write_it(line: str, said: str) -> None:
    with pytest.raises(BadTune, match=said):
        tunables(made(line, ""))


def test_a_digit_in_a_name_stays() -> None:
    after = with_values(made("constexpr int V4 = 4;  // @tune V4 = 4 in {2, 4}\n", ""), {"V4": 2})
    assert after.source("kernel.cpp") == "constexpr int V4 = 2;  // @tune V4 = 2 in {2, 4}\n"
    assert [(t.name, t.default) for t in tunables(after)] == [("V4", 2)]
