"""Code in answers: files, edits that apply exactly, and all the odd shapes that answers take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentforge.agents.llm.edits import Unreadable, sources
from agentforge.schema import Solution
from agentforge.testing.language import make_solution

PY = "import torch\n\nclass ModelNew(torch.nn.Module):\n    pass\n"
CPP = "int f() { return 1; }\nint g() { return 1; }\n"


def parent(**files: str) -> Solution:
    return make_solution("cpp", {"model_new.py": PY, "kernel.cpp": CPP, **files})


def read(text: str, base: Solution | None = None) -> dict[str, str]:
    return {s.path: s.content for s in sources(text, base)}


WHOLE = f"FILE: kernel.cpp\n```cpp\n{CPP}```\n\nFILE: model_new.py\n```python\n{PY}```\n"


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        WHOLE.replace("\n", "\r\n"),
        "Sure! Here it is.\n\n" + WHOLE + "\nGood luck.",
        WHOLE.replace("FILE: kernel.cpp", "**FILE: `kernel.cpp`**").replace("FILE: model", "### FILE: model"),
        WHOLE.replace("FILE: kernel.cpp\n", "").replace("FILE: model_new.py\n", ""),
        WHOLE.replace("FILE: kernel.cpp\n```cpp", "```cpp kernel.cpp"),
        WHOLE.replace("```", "~~~~"),
        WHOLE.replace("```cpp\n", "").replace("```python\n", "").replace("```\n", ""),
        WHOLE.removesuffix("```\n"),
        "\ufeff" + WHOLE,
        f"<think>\n```cpp\n```\n</think>\n{WHOLE}",
        "Files:\n\n" + WHOLE.replace("FILE: kernel.cpp\n", "").replace("FILE: model_new.py\n", ""),
        WHOLE.replace("FILE: kernel.cpp\n", "kernel.cpp\n\nfile.cpp:\n"),
        WHOLE.replace("FILE: kernel.cpp", "FILE: ./kernel.cpp").replace("FILE: m", "FILE .//m"),
        WHOLE.replace("FILE: kernel.cpp", "**FILE**: kernel.cpp").replace("FILE: m", "FILE:m"),
    ],
)
def test_whole_files_in_many_shapes(text: str) -> None:
    assert read(text) == {"kernel.cpp": CPP, "model_new.py": PY}


def test_a_python_file_in_no_fence() -> None:
    assert read("Here you are:\n" + PY) == {"model_new.py": PY}


def test_a_file_replaces_the_parents_and_the_rest_stays() -> None:
    fence = "```cpp\nint f();\n```"
    for text in (fence, f"FILE: ./kernel.cpp\n{fence}", "FILE: ./kernel.cpp\nint f();"):
        assert read(text, parent()) == {"kernel.cpp": "int f();\n", "model_new.py": PY}, text


EDIT = """\
EDIT: kernel.cpp
<<<<<<< SEARCH
int f() { return 1; }
=======
int f() { return 2; }
>>>>>>> REPLACE
"""


@pytest.mark.parametrize(
    "text",
    [
        EDIT,
        EDIT.replace("\n", "\r\n"),
        EDIT.replace("EDIT: ", "EDIT: ./"),
        EDIT.replace("EDIT: kernel.cpp\n", "EDIT: kernel.cpp\n\nEdited:\n"),
        f"```\n{EDIT}```",
        f"```cpp\n{EDIT}```",
        EDIT.replace("<<<<<<<", "```cpp\n// faster\n<<<<<<<") + "```\n",
        f"I change f.\n\n{EDIT}Done.",
    ],
)
def test_an_edit_applies(text: str) -> None:
    assert read(text, parent())["kernel.cpp"] == CPP.replace("f() { return 1", "f() { return 2")


def test_an_edit_may_differ_in_spaces_where_they_mean_nothing() -> None:
    loose = EDIT.replace("int f() { return 1; }", "  int f() {return 1;}", 1)
    assert read(loose, parent())["kernel.cpp"] == CPP.replace("f() { return 1", "f() { return 2")
    twice = CPP + CPP.replace("() {", "()  {")
    with pytest.raises(Unreadable, match="exactly once"):
        read(loose, parent(**{"kernel.cpp": twice}))
    python = "EDIT: model_new.py\n<<<<<<< SEARCH\nimport  torch\n=======\nimport math\n>>>>>>> REPLACE\n"
    with pytest.raises(Unreadable, match="exactly once"):
        read(python, parent())


def test_edits_apply_in_order_and_to_crlf_parents() -> None:
    again = EDIT.replace("return 2", "return 3").replace("return 1", "return 2")
    assert "return 3" in read(EDIT + again, parent(**{"kernel.cpp": CPP.replace("\n", "\r\n")}))["kernel.cpp"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no file"),
        ("I cannot do that.", "no file"),
        ("```cpp\nint a;\n```\nor\n```cpp\nint b;\n```", "FILE: name"),
        (
            EDIT.replace("int f() { return 1; }", "int f() { return 3; }", 1),
            "nearest line is 'int f.*exactly once",
        ),
        (EDIT.replace("int f() { return 1; }", "{ return 1; }", 1), "not in the file|2 times"),
        (EDIT.replace("kernel.cpp", "other.cpp"), "no file other.cpp"),
        (EDIT.replace("EDIT: kernel.cpp\n", ""), "EDIT: name"),
        (EDIT.replace(">>>>>>> REPLACE", ""), "closed by"),
        (EDIT.replace("int f() { return 1; }\n=======", "\n======="), "empty SEARCH"),
        ("FILE: ../../etc/passwd\n```\nx\n```", "inside"),
        ("FILE: kernel.cpp\n```\n" + "x" * 500_000 + "\n```", "longer"),
    ],
)
def test_what_cannot_be_used_says_why(text: str, says: str) -> None:
    with pytest.raises(Unreadable, match=says):
        sources(text, parent())


def test_an_edit_needs_a_parent() -> None:
    with pytest.raises(Unreadable, match="whole FILEs"):
        sources(EDIT, None)


@given(st.text(alphabet=st.sampled_from("FILE: EDIT`<>=\nkernel.cppSEARCHREPLACE \r~#*"), max_size=300))
def test_no_text_breaks_it(text: str) -> None:
    try:
        sources(text, parent())
    except Unreadable as error:
        assert str(error)


@pytest.mark.parametrize(
    "ruler", ["# " + "-" * 80, "#" * 80, " * " + "-" * 80, "> " * 60, "`" * 2 + "-" * 90]
)
def test_rulers_in_comments_take_no_time(ruler: str) -> None:
    code = f"{ruler}\n{CPP}{ruler}\n"
    assert read(f"{ruler}\nFILE: kernel.cpp\n```cpp\n{code}```\n{ruler}\n", parent())["kernel.cpp"] == code
    old, new = CPP.splitlines(keepends=True)[0], code
    edit = f"{ruler}\nEDIT: kernel.cpp\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"
    assert read(edit, parent())["kernel.cpp"].startswith(ruler)


def test_an_answer_that_repeats_itself_takes_no_time() -> None:
    """As one that a model without an end fills with half an edit."""
    half = "<<<<<<< SEARCH\nint f() { return 1; }\n=======\nint f() { return 2; }\n"
    with pytest.raises(Unreadable, match="closed by"):
        read("EDIT: kernel.cpp\n" + half * 5000, parent())
    whole = "EDIT: kernel.cpp\n" + half + half + ">>>>>>> REPLACE\n"
    assert "return 2" in read(whole, parent())["kernel.cpp"]
