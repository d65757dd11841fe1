"""A missing package is one sentence before anything runs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from agentforge.campaigns.suites import suites
from agentforge.campaigns.suites.packages import check_packages, missing_package
from agentforge.schema import BuildSpec, Solution, SourceFile, SuiteProblem, UsageError


def problem(source: str) -> SuiteProblem:
    return SuiteProblem(id="level3/48_Mamba", target="x.py", file="x.py", source=source)


def test_a_package_that_the_suite_names_comes_with_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentforge.campaigns.suites.packages.find_spec", lambda name: None)
    with pytest.raises(UsageError) as caught:
        check_packages(problem("from einops import rearrange\n"), "kernelbench:/x", "night", tmp_path)
    assert str(caught.value) == (
        "level3/48_Mamba imports einops, which is not installed: "
        "run pip install '.[suites]' in AgentForge's clone, then "
        "agentforge campaign retry night --failed"
    )


def test_another_package_is_named_itself(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="run pip install nowhere_to_be_found, then"):
        check_packages(problem("import nowhere_to_be_found.part as n\n"), "unknown:/x", "night", tmp_path)


@pytest.mark.parametrize(
    "source",
    [
        "import json, torch.nn.functional\nfrom collections import abc\n",
        "import beside\nfrom below import thing\n",
        "try:\n    import nowhere_to_be_found\nexcept ImportError:\n    pass\n",
        "def f():\n    import nowhere_to_be_found\n",
        "no python (\n",
        "-" * 100_000 + "1",
    ],
)
def test_what_is_there_or_optional_passes(source: str, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "below").mkdir()
    check_packages(problem(source), "folder:/x", "night", tmp_path)


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("import cutlass_of_nobody.cute as cute\n", "cutlass_of_nobody"),
        ("import torch\nfrom helpers.parts import thing\nfrom kernel import run\n", ""),
        ("from agentforge_cpp import load\n", ""),
        ("try:\n    import nowhere_to_be_found\nexcept ImportError:\n    pass\n", ""),
    ],
)
def test_a_solution_names_the_first_package_that_is_missing(source: str, missing: str) -> None:
    files = {
        "model_new.py": "import json\n",
        "kernel.py": source,
        "helpers/parts.py": "thing = 1\n",
        "k.cu": "import",
    }
    sources = tuple(SourceFile(path=path, content=text) for path, text in files.items())
    spec = BuildSpec(language="cpp")
    assert (
        missing_package(Solution(name="s", definition="d", author="a", spec=spec, sources=sources)) == missing
    )


EXTRAS = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]


@pytest.mark.parametrize(
    ("suite", "package"),
    [(name, package) for name in suites.names() for package in suites.create(name, "/x").packages],
)
def test_the_extra_that_the_advice_names_brings_the_package(
    suite: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentforge.campaigns.suites.packages._installed", lambda name: False)
    with pytest.raises(UsageError) as caught:
        check_packages(problem(f"import {package}\n"), f"{suite}:/x", "night", tmp_path)
    (extra,) = re.findall(r"pip install '\.\[(\w+)\]'", str(caught.value))
    assert package in {re.split(r"[\[<>=]", line)[0] for line in EXTRAS[extra]}
